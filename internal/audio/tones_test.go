package audio

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toneRun fills a whole signal frame by frame.
func toneRun(g *ToneGenerator, rate Rate, length time.Duration) []int16 {
	out := make([]int16, rate.Samples(length))
	for rest := out; len(rest) > 0; {
		n := min(len(rest), rate.FrameSamples())
		g.Fill(rest[:n])
		rest = rest[n:]
	}
	return out
}

func TestSineIsPureAndSteady(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k, Rate48k} {
		out := toneRun(NewSine(rate, 1004, -6), rate, time.Second)
		require.Greater(t, lineTHDN(out, rate, 1004), 80.0)
		require.InDelta(t, -6-3.01, lineLevel(out), 0.02)
	}
	g := NewSine(Rate8k, 440, -6)
	for range 3600 * 8000 {
		g.waves[0].next()
	}
	last := toneRun(g, Rate8k, time.Second)
	require.InDelta(t, -6-3.01, lineLevel(last), 0.001, "after an hour")
}

func TestDualToneHoldsBoth(t *testing.T) {
	t.Parallel()
	out := toneRun(NewDualTone(Rate8k, 480, 620, -20), Rate8k, time.Second)
	for _, hertz := range []float64{480, 620} {
		require.InDelta(t, -20, 20*math.Log10(lineAmplitude(out, Rate8k, hertz)/32768), 0.05)
	}
}

func TestProgressToneCadence(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for _, c := range []struct {
		name    string
		make    func(Rate, ToneRegion) *ToneGenerator
		region  ToneRegion
		on, off time.Duration
	}{
		{"US ringback", NewRingback, RegionUS, 2000 * ms, 4000 * ms},
		{"EU ringback", NewRingback, RegionEU, 1000 * ms, 4000 * ms},
		{"US busy", NewBusy, RegionUS, 500 * ms, 500 * ms},
		{"EU busy", NewBusy, RegionEU, 500 * ms, 500 * ms},
	} {
		out := toneRun(c.make(Rate8k, c.region), Rate8k, 3*(c.on+c.off))
		for i := range 3 {
			start := Rate8k.Samples(time.Duration(i) * (c.on + c.off))
			on, off := Rate8k.Samples(c.on), Rate8k.Samples(c.off)
			require.Greater(t, lineLevel(out[start:start+on]), -32.0, c.name)
			require.Equal(t, make([]int16, off), out[start+on:start+on+off], c.name)
		}
	}
}

func TestBeepEndsWithoutAClick(t *testing.T) {
	t.Parallel()
	g := NewBeep(Rate8k, 1000, 200*time.Millisecond)
	require.False(t, g.Done())
	out := toneRun(g, Rate8k, 300*time.Millisecond)
	require.True(t, g.Done())
	require.Equal(t, make([]int16, 800), out[1600:])
	peak := 32767 * math.Pow(10, beepLevel/20)
	require.LessOrEqual(t, float64(lineMaxStep(out)), 2*peak*math.Sin(math.Pi/8)+2)
	require.Less(t, max(out[0], -out[0], out[1599], -out[1599]), int16(500))
}

func TestToneGeneratorAllocatesNothing(t *testing.T) {
	g, frame := NewRingback(Rate16k, RegionUS), make([]int16, 320)
	require.Zero(t, testing.AllocsPerRun(100, func() { g.Fill(frame) }))
}

func BenchmarkToneGenerator(b *testing.B) {
	g, frame := NewRingback(Rate8k, RegionUS), make([]int16, 160)
	b.ReportAllocs()
	for b.Loop() {
		g.Fill(frame)
	}
}
