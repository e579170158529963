package audio

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// watch runs a detector with the default rule over x: a verdict and whether an
// utterance is under way, per frame.
func watch(t testing.TB, rate Rate, x []int16) (verdicts []Activity, speaking []bool) {
	t.Helper()
	v, err := NewVAD(rate)
	require.NoError(t, err)
	edges := NewSpeechEdges(DefaultEdgeRule())
	size := rate.FrameSamples()
	for ; len(x) >= size; x = x[size:] {
		a := v.Process(x[:size])
		edges.Next(a)
		verdicts = append(verdicts, a)
		speaking = append(speaking, edges.Speaking())
	}
	return verdicts, speaking
}

// tally counts a detector's errors over any amount of material.
type tally struct {
	speech, missed, quiet, alarms int
	onsets, releases              []float64 // ms
	lost                          int       // utterances never noticed
}

func (s *tally) add(verdicts []Activity, speaking []bool, truth []frameTruth) {
	last := frameQuiet
	for i, a := range verdicts {
		switch {
		case truth[i] == frameSpeech && a.Speech < 0.5:
			s.missed++
		case truth[i] == frameQuiet && a.Speech >= 0.5:
			s.alarms++
		}
		switch {
		case truth[i] == frameEdge:
			continue
		case truth[i] == frameSpeech && last == frameQuiet && !speaking[max(0, i-3)]:
			s.onset(speaking, i-2) // the voice began two frames before it counts
		case truth[i] == frameQuiet && last == frameSpeech:
			s.release(verdicts, i-5) // and ended five before silence does
		}
		last = truth[i]
		if last == frameSpeech {
			s.speech++
		} else {
			s.quiet++
		}
	}
}

func (s *tally) onset(speaking []bool, from int) {
	for i := from; i < len(speaking) && i < from+50; i++ {
		if speaking[i] {
			s.onsets = append(s.onsets, float64(i-from+1)*20)
			return
		}
	}
	s.lost++
}

func (s *tally) release(verdicts []Activity, from int) {
	for i := from; i < len(verdicts) && i < from+20; i++ { // what is longer met the next word
		if verdicts[i].Speech < 0.5 {
			s.releases = append(s.releases, float64(i-from+1)*20)
			return
		}
	}
}

func percent(part, whole int) float64 { return 100 * float64(part) / math.Max(1, float64(whole)) }

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return x[int(q*float64(len(x)-1)+0.5)]
}

func (s *tally) String() string {
	return fmt.Sprintf("missed %4.1f %% of %4d | false %4.1f %% of %4d | onset median %3.0f, p95 %3.0f ms, lost %d of %d | release median %3.0f, p95 %3.0f ms",
		percent(s.missed, s.speech), s.speech, percent(s.alarms, s.quiet), s.quiet,
		quantile(s.onsets, 0.5), quantile(s.onsets, 0.95), s.lost, s.lost+len(s.onsets),
		quantile(s.releases, 0.5), quantile(s.releases, 0.95))
}

func TestVADHearsSpeech(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		var table strings.Builder
		for _, c := range []struct {
			name           string
			noise          func(seed uint64, n int, level float64) []int16
			snr, gain      float64
			missed, alarms float64 // bounds in percent
			onset          float64 // and of its 95th percentile in ms
			lost           int
		}{
			{"clean", nil, 0, 0, 4, 4, 180, 0},
			{"clean, 20 dB down", nil, 0, -20, 9, 2, 200, 0},
			{"white 20 dB", stimWhite, 20, 0, 2, 9, 160, 0},
			{"white 10 dB", stimWhite, 10, 0, 3, 8, 160, 0},
			{"white 5 dB", stimWhite, 5, 0, 5, 7, 180, 0},
			{"white 0 dB", stimWhite, 0, 0, 15, 6, 600, 1},
			{"pink 20 dB", stimPink, 20, -10, 3, 6, 160, 0},
			{"pink 10 dB", stimPink, 10, -10, 5, 6, 180, 0},
			{"pink 5 dB", stimPink, 5, 0, 8, 5, 220, 0},
			{"pink 0 dB", stimPink, 0, 0, 20, 4, 800, 2},
		} {
			var sum tally
			for i, who := range judgingTalkers {
				clean := talk(t, who, judgingTexts, rate, 1.5)
				truth := truthOf(clean, rate)
				heard := clean
				if c.noise != nil {
					heard = stimSum(clean, c.noise(uint64(900+i), len(clean), -22-c.snr))
				}
				verdicts, speaking := watch(t, rate, stimGain(heard, c.gain))
				sum.add(verdicts, speaking, truth)
			}
			fmt.Fprintf(&table, "%-18s %s\n", c.name, &sum)
			require.Less(t, percent(sum.missed, sum.speech), c.missed, "%s missed: %s", c.name, &sum)
			require.Less(t, percent(sum.alarms, sum.quiet), c.alarms, "%s false alarms: %s", c.name, &sum)
			require.LessOrEqual(t, sum.lost, c.lost, c.name)
			require.LessOrEqual(t, quantile(sum.onsets, 0.95), c.onset, "%s onset: %s", c.name, &sum)
		}
		t.Logf("speech of %d voices it was not tuned with, %d Hz:\n%s", len(judgingTalkers), rate, &table)
	}
}

func TestVADHearsGeneratedSyllables(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		for _, pitch := range []float64{90, 160, 260} {
			clean := stimDelay(stimSyllables(77, rate, 12*int(rate), pitch, -24), int(rate))
			verdicts, speaking := watch(t, rate, stimSum(clean, stimWhite(3, len(clean), -60)))
			var sum tally
			sum.add(verdicts, speaking, truthOf(clean, rate))
			t.Logf("%3.0f Hz pitch at %d Hz: %s", pitch, rate, &sum)
			require.Less(t, percent(sum.missed, sum.speech), 5.0)
			require.LessOrEqual(t, slices.Max(sum.onsets), 160.0)
		}
	}
}

// notSpeechBounds are the most false alarms in 40 s, by the first word of a sound's
// name: percent of the frames, and utterances.
var notSpeechBounds = map[string]struct {
	frames     float64
	utterances int
}{
	"white": {0.5, 0}, "pink": {0.5, 0}, "bursts": {2, 1}, "hum": {0.5, 0}, "tone": {0.5, 0},
	"ringback": {0.5, 0}, "busy": {2, 0}, "digits": {4, 0}, "chords": {4, 9}, "clicks": {3, 0},
	"flutter": {3, 0},
}

func TestVADIgnoresWhatIsNotSpeech(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		var table strings.Builder
		type count struct{ frames, alarms, spoken, starts int }
		counts := map[string]*count{}
		for i, level := range []float64{-55, -40, -25, -15} {
			for name, x := range notSpeech(uint64(5000+100*i), rate, 10*int(rate), level) {
				if counts[name] == nil {
					counts[name] = &count{}
				}
				n := counts[name]
				verdicts, speaking := watch(t, rate, stimSum(x, stimWhite(1, len(x), -65)))
				for i, a := range verdicts {
					n.frames++
					if a.Speech >= 0.5 {
						n.alarms++
					}
					if speaking[i] {
						n.spoken++
					}
					if i > 0 && speaking[i] && !speaking[i-1] {
						n.starts++
					}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			n := counts[name]
			bound := notSpeechBounds[strings.Fields(name)[0]]
			if strings.HasSuffix(name, "bursts") {
				bound = notSpeechBounds["bursts"]
			}
			require.LessOrEqual(t, percent(n.alarms, n.frames), bound.frames, name)
			require.LessOrEqual(t, n.starts, bound.utterances, name)
			fmt.Fprintf(&table, "%-13s frames %5.2f %%  utterances %2d in 40 s, %5.2f %% of the time\n",
				name, percent(n.alarms, n.frames), n.starts, percent(n.spoken, n.frames))
		}
		t.Logf("false alarms at %d Hz, levels -55 to -15 dBFS:\n%s", rate, &table)
	}
}

// A caller may sit in one of our own backgrounds. Those with talkers in them are
// speech to a detector, and are only reported.
func TestVADOnAmbientSounds(t *testing.T) {
	t.Parallel()
	for _, sound := range AmbientSounds()[1:] {
		x := stimGain(background(t, sound, Rate8k, 1).loop, -10)
		verdicts, speaking := watch(t, Rate8k, x)
		alarms, spoken := 0, 0
		for i, a := range verdicts {
			if a.Speech >= 0.5 {
				alarms++
			}
			if speaking[i] {
				spoken++
			}
		}
		t.Logf("%-12s frames %4.1f %%, in utterances %4.1f %% of the time", sound,
			percent(alarms, len(verdicts)), percent(spoken, len(verdicts)))
		if sound != AmbientCafe && sound != AmbientCrowdedRoom {
			require.Less(t, percent(alarms, len(verdicts)), 10.0, sound)
		}
	}
}

func TestVADLearnsTheFloor(t *testing.T) {
	t.Parallel()
	for _, level := range []float64{-60, -40, -25} {
		verdicts, _ := watch(t, Rate8k, stimWhite(4, 8000*4, level))
		require.InDelta(t, level, verdicts[len(verdicts)-1].Floor, 5)
		require.InDelta(t, level, verdicts[len(verdicts)-1].Level, 1.5)
	}
}

func TestVADResetForgets(t *testing.T) {
	t.Parallel()
	v, err := NewVAD(Rate16k)
	require.NoError(t, err)
	x := stimSyllables(1, Rate16k, 320*100, 120, -25)
	run := func() (out []Activity) {
		for at := 0; at < len(x); at += 320 {
			out = append(out, v.Process(x[at:at+320]))
		}
		return out
	}
	first := run()
	v.Reset()
	require.True(t, slices.Equal(first, run()))
}

func TestVADRefusesOtherRates(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{0, -8000, Rate24k, Rate48k, 11025} {
		_, err := NewVAD(rate)
		require.Error(t, err)
	}
}

func TestVADTakesAnyFrame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]Rate{Rate8k, Rate16k}).Draw(t, "rate")
		v, err := NewVAD(rate)
		require.NoError(t, err)
		frames := rapid.SliceOfN(rapid.SliceOfN(rapid.Int16(), 0, 700), 1, 8).Draw(t, "frames")
		for _, frame := range frames {
			a := v.Process(frame)
			require.True(t, a.Speech >= 0 && a.Speech <= 1, "speech %v", a.Speech)
			require.True(t, a.Level >= SilenceLevel && a.Level <= 0, "level %v", a.Level)
			require.True(t, a.Floor >= SilenceLevel && a.Floor <= 10, "floor %v", a.Floor)
		}
	})
}

func TestDecibelsRoundTrip(t *testing.T) {
	t.Parallel()
	for db := -110.0; db <= 15; db += 0.37 {
		x := float32(math.Pow(10, db/10))
		require.InDelta(t, db, decibels(x), 0.005)
		require.InDelta(t, db, decibels(undecibels(float32(db))), 0.1)
	}
}

func TestVADAllocatesNothing(t *testing.T) {
	for _, rate := range []Rate{Rate8k, Rate16k} {
		v, err := NewVAD(rate)
		require.NoError(t, err)
		edges := NewSpeechEdges(DefaultEdgeRule())
		frame := stimWhite(1, rate.FrameSamples(), -30)
		require.Zero(t, testing.AllocsPerRun(100, func() { edges.Next(v.Process(frame)) }))
	}
}

func BenchmarkVAD(b *testing.B) {
	for _, rate := range []Rate{Rate8k, Rate16k} {
		b.Run(fmt.Sprint(int(rate)), func(b *testing.B) {
			v, err := NewVAD(rate)
			require.NoError(b, err)
			size := rate.FrameSamples()
			x := stimSyllables(1, rate, size*512, 120, -25)
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				v.Process(x[at*size : (at+1)*size])
				at = (at + 1) & 511
			}
		})
	}
}
