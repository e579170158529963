package providertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/converse"
)

// SpeakerRig is a speaker on the bench, as ModelRig is a model.
type SpeakerRig struct {
	Name      string
	Speaking  func() (converse.Speaker, func()) // speaks Utterance
	Stalled   func() (converse.Speaker, func())
	Impatient func() (converse.Speaker, func()) // nil if it never gives up by itself
	Utterance converse.Utterance
}

// Speaker is the contract of converse.Speaker.
func Speaker(rig SpeakerRig) []Check {
	checks := []Check{
		withoutLeaks("speaks", rig.speaks),
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

func (rig SpeakerRig) speaks(ctx context.Context) error {
	speaker, release := rig.Speaking()
	defer release()
	return rig.say(ctx, speaker)
}

// say has the utterance spoken: there is sound, and its words are in order.
func (rig SpeakerRig) say(ctx context.Context, speaker converse.Speaker) error {
	var gate turnstile
	var samples int
	var words []converse.SpokenWord
	err := speaker.Speak(ctx, rig.Utterance, func(s converse.Sound) {
		gate.pass(func() {
			samples += len(s.Samples)
			words = append(words, s.Words...)
		})
	})
	gate.close()
	if err != nil {
		return err
	}
	if samples == 0 {
		return errors.New("there is no sound")
	}
	for i, w := range words {
		if w.End < w.Start || i > 0 && w.Start < words[i-1].Start {
			return fmt.Errorf("word %d, %q, is out of order: %v to %v", i, w.Text, w.Start, w.End)
		}
	}
	return gate.err()
}

func (rig SpeakerRig) shared(ctx context.Context) error {
	speaker, release := rig.Speaking()
	defer release()
	return atOnce(func() error { return rig.say(ctx, speaker) })
}

func (rig SpeakerRig) cancelled(ctx context.Context) error {
	speaker, release := rig.Stalled()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hurry := time.AfterFunc(20*time.Millisecond, cancel)
	defer hurry.Stop()
	return rig.unspoken(ctx, speaker)
}

func (rig SpeakerRig) deadline(ctx context.Context) error {
	speaker, release := rig.Stalled()
	defer release()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	return rig.unspoken(ctx, speaker)
}

func (rig SpeakerRig) over(ctx context.Context) error {
	speaker, release := rig.Speaking()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return rig.unspoken(ctx, speaker)
}

func (rig SpeakerRig) impatient(ctx context.Context) error {
	speaker, release := rig.Impatient()
	defer release()
	return rig.unspoken(ctx, speaker)
}

func (rig SpeakerRig) unspoken(ctx context.Context, speaker converse.Speaker) error {
	return soon("Speak", func() error {
		samples := 0
		err := speaker.Speak(ctx, rig.Utterance, func(s converse.Sound) { samples += len(s.Samples) })
		if samples > 0 {
			return fmt.Errorf("%d samples of speech that nobody spoke", samples)
		}
		return named(rig.Name, err)
	})
}
