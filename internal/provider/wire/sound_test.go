package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/sandbox"
	"parley/internal/provider/wire"
)

func voiceAt(t *testing.T, rate audio.Rate) (samples []int16) {
	t.Helper()
	u := converse.Utterance{Text: "Good morning, this is Parley.", Rate: rate, Speed: 1}
	require.NoError(t, sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), u, func(s converse.Sound) { samples = append(samples, s.Samples...) }))
	return samples
}

func TestTheGateOpensForAVoice(t *testing.T) {
	t.Parallel()
	for _, rate := range []audio.Rate{audio.Rate8k, audio.Rate16k, audio.Rate48k} {
		gate, err := wire.NewGate(rate)
		require.NoError(t, err)
		through := func(samples []int16) (n int) {
			for f := rate.FrameSamples(); len(samples) >= f; samples = samples[f:] {
				n += len(gate.Add(samples[:f]))
			}
			return n
		}
		silence := make([]int16, 3*int(rate))
		require.Zero(t, through(silence), "nobody speaks at %d Hz", rate)
		spoken := voiceAt(t, rate)
		before := rate.Samples(600 * time.Millisecond)
		require.InDelta(t, len(spoken)+before, through(spoken), float64(rate.Samples(100*time.Millisecond)), "all of it and the moment before")
		require.InDelta(t, int(rate), through(silence), float64(rate)/2, "and a moment after")
		require.Zero(t, through(silence))
		require.Len(t, gate.Rest(), before)
		require.Empty(t, gate.Rest())
	}
	_, err := wire.NewGate(44100)
	require.Error(t, err)
}

func TestWordsArePlacedInTheirSound(t *testing.T) {
	t.Parallel()
	converter, err := wire.NewConverter(audio.Rate24k, audio.Rate8k)
	require.NoError(t, err)
	converter.Convert(make([]int16, 77)) // of the answer before
	speech := wire.NewSpeech(converter, 1)
	var words []converse.SpokenWord
	samples := 0
	take := func(s *converse.Sound) {
		if s != nil {
			words = append(words, s.Words...)
			samples += len(s.Samples)
		}
	}
	take(speech.Text("One two"))
	require.Empty(t, words, "there is no sound yet")
	take(speech.Bytes(make([]byte, 48001))) // a second and half a sample
	require.Len(t, words, 1, "the second word may go on")
	take(speech.Text(" three four five six seven"))
	take(speech.Bytes(make([]byte, 23999)))
	take(speech.Finish())
	require.Equal(t, 12000, samples)
	var said []string
	for i, w := range words {
		said = append(said, w.Text)
		require.LessOrEqual(t, w.Start, w.End)
		require.LessOrEqual(t, w.End, 2*time.Second)
		if i > 0 {
			require.GreaterOrEqual(t, w.Start, words[i-1].Start)
		}
	}
	require.Equal(t, "One two three four five six seven", strings.Join(said, " "))
	require.Nil(t, speech.Finish())
}
