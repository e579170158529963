package audio

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLevel(t *testing.T) {
	t.Parallel()
	square := []int16{math.MinInt16, math.MinInt16}
	require.InDelta(t, 0, Level(square), 1e-9)
	require.InDelta(t, -3.01, Level(stimTone(Rate8k, 1000, 8000, 0)), 0.01)
	require.InDelta(t, -23.01, Level(stimTone(Rate8k, 1000, 8000, -20)), 0.01)
	require.InDelta(t, SilenceLevel, Level(nil), 0)
	require.InDelta(t, SilenceLevel, Level(make([]int16, 160)), 0)
	require.GreaterOrEqual(t, Level([]int16{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), SilenceLevel)
}

func TestMixSaturatesAndNeverWraps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dst := rapid.SliceOfN(rapid.Int16(), 0, 20).Draw(t, "dst")
		src := rapid.SliceOfN(rapid.Int16(), 0, 20).Draw(t, "src")
		gain := rapid.Float32Range(-1, 10).Draw(t, "gain")
		was := append([]int16(nil), dst...)
		Mix(dst, src, gain)
		for i, got := range dst {
			want := float64(was[i])
			if i < len(src) {
				want += float64(src[i]) * math.Min(MaxGain, math.Max(0, float64(gain)))
			}
			want = math.Max(math.MinInt16, math.Min(math.MaxInt16, want))
			require.InDelta(t, want, float64(got), 1.01)
		}
	})
}

func TestScaleIsExactAtUnityAndSilentAtNaN(t *testing.T) {
	t.Parallel()
	frame := []int16{-32768, -1, 0, 1, 32767}
	Scale(frame, 1)
	require.Equal(t, []int16{-32768, -1, 0, 1, 32767}, frame)
	Scale(frame, GainOf(-6.0206))
	require.Equal(t, []int16{-16384, 0, 0, 1, 16384}, frame)
	Scale(frame, float32(math.NaN()))
	require.Equal(t, make([]int16, 5), frame)
}

// A click is a jump between neighbours that the signal itself does not make: on a
// constant signal every jump is the fader's.
func TestFaderHasNoClicks(t *testing.T) {
	t.Parallel()
	fader := NewFader(Rate8k, 20*time.Millisecond, 0)
	var out []int16
	play := func(frames int) {
		for range frames {
			frame := make([]int16, 160)
			for i := range frame {
				frame[i] = 16000
			}
			fader.Apply(frame)
			out = append(out, frame...)
		}
	}
	play(1)
	fader.To(1)
	play(2)
	fader.To(0.25)
	for range 7 { // a change of mind in the middle of a fade, at odd lengths
		part := []int16{16000, 16000, 16000}
		fader.Apply(part)
		out = append(out, part...)
	}
	fader.To(0)
	require.True(t, fader.Fading())
	play(2)
	require.False(t, fader.Fading())
	require.Zero(t, out[0])
	require.Equal(t, int16(16000), out[470])
	require.Zero(t, out[len(out)-1])
	for i := 1; i < len(out); i++ {
		require.LessOrEqual(t, math.Abs(float64(out[i])-float64(out[i-1])), 101.0, "sample %d", i)
	}
}

func TestFaderMixesLikeItScales(t *testing.T) {
	t.Parallel()
	a, b := NewFader(Rate8k, 50*time.Millisecond, 0), NewFader(Rate8k, 50*time.Millisecond, 0)
	a.To(0.7)
	b.To(0.7)
	src := stimWhite(3, 160*4, -20)
	for at := 0; at < len(src); at += 160 {
		scaled := append([]int16(nil), src[at:at+160]...)
		mixed := make([]int16, 160)
		a.Apply(scaled)
		b.Mix(mixed, src[at:at+160])
		require.Equal(t, scaled, mixed)
	}
	require.InDelta(t, 0.7, a.Gain(), 1e-4)
	b.Mix(nil, src)
	b.Mix(src, nil)
	b.Apply(nil)
}

func TestMixAllocatesNothing(t *testing.T) {
	dst, src := make([]int16, 160), stimWhite(1, 160, -20)
	fader := NewFader(Rate8k, time.Second, 0)
	fader.To(1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		Mix(dst, src, 0.5)
		Scale(dst, 0.5)
		fader.Mix(dst, src)
		fader.Apply(dst)
		Level(dst)
	}))
}

func BenchmarkMix(b *testing.B) {
	dst, src := make([]int16, 160), stimWhite(1, 160, -20)
	b.ReportAllocs()
	for b.Loop() {
		Mix(dst, src, 0.5)
	}
}

func BenchmarkLevel(b *testing.B) {
	src := stimWhite(1, 160, -20)
	b.ReportAllocs()
	for b.Loop() {
		Level(src)
	}
}
