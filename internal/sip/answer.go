package sip

import (
	"context"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// expectAck makes ready for the ACK of a 2xx that is about to be sent.
func (c *Call) expectAck(cseq uint32) <-chan []byte {
	acked := make(chan []byte, 1)
	c.mu.Lock()
	c.acks[cseq] = acked
	c.mu.Unlock()
	return acked
}

// onAck ends the sending of a 2xx and hands over what the ACK carried.
func (c *Call) onAck(req *gosip.Request) {
	c.mu.Lock()
	acked := c.acks[req.CSeq().SeqNo]
	delete(c.acks, req.CSeq().SeqNo)
	c.mu.Unlock()
	if acked == nil {
		return
	}
	if isSDP(req) {
		acked <- req.Body()
	}
	close(acked)
}

// keepSending repeats a 2xx until its ACK comes (RFC 3261 section 13.3.1.4): on every
// transport, because a 2xx is acknowledged end to end. Without an ACK the call ends.
func (c *Call) keepSending(tx *gosip.ServerTx, res *gosip.Response, cseq uint32) {
	c.agent.spawn(func() {
		wait := c.agent.settings.T1
		limit := time.NewTimer(64 * wait)
		next := time.NewTimer(wait)
		defer limit.Stop()
		defer next.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-c.agent.ctx.Done():
				return
			case <-limit.C:
				if c.unacked(cseq) {
					c.drop(End{By: EndedBySystem, Reason: "no_ack"})
				}
				return
			case <-next.C:
				if !c.unacked(cseq) {
					return
				}
				_ = tx.Respond(res)
				wait = min(2*wait, c.agent.settings.T2)
				next.Reset(wait)
			}
		}
	})
}

func (c *Call) unacked(cseq uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acks[cseq] != nil
}

// takeDelayed reads the answer to the offer in our 2xx out of the ACK (RFC 3264, RFC
// 3261 section 13.2.1). Without a usable one there is no media and the call ends.
func (c *Call) takeDelayed(ctx context.Context, media Media, acked <-chan []byte) error {
	var body []byte
	select {
	case body = <-acked:
	case <-c.done:
		return ErrCancelled
	case <-ctx.Done():
		c.drop(End{By: EndedByUs, Reason: "bye"})
		return ctx.Err()
	}
	session, err := Accept(body, media)
	if err != nil {
		c.drop(End{By: EndedByUs, Reason: string(NoMedia)})
		return err
	}
	c.mu.Lock()
	c.local, c.session = media.settle(session), session
	c.mu.Unlock()
	return nil
}
