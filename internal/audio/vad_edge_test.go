package audio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSpeechEdges(t *testing.T) {
	t.Parallel()
	edges := NewSpeechEdges(EdgeRule{
		Start: 0.6, Stop: 0.4, Least: 60 * time.Millisecond, Hangover: 100 * time.Millisecond, Quietest: -50,
	})
	for i, step := range []struct {
		speech, level float32
		want          Edge
		quiet         time.Duration
	}{
		{0.9, -30, NoEdge, 0}, {0.9, -30, NoEdge, 0}, {0.1, -30, NoEdge, 0}, // too short
		{0.9, -60, NoEdge, 0}, {0.9, -60, NoEdge, 0}, {0.9, -60, NoEdge, 0}, // too quiet
		{0.6, -30, NoEdge, 0}, {0.7, -30, NoEdge, 0}, {0.8, -30, SpeechStarted, 0},
		{0.45, -30, NoEdge, 0}, {0.1, -30, NoEdge, 20 * time.Millisecond}, {0.5, -30, NoEdge, 0},
		{0.1, -30, NoEdge, 20 * time.Millisecond}, {0.9, -70, NoEdge, 40 * time.Millisecond},
		{0.1, -30, NoEdge, 60 * time.Millisecond}, {0.1, -30, NoEdge, 80 * time.Millisecond},
		{0.1, -30, SpeechEnded, 0}, {0.1, -30, NoEdge, 0},
	} {
		got := edges.Next(Activity{Speech: step.speech, Level: step.level})
		require.Equal(t, step.want, got, "frame %d", i)
		require.Equal(t, step.quiet, edges.Quiet(), "frame %d", i)
	}
	require.Equal(t, 120*time.Millisecond, edges.Length())
}

func TestSpeechEdgesAlternateAndAStricterRuleStartsNoSooner(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loose := EdgeRule{
			Start: rapid.Float32Range(0.1, 0.9).Draw(t, "start"), Stop: rapid.Float32Range(0, 0.9).Draw(t, "stop"),
			Least:    time.Duration(rapid.IntRange(0, 10).Draw(t, "least")) * FrameDuration,
			Hangover: time.Duration(rapid.IntRange(0, 20).Draw(t, "hangover")) * FrameDuration,
		}
		strict := loose
		strict.Start += 0.1
		strict.Least += FrameDuration
		a, b := NewSpeechEdges(loose), NewSpeechEdges(strict)
		speaking, aStarted := false, false
		for _, p := range rapid.SliceOf(rapid.Float32Range(0, 1)).Draw(t, "speech") {
			edge := a.Next(Activity{Speech: p})
			if edge != NoEdge {
				require.Equal(t, !speaking, edge == SpeechStarted)
				speaking = !speaking
			}
			require.Equal(t, speaking, a.Speaking())
			aStarted = aStarted || speaking
			if b.Next(Activity{Speech: p}) == SpeechStarted {
				require.True(t, aStarted, "the stricter rule started first")
			}
		}
	})
}
