package sandbox

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"parley/internal/converse"
)

// Speaker writes words into sound.
type Speaker struct{ p *Provider }

// Speak streams an utterance word by word, each with the pause behind it, as fast
// as it can be made: pacing is the caller's business. A sound is valid until emit
// returns: the next one is made in the same memory.
func (s *Speaker) Speak(ctx context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sandbox speaker: %w", err)
	}
	w, err := s.p.waves(u.Rate)
	if err != nil {
		return err
	}
	fault := s.p.speakerFaults.next()
	if err := s.begin(ctx, fault); err != nil {
		return err
	}
	t := w.throat(u)
	defer w.throats.Put(t)
	t.script = s.p.book.script(t.script[:0], u.Text, s.p.pace(u.Speed))
	for i := 0; i < len(t.script); {
		if fault.Kind == FaultHalfOpen && i >= fault.After {
			return stall(ctx, "speaker")
		}
		if fault.Kind == FaultBreak && i >= fault.After {
			return fault.err("speaker")
		}
		var sound converse.Sound
		sound, i = t.word(s.p.book, i)
		if fault.Kind == FaultGarbage {
			scramble(sound.Samples)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sandbox speaker: %w", err)
		}
		emit(sound)
		// The calls' frames do not wait for a sentence, and whoever takes the words does so
		// one by one: words that pile up are memory in every call.
		runtime.Gosched()
	}
	return nil
}

// begin waits as long as a vendor would, or misbehaves.
func (s *Speaker) begin(ctx context.Context, fault Fault) error {
	switch fault.Kind {
	case FaultError:
		return fault.err("speaker")
	case FaultStall:
		return stall(ctx, "speaker")
	default:
		return wait(ctx, s.p.options.Delays.FirstSound, "speaker")
	}
}

// word speaks the word at i, all pieces of it, and says where the next one is.
func (t *throat) word(book *codebook, i int) (converse.Sound, int) {
	begin, spoken := t.at, 0
	t.samples = t.samples[:0]
	for more := true; more; i++ {
		c := &t.script[i]
		t.say(book, c)
		spoken += c.n
		more = c.partial
	}
	t.words[0] = converse.SpokenWord{
		Text: t.script[i-1].word, Start: t.w.rate.Duration(begin), End: t.w.rate.Duration(begin + spoken*t.w.symbol),
	}
	return converse.Sound{Samples: t.samples, Words: t.words[:]}, i
}

// scramble turns speech into noise as loud as it was.
func scramble(samples []int16) {
	state := uint32(2463534242)
	for i := range samples {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		samples[i] = int16(int32(state) >> 19)
	}
}

// wait passes the time, or returns early when ctx ends.
func wait(ctx context.Context, d time.Duration, part string) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sandbox %s: %w", part, ctx.Err())
	}
}

// stall does nothing until ctx ends.
func stall(ctx context.Context, part string) error {
	<-ctx.Done()
	return fmt.Errorf("sandbox %s: %w", part, ctx.Err())
}
