package providertest

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/converse"
)

// DuplexRig is a speech-to-speech model on the bench, as ModelRig is a model.
type DuplexRig struct {
	Name      string
	Answering func() (converse.Duplex, func()) // speaks what Say gives it
	Stalled   func() (converse.Duplex, func()) // its service takes everything and is silent
	Options   converse.DuplexOptions
}

// Duplex is the contract of converse.Duplex.
func Duplex(rig DuplexRig) []Check {
	return []Check{
		withoutLeaks("speaks", rig.speaks),
		withoutLeaks("is shared by many calls", rig.shared),
		withoutLeaks("closes soon, and twice", rig.closes),
		withoutLeaks("closes after its call is cancelled", rig.cancelled),
		withoutLeaks("is silent once interrupted", rig.interrupted),
		withoutLeaks("refuses everything once closed", rig.closed),
	}
}

func (rig DuplexRig) speaks(ctx context.Context) error {
	duplex, release := rig.Answering()
	defer release()
	return rig.say(ctx, duplex)
}

// say has a sentence spoken and waits for its end.
func (rig DuplexRig) say(ctx context.Context, duplex converse.Duplex) error {
	var gate turnstile
	samples := 0
	result := make(chan error, 1)
	tell := func(err error) {
		select {
		case result <- err:
		default:
		}
	}
	session, err := duplex.Converse(ctx, rig.Options, func(e converse.DuplexEvent) {
		gate.pass(func() {
			switch {
			case e.Err != nil:
				tell(e.Err)
			case e.Sound != nil:
				samples += len(e.Sound.Samples)
			case e.Done != nil && samples == 0:
				tell(errors.New("there is no sound"))
			case e.Done != nil:
				tell(nil)
			}
		})
	})
	if err != nil {
		return err
	}
	if err := session.Say("Hello, this is Parley."); err != nil {
		return err
	}
	err = soon("the answer", func() error { return <-result })
	if closing := soon("Close", session.Close); closing != nil {
		return closing
	}
	gate.close()
	return errors.Join(err, gate.err())
}

func (rig DuplexRig) shared(ctx context.Context) error {
	duplex, release := rig.Answering()
	defer release()
	return atOnce(func() error { return rig.say(ctx, duplex) })
}

// open opens a session whose events pass the turnstile.
func (rig DuplexRig) open(ctx context.Context, duplex converse.Duplex, gate *turnstile) (converse.DuplexSession, error) {
	return duplex.Converse(ctx, rig.Options, func(converse.DuplexEvent) { gate.pass(func() {}) })
}

func (rig DuplexRig) closes(ctx context.Context) error {
	duplex, release := rig.Stalled()
	defer release()
	var gate turnstile
	session, err := rig.open(ctx, duplex, &gate)
	if err != nil {
		return err
	}
	if err := errors.Join(rig.write(session), session.EndTurn()); err != nil {
		return err
	}
	for range 2 {
		if err := soon("Close", session.Close); err != nil {
			return err
		}
		gate.close()
	}
	return gate.err()
}

func (rig DuplexRig) write(session converse.DuplexSession) error {
	return session.Write(make([]int16, rig.Options.Utterance.Rate.FrameSamples()))
}

func (rig DuplexRig) cancelled(ctx context.Context) error {
	duplex, release := rig.Stalled()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var gate turnstile
	session, err := rig.open(ctx, duplex, &gate)
	if err != nil {
		return err
	}
	cancel()
	if err := soon("Close", session.Close); err != nil {
		return err
	}
	gate.close()
	return gate.err()
}

// interrupted stops an answer: none of its sound may come after Interrupt.
func (rig DuplexRig) interrupted(ctx context.Context) error {
	duplex, release := rig.Answering()
	defer release()
	var gate turnstile
	session, err := duplex.Converse(ctx, rig.Options, func(e converse.DuplexEvent) {
		if e.Sound != nil {
			gate.pass(func() {})
		}
	})
	if err != nil {
		return err
	}
	if err := session.Say("This sentence is stopped before it has ended."); err != nil {
		return err
	}
	if err := session.Interrupt(0); err != nil {
		return err
	}
	gate.close()
	return errors.Join(soon("Close", session.Close), gate.err())
}

func (rig DuplexRig) closed(ctx context.Context) error {
	duplex, release := rig.Stalled()
	defer release()
	var gate turnstile
	session, err := rig.open(ctx, duplex, &gate)
	if err != nil {
		return err
	}
	if err := session.Close(); err != nil {
		return err
	}
	gate.close()
	for what, got := range map[string]error{
		"Write": rig.write(session), "EndTurn": session.EndTurn(), "Say": session.Say("Hello."), "ToolResult": session.ToolResult("1", "{}"),
	} {
		if err := named(rig.Name, got); err != nil {
			return fmt.Errorf("%s after Close: %w", what, err)
		}
	}
	return gate.err()
}
