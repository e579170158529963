package sip

import (
	"context"
	"errors"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// errClosed says that the agent sends nothing any more.
var errClosed = errors.New("sip: the agent is closed")

// request begins a transaction. Close waits for it: sipgo opens a socket anew for what
// is sent after the sockets were closed, and nobody would close that one.
func (a *Agent) request(ctx context.Context, req *gosip.Request) (*gosip.ClientTx, error) {
	if !a.begin() {
		return nil, errClosed
	}
	defer a.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	return a.txl.Request(ctx, req)
}

// write sends a message outside of transactions, under the same rule as request.
func (a *Agent) write(msg gosip.Message) error {
	if !a.begin() {
		return errClosed
	}
	defer a.work.Done()
	return a.transport.WriteMsg(msg)
}

// unanswered is why a transaction ended without an answer. One that was ended from
// outside, as Close does, has no error of its own.
func unanswered(tx *gosip.ClientTx) error {
	if err := tx.Err(); err != nil {
		return err
	}
	return errClosed
}

// roundTrip sends a request other than INVITE and waits for its final answer.
func (a *Agent) roundTrip(ctx context.Context, req *gosip.Request) (*gosip.Response, error) {
	tx, err := a.request(ctx, req)
	if err != nil {
		return nil, err
	}
	defer tx.Terminate()
	for {
		select {
		case res := <-tx.Responses():
			if !res.IsProvisional() {
				return res, nil
			}
		case <-tx.Done():
			return nil, unanswered(tx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// roundTripAuthorized answers one challenge on the way (RFC 3261 section 22). renew
// gives the number of the next try.
func (a *Agent) roundTripAuthorized(ctx context.Context, h hop, req *gosip.Request, trunk parley.Trunk, renew func() uint32) (*gosip.Response, error) {
	for range 2 { // a stale nonce may cost a second round
		res, err := a.roundTrip(ctx, req)
		if err != nil || res.StatusCode != 401 && res.StatusCode != 407 {
			return res, err
		}
		if authorize(req, res, trunk) != nil {
			return res, nil //nolint:nilerr // a challenge that cannot be answered is the answer
		}
		req = again(req, h, renew())
	}
	return a.roundTrip(ctx, req)
}

// again makes the next try of a request: same words, new number and branch.
func again(req *gosip.Request, h hop, cseq uint32) *gosip.Request {
	next := req.Clone()
	next.CSeq().SeqNo = cseq
	h.prepare(next)
	return next
}

// invitation is one INVITE on its way: first or in-dialog.
type invitation struct {
	agent       *Agent
	hop         hop
	req         *gosip.Request
	ring        time.Duration         // 0: no limit of our own
	provisional func(*gosip.Response) // may be nil
	repeated    func(*gosip.Response) // every further 2xx
}

// errRang says that the ring timeout ended the attempt.
var errRang = errors.New("sip: nobody answered in time")

// send sends the INVITE and waits for its final answer. When ctx or the ring timeout
// ends first it sends CANCEL, and still waits for the final answer: a 2xx that crossed
// the CANCEL is returned beside the reason, for the caller to acknowledge and end.
// heard says whether the peer had answered anything.
func (i *invitation) send(ctx context.Context) (res *gosip.Response, heard bool, err error) {
	arrived, forget := i.agent.arrivals.expect(i.req)
	defer forget()
	tx, err := i.agent.request(ctx, i.req)
	if err != nil {
		return nil, false, err
	}
	tx.OnRetransmission(i.repeated)
	var ring <-chan time.Time
	if i.ring > 0 {
		timer := time.NewTimer(i.ring)
		defer timer.Stop()
		ring = timer.C
	}
	var reason error
	giveUp := time.NewTimer(time.Hour)
	giveUp.Stop()
	defer giveUp.Stop()
	stop := ctx.Done()
	cancel := func(why error) {
		reason, stop, ring = why, nil, nil
		giveUp.Reset(64 * i.agent.settings.T1) // RFC 3261 section 9.1
		if heard {                             // RFC 3261 section 9.1: not before the first provisional
			i.cancel()
		}
	}
	for {
		select {
		case res := <-tx.Responses():
			if i.provisional != nil && reason == nil {
				for _, said := range arrived() { // whatever this one has overtaken
					i.provisional(said)
				}
			}
			if !res.IsProvisional() {
				return res, true, reason
			}
			if !heard && reason != nil {
				i.cancel()
			}
			heard = true
		case <-tx.Done():
			if reason != nil {
				return nil, heard, reason
			}
			return nil, heard, unanswered(tx)
		case <-stop:
			cancel(ctx.Err())
		case <-ring:
			cancel(errRang)
		case <-giveUp.C:
			tx.Terminate()
			return nil, heard, reason
		}
	}
}

// cancel sends CANCEL for the INVITE. It repeats the request's identity to the letter
// (RFC 3261 section 9.1), and its answer decides nothing: the INVITE's own does.
func (i *invitation) cancel() {
	req := gosip.NewRequest(gosip.CANCEL, i.req.Recipient)
	req.AppendHeader(i.req.Via().Clone())
	for _, name := range []string{"Route", "From", "To", "Call-ID"} {
		for _, h := range i.req.GetHeaders(name) {
			req.AppendHeader(gosip.HeaderClone(h))
		}
	}
	forwards := gosip.MaxForwardsHeader(70)
	req.AppendHeader(&gosip.CSeqHeader{SeqNo: i.req.CSeq().SeqNo, MethodName: gosip.CANCEL})
	req.AppendHeader(&forwards)
	req.SetBody(nil)
	i.hop.aim(req)
	i.agent.spawn(func() {
		ctx, stop := context.WithTimeout(i.agent.ctx, 64*i.agent.settings.T1)
		defer stop()
		_, _ = i.agent.roundTrip(ctx, req)
	})
}

// strayResponse takes answers that no transaction waits for. A 2xx to an INVITE of ours
// means that somebody has picked up: it is acknowledged and ended (RFC 3261 section
// 13.2.2.4), whether it came after the attempt was given up or after its transaction.
func (a *Agent) strayResponse(res *gosip.Response) {
	cseq, id := res.CSeq(), res.CallID()
	if !res.IsSuccess() || cseq == nil || cseq.MethodName != gosip.INVITE || id == nil || res.From() == nil || res.To() == nil {
		return
	}
	if !a.madeCallID(id.Value()) {
		return
	}
	key := dialogKey{id.Value(), tagOf(res.From().Params)}
	if c, _ := a.find(key); c != nil && c.acknowledgeAgain(res, false) {
		return
	}
	a.counters.lateAnswers.Add(1)
	a.spawn(func() { a.endStray(res) })
}

// endStray acknowledges a 2xx that belongs to no call and ends its dialog.
func (a *Agent) endStray(res *gosip.Response) {
	ctx, cancel := context.WithTimeout(a.ctx, 64*a.settings.T1)
	defer cancel()
	d := dialogFromResponse(res, hop{network: gosip.NetworkToLower(res.Transport())})
	if a.locate(ctx, &d, sourceOf(res.Source())) != nil {
		return
	}
	ack := d.request(a, gosip.ACK, res.CSeq().SeqNo, "")
	if a.write(ack) != nil {
		return
	}
	_, _ = a.roundTrip(ctx, d.request(a, gosip.BYE, res.CSeq().SeqNo+1, ""))
}
