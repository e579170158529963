package switchboard

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/internal/sip"
	"parley/internal/store"
)

// busyFor is what a caller who found no room is told to wait.
const busyFor = 5 * time.Second

// Incoming takes a call that rings at this node: the SIP agent's hook. It returns when
// the call is over.
func (b *Board) Incoming(ctx context.Context, in *sip.Incoming) {
	if !b.sit() {
		_ = in.Refuse(503, busyFor)
		return
	}
	c, a, status := b.accept(ctx, in)
	if status != 0 {
		b.rise()
		_ = in.Refuse(status, 0)
		return
	}
	callCtx, l := b.hold(ctx, c.ID)
	defer b.drop(c.ID, l)
	// The caller's patience ends the call too, until it is answered.
	defer context.AfterFunc(ctx, func() {
		if b.scribe.answered(c.ID).IsZero() {
			l.cancel()
		}
	})()
	b.answer(callCtx, ctx, l, in, c, a)
}

// accept finds who answers a number and makes the call's row; a status refuses the call.
func (b *Board) accept(ctx context.Context, in *sip.Incoming) (*parley.Call, *parley.Assistant, int) {
	var a *parley.Assistant
	var number *parley.PhoneNumber
	var trunk parley.Trunk
	err := error(parley.ErrNotFound("Phone number"))
	for _, trunk = range in.Trunks { // several accounts of one carrier share its address
		a, number, err = b.DB.System().InboundAssistant(ctx, trunk.UserID, in.To)
		if err == nil {
			break
		}
	}
	switch {
	case parley.ErrorCode(err) == parley.NotFound && number == nil:
		return nil, nil, 404
	case parley.ErrorCode(err) == parley.NotFound:
		return nil, nil, 480 // a number that nobody answers for now
	case err != nil:
		b.Log.Error("an incoming call could not be looked up", "error", err)
		return nil, nil, 500
	case a.Status != parley.Active:
		return nil, nil, 480
	}
	c := &parley.Call{
		AssistantID: a.ID, AssistantName: a.Name, Type: parley.Inbound, Status: parley.CallRinging,
		AssistantNumber: number.Number, CustomerNumber: caller(in.From), Variables: parley.Object{},
	}
	c.Carrier, c.TrunkID = b.broughtBy(in, trunk.ID, number)
	err = b.DB.Tenant(a.UserID).Tx(ctx, func(t *store.Tenant) error { return t.CreateCall(ctx, c, b.queue.Node()) })
	if err != nil {
		b.Log.Error("an incoming call could not be written", "error", err)
		return nil, nil, 500
	}
	return c, a, 0
}

// broughtBy is who carries a call that came in by a trunk. Of the user's own trunks that
// share its address it is the number's, if that is one of them.
func (b *Board) broughtBy(in *sip.Incoming, trunk parley.ID, number *parley.PhoneNumber) (parley.Carrier, *parley.ID) {
	for _, carrier := range []parley.Carrier{parley.CarrierDefault, parley.CarrierSimulated} {
		if t, ok := b.Carrier(carrier); ok && t.ID == trunk {
			return carrier, nil
		}
	}
	if number.TrunkID != nil && slices.ContainsFunc(in.Trunks, func(t parley.Trunk) bool { return t.ID == *number.TrunkID }) {
		trunk = *number.TrunkID
	}
	return parley.CarrierTrunk, &trunk
}

// caller is the caller's number as far as it is one.
func caller(from string) string {
	const longest = 64
	if len(from) > longest {
		return from[:longest]
	}
	return from
}

// answer rings, asks the user's webhook, and holds the conversation.
func (b *Board) answer(ctx, ringing context.Context, l *liveCall, in *sip.Incoming, c *parley.Call, a *parley.Assistant) {
	_ = in.Ring() // a caller who has left is seen by what follows
	if b.Greet != nil {
		c.Input = merged(c.Input, b.Greet(ringing, c, a))
		c.Variables = c.Input
	}
	config, r, err := b.converse(ctx, c, a)
	if err != nil {
		_ = in.Refuse(500, 0)
		b.end(ctx, c, r, Result{}, err, l)
		return
	}
	result, err := b.Telephone.Answer(ctx, in, b.signals(c), config)
	b.end(ctx, c, r, result, err, l)
}
