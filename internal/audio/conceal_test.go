package audio

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// concealLine plays a signal through a line that loses the frames lost says.
func concealLine(rate Rate, signal []int16, lost func(frame int) bool) []int16 {
	c := NewConcealer(rate)
	out := append([]int16(nil), signal...)
	n := rate.FrameSamples()
	for i := 0; (i+1)*n <= len(out); i++ {
		if frame := out[i*n : (i+1)*n]; lost(i) {
			c.Lost(frame)
		} else {
			c.Good(frame)
		}
	}
	return out
}

func TestConcealedToneKeepsItsFrequency(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k, Rate48k} {
		for _, hertz := range []float64{200, 440, 700, 1000, 1633} {
			rng := rand.New(rand.NewPCG(uint64(hertz), 23))
			tone := lineTone(rate, hertz, 10000, 8*int(Rate8k)) // 8 s at 8 kHz, less above
			losses := 0
			out := concealLine(rate, tone, func(i int) bool {
				if i < 5 || rng.Float64() >= 0.05 {
					return false
				}
				losses++
				return true
			})
			// Promise T11: the tone is found in every second, and no gap.
			for at := 0; at+int(rate) <= len(out); at += int(rate) {
				second := out[at : at+int(rate)]
				require.Greater(t, lineAmplitude(second, rate, hertz), 8500.0, "%.0f Hz at %d", hertz, rate)
			}
			gap, longest := time.Duration(0), time.Duration(0)
			for at := 0; at+int(rate)/100 <= len(out); at += int(rate) / 100 {
				gap += 10 * time.Millisecond
				if lineLevel(out[at:at+int(rate)/100]) > lineLevel(tone)-12 {
					gap = 0
				}
				longest = max(longest, gap)
			}
			slope := 2 * 10000 * math.Sin(math.Pi*hertz/float64(rate))
			step := float64(lineMaxStep(out)) / slope
			t.Logf("%d Hz, tone of %.0f Hz: %d frames lost, longest gap %v, largest step %.2f of the tone's, %.1f dB to the rest",
				rate, hertz, losses, longest, step, lineTHDN(out, rate, hertz))
			require.LessOrEqual(t, longest, 20*time.Millisecond)
			require.Less(t, step, 1.35)
		}
	}
}

func TestConcealedVoiceHasNoClicks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 29))
		voice := lineVoice(Rate8k, seed, 90+20*float64(seed), 20*8000)
		out := concealLine(Rate8k, voice, func(int) bool { return rng.Float64() < 0.05 })
		require.LessOrEqual(t, float64(lineMaxStep(out)), 1.15*float64(lineMaxStep(voice)))
		require.InDelta(t, lineLevel(voice), lineLevel(out), 0.7)
	}
}

func TestConcealmentBeatsSilence(t *testing.T) {
	t.Parallel()
	// A steady vowel: what is put in place of a lost frame resembles it.
	vowel := make([]int16, 8000)
	for i := range vowel {
		for h := 1.0; h < 20; h++ {
			vowel[i] += int16(4000 / h * math.Sin(2*math.Pi*121*h*float64(i)/8000))
		}
	}
	out := concealLine(Rate8k, vowel, func(i int) bool { return i == 25 })
	require.Greater(t, lineSNR(vowel[4000:4160], out[4000:4160]), 10.0)
}

func TestConcealmentFadesOnLongLoss(t *testing.T) {
	t.Parallel()
	voice := lineTone(Rate8k, 300, 10000, 8000)
	out := concealLine(Rate8k, voice, func(i int) bool { return i >= 25 })
	level := func(ms int) float64 { return lineLevel(out[4000+8*ms : 4000+8*ms+80]) }
	require.InDelta(t, lineLevel(voice), level(0), 0.5, "the first 10 ms are at full level")
	for ms := 10; ms < 60; ms += 10 {
		require.Less(t, level(ms), level(ms-10))
	}
	require.Equal(t, make([]int16, len(out)-4480), out[4480:], "silence after 60 ms")
}

func TestConcealmentRejoinsWithoutAClick(t *testing.T) {
	t.Parallel()
	for frames := 1; frames <= 6; frames++ {
		for _, hertz := range []float64{110, 333, 777, 1500} {
			tone := lineTone(Rate8k, hertz, 10000, 8000)
			out := concealLine(Rate8k, tone, func(i int) bool { return i >= 20 && i < 20+frames })
			border := (20 + frames) * 160
			slope := 2 * 10000 * math.Sin(math.Pi*hertz/8000)
			require.LessOrEqual(t, float64(lineMaxStep(out[border-40:border+160])), 1.35*slope, "%.0f Hz, %d frames", hertz, frames)
			require.Equal(t, tone[border+80:], out[border+80:], "10 ms later all is as sent")
		}
	}
}

func TestConcealerWithoutHistoryIsSilent(t *testing.T) {
	t.Parallel()
	c := NewConcealer(Rate8k)
	out := lineNoise(1, 0.2, 160)
	c.Lost(out)
	require.Equal(t, make([]int16, 160), out)
	c.Good(lineNoise(1, 0.2, 160))
	c.Reset()
	c.Lost(out)
	require.Equal(t, make([]int16, 160), out)
}

func TestConcealerTakesAnyLength(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := NewConcealer(rapid.SampledFrom([]Rate{Rate8k, Rate16k, Rate24k, Rate48k}).Draw(t, "rate"))
		for range rapid.IntRange(1, 20).Draw(t, "frames") {
			frame := lineNoise(rapid.Uint64().Draw(t, "seed"), 0.5, rapid.IntRange(1, 4000).Draw(t, "length"))
			if rapid.Bool().Draw(t, "lost") {
				c.Lost(frame)
			} else {
				c.Good(frame)
			}
		}
		c.Good(nil)
		c.Lost(nil)
	})
}

func TestConcealerAllocatesNothing(t *testing.T) {
	c, frame := NewConcealer(Rate16k), lineVoice(Rate16k, 1, 120, 320)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Good(frame)
		c.Lost(frame)
	}))
}

func BenchmarkConcealer(b *testing.B) {
	for name, rate := range map[string]Rate{"8k": Rate8k, "48k": Rate48k} {
		voice := lineVoice(rate, 1, 120, rate.Samples(200*time.Millisecond))
		frame := voice[:rate.FrameSamples()]
		b.Run(name+"/good", func(b *testing.B) {
			c := NewConcealer(rate)
			b.ReportAllocs()
			for b.Loop() {
				c.Good(frame)
			}
		})
		b.Run(name+"/lost", func(b *testing.B) {
			c := NewConcealer(rate)
			c.Good(voice)
			b.ReportAllocs()
			for b.Loop() {
				c.lost = 0 // every frame is the first of a loss, the dearest
				c.Lost(frame)
			}
		})
	}
}
