package sip

import (
	"context"
	"fmt"

	gosip "github.com/emiago/sipgo/sip"
)

// Referral is the other end of a transfer: the peer wants whoever it talks to here
// connected to another number (REFER, RFC 3515). Only who plays a carrier takes it.
type Referral struct {
	To string // the number, in E.164 when it can be told

	call *Call
	req  *gosip.Request
	tx   *gosip.ServerTx
}

// onRefer gives a wish to be transferred to the owner. An owner that has no ear for it is
// not moved by its peer.
func (c *Call) onRefer(req *gosip.Request, tx *gosip.ServerTx) {
	c.mu.Lock()
	take := c.hooks.Refer
	c.mu.Unlock()
	target := req.ReferTo()
	switch {
	case take == nil:
		c.agent.respond(tx, req, 603, nil)
	case target == nil || len(req.GetHeaders("Refer-To")) != 1: // RFC 3515 section 2.4.2
		c.agent.respond(tx, req, 400, nil)
	default:
		take(&Referral{To: received(userOf(target.Address), c.trunk.CallingFormat), call: c, req: req, tx: tx})
	}
}

// Refuse answers that nothing will be tried.
func (r *Referral) Refuse(status int) { r.call.agent.respond(r.tx, r.req, status, nil) }

// Accept answers that it will be tried; Report tells how that goes.
func (r *Referral) Accept() { r.call.agent.respond(r.tx, r.req, 202, nil) }

// Over is closed when the call that the wish came by is over.
func (r *Referral) Over() <-chan struct{} { return r.call.done }

// Report tells what the other number answered (NOTIFY, RFC 3515 section 2.4.4). A final
// status is the last report.
func (r *Referral) Report(ctx context.Context, status int) error {
	select {
	case <-r.call.done:
		return ErrOver
	default:
	}
	state := "active;expires=60"
	if status >= 200 {
		state = "terminated;reason=noresource" // section 2.4.7
	}
	req := r.call.prepare(gosip.NOTIFY)
	req.AppendHeader(gosip.NewHeader("Event", "refer"))
	req.AppendHeader(gosip.NewHeader("Subscription-State", state))
	setBody(req, "message/sipfrag;version=2.0", fmt.Appendf(nil, "SIP/2.0 %d %s\r\n", status, reason(status)))
	res, err := r.call.do(ctx, req)
	if err != nil {
		return err
	}
	if !res.IsSuccess() {
		return verdictOf(res)
	}
	return nil
}
