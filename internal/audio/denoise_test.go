package audio

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// denoised runs x through a Denoiser and takes its delay off again.
func denoised(t testing.TB, rate Rate, x []int16) []int16 {
	t.Helper()
	d, err := NewDenoiser(rate)
	require.NoError(t, err)
	size := rate.FrameSamples()
	out := append([]int16(nil), x...)
	out = append(out, make([]int16, 2*size-len(x)%size)...)
	for at := 0; at+size <= len(out); at += size {
		d.Process(out[at : at+size])
	}
	return out[d.Delay():][:len(x)]
}

// levelOver is the level of x over the frames that the truth picks.
func levelOver(x []int16, rate Rate, truth []frameTruth, which frameTruth, skip int) float64 {
	size := rate.FrameSamples()
	var picked []int16
	for i, is := range truth {
		if is == which && i >= skip {
			picked = append(picked, x[i*size:(i+1)*size]...)
		}
	}
	return Level(picked)
}

// scaledError is how far got is from want after the best gain, in dB: what a
// suppressor distorts rather than only turns down.
func scaledError(want, got []int16) float64 {
	var ww, wg, gg float64
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		ww, wg, gg = ww+w*w, wg+w*g, gg+g*g
	}
	return 10 * math.Log10(gg*ww/(wg*wg)-1)
}

func TestDenoiserTakesNoiseOutAndLeavesSpeech(t *testing.T) {
	t.Parallel()
	const learnt = 75 // frames: 1.5 s
	for _, rate := range []Rate{Rate8k, Rate16k} {
		var table strings.Builder
		for _, c := range []struct {
			name     string
			noise    func(seed uint64, n int, level float64) []int16
			snr      float64
			least    float64 // dB that noise between words falls
			speech   float64 // dB that speech may lose
			improves float64 // dB that the ratio to the clean speech must gain
		}{
			{"clean", nil, 0, 0, 0.6, 0},
			{"white 10 dB", stimWhite, 10, 12, 1.2, 4},
			{"white 0 dB", stimWhite, 0, 12, 3.2, 5.5},
			{"pink 10 dB", stimPink, 10, 13, 1.2, 4},
			{"pink 0 dB", stimPink, 0, 13, 3.2, 5.5},
		} {
			var fall, lost, better float64
			for i, who := range judgingTalkers {
				clean := talk(t, who, judgingTexts, rate, 1.6)
				truth := truthOf(clean, rate)
				heard := clean
				if c.noise != nil {
					heard = stimSum(clean, c.noise(uint64(300+i), len(clean), levelOver(clean, rate, truth, frameSpeech, 0)-c.snr))
				}
				got := denoised(t, rate, heard)
				n := float64(len(judgingTalkers))
				if c.noise != nil {
					fall += (levelOver(heard, rate, truth, frameQuiet, learnt) - levelOver(got, rate, truth, frameQuiet, learnt)) / n
					better += (scaledError(clean, heard) - scaledError(clean, got)) / n
				}
				lost += (keptLevel(clean, clean) - keptLevel(clean, got)) / n
			}
			fmt.Fprintf(&table, "%-12s noise between words -%4.1f dB | speech lost %4.2f dB | ratio to clean speech +%4.1f dB\n",
				c.name, fall, lost, better)
			require.GreaterOrEqual(t, fall, c.least, c.name)
			require.LessOrEqual(t, math.Abs(lost), c.speech, c.name)
			require.GreaterOrEqual(t, better, c.improves, c.name)
		}
		t.Logf("%d voices, %d Hz:\n%s", len(judgingTalkers), rate, &table)
	}
}

// keptLevel is the level of that part of got which is like clean.
func keptLevel(clean, got []int16) float64 {
	var cc, cg float64
	for i := range clean {
		c := float64(clean[i])
		cc, cg = cc+c*c, cg+c*float64(got[i])
	}
	return 20 * math.Log10(math.Max(cg/cc, 1e-6))
}

func TestDenoiserOnNoiseAlone(t *testing.T) {
	t.Parallel()
	for name, x := range map[string][]int16{
		"white": stimWhite(1, 8000*5, -30), "pink": stimPink(2, 8000*5, -30),
		"loud": stimWhite(3, 8000*5, -15), "hum": stimHum(Rate8k, 50, 8000*5, -30),
	} {
		got := denoised(t, Rate8k, x)
		early := Level(x[4000:8000]) - Level(got[4000:8000])
		late := Level(x[16000:]) - Level(got[16000:])
		t.Logf("%-5s falls by %.1f dB in the first second, %.1f dB after two", name, early, late)
		require.Greater(t, early, 6.0, name)
		require.Greater(t, late, 13.0, name)
	}
}

// With nothing to suppress the windows must add up to the input, delayed.
func TestDenoiserIsTransparentWithoutNoise(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		d, err := NewDenoiser(rate)
		require.NoError(t, err)
		d.floor = 1
		require.Equal(t, rate.Samples(12e6), d.Delay())
		size := rate.FrameSamples()
		x := stimSyllables(1, rate, size*50, 150, -20)
		got := append([]int16(nil), x...)
		for at := 0; at < len(x); at += size {
			d.Process(got[at : at+size])
		}
		for i := d.Delay(); i < len(x); i++ {
			require.InDelta(t, x[i-d.Delay()], got[i], 1.01, "sample %d at %d Hz", i, rate)
		}
	}
}

func TestDenoiserRefusesOtherRates(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{0, Rate24k, Rate48k} {
		_, err := NewDenoiser(rate)
		require.Error(t, err)
	}
}

func TestDenoiserTakesAnyFrame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, err := NewDenoiser(Rate8k)
		require.NoError(t, err)
		for _, n := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 159, 160, 161, 320}), 1, 10).Draw(t, "lengths") {
			frame := rapid.SliceOfN(rapid.Int16(), n, n).Draw(t, "frame")
			was := append([]int16(nil), frame...)
			d.Process(frame)
			if n != 160 {
				require.True(t, slices.Equal(was, frame))
			}
		}
		for k, b := range d.bins[1 : len(d.bins)-1] {
			require.False(t, math.IsNaN(float64(b.noise)) || math.IsInf(float64(b.noise), 0), "bin %d", k)
		}
	})
}

func TestDenoiserAllocatesNothing(t *testing.T) {
	for _, rate := range []Rate{Rate8k, Rate16k} {
		d, err := NewDenoiser(rate)
		require.NoError(t, err)
		frame := stimWhite(1, rate.FrameSamples(), -30)
		require.Zero(t, testing.AllocsPerRun(100, func() { d.Process(frame) }))
	}
}

func BenchmarkDenoiser(b *testing.B) {
	for _, rate := range []Rate{Rate8k, Rate16k} {
		b.Run(fmt.Sprint(int(rate)), func(b *testing.B) {
			d, err := NewDenoiser(rate)
			require.NoError(b, err)
			size := rate.FrameSamples()
			x := stimSum(stimSyllables(1, rate, size*512, 120, -25), stimWhite(1, size*512, -40))
			frame := make([]int16, size)
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				copy(frame, x[at*size:])
				d.Process(frame)
				at = (at + 1) & 511
			}
		})
	}
}
