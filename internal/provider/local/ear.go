//go:build speech

package local

import (
	"context"
	"time"

	"parley/internal/converse"
)

// ear makes words of one call's sound.
type ear struct {
	p       *Provider
	tube    tube
	hear    func(converse.Heard)
	rest    []float32 // too little for a glance
	segment segment

	told    int           // voiced glances in the segment at the last interim result
	cost    time.Duration // of that
	owed    bool          // final words are waited for
	settled *time.Timer
}

const (
	// settle is how long a pause must last until its words are final. The engine
	// notices pauses that are hardly longer than the gap between two words; a segment
	// cut there would be heard worse.
	settle = 160 * time.Millisecond
	// between is how much more must be said for another interim result, and share
	// how many times longer than it takes: a long segment costs more and more.
	between = 700 * time.Millisecond
	share   = 8
)

// take hears sound, and that the customer paused at its end.
func (e *ear) take(ctx context.Context, sound []int16, paused bool) error {
	for _, sample := range e.tube.pass(sound) {
		e.rest = append(e.rest, float32(sample)/(1<<15))
		if len(e.rest) < glance {
			continue
		}
		if err := e.look(ctx, e.rest); err != nil {
			return err
		}
		e.rest = e.rest[:0]
	}
	switch {
	case paused:
		return e.pause(ctx)
	case e.segment.quiet == 0 && hearingRate.Duration((e.segment.voiced-e.told)*glance) >= max(between, share*e.cost):
		return e.interim(ctx)
	}
	return nil
}

// look finds out whether a glance has speech in it.
func (e *ear) look(ctx context.Context, samples []float32) error {
	if err := e.p.glances.take(ctx); err != nil {
		return err
	}
	speech, err := e.segment.hear(samples)
	e.p.glances.leave()
	switch {
	case err != nil:
		return err
	case e.segment.over():
		return e.final(ctx)
	case speech:
		e.owed = false // it was no pause
	}
	return nil
}

// pause is told by the engine. Its words are final a moment later, unless the
// customer goes on.
func (e *ear) pause(ctx context.Context) error {
	e.owed = true
	if !e.segment.spoken() {
		return e.answer(ctx)
	}
	e.settled.Reset(settle)
	return nil
}

// answer gives the final words that somebody waits for, even if there are none.
func (e *ear) answer(ctx context.Context) error {
	switch {
	case !e.owed:
		return nil
	case e.segment.spoken():
		return e.final(ctx)
	}
	e.owed = false
	e.hear(converse.Heard{Final: true})
	return nil
}

// interim tells what was said so far, if the cores have nothing better to do.
func (e *ear) interim(ctx context.Context) error {
	if !e.p.work.spare() {
		return nil
	}
	defer e.p.work.leave()
	began := time.Now()
	text, err := e.p.moonshine.words(ctx, e.segment.sound)
	if err != nil {
		return err
	}
	e.told, e.cost = e.segment.voiced, time.Since(began)
	e.hear(converse.Heard{Text: text})
	return nil
}

// final ends the segment.
func (e *ear) final(ctx context.Context) error {
	text, err := e.words(ctx)
	if err != nil {
		return err
	}
	said := e.segment.spoken()
	e.segment.next()
	e.told = 0
	if said || e.owed {
		e.owed = false
		e.hear(converse.Heard{Text: text, Final: true})
	}
	return nil
}

// words has the segment transcribed as soon as a core is free. A click has none.
func (e *ear) words(ctx context.Context) (string, error) {
	if !e.segment.spoken() {
		return "", nil
	}
	if err := e.p.work.take(ctx); err != nil {
		return "", err
	}
	defer e.p.work.leave()
	return e.p.moonshine.words(ctx, e.segment.sound)
}
