//go:build speech

package local

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

// newEar is an ear without a call: what it hears is in the list.
func newEar(t *testing.T, p *Provider) (*ear, *[]converse.Heard) {
	t.Helper()
	tube, err := newTube(audio.Rate8k, hearingRate)
	require.NoError(t, err)
	var heard []converse.Heard
	e := &ear{p: p, tube: tube, segment: segment{watcher: p.silero.watch()}, settled: time.NewTimer(time.Hour)}
	e.hear = func(h converse.Heard) { heard = append(heard, h) }
	t.Cleanup(func() { e.settled.Stop() })
	return e, &heard
}

// finals are the final words among what was heard.
func finals(heard []converse.Heard) (all []string) {
	for _, h := range heard {
		if h.Final {
			all = append(all, strings.ToLower(strings.Trim(h.Text, ".")))
		}
	}
	return all
}

const booking = "I would like to book a table for two."

// A pause that the customer does not keep to is none: the words stay together.
func TestTheCustomerGoesOn(t *testing.T) {
	p := loaded(t)
	e, heard := newEar(t, p)
	sound := telephoned(t, p, booking, "rms")
	middle, end := len(sound)/2, len(sound)-len(silence(900*time.Millisecond))
	require.NoError(t, e.take(t.Context(), sound[:middle], true))
	require.True(t, e.owed)
	require.NoError(t, e.take(t.Context(), sound[middle:end], false))
	require.False(t, e.owed)
	require.NoError(t, e.answer(t.Context())) // as the timer has it
	require.Empty(t, finals(*heard))
	require.NoError(t, e.take(t.Context(), sound[end:], false))
	require.Equal(t, []string{"i would like to book a table for two"}, finals(*heard))
}

// A pause that lasts makes what was said final, once.
func TestThePauseLasts(t *testing.T) {
	p := loaded(t)
	e, heard := newEar(t, p)
	sound := telephoned(t, p, booking, "rms")
	end := len(sound) - len(silence(800*time.Millisecond)) // and not yet the end of the speech for Silero
	require.NoError(t, e.take(t.Context(), sound[:end], true))
	require.Empty(t, finals(*heard))
	require.NoError(t, e.answer(t.Context())) // as the timer has it
	require.NoError(t, e.take(t.Context(), sound[end:], false))
	require.Equal(t, []string{"i would like to book a table for two"}, finals(*heard))
}

// Somebody waits for the answer to Flush, so it comes though nothing was said.
func TestAPauseWithoutWords(t *testing.T) {
	p := loaded(t)
	e, heard := newEar(t, p)
	require.NoError(t, e.take(t.Context(), silence(3*time.Second), true))
	require.Equal(t, []converse.Heard{{Final: true}}, *heard)
}

// Interim words come while somebody speaks, but only from cores that nobody needs.
func TestInterimWords(t *testing.T) {
	p := loaded(t)
	sound := telephoned(t, p, "My daughter will pick it up in the afternoon.", "rms")
	for places, wanted := range map[int]bool{1: false, 2: true} {
		q := *p
		q.work = newPool(places)
		e, heard := newEar(t, &q)
		for n := audio.Rate8k.FrameSamples(); len(sound) >= n; sound = sound[n:] {
			require.NoError(t, e.take(t.Context(), sound[:n], false))
		}
		sound = telephoned(t, p, "My daughter will pick it up in the afternoon.", "rms")
		interim := len(*heard) > 1 && !(*heard)[0].Final && strings.Contains((*heard)[0].Text, "daughter")
		require.Equal(t, wanted, interim, "%d places: %v", places, *heard)
		require.Len(t, finals(*heard), 1)
	}
}

// Who never pauses is written down all the same, in pieces.
func TestAnEndlessSpeech(t *testing.T) {
	p := loaded(t)
	clip := spoken(t, p, converse.Utterance{Text: "The washing machine makes a strange noise and there is water on the floor.", Voice: "rms", Language: "en", Rate: audio.Rate8k, Speed: 1})
	clip = clip[audio.Rate8k.Samples(300*time.Millisecond) : len(clip)-audio.Rate8k.Samples(400*time.Millisecond)]
	e, heard := newEar(t, p)
	var length time.Duration
	for length < longest+5*time.Second {
		require.NoError(t, e.take(t.Context(), clip, false))
		length += audio.Rate8k.Duration(len(clip))
	}
	require.NoError(t, e.take(t.Context(), silence(time.Second), false))
	require.Len(t, finals(*heard), 2)
	require.GreaterOrEqual(t, strings.Count(strings.Join(finals(*heard), " "), "machine"), 3)
}

// Noise and tones are not words, and cost nothing.
func TestNoiseIsNotWords(t *testing.T) {
	p := loaded(t)
	e, heard := newEar(t, p)
	noise := silence(4 * time.Second)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = int16(random.NormFloat64() * 600)
	}
	require.NoError(t, e.take(t.Context(), noise, true))
	require.Equal(t, []converse.Heard{{Final: true}}, *heard)
}

func TestTranscribingStopsWhenTheCallIsOver(t *testing.T) {
	p := loaded(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.moonshine.words(ctx, make([]float32, hearingRate.Samples(time.Second)))
	require.ErrorIs(t, err, context.Canceled)
}

func TestWhatTheTranscriberRefuses(t *testing.T) {
	p := loaded(t)
	for wrong, o := range map[string]converse.ListenOptions{
		"English alone": {Language: "de", Rate: audio.Rate8k},
		"11025 Hz":      {Language: "en", Rate: 11_025},
	} {
		_, err := p.Transcriber().Listen(t.Context(), o, func(converse.Heard) {})
		require.ErrorContains(t, err, "local transcriber")
		require.ErrorContains(t, err, wrong)
	}
}

// More sound than can be looked at is an error, not memory without end.
func TestTheCoresCannotFollow(t *testing.T) {
	p := *loaded(t)
	p.glances = newPool(1)
	p.glances <- struct{}{}
	l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, func(converse.Heard) {})
	require.NoError(t, err)
	for frames := 0; err == nil; frames++ {
		require.Less(t, frames, 10_000)
		err = l.Write(make([]int16, audio.Rate8k.FrameSamples()))
	}
	require.ErrorContains(t, err, "local transcriber: the cores cannot follow")
	require.NoError(t, l.Close())
}
