package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"parley/internal/converse"
)

// Transcriber is the contract of converse.Transcriber; the working one makes words of
// the speech, which is at the options' rate.
func Transcriber(rig Rig[converse.Transcriber], options converse.ListenOptions, speech []int16) []Check {
	speak := func(l converse.Listener) error {
		return errors.Join(frames(options.Rate.FrameSamples(), speech, l.Write), l.Flush())
	}
	return streams[converse.Transcriber, converse.Listener]{
		Rig: rig,
		open: func(ctx context.Context, t converse.Transcriber, event func(error, bool)) (converse.Listener, error) {
			return t.Listen(ctx, options, func(h converse.Heard) { event(h.Err, h.Final && h.Text != "") })
		},
		use: speak,
		refusals: func(l converse.Listener) map[string]error {
			return map[string]error{"Write": l.Write(make([]int16, options.Rate.FrameSamples())), "Flush": l.Flush()}
		},
	}.checks()
}

// Duplex is the contract of converse.Duplex; the working one speaks what Say gives it.
func Duplex(rig Rig[converse.Duplex], options converse.DuplexOptions) []Check {
	frame := make([]int16, options.Utterance.Rate.FrameSamples())
	s := streams[converse.Duplex, converse.DuplexSession]{
		Rig: rig,
		open: func(ctx context.Context, d converse.Duplex, event func(error, bool)) (converse.DuplexSession, error) {
			samples := 0
			return d.Converse(ctx, options, func(e converse.DuplexEvent) {
				if e.Sound != nil {
					samples += len(e.Sound.Samples)
				}
				event(e.Err, e.Done != nil && samples > 0)
			})
		},
		use: func(s converse.DuplexSession) error {
			return errors.Join(s.Write(frame), s.Say("Hello, this is Parley."))
		},
		refusals: func(s converse.DuplexSession) map[string]error {
			return map[string]error{
				"Write": s.Write(frame), "EndTurn": s.EndTurn(), "Say": s.Say("Hello."), "Interrupt": s.Interrupt(0), "ToolResult": s.ToolResult("1", "{}"),
			}
		},
	}
	return append(s.checks(), with("is silent once interrupted", rig.Working, func(ctx context.Context, d converse.Duplex) error {
		return interrupted(ctx, d, options)
	}))
}

// interrupted stops an answer: none of its sound may come after Interrupt.
func interrupted(ctx context.Context, d converse.Duplex, options converse.DuplexOptions) error {
	var gate turnstile
	session, err := d.Converse(ctx, options, func(e converse.DuplexEvent) {
		if e.Sound != nil {
			gate.pass(func() {})
		}
	})
	if err != nil {
		return err
	}
	err = errors.Join(session.Say("This sentence is stopped before it has ended."), session.Interrupt(0))
	gate.close()
	return errors.Join(err, soon("Close", session.Close), gate.err())
}

// frames writes speech frame by frame, each time into the same memory.
func frames(size int, speech []int16, write func([]int16) error) error {
	frame := make([]int16, size)
	for at := 0; at+size <= len(speech); at += size {
		copy(frame, speech[at:])
		if err := write(frame); err != nil {
			return err
		}
		clear(frame)
	}
	return nil
}

// streams is a provider that opens a stream for each call.
type streams[T any, S io.Closer] struct {
	Rig[T]

	// open opens a stream whose events are told: that it has failed, or that what was
	// asked for has come.
	open     func(ctx context.Context, provider T, event func(failed error, came bool)) (S, error)
	use      func(S) error            // asks for something
	refusals func(S) map[string]error // of everything that a stream does
}

// checks is the contract of what opens streams.
func (s streams[T, S]) checks() []Check {
	checks := []Check{
		with("answers", s.Working, s.answered),
		with("is shared by many calls", s.Working, func(ctx context.Context, provider T) error {
			return atOnce(func() error { return s.answered(ctx, provider) })
		}),
		with("closes soon, and twice", s.Stalled, s.closes),
		with("closes after its call is cancelled", s.Stalled, s.cancelled),
		with("does nothing for a call that is over", s.Working, func(ctx context.Context, provider T) error {
			return s.refused(over(ctx), provider)
		}),
		with("refuses everything once closed", s.Stalled, s.closed),
		with("closes beside those who use it", s.Stalled, s.torn),
	}
	if s.Unopened != nil {
		checks = append(checks, with("stops opening when cancelled", s.Unopened, func(ctx context.Context, provider T) error {
			ctx, cancel := context.WithTimeout(ctx, Soon/100)
			defer cancel()
			return s.refused(ctx, provider)
		}))
	}
	if s.Impatient != nil {
		checks = append(checks, with("gives up opening by itself", s.Impatient, s.refused))
	}
	return checks
}

// answered asks for something and waits until it comes.
func (s streams[T, S]) answered(ctx context.Context, provider T) error {
	var gate turnstile
	result := make(chan error, 1)
	stream, err := s.open(ctx, provider, func(failed error, came bool) {
		gate.pass(func() {
			if failed == nil && !came {
				return
			}
			select {
			case result <- failed:
			default:
			}
		})
	})
	if err != nil {
		return err
	}
	if err = s.use(stream); err == nil {
		err = soon("the answer", func() error { return <-result })
	}
	closing := soon("Close", stream.Close)
	gate.close()
	return errors.Join(err, closing, gate.err())
}

// watched opens a stream whose events pass the turnstile.
func (s streams[T, S]) watched(ctx context.Context, provider T, gate *turnstile) (S, error) {
	return s.open(ctx, provider, func(error, bool) { gate.pass(func() {}) })
}

func (s streams[T, S]) closes(ctx context.Context, provider T) error {
	var gate turnstile
	stream, err := s.watched(ctx, provider, &gate)
	if err != nil {
		return err
	}
	err = s.use(stream)
	for range 2 {
		err = errors.Join(err, soon("Close", stream.Close))
		gate.close()
	}
	return errors.Join(err, gate.err())
}

func (s streams[T, S]) cancelled(ctx context.Context, provider T) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var gate turnstile
	stream, err := s.watched(ctx, provider, &gate)
	if err != nil {
		return err
	}
	cancel()
	err = soon("Close", stream.Close)
	gate.close()
	return errors.Join(err, gate.err())
}

// refused opens in vain.
func (s streams[T, S]) refused(ctx context.Context, provider T) error {
	return soon("opening", func() error {
		stream, err := s.open(ctx, provider, func(error, bool) {})
		if err == nil {
			return errors.Join(errors.New("a stream was opened"), stream.Close())
		}
		return named(s.Name, err)
	})
}

func (s streams[T, S]) closed(ctx context.Context, provider T) error {
	var gate turnstile
	stream, err := s.watched(ctx, provider, &gate)
	if err != nil {
		return err
	}
	err = stream.Close()
	gate.close()
	for what, got := range s.refusals(stream) {
		if wrong := named(s.Name, got); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s after Close: %w", what, wrong))
		}
	}
	return errors.Join(err, gate.err())
}

// torn closes a stream while others still use it.
func (s streams[T, S]) torn(ctx context.Context, provider T) error {
	var gate turnstile
	stream, err := s.watched(ctx, provider, &gate)
	if err != nil {
		return err
	}
	return atOnce(func() error {
		_ = s.refusals(stream) // refused or not: none may block
		return soon("Close", stream.Close)
	})
}
