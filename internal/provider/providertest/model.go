package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/internal/converse"
)

// ModelRig is a language model on the bench. Each function makes a fresh one and says
// how to take it down again with all that belongs to it.
type ModelRig struct {
	Name      string                          // errors must contain it
	Answering func() (converse.Model, func()) // answers Prompt with text
	Stalled   func() (converse.Model, func()) // its service takes the question and is silent
	Impatient func() (converse.Model, func()) // the same, and it soon gives up by itself; nil if it never does
	Prompt    converse.Prompt
}

// Model is the contract of converse.Model.
func Model(rig ModelRig) []Check {
	checks := []Check{
		withoutLeaks("answers", rig.answers),
		withoutLeaks("is shared by many calls", rig.shared),
		withoutLeaks("returns soon when cancelled", rig.cancelled),
		withoutLeaks("returns soon at a deadline", rig.deadline),
		withoutLeaks("does nothing for a call that is over", rig.over),
	}
	if rig.Impatient != nil {
		checks = append(checks, withoutLeaks("gives up by itself", rig.impatient))
	}
	return checks
}

func (rig ModelRig) answers(ctx context.Context) error {
	model, release := rig.Answering()
	defer release()
	return rig.ask(ctx, model)
}

func (rig ModelRig) ask(ctx context.Context, model converse.Model) error {
	var gate turnstile
	var text strings.Builder
	_, err := model.Reply(ctx, rig.Prompt, func(d converse.Delta) {
		gate.pass(func() { text.WriteString(d.Text) })
	})
	gate.close()
	if err != nil {
		return err
	}
	if text.Len() == 0 {
		return errors.New("the answer has no text")
	}
	return gate.err()
}

func (rig ModelRig) shared(ctx context.Context) error {
	model, release := rig.Answering()
	defer release()
	return atOnce(func() error { return rig.ask(ctx, model) })
}

func (rig ModelRig) cancelled(ctx context.Context) error {
	model, release := rig.Stalled()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hurry := time.AfterFunc(20*time.Millisecond, cancel)
	defer hurry.Stop()
	return rig.unanswered(ctx, model)
}

func (rig ModelRig) deadline(ctx context.Context) error {
	model, release := rig.Stalled()
	defer release()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	return rig.unanswered(ctx, model)
}

func (rig ModelRig) over(ctx context.Context) error {
	model, release := rig.Answering()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return rig.unanswered(ctx, model)
}

func (rig ModelRig) impatient(ctx context.Context) error {
	model, release := rig.Impatient()
	defer release()
	return rig.unanswered(ctx, model)
}

// unanswered asks in vain: an error that names the provider comes soon, and no words.
func (rig ModelRig) unanswered(ctx context.Context, model converse.Model) error {
	return soon("Reply", func() error {
		words := 0
		_, err := model.Reply(ctx, rig.Prompt, func(converse.Delta) { words++ })
		if words > 0 {
			return fmt.Errorf("%d pieces of an answer that nobody gave", words)
		}
		return named(rig.Name, err)
	})
}
