package switchboard

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley"
	"parley/internal/converse"
	"parley/internal/sip"
	"parley/internal/store"
)

// end writes down what became of a call that this node held, and what is to follow.
func (b *Board) end(ctx context.Context, c *parley.Call, r *recording, result Result, err error, l *liveCall) {
	ctx = context.WithoutCancel(ctx)
	defer b.scribe.forget(c.ID)
	over := time.Now().UTC()
	c.EndedAt = &over
	if result.Answered {
		b.talked(c, result, l)
	} else {
		b.unanswered(c, result, err, l)
	}
	c.Recording = r.finish(result.Answered && !result.RecordingRefused)
	err = b.persist(ctx, func(s *store.System) error { return b.settle(ctx, s, b.queue.Node(), c) })
	if errors.Is(err, store.ErrFenced) && c.OptedOut { // whoever took the call did not hear that
		err = errors.Join(err, b.persist(ctx, func(s *store.System) error { return b.forbid(ctx, s, c) }))
	}
	if err != nil {
		// It was taken from this node, or the node leaves: whoever took it concludes it.
		b.Log.Error("the end of a call could not be written", "call", c.ID, "error", err)
	}
}

// persistFor is how long a node that stops tries to write the end of a call. One that
// goes on tries for as long as the database takes to come back: nobody else concludes
// the calls of a node that lives.
const persistFor = 30 * time.Second

// persist runs a transaction until it succeeds, or the call is no longer ours.
func (b *Board) persist(ctx context.Context, fn func(*store.System) error) error {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := b.scribe.sync(ctx) // what led to it comes before the end in the timeline
		if err == nil {
			err = b.DB.System().Tx(ctx, fn)
		}
		if err == nil || errors.Is(err, store.ErrFenced) || b.Draining() && time.Since(began) > persistFor {
			return err
		}
		b.Log.Warn("the end of a call could not be written yet", "error", err)
		time.Sleep(wait)
	}
}

// forbid has nobody of the account call the customer again.
func (b *Board) forbid(ctx context.Context, s *store.System, c *parley.Call) error {
	return s.Tenant(c.UserID).AddDoNotCall(ctx, c.CustomerNumber, "asked in a call")
}

// settle ends a call in a transaction: its row, its account's day, and the work that follows.
func (b *Board) settle(ctx context.Context, s *store.System, node string, c *parley.Call) error {
	if err := s.EndCall(ctx, node, c); err != nil {
		return err
	}
	if c.TotalCost > 0 || c.Duration > 0 {
		if err := s.AddUsage(ctx, c, c.TotalCost, c.Duration); err != nil {
			return err
		}
	}
	if c.OptedOut {
		if err := b.forbid(ctx, s, c); err != nil {
			return err
		}
	}
	if !c.Status.Final() {
		return b.queue.Finish(ctx, s, c.ID)
	}
	return b.conclude(ctx, s, c)
}

// conclude tells of a call that has reached its final status.
func (b *Board) conclude(ctx context.Context, s *store.System, c *parley.Call) error {
	b.metrics.concluded(c)
	if b.Concluded == nil {
		return nil
	}
	a, err := s.AssistantOf(ctx, c)
	if err != nil {
		return err
	}
	return b.Concluded(ctx, s, c, a)
}

// talked takes over what a conversation left.
func (b *Board) talked(c *parley.Call, result Result, l *liveCall) {
	answered := b.scribe.answered(c.ID)
	c.AnsweredAt = &answered
	c.Turns = make([]parley.Turn, len(result.Turns))
	for i, t := range result.Turns {
		c.Turns[i] = turn(answered, t)
	}
	c.Transcript = storable(result.Transcript)
	c.AnsweredBy = string(result.AnsweredBy)
	if c.AnsweredBy == "" {
		c.AnsweredBy = string(converse.AnsweredByUnknown)
	}
	c.Variables = merged(c.Variables, result.Variables)
	c.OptedOut = result.OptOut
	c.Duration = int(result.Duration.Round(time.Second).Seconds())
	c.Quality = quality(result.Line)
	b.metrics.carried(result.Line)
	c.Failure = complaint(result)
	reason, by := result.EndReason, string(result.EndedBy)
	if ours := l.why(); ours != "" && reason == converse.EndStopped {
		reason = ours
	}
	c.EndReason, c.EndedBy = &reason, &by
	switch result.EndedBy {
	case converse.ByCustomer:
		c.Status = parley.CallEndedByCustomer
	case converse.ByAssistant:
		c.Status = parley.CallEndedByAssistant
	default:
		c.Status = parley.CallEnded
	}
	b.charge(c, result.Duration, result.Usage, "")
}

// storable is a provider's text as every database takes it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// complaint is what a provider that failed said.
func complaint(result Result) *string {
	if result.Failure == "" {
		return nil
	}
	said := storable(result.Failure)
	return &said
}

// charge adds what a call took to its costs. The carrier is paid by the started minute of
// conversation, the providers by what they did.
func (b *Board) charge(c *parley.Call, talked time.Duration, usage []converse.PartUsage, part string) {
	if talked > 0 {
		c.Costs.Carrier = b.Rates.Minutes(c.Type, c.CustomerNumber, talked)
	}
	for _, u := range usage {
		name := string(u.Part)
		if part != "" {
			name = part
		}
		c.Costs.Add(b.Rates, parley.Usage{
			Part: name, Provider: u.Provider, Key: u.Key, HeardMS: u.Heard.Milliseconds(),
			InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Characters: u.Characters,
		})
	}
	c.CarrierCost, c.TotalCost = c.Costs.Carrier, c.Costs.Total()
}

// unanswered is the record of a call that came to no conversation.
func (b *Board) unanswered(c *parley.Call, result Result, err error, l *liveCall) {
	c.Status, c.EndedBy = parley.CallFailed, bySystem()
	reason := parley.EndInternal
	switch failure, sipFailed := errors.AsType[*sip.Failure](err); {
	case l.why() != "":
		reason = l.why()
	case errors.Is(err, sip.ErrCancelled):
		c.Status, reason = parley.CallNoAnswer, parley.EndCallerLeft
	case result.EndReason != "" && result.EndReason != converse.EndNotAnswered:
		reason = result.EndReason // a provider failed while it rang
		c.Failure = complaint(result)
	case sipFailed:
		verdict := verdicts[failure.Outcome]
		c.Status, reason = verdict.status, verdict.reason
		if failure.Status > 0 {
			b.scribe.note(c.ID, parley.EventSIP, parley.Object{"status": failure.Status})
		}
	case err != nil:
		if own, ok := errors.AsType[*ownError](err); ok {
			reason = own.reason
		}
		b.Log.Error("a call could not be held", "call", c.ID, "error", err)
	}
	c.EndReason = &reason
	if reason.Fault() == parley.FaultCallee || reason.Fault() == parley.FaultCarrier {
		c.EndedBy = nil // there was nothing to end
	}
	// A provider that worked for nothing is paid all the same.
	b.charge(c, 0, result.Usage, "")
}

// Bury concludes a call whose node has died, in the transaction that takes it from it.
// Whether it was dialled is not known, so it is never dialled again; what was said until
// then was written down.
func (b *Board) Bury(ctx context.Context, s *store.System, c *parley.Call) error {
	over, reason := time.Now().UTC(), parley.EndNodeLost
	c.EndedAt, c.EndReason, c.EndedBy = &over, &reason, bySystem()
	c.Status = parley.CallFailed
	if c.AnsweredAt != nil {
		turns, err := s.TurnsOf(ctx, c.ID)
		if err != nil {
			return err
		}
		c.Status, c.Turns, c.Transcript = parley.CallEnded, turns, parley.Transcript(turns)
		// It lasted at least as long as something was said in it; nothing is billed that
		// is not known to have happened.
		var talked time.Duration
		if len(turns) > 0 {
			talked = time.Duration(turns[len(turns)-1].EndedMS) * time.Millisecond
		}
		c.Duration = int(talked.Round(time.Second).Seconds())
		c.Recording = b.Recordings.Salvage(c.ID)
		b.charge(c, talked, nil, "")
	}
	if err := s.Release(ctx, c.ID); err != nil {
		return err
	}
	return b.settle(ctx, s, "", c)
}

// DialDied ends a call that could not even be tried: its job failed for good.
func (b *Board) DialDied(ctx context.Context, id parley.ID) error {
	return b.DB.System().Tx(ctx, func(s *store.System) error {
		c, err := s.Call(ctx, id)
		if err != nil || c.Status != parley.CallInitiated || c.DialedAt != nil {
			return notFoundIsFine(err)
		}
		return b.refuse(ctx, s, c, parley.EndInternal)
	})
}

// FinishDied completes a call without its evaluation: the work after it failed for good.
func (b *Board) FinishDied(ctx context.Context, id parley.ID) error {
	return b.DB.System().Tx(ctx, func(s *store.System) error {
		c, err := s.Call(ctx, id)
		if err != nil || c.Status.Final() || c.Status.Live() {
			return notFoundIsFine(err)
		}
		if first, err := s.CompleteCall(ctx, c); err != nil || !first {
			return err
		}
		return b.conclude(ctx, s, c)
	})
}

// Finish does what follows a conversation: the evaluation, its cost, and the final status.
// It is the work of a finish job; one that comes again finds the call completed.
func (b *Board) Finish(ctx context.Context, id parley.ID) error {
	c, err := b.DB.System().Call(ctx, id)
	if err != nil || c.Status.Final() || c.Status.Live() {
		return notFoundIsFine(err)
	}
	a, err := b.DB.System().AssistantOf(ctx, c)
	if err != nil {
		return err
	}
	note := b.evaluate(ctx, c, a)
	return b.DB.System().Tx(ctx, func(s *store.System) error {
		first, err := s.CompleteCall(ctx, c)
		if err != nil || !first {
			return err
		}
		if note != nil {
			if err := s.AddEvent(ctx, parley.CallEvent{CallID: c.ID, At: time.Now().UTC(), Event: parley.EventNote, Detail: note}); err != nil {
				return err
			}
		}
		if c.Costs.Evaluation > 0 {
			if err := s.AddUsage(ctx, c, c.Costs.Evaluation, 0); err != nil {
				return err
			}
		}
		return b.conclude(ctx, s, c)
	})
}

// evaluate fills in a call's evaluation. What a model cannot tell stays null, and the
// timeline says why: a call is not held back for it.
func (b *Board) evaluate(ctx context.Context, c *parley.Call, a *parley.Assistant) (note parley.Object) {
	turns := make([]converse.Turn, len(c.Turns))
	for i, t := range c.Turns {
		turns[i] = converse.Turn{Text: t.Text, Sender: converse.Sender(t.Sender)}
	}
	config, err := b.Equip(ctx, a)
	if err == nil {
		var e converse.Evaluation
		e, err = converse.Evaluate(ctx, a, &converse.Result{Turns: turns}, config.Models)
		c.Evaluation = e.Values
		b.charge(c, 0, e.Usage, "evaluation")
	}
	if c.Evaluation == nil {
		c.Evaluation = parley.Object{}
	}
	if err != nil {
		return parley.Object{"evaluation_failed": err.Error()}
	}
	return nil
}
