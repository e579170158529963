package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/internal/converse"
)

// Rig is a provider on the bench. Each function makes a fresh one and says how to take
// it down again with all that belongs to it.
type Rig[T any] struct {
	Name      string             // errors must contain it
	Working   func() (T, func()) // does what it is for
	Stalled   func() (T, func()) // its service takes everything and is silent
	Unopened  func() (T, func()) // of one with streams: its service does not even open one; nil if opening needs none
	Impatient func() (T, func()) // its service is silent from the beginning, and it soon gives up by itself; nil if it never does
}

// Model is the contract of converse.Model; the working one answers the prompt with text.
func Model(rig Rig[converse.Model], prompt converse.Prompt) []Check {
	return requests(rig, func(ctx context.Context, model converse.Model, gate *turnstile) (int, error) {
		var text strings.Builder
		_, err := model.Reply(ctx, prompt, func(d converse.Delta) {
			gate.pass(func() { text.WriteString(d.Text) })
		})
		return text.Len(), err
	})
}

// Speaker is the contract of converse.Speaker; the working one speaks the utterance.
func Speaker(rig Rig[converse.Speaker], utterance converse.Utterance) []Check {
	return requests(rig, func(ctx context.Context, speaker converse.Speaker, gate *turnstile) (int, error) {
		samples := 0
		var words []converse.SpokenWord
		err := speaker.Speak(ctx, utterance, func(s converse.Sound) {
			gate.pass(func() {
				samples += len(s.Samples)
				words = append(words, s.Words...)
			})
		})
		return samples, errors.Join(err, inOrder(words))
	})
}

func inOrder(words []converse.SpokenWord) error {
	for i, w := range words {
		if w.End < w.Start || i > 0 && w.Start < words[i-1].Start {
			return fmt.Errorf("word %d, %q, is out of order: %v to %v", i, w.Text, w.Start, w.End)
		}
	}
	return nil
}

// request asks a provider for something and says how much came of it.
type request[T any] func(ctx context.Context, provider T, gate *turnstile) (got int, err error)

// requests is the contract of what is asked and answers.
func requests[T any](rig Rig[T], ask request[T]) []Check {
	answered := func(ctx context.Context, provider T) error {
		var gate turnstile
		got, err := ask(ctx, provider, &gate)
		gate.close()
		if err == nil && got == 0 {
			err = errors.New("the answer is empty")
		}
		return errors.Join(err, gate.err())
	}
	// In vain: an error that names the provider comes soon, and nothing else.
	inVain := func(ctx context.Context, provider T) error {
		return soon("the answer", func() error {
			var gate turnstile
			gate.close()
			got, err := ask(ctx, provider, &gate)
			if got > 0 {
				return fmt.Errorf("%d pieces of an answer that nobody gave", got)
			}
			return errors.Join(named(rig.Name, err), gate.err())
		})
	}
	checks := []Check{
		with("answers", rig.Working, answered),
		with("is shared by many calls", rig.Working, func(ctx context.Context, provider T) error {
			return atOnce(func() error { return answered(ctx, provider) })
		}),
		with("returns soon when cancelled", rig.Stalled, func(ctx context.Context, provider T) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			hurry := time.AfterFunc(20*time.Millisecond, cancel)
			defer hurry.Stop()
			return inVain(ctx, provider)
		}),
		with("returns soon at a deadline", rig.Stalled, func(ctx context.Context, provider T) error {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			return inVain(ctx, provider)
		}),
		with("does nothing for a call that is over", rig.Working, func(ctx context.Context, provider T) error {
			return inVain(over(ctx), provider)
		}),
	}
	if rig.Impatient != nil {
		checks = append(checks, with("gives up by itself", rig.Impatient, inVain))
	}
	return checks
}
