package sip

import (
	"context"
	"fmt"
	"strconv"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// earlyDialog is what a branch of a ringing call has said so far.
type earlyDialog struct {
	rseq    uint32
	session *Session
}

// progress takes a provisional answer to our INVITE. They come in any order: 183 with
// media after or before 180, from one branch or several.
func (c *Call) progress(res *gosip.Response) {
	if res.StatusCode == 100 || res.To() == nil || res.CallID() == nil || res.From() == nil || res.CSeq() == nil {
		return
	}
	tag := tagOf(res.To().Params)
	var session *Session
	if tag != "" && isSDP(res) && len(res.Body()) > 0 {
		if s, err := Accept(res.Body(), c.local); err == nil {
			session = &s
		}
	}
	c.mu.Lock()
	e := c.branches[tag]
	if e == nil && tag != "" && len(c.branches) < 16 {
		e = &earlyDialog{}
		c.branches[tag] = e
	}
	if e != nil && session != nil {
		e.session = session
	}
	c.mu.Unlock()
	if e != nil && requires(res, "100rel") && !c.acknowledgeProvisional(e, res) {
		return // a repetition: its PRACK is on the way
	}
	if c.hooks.Progress != nil {
		c.hooks.Progress(Progress{Status: res.StatusCode, Early: session})
	}
}

// acknowledgeProvisional sends PRACK (RFC 3262 section 4). Provisionals that are
// repeated or out of order are not acknowledged; the peer sends them again.
func (c *Call) acknowledgeProvisional(e *earlyDialog, res *gosip.Response) bool {
	rseq, err := strconv.ParseUint(headerValue(res, "RSeq"), 10, 32)
	if err != nil || rseq == 0 {
		return true // not a reliable one after all
	}
	c.mu.Lock()
	if e.rseq != 0 && uint32(rseq) != e.rseq+1 {
		c.mu.Unlock()
		return false
	}
	e.rseq = uint32(rseq)
	d := dialogFromResponse(res, c.dialog.hop)
	c.mu.Unlock()
	c.agent.spawn(func() {
		ctx, cancel := context.WithTimeout(c.agent.ctx, 64*c.agent.settings.T1)
		defer cancel()
		if c.agent.locate(ctx, &d, sourceOf(res.Source())) != nil {
			return
		}
		prack := d.request(c.agent, gosip.PRACK, c.cseq.Add(1), c.contactUser())
		prack.AppendHeader(gosip.NewHeader("RAck", fmt.Sprintf("%d %d INVITE", rseq, res.CSeq().SeqNo)))
		_, _ = c.agent.roundTripAuthorized(ctx, d.hop, prack, c.trunk, func() uint32 { return c.cseq.Add(1) })
	})
	return true
}

// reliable is a provisional answer of ours that the caller must acknowledge.
type reliable struct {
	rseq uint32
	cseq uint32
	got  chan struct{}
}

// sendProvisional sends 18x, reliably when the caller requires it (RFC 3262 section 3).
func (in *Incoming) sendProvisional(res *gosip.Response) error {
	c := in.call
	if !in.reliably {
		return in.tx.Respond(res)
	}
	c.mu.Lock()
	if c.reliable != nil { // one at a time: RFC 3262 section 3
		c.mu.Unlock()
		return nil
	}
	in.rseq++
	r := &reliable{rseq: in.rseq, cseq: in.req.CSeq().SeqNo, got: make(chan struct{})}
	c.reliable = r
	c.mu.Unlock()
	res.AppendHeader(gosip.NewHeader("Require", "100rel"))
	res.AppendHeader(gosip.NewHeader("RSeq", strconv.FormatUint(uint64(r.rseq), 10)))
	if err := in.tx.Respond(res); err != nil {
		return err
	}
	c.agent.spawn(func() { in.repeatProvisional(r, res) })
	return nil
}

func (in *Incoming) repeatProvisional(r *reliable, res *gosip.Response) {
	wait := in.call.agent.settings.T1
	limit := time.NewTimer(64 * wait)
	defer limit.Stop()
	for {
		next := time.NewTimer(wait)
		select {
		case <-r.got:
			next.Stop()
			return
		case <-in.decided:
			next.Stop()
			return
		case <-in.ctx.Done():
			next.Stop()
			return
		case <-limit.C: // RFC 3262 section 3: the request is rejected with a 5xx
			next.Stop()
			_ = in.Refuse(504, 0)
			return
		case <-next.C:
			wait *= 2
			in.mu.Lock()
			if !in.final {
				_ = in.tx.Respond(res)
			}
			in.mu.Unlock()
		}
	}
}

// onPrack matches a PRACK to the provisional it acknowledges.
func (c *Call) onPrack(req *gosip.Request, tx *gosip.ServerTx) {
	var rseq, cseq uint32
	var method string
	_, err := fmt.Sscan(headerValue(req, "RAck"), &rseq, &cseq, &method)
	c.mu.Lock()
	r := c.reliable
	match := err == nil && r != nil && r.rseq == rseq && r.cseq == cseq && method == "INVITE"
	if match {
		c.reliable = nil
	}
	c.mu.Unlock()
	if !match {
		c.agent.respond(tx, req, 481, nil)
		return
	}
	close(r.got)
	c.agent.respond(tx, req, 200, nil)
}
