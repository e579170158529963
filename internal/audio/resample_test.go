package audio

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func resamplePairsOfRates() (pairs [][2]Rate) {
	rates := []Rate{Rate8k, Rate16k, Rate24k, Rate48k}
	for _, from := range rates {
		for _, to := range rates {
			pairs = append(pairs, [2]Rate{from, to})
		}
	}
	return pairs
}

func resampleAll(t require.TestingT, from, to Rate, in []int16) []int16 {
	r, err := NewResampler(from, to)
	require.NoError(t, err)
	out := make([]int16, r.OutputSamples(len(in)))
	n, frame := 0, from.FrameSamples()
	for at := 0; at+frame <= len(in); at += frame {
		got := r.Resample(out[n:], in[at:at+frame])
		require.Equal(t, to.FrameSamples(), got)
		n += got
	}
	return out[:n]
}

func TestResamplePassBand(t *testing.T) {
	t.Parallel()
	for _, pair := range resamplePairsOfRates() {
		from, to := pair[0], pair[1]
		nyquist := float64(min(from, to)) / 2
		worst := 0.0
		for share := 0.02; share <= 0.851; share += 0.0415 {
			hertz := math.Round(share*nyquist/10) * 10
			out := resampleAll(t, from, to, lineTone(from, hertz, 12000, int(from)/2))
			settled := out[len(out)/4 : len(out)*3/4]
			gain := 20 * math.Log10(lineAmplitude(settled, to, hertz)/12000)
			worst = max(worst, math.Abs(gain))
		}
		t.Logf("%d -> %d Hz: ripple %.3f dB to %.0f Hz", from, to, worst, 0.85*nyquist)
		require.Less(t, worst, 0.5)
	}
}

// What the filter must not leave: everything that is not the tone itself, in
// the whole output band, for tones anywhere below and above the lower Nyquist
// frequency.
func TestResampleRejectsAliasesAndImages(t *testing.T) {
	t.Parallel()
	for _, pair := range resamplePairsOfRates() {
		from, to := pair[0], pair[1]
		if from == to {
			continue
		}
		nyquist := float64(min(from, to)) / 2
		images, aliases := 200.0, 200.0
		for share := 0.05; share < 0.995; share += 0.03 {
			hertz := math.Round(share*nyquist/10) * 10
			in := lineTone(from, hertz, 30000, int(from)/4)
			out := resampleAll(t, from, to, in)
			settled := out[len(out)/2:]
			rest := lineLevel(settled) - lineTHDN(settled, to, hertz) // level of all but the tone
			images = min(images, lineLevel(in)-rest)
		}
		for share := 1.003; share*nyquist < float64(from)/2-20; share += 0.06 {
			hertz := math.Round(share*nyquist/10) * 10
			in := lineTone(from, hertz, 30000, int(from)/4)
			out := resampleAll(t, from, to, in)
			aliases = min(aliases, lineLevel(in)-lineLevel(out[len(out)/2:]))
		}
		t.Logf("%d -> %d Hz: all but the tone %.1f dB down, tones above Nyquist %.1f dB down", from, to, images, aliases)
		require.Greater(t, images, 60.0)
		require.Greater(t, aliases, 60.0)
	}
}

func TestResampleDelaysByItsLatency(t *testing.T) {
	t.Parallel()
	for _, pair := range resamplePairsOfRates() {
		from, to := pair[0], pair[1]
		r, err := NewResampler(from, to)
		require.NoError(t, err)
		hertz := 300.0
		out := resampleAll(t, from, to, lineTone(from, hertz, 12000, int(from)/2))
		latency := to.Samples(r.Latency())
		want := lineTone(to, hertz, 12000, len(out))
		middle := len(out) / 2
		snr := lineSNR(want[middle-latency:len(out)-latency], out[middle:])
		t.Logf("%d -> %d Hz: latency %v, %.1f dB like the tone delayed by it", from, to, r.Latency(), snr)
		require.Greater(t, snr, 55.0)
		require.Less(t, r.Latency(), 4*time.Millisecond)
	}
}

// Frame borders leave no trace: any cutting of the input gives the same output.
func TestResampleIsIndependentOfFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pairs := resamplePairsOfRates()
		pair := pairs[rapid.IntRange(0, len(pairs)-1).Draw(t, "pair")]
		in := lineVoice(pair[0], 4, 130, 10*pair[0].FrameSamples())
		whole := resampleAll(t, pair[0], pair[1], in)
		r, err := NewResampler(pair[0], pair[1])
		require.NoError(t, err)
		cut := make([]int16, len(whole))
		n := 0
		for rest := in; len(rest) > 0; {
			k := min(len(rest), rapid.IntRange(1, 2500).Draw(t, "cut"))
			n += r.Resample(cut[n:], rest[:k])
			rest = rest[k:]
		}
		require.Equal(t, len(whole), n)
		require.Equal(t, whole, cut)
	})
}

func TestResampleHasNoClicks(t *testing.T) {
	t.Parallel()
	for _, pair := range resamplePairsOfRates() {
		out := resampleAll(t, pair[0], pair[1], lineTone(pair[0], 1000, 20000, int(pair[0])))
		slope := 2 * 20000 * math.Sin(math.Pi*1000/float64(pair[1]))
		settled := out[len(out)/10:]
		require.LessOrEqual(t, float64(lineMaxStep(settled)), slope*1.01+2)
	}
}

// The two lanes of a word stay apart only while no sum reaches 2^31.
func TestResampleLanesCannotOverflow(t *testing.T) {
	t.Parallel()
	for _, pair := range resamplePairsOfRates() {
		r, err := NewResampler(pair[0], pair[1])
		require.NoError(t, err)
		for _, p := range r.filter.pairs {
			var low, high int64
			for _, group := range p.taps {
				for _, c := range group {
					l := int64(int32(c))
					low += max(l, -l)
					high += max((c-l)>>32, -(c-l)>>32)
				}
			}
			require.Less(t, max(low, high)*32768, int64(1)<<31)
		}
		worst := make([]int16, pair[0].FrameSamples())
		for i := range worst {
			worst[i] = math.MinInt16
			if i%3 == 0 {
				worst[i] = math.MaxInt16
			}
		}
		r.Resample(make([]int16, pair[1].FrameSamples()), worst)
	}
}

func TestResampleRefusesOtherRates(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]Rate{{44100, Rate8k}, {Rate8k, 11025}, {0, 0}, {-1, Rate8k}} {
		_, err := NewResampler(pair[0], pair[1])
		require.Error(t, err)
	}
}

func TestResampleShortOutputDropsTheRest(t *testing.T) {
	t.Parallel()
	r, err := NewResampler(Rate8k, Rate16k)
	require.NoError(t, err)
	require.Equal(t, 10, r.Resample(make([]int16, 10), make([]int16, 160)))
	require.Zero(t, r.Resample(nil, make([]int16, 160)))
	require.Zero(t, r.Resample(make([]int16, 10), nil))
}

func TestResampleAllocatesNothing(t *testing.T) {
	for _, pair := range resamplePairsOfRates() {
		r, err := NewResampler(pair[0], pair[1])
		require.NoError(t, err)
		in, out := make([]int16, pair[0].FrameSamples()), make([]int16, pair[1].FrameSamples())
		require.Zero(t, testing.AllocsPerRun(50, func() { r.Resample(out, in) }))
	}
}

func BenchmarkResample(b *testing.B) {
	for _, pair := range resamplePairsOfRates() {
		b.Run(fmt.Sprintf("%d-%d", pair[0], pair[1]), func(b *testing.B) {
			r, err := NewResampler(pair[0], pair[1])
			require.NoError(b, err)
			in, out := lineVoice(pair[0], 1, 120, pair[0].FrameSamples()), make([]int16, pair[1].FrameSamples())
			b.ReportAllocs()
			for b.Loop() {
				r.Resample(out, in)
			}
		})
	}
}
