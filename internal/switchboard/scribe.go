package switchboard

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"parley"
	"parley/internal/converse"
	"parley/internal/store"
)

// scribe writes down what happens in the calls of a node, in order, many steps in one
// transaction: a call waits for no disk, and a thousand calls cost twenty transactions
// a second.
type scribe struct {
	db   *store.DB
	node string
	log  *slog.Logger

	writing sync.Mutex // keeps the steps of a call in their order
	mu      sync.Mutex
	steps   []store.Step
	ready   chan struct{}
	answers map[parley.ID]time.Time // when a call was answered: turns are timed from then
}

// writeEvery is how long steps are gathered before they are written.
const writeEvery = 50 * time.Millisecond

// writeAgain is how long a database that failed is left alone.
const writeAgain = 500 * time.Millisecond

func newScribe(db *store.DB, node string, log *slog.Logger) *scribe {
	return &scribe{db: db, node: node, log: log, ready: make(chan struct{}, 1), answers: map[parley.ID]time.Time{}}
}

func (s *scribe) add(step store.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// status notes that a call has come further.
func (s *scribe) status(call parley.ID, status parley.CallStatus) {
	at := time.Now().UTC()
	if status == parley.CallInProgress {
		s.mu.Lock()
		s.answers[call] = at
		s.mu.Unlock()
	}
	s.add(store.Step{Status: status, Event: parley.CallEvent{CallID: call, At: at, Event: parley.EventStatus, Detail: parley.Object{"status": string(status)}}})
}

// note adds to a call's timeline.
func (s *scribe) note(call parley.ID, event string, detail parley.Object) {
	s.add(store.Step{Event: parley.CallEvent{CallID: call, At: time.Now().UTC(), Event: event, Detail: detail}})
}

// answered is when a call was answered, zero before.
func (s *scribe) answered(call parley.ID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[call]
}

// forget drops what is known of a call.
func (s *scribe) forget(call parley.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.answers, call)
}

// heard notes what happens in a conversation.
func (s *scribe) heard(c *parley.Call, e converse.Event) {
	switch {
	case e.Turn != nil:
		s.note(c.ID, parley.EventTurn, asObject(turn(s.answered(c.ID), *e.Turn)))
	case e.AnsweredBy != "":
		s.note(c.ID, parley.EventNote, parley.Object{"answered_by": string(e.AnsweredBy)})
	case e.Failure != "":
		s.note(c.ID, parley.EventNote, parley.Object{"failure": e.Failure})
	case e.Refused:
		s.note(c.ID, parley.EventNote, parley.Object{"recording": "refused"})
	}
}

// turn is a turn as records show it.
func turn(answered time.Time, t converse.Turn) parley.Turn {
	ms := time.Duration.Milliseconds
	return parley.Turn{
		Text: t.Text, Sender: string(t.Sender), Timestamp: parley.Timestamp(answered.Add(t.Started)),
		StartedMS: ms(t.Started), EndedMS: ms(t.Ended), Interrupted: t.Interrupted,
		Latency: parley.Latency{TranscriptMS: ms(t.Latency.Transcript), EndOfTurnMS: ms(t.Latency.EndOfTurn), FirstTokenMS: ms(t.Latency.FirstToken), FirstSoundMS: ms(t.Latency.FirstSound), FirstAudioMS: ms(t.Latency.FirstAudio)},
	}
}

// asObject is a record as the detail of an event.
func asObject(v any) parley.Object {
	document, err := json.Marshal(v)
	if err != nil {
		return parley.Object{}
	}
	var o parley.Object
	_ = json.Unmarshal(document, &o) // what was just written
	return o
}

// run writes until ctx ends, and then what is left.
func (s *scribe) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			if err := s.sync(context.WithoutCancel(ctx)); err != nil {
				s.log.Error("steps of calls could not be written", "error", err)
			}
			return
		case <-s.ready:
		}
		wait := writeEvery
		if err := s.sync(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("steps of calls could not be written yet", "error", err)
			wait = writeAgain
		}
		gather := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-gather.C:
		}
		gather.Stop()
	}
}

// mostSteps bounds what is kept for a database that does not answer; beyond it the
// oldest steps are given up, for no timeline is worth the memory of the calls.
const mostSteps = 100_000

// sync writes everything noted so far. What the database does not take is kept for the
// next time.
func (s *scribe) sync(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	steps := s.steps
	s.steps = nil
	s.mu.Unlock()
	if len(steps) == 0 {
		return nil
	}
	err := s.db.System().Advance(ctx, s.node, steps)
	if err != nil {
		s.putBack(steps)
	}
	return err
}

// putBack keeps steps that could not be written, before those that have come since.
func (s *scribe) putBack(steps []store.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(steps, s.steps...)
	s.steps = s.steps[max(0, len(s.steps)-mostSteps):]
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
