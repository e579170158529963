package switchboard

import (
	"context"
	"errors"
	"maps"
	"time"

	"parley"
	"parley/internal/jobs"
	"parley/internal/sip"
	"parley/internal/store"
)

const (
	// tryAgain is how soon a call that found no room looks for it again.
	tryAgain = 250 * time.Millisecond
	// patience is how long a call waits for room before it counts as failed.
	patience = time.Minute
)

// merged puts the variables of a call over those of its assistant.
func merged(under, over parley.Object) map[string]any {
	all := make(map[string]any, len(under)+len(over))
	maps.Copy(all, under)
	maps.Copy(all, over)
	return all
}

// Dial places a call that a request or a campaign asked for: the work of a dial job. It
// returns when the call has been claimed and is on its way, or is over; a job that
// comes again finds it claimed and leaves it alone.
func (b *Board) Dial(ctx context.Context, id parley.ID) error {
	if !b.sit() {
		return b.waitOrFail(ctx, id, parley.EndNoCapacity)
	}
	c, a, trunk, err := b.claim(ctx, id)
	if err != nil || c == nil {
		b.rise()
		if errors.Is(err, errTrunkFull) {
			return b.waitOrFail(ctx, id, parley.EndTrunkFull)
		}
		return err
	}
	callCtx, l := b.hold(ctx, c.ID)
	go func() {
		defer b.drop(c.ID, l)
		b.place(callCtx, l, c, a, trunk)
	}()
	return nil
}

// waitOrFail has a call without room wait for it, for a while.
func (b *Board) waitOrFail(ctx context.Context, id parley.ID, reason parley.EndReason) error {
	later := jobs.Later(tryAgain)
	return b.DB.System().Tx(ctx, func(s *store.System) error {
		c, err := s.Call(ctx, id)
		if err != nil || c.Status != parley.CallInitiated || c.DialedAt != nil {
			return notFoundIsFine(err)
		}
		if asked, err := s.HangupAsked(ctx, id); err != nil || asked {
			if err != nil {
				return err
			}
			return b.refuse(ctx, s, c, parley.EndHangup)
		}
		if time.Since(c.CreatedAt) < patience || b.Draining() {
			return later
		}
		return b.refuse(ctx, s, c, reason)
	})
}

// notFoundIsFine: a call that was deleted needs no work.
func notFoundIsFine(err error) error {
	if parley.ErrorCode(err) == parley.NotFound {
		return nil
	}
	return err
}

var errTrunkFull = errors.New("switchboard: the trunk is full")

// claim makes this node the holder of a call, in the transaction after which it counts as
// dialled. Without a call it was somebody else's, or must not be placed and is over.
func (b *Board) claim(ctx context.Context, id parley.ID) (call *parley.Call, a *parley.Assistant, trunk parley.Trunk, err error) {
	err = b.DB.System().Tx(ctx, func(s *store.System) error {
		c, err := s.Call(ctx, id)
		if err != nil || c.Status != parley.CallInitiated || c.DialedAt != nil {
			return notFoundIsFine(err)
		}
		reason, err := b.forbidden(ctx, s, c)
		if err != nil {
			return err
		}
		if a, err = s.AssistantOf(ctx, c); err != nil {
			return err
		}
		if reason == "" && (a.Status != parley.Active || a.DeletedAt != nil) {
			reason = parley.EndNoAssistant
		}
		if reason == "" {
			trunk, reason, err = b.trunkOf(ctx, s, c)
			if err != nil {
				return err
			}
		}
		if reason != "" {
			return b.refuse(ctx, s, c, reason)
		}
		claimed, err := s.ClaimCall(ctx, id, b.queue.Node())
		if err != nil || !claimed {
			return err
		}
		at := time.Now().UTC()
		c.DialedAt = &at
		call = c
		return nil
	})
	return call, a, trunk, err
}

// forbidden asks everything that may have changed since the call was accepted.
func (b *Board) forbidden(ctx context.Context, s *store.System, c *parley.Call) (parley.EndReason, error) {
	if asked, err := s.HangupAsked(ctx, c.ID); err != nil || asked {
		return parley.EndHangup, err
	}
	if b.Policy.Check(c.CustomerNumber) != nil {
		return parley.EndBlocked, nil //nolint:nilerr // the verdict is the answer
	}
	// The campaign before the list: the order of all who lock both.
	if b.Recheck != nil {
		if reason, err := b.Recheck(ctx, s, c); err != nil || reason != "" {
			return reason, err
		}
	}
	listed, err := s.Tenant(c.UserID).DoNotCall(ctx, c.CustomerNumber)
	if err != nil || listed[c.CustomerNumber] {
		return parley.EndDoNotCall, err
	}
	return "", nil
}

// trunkOf is the trunk that carries a call, with a channel free on it across all nodes.
func (b *Board) trunkOf(ctx context.Context, s *store.System, c *parley.Call) (parley.Trunk, parley.EndReason, error) {
	if c.Carrier != parley.CarrierTrunk || c.TrunkID == nil {
		trunk, ok := b.Carrier(c.Carrier)
		if !ok {
			return trunk, parley.EndNoTrunk, nil
		}
		return trunk, "", nil
	}
	trunk, err := s.Trunk(ctx, *c.TrunkID)
	if parley.ErrorCode(err) == parley.NotFound {
		return parley.Trunk{}, parley.EndNoTrunk, nil
	}
	if err != nil {
		return parley.Trunk{}, "", err
	}
	up, begun, err := s.TrunkLoad(ctx, trunk.ID)
	if err != nil {
		return *trunk, "", err
	}
	if up >= trunk.MaxChannels || begun >= trunk.CallsPerSecond {
		return *trunk, "", errTrunkFull
	}
	return *trunk, "", nil
}

// refuse ends a call that was never dialled.
func (b *Board) refuse(ctx context.Context, s *store.System, c *parley.Call, reason parley.EndReason) error {
	over := time.Now().UTC()
	c.Status, c.EndReason, c.EndedAt = parley.CallFailed, &reason, &over
	c.EndedBy = bySystem()
	if err := s.EndCall(ctx, "", c); err != nil {
		return err
	}
	return b.conclude(ctx, s, c)
}

func bySystem() *string {
	system := "system"
	return &system
}

// place dials, talks, and writes down what became of it.
func (b *Board) place(ctx context.Context, l *liveCall, c *parley.Call, a *parley.Assistant, trunk parley.Trunk) {
	attempt := Attempt{Trunk: trunk, To: c.CustomerNumber, From: c.AssistantNumber, Signals: b.signals(c)}
	var result Result
	config, r, err := b.converse(ctx, c, a)
	if err == nil {
		result, err = b.Telephone.Place(ctx, attempt, config)
	}
	if reason, ours := unsent(err); ours {
		b.giveBack(ctx, c, reason, err)
		return
	}
	b.end(ctx, c, r, result, err, l)
}

// unsent says that a call came to nothing by ourselves before anything of it was sent, and
// why: something that it needs could not be had, or our agent held it back, because its
// trunk has a call too many in this second or at once.
func unsent(err error) (parley.EndReason, bool) {
	if own, ok := errors.AsType[*ownError](err); ok {
		return own.reason, true
	}
	failure, ok := errors.AsType[*sip.Failure](err)
	return parley.EndTrunkFull, ok && failure.Outcome == sip.Limited
}

// giveBack makes a call that was claimed, and of which nothing was sent, one that was never
// dialled: nobody's telephone has rung, so no lead has had its attempt. After a while it is
// claimed anew, by whichever node, and everything is asked again, for its campaign may have
// been stopped meanwhile. One that has waited too long is over.
func (b *Board) giveBack(ctx context.Context, c *parley.Call, reason parley.EndReason, why error) {
	// The longer it has waited, the less often it tries: what is broken costs little.
	pause(ctx, max(tryAgain, time.Since(c.CreatedAt)/8))
	ctx = context.WithoutCancel(ctx)
	err := b.persist(ctx, func(s *store.System) error {
		if err := s.UnclaimCall(ctx, c.ID, b.queue.Node()); err != nil {
			return err
		}
		c.DialedAt = nil
		if time.Since(c.CreatedAt) < patience || b.Draining() {
			return b.queue.Dial(ctx, s, c.ID)
		}
		b.Log.Error("a call could not be placed", "call", c.ID, "error", why)
		return b.refuse(ctx, s, c, reason)
	})
	if err != nil {
		b.Log.Error("a call that was not sent could not be given back", "call", c.ID, "error", err)
	}
}

// pause waits, but not for a call that is to end.
func pause(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// signals write the steps before a conversation down.
func (b *Board) signals(c *parley.Call) Signals {
	return Signals{
		Progress: func(status int) {
			b.scribe.note(c.ID, parley.EventSIP, parley.Object{"status": status})
			b.scribe.status(c.ID, parley.CallRinging)
		},
		Answered:    func() { b.scribe.status(c.ID, parley.CallInProgress) },
		MayTransfer: b.Policy.Check, // a transfer is a call that somebody pays for, too
	}
}

// failed is the error of a call that came to nothing on our side, before anything of it
// was sent.
func failed(reason parley.EndReason, err error) error { return &ownError{reason, err} }

type ownError struct {
	reason parley.EndReason
	err    error
}

func (f *ownError) Error() string { return f.err.Error() }
func (f *ownError) Unwrap() error { return f.err }

// verdicts are what the outcomes of a call that was not answered mean for its record.
var verdicts = map[sip.Outcome]struct {
	status parley.CallStatus
	reason parley.EndReason
}{
	sip.Busy:          {parley.CallBusy, parley.EndBusy},
	sip.Declined:      {parley.CallBusy, parley.EndDeclined},
	sip.NoAnswer:      {parley.CallNoAnswer, parley.EndNotAnswered},
	sip.NoSuchNumber:  {parley.CallFailed, parley.EndNoSuchNumber},
	sip.Forbidden:     {parley.CallFailed, parley.EndForbidden},
	sip.Unauthorized:  {parley.CallFailed, parley.EndUnauthorized},
	sip.NoMedia:       {parley.CallFailed, parley.EndNoMedia},
	sip.CarrierFailed: {parley.CallFailed, parley.EndCarrier},
	sip.Unreachable:   {parley.CallFailed, parley.EndUnreachable},
	sip.Limited:       {parley.CallFailed, parley.EndTrunkFull},
	sip.Cancelled:     {parley.CallFailed, parley.EndHangup},
	sip.Indeterminate: {parley.CallFailed, parley.EndUncertain},
	sip.Rejected:      {parley.CallFailed, parley.EndRejected},
}
