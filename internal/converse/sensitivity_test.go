package converse

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

// bursts is a fixed corpus of what is heard while an assistant speaks and is not
// meant as an interruption: coughs, hums, single words, a door, a child.
var bursts = []says{
	{0, 100 * ms, ""}, {0, 160 * ms, "ouch"}, {0, 200 * ms, ""}, {0, 260 * ms, "well"}, {0, 300 * ms, "mm-hm"}, {0, 340 * ms, "bless you"}, {0, 400 * ms, ""},
	{0, 440 * ms, "no not you"}, {0, 520 * ms, "come here"}, {0, 600 * ms, "yeah okay"}, {0, 640 * ms, "the door please"}, {0, 700 * ms, "in a minute dear"}, {0, 740 * ms, "good dog"},
}

// burstScene has a burst heard one second into the greeting.
func burstScene(b says, sensitivity float64, least int) scene {
	return scene{
		assistant: func(a *parley.Assistant) { long(a); a.InterruptSensitivity, a.MinInterruptWords = sensitivity, least },
		customer:  []says{{1000 * ms, 1000*ms + b.to, b.words}}, words: wording{final: 41 * ms, partial: 21 * ms}, model: always("Sorry.", 21*ms), until: 7 * time.Second,
	}
}

// TestPromiseC4SensitivitiesBehave: over the corpus, in eleven steps from 0 to 5, false
// interruptions never fall and the wait for the end of a turn never rises;
// min_interrupt_words is exact from 0 to 10.
func TestPromiseC4SensitivitiesBehave(t *testing.T) {
	t.Parallel()
	var interruptions []int
	var waits []time.Duration
	for step := range 11 {
		sensitivity := float64(step) / 2
		n := 0
		for i, b := range bursts {
			if underRace && i%4 != step%4 {
				continue
			}
			if interruptedAt(burstScene(b, sensitivity, 0).play(t)) {
				n++
			}
		}
		interruptions = append(interruptions, n)
		o := scene{
			assistant: func(a *parley.Assistant) { a.EndpointSensitivity, a.InitialMessage = sensitivity, "" },
			customer:  []says{{500 * ms, 1500 * ms, "what are your hours"}}, words: wording{final: 11 * ms}, model: always("Nine.", 11*ms), until: 4 * time.Second,
		}.play(t)
		waits = append(waits, o.Turns[1].Latency.FirstAudio)
	}
	if underRace {
		return // a part of the corpus says nothing about its counts
	}
	t.Logf("false interruptions of %d: %v; waits: %v", len(bursts), interruptions, waits)
	for i := range 10 {
		require.LessOrEqual(t, interruptions[i], interruptions[i+1])
		require.GreaterOrEqual(t, waits[i], waits[i+1])
	}
	require.Less(t, interruptions[0], interruptions[10], "the setting matters")
	require.Greater(t, waits[0], waits[10])
	for least := range 11 {
		for _, said := range []int{max(1, least-1), max(1, least), least + 1} {
			b := says{0, 1400 * ms, strings.TrimSpace(strings.Repeat("wait ", said))}
			require.Equal(t, said >= least, interruptedAt(burstScene(b, 0.5, least).play(t)), "%d words, %d needed", said, least)
		}
	}
}

// A turn ends with the frame nearest to its time: an answer that is ready then leaves
// within half a frame of it, whatever the pause, and the pause is kept as closely.
func TestAnAnswerThatIsReadyLeavesWithTheTurn(t *testing.T) {
	t.Parallel()
	for step := range 26 {
		sensitivity := float64(step) / 5
		o := scene{
			assistant: func(a *parley.Assistant) { a.EndpointSensitivity, a.InitialMessage = sensitivity, "" },
			customer:  []says{{500 * ms, 1500 * ms, "what are your hours"}}, words: wording{final: 11 * ms}, model: always("Nine.", 11*ms), until: 4 * time.Second,
		}.play(t)
		l := o.Turns[1].Latency
		require.Less(t, l.FirstSound, l.EndOfTurn, "the answer was ready")
		require.LessOrEqual(t, l.Overhead(), 10*ms, "sensitivity %v: %+v", sensitivity, l)
		require.InDelta(t, endpointPause(sensitivity), l.EndOfTurn, float64(10*ms))
	}
}

// TestInterruptionIsMonotone: whatever the customer does, what interrupts at one
// sensitivity interrupts at every higher one, and what does at some number of words
// does at every lower one.
func TestInterruptionIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := says{0, time.Duration(rapid.IntRange(3, 80).Draw(r, "frames")) * 20 * ms, strings.TrimSpace(strings.Repeat("wait ", rapid.IntRange(0, 6).Draw(r, "words")))}
		s1, s2 := rapid.Float64Range(0, 5).Draw(r, "s1"), rapid.Float64Range(0, 5).Draw(r, "s2")
		w1, w2 := rapid.IntRange(0, 6).Draw(r, "w1"), rapid.IntRange(0, 6).Draw(r, "w2")
		strict := interruptedAt(burstScene(b, min(s1, s2), max(w1, w2)).play(t))
		easy := interruptedAt(burstScene(b, max(s1, s2), min(w1, w2)).play(t))
		if strict && !easy {
			r.Fatalf("%+v interrupts at sensitivity %v with %d words, not at %v with %d", b, min(s1, s2), max(w1, w2), max(s1, s2), min(w1, w2))
		}
	})
}
