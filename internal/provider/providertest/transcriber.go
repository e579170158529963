package providertest

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/converse"
)

// TranscriberRig is a transcriber on the bench, as ModelRig is a model.
type TranscriberRig struct {
	Name      string
	Hearing   func() (converse.Transcriber, func()) // makes words of Speech
	Stalled   func() (converse.Transcriber, func()) // its service takes all sound and is silent
	Unopened  func() (converse.Transcriber, func()) // its service does not even open a stream; nil if opening needs none
	Impatient func() (converse.Transcriber, func()) // the same, and it soon gives up by itself; nil if it never does
	Options   converse.ListenOptions
	Speech    []int16 // at the options' rate
}

// Transcriber is the contract of converse.Transcriber.
func Transcriber(rig TranscriberRig) []Check {
	checks := []Check{
		withoutLeaks("hears", rig.hears),
		withoutLeaks("is shared by many calls", rig.shared),
		withoutLeaks("closes soon, and twice", rig.closes),
		withoutLeaks("closes after its call is cancelled", rig.cancelled),
		withoutLeaks("does nothing for a call that is over", rig.over),
		withoutLeaks("refuses sound once closed", rig.closed),
		withoutLeaks("closes beside those who write", rig.torn),
	}
	if rig.Unopened != nil {
		checks = append(checks, withoutLeaks("stops opening when cancelled", rig.unopened))
	}
	if rig.Impatient != nil {
		checks = append(checks, withoutLeaks("gives up opening by itself", rig.impatient))
	}
	return checks
}

func (rig TranscriberRig) hears(ctx context.Context) error {
	transcriber, release := rig.Hearing()
	defer release()
	return rig.hear(ctx, transcriber)
}

// hear speaks, asks for the final words and waits until they come.
func (rig TranscriberRig) hear(ctx context.Context, transcriber converse.Transcriber) error {
	var gate turnstile
	result := make(chan error, 1)
	tell := func(err error) {
		select {
		case result <- err:
		default:
		}
	}
	listener, err := transcriber.Listen(ctx, rig.Options, func(h converse.Heard) {
		gate.pass(func() {
			switch {
			case h.Err != nil:
				tell(h.Err)
			case h.Final && h.Text != "":
				tell(nil)
			}
		})
	})
	if err != nil {
		return err
	}
	if err := rig.speak(listener); err != nil {
		return err
	}
	if err := listener.Flush(); err != nil {
		return err
	}
	err = soon("the final transcript", func() error { return <-result })
	if closing := soon("Close", listener.Close); closing != nil {
		return closing
	}
	gate.close()
	return errors.Join(err, gate.err())
}

// speak writes the speech frame by frame, each time into the same memory.
func (rig TranscriberRig) speak(listener converse.Listener) error {
	frame := make([]int16, rig.Options.Rate.FrameSamples())
	for at := 0; at+len(frame) <= len(rig.Speech); at += len(frame) {
		copy(frame, rig.Speech[at:])
		if err := listener.Write(frame); err != nil {
			return err
		}
		clear(frame)
	}
	return nil
}

func (rig TranscriberRig) shared(ctx context.Context) error {
	transcriber, release := rig.Hearing()
	defer release()
	return atOnce(func() error { return rig.hear(ctx, transcriber) })
}

// open opens a stream whose callbacks pass the turnstile.
func (rig TranscriberRig) open(ctx context.Context, transcriber converse.Transcriber, gate *turnstile) (converse.Listener, error) {
	return transcriber.Listen(ctx, rig.Options, func(converse.Heard) { gate.pass(func() {}) })
}

func (rig TranscriberRig) closes(ctx context.Context) error {
	transcriber, release := rig.Stalled()
	defer release()
	var gate turnstile
	listener, err := rig.open(ctx, transcriber, &gate)
	if err != nil {
		return err
	}
	if err := errors.Join(rig.speak(listener), listener.Flush()); err != nil {
		return err
	}
	for range 2 {
		if err := soon("Close", listener.Close); err != nil {
			return err
		}
		gate.close()
	}
	return gate.err()
}

func (rig TranscriberRig) cancelled(ctx context.Context) error {
	transcriber, release := rig.Stalled()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var gate turnstile
	listener, err := rig.open(ctx, transcriber, &gate)
	if err != nil {
		return err
	}
	cancel()
	if err := soon("Close", listener.Close); err != nil {
		return err
	}
	gate.close()
	return gate.err()
}

func (rig TranscriberRig) over(ctx context.Context) error {
	transcriber, release := rig.Hearing()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return rig.refused(ctx, transcriber)
}

// refused opens in vain.
func (rig TranscriberRig) refused(ctx context.Context, transcriber converse.Transcriber) error {
	return soon("Listen", func() error {
		listener, err := transcriber.Listen(ctx, rig.Options, func(converse.Heard) {})
		if err == nil {
			return errors.Join(errors.New("a stream was opened"), listener.Close())
		}
		return named(rig.Name, err)
	})
}

func (rig TranscriberRig) closed(ctx context.Context) error {
	transcriber, release := rig.Stalled()
	defer release()
	var gate turnstile
	listener, err := rig.open(ctx, transcriber, &gate)
	if err != nil {
		return err
	}
	if err := listener.Close(); err != nil {
		return err
	}
	gate.close()
	if err := named(rig.Name, listener.Write(make([]int16, rig.Options.Rate.FrameSamples()))); err != nil {
		return fmt.Errorf("after Close, Write: %w", err)
	}
	if err := named(rig.Name, listener.Flush()); err != nil {
		return fmt.Errorf("after Close, Flush: %w", err)
	}
	return gate.err()
}

// torn closes a stream while others still write to it.
func (rig TranscriberRig) torn(ctx context.Context) error {
	transcriber, release := rig.Stalled()
	defer release()
	var gate turnstile
	listener, err := rig.open(ctx, transcriber, &gate)
	if err != nil {
		return err
	}
	return atOnce(func() error {
		_ = listener.Write(make([]int16, rig.Options.Rate.FrameSamples())) // refused or not: it must not block
		_ = listener.Flush()
		return soon("Close", listener.Close)
	})
}

func (rig TranscriberRig) unopened(ctx context.Context) error {
	transcriber, release := rig.Unopened()
	defer release()
	ctx, cancel := context.WithTimeout(ctx, Soon/100)
	defer cancel()
	return rig.refused(ctx, transcriber)
}

func (rig TranscriberRig) impatient(ctx context.Context) error {
	transcriber, release := rig.Impatient()
	defer release()
	return rig.refused(ctx, transcriber)
}
