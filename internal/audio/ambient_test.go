package audio

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testAmbience is rendered once for all tests.
var testAmbience = NewAmbience(7)

func background(t testing.TB, sound AmbientSound, rate Rate, volume float32) *Background {
	t.Helper()
	b, err := testAmbience.Background(sound, rate, volume, 1)
	require.NoError(t, err)
	return b
}

// soundprint is what tells two backgrounds apart.
type soundprint struct {
	centroid float64 // Hz: where the middle of the energy is
	spread   float64 // Hz: how far it lies around it
	wander   float64 // dB: how much the level of 100 ms varies
	syllabic float64 // share of the envelope's power at 2 to 8 Hz
	peaks    float64 // dB: crest of the loudest 10 ms over the mean
}

func printOf(x []int16, rate Rate) soundprint {
	const n = 512
	f := newFFT(n)
	mean := make([]float64, n/2+1)
	power := make([]float32, n/2+1)
	block := make([]complex64, n/2)
	for at := 0; at+n <= len(x); at += n {
		for i := range block {
			w := func(k int) float32 { return float32(0.5 - 0.5*math.Cos(2*math.Pi*float64(k)/n)) }
			block[f.order[i]] = complex(float32(x[at+2*i])*w(2*i), float32(x[at+2*i+1])*w(2*i+1))
		}
		f.forward(block)
		powers(power, block)
		for k, p := range power {
			mean[k] += float64(p)
		}
	}
	var sum, first, second float64
	for k, p := range mean {
		hertz := float64(k) * float64(rate) / n
		sum, first, second = sum+p, first+p*hertz, second+p*hertz*hertz
	}
	out := soundprint{centroid: first / sum}
	out.spread = math.Sqrt(second/sum - out.centroid*out.centroid)
	out.envelope(x, rate)
	return out
}

func (s *soundprint) envelope(x []int16, rate Rate) {
	size := int(rate) / 100
	var env, slow []float64
	for at := 0; at+size <= len(x); at += size {
		env = append(env, math.Pow(10, Level(x[at:at+size])/20))
	}
	for at := 0; at+10 <= len(env); at += 10 {
		var sum float64
		for _, v := range env[at : at+10] {
			sum += v * v
		}
		slow = append(slow, 10*math.Log10(sum/10))
	}
	s.wander = deviation(slow)
	s.peaks = 20 * math.Log10(slices.Max(env)/average(env))
	const n = 2048 // of 10 ms: 20.48 s, 0.049 Hz a bin
	f := newFFT(n)
	block := make([]complex64, n/2)
	mean := average(env)
	for i := range block {
		block[f.order[i]] = complex(float32(env[2*i]-mean), float32(env[2*i+1]-mean))
	}
	f.forward(block)
	power := make([]float32, n/2+1)
	powers(power, block)
	var all, part float64
	for k := 1; k < n/2; k++ {
		all += float64(power[k])
		if hertz := float64(k) * 100 / n; hertz >= 2 && hertz <= 8 {
			part += float64(power[k])
		}
	}
	s.syllabic = part / all
}

func average(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func deviation(x []float64) float64 {
	mean, sum := average(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)))
}

// apart is how many just noticeable steps two backgrounds differ by, roughly: a
// third of an octave, 1.5 dB, a tenth of the modulation.
func (s soundprint) apart(o soundprint) float64 {
	return math.Abs(math.Log2(s.centroid/o.centroid))*3 + math.Abs(math.Log2(s.spread/o.spread))*3 +
		math.Abs(s.wander-o.wander)/1.5 + math.Abs(s.syllabic-o.syllabic)*10 + math.Abs(s.peaks-o.peaks)/3
}

func TestAmbientSoundsDiffer(t *testing.T) {
	t.Parallel()
	prints := map[AmbientSound]soundprint{}
	var table strings.Builder
	for _, sound := range AmbientSounds()[1:] {
		p := printOf(background(t, sound, Rate8k, 1).loop, Rate8k)
		prints[sound] = p
		fmt.Fprintf(&table, "%-12s centroid %4.0f Hz, spread %4.0f Hz, wander %3.1f dB, syllabic %2.0f %%, peaks %4.1f dB\n",
			sound, p.centroid, p.spread, p.wander, 100*p.syllabic, p.peaks)
	}
	least := math.Inf(1)
	for a, p := range prints {
		for b, q := range prints {
			if a != b {
				least = math.Min(least, p.apart(q))
				require.Greater(t, p.apart(q), 2.0, "%s and %s sound alike", a, b)
			}
		}
	}
	t.Logf("8 kHz:\n%sthe two most alike are %.1f steps apart", &table, least)
	require.Greater(t, prints[AmbientCrowdedRoom].syllabic, prints[AmbientCity].syllabic)
	require.Greater(t, prints[AmbientForest].centroid, 3*prints[AmbientCity].centroid)
}

func TestAmbientIsTheSameAtEveryRate(t *testing.T) {
	t.Parallel()
	for _, sound := range AmbientSounds()[1:] {
		for _, rate := range []Rate{Rate8k, Rate16k} {
			b := background(t, sound, rate, 1)
			require.Len(t, b.loop, rate.Samples(AmbientLoop))
			require.InDelta(t, AmbientLevel, Level(b.loop), 1, "%s at %d Hz", sound, rate)
		}
	}
	for _, rate := range []Rate{Rate24k, Rate48k} { // one sound is enough at the dear rates
		b := background(t, AmbientForest, rate, 1)
		require.Len(t, b.loop, rate.Samples(AmbientLoop))
		require.InDelta(t, AmbientLevel, Level(b.loop), 1, "%d Hz", rate)
	}
}

func TestAmbientFollowsFromItsSeed(t *testing.T) {
	t.Parallel()
	again := renderAmbient(AmbientOffice, Rate8k, 7)
	require.True(t, slices.Equal(background(t, AmbientOffice, Rate8k, 1).loop, again))
	require.False(t, slices.Equal(again, renderAmbient(AmbientOffice, Rate8k, 8)))
}

// A seam would be a jump, or a change of level or colour, which the loop does not
// make elsewhere.
func TestAmbientLoopHasNoSeam(t *testing.T) {
	t.Parallel()
	for _, sound := range AmbientSounds()[1:] {
		loop := background(t, sound, Rate8k, 1).loop
		var steps []float64
		for i := 1; i < len(loop); i++ {
			steps = append(steps, math.Abs(float64(loop[i])-float64(loop[i-1])))
		}
		seam := math.Abs(float64(loop[0]) - float64(loop[len(loop)-1]))
		require.LessOrEqual(t, seam, quantile(steps, 0.999), "%s jumps", sound)
		// 60 ms on both sides of the seam against all such neighbours.
		var changes []float64
		for at := 480; at+480 <= len(loop); at += 480 {
			changes = append(changes, math.Abs(Level(loop[at-480:at])-Level(loop[at:at+480])))
		}
		across := math.Abs(Level(loop[len(loop)-480:]) - Level(loop[:480]))
		require.LessOrEqual(t, across, quantile(changes, 0.99), "%s changes its level", sound)
	}
}

func TestBackgroundStreamsAroundTheLoop(t *testing.T) {
	t.Parallel()
	b := background(t, AmbientCafe, Rate8k, 1)
	b.fader = NewFader(Rate8k, 0, 1)
	b.at = len(b.loop) - 250
	got := make([]int16, 0, 640)
	for _, n := range []int{160, 1, 159, 320} {
		frame := make([]int16, n)
		b.Read(frame)
		got = append(got, frame...)
	}
	want := append(slices.Clone(b.loop[len(b.loop)-250:]), b.loop[:390]...)
	require.Equal(t, want, got)
	b.Read(nil)
}

func TestBackgroundVolume(t *testing.T) {
	t.Parallel()
	level := func(volume float32) float64 {
		b := background(t, AmbientNature, Rate8k, volume)
		heard := make([]int16, 8000*4)
		b.Read(heard)
		return Level(heard[8000:])
	}
	full := level(1)
	require.InDelta(t, AmbientLevel, full, 2)
	require.InDelta(t, full, level(5), 0.01)
	require.InDelta(t, full-6, level(0.5), 0.2)
	require.InDelta(t, SilenceLevel, level(0), 0)
	require.InDelta(t, SilenceLevel, level(float32(math.NaN())), 0)

	b := background(t, AmbientNature, Rate8k, 1)
	first := make([]int16, 160)
	b.Read(first)
	require.Less(t, Level(first), full-15, "it fades in")
}

func TestBackgroundsOfTwoCallsDiffer(t *testing.T) {
	t.Parallel()
	a, err := testAmbience.Background(AmbientCafe, Rate8k, 1, 1)
	require.NoError(t, err)
	b, err := testAmbience.Background(AmbientCafe, Rate8k, 1, 2)
	require.NoError(t, err)
	require.NotEqual(t, a.at, b.at)
	require.Same(t, &a.loop[0], &b.loop[0], "the loop itself is shared")
}

func TestAmbientOffAndUnknown(t *testing.T) {
	t.Parallel()
	require.Equal(t, []AmbientSound{"off", "office", "city", "forest", "crowded_room", "cafe", "nature"}, AmbientSounds())
	b := background(t, AmbientOff, Rate8k, 1)
	frame := []int16{1, 2, 3}
	b.Mix(frame)
	require.Equal(t, []int16{1, 2, 3}, frame)
	for _, bad := range []struct {
		sound AmbientSound
		rate  Rate
	}{{"beach", Rate8k}, {"", Rate8k}, {AmbientCafe, 11025}} {
		_, err := testAmbience.Background(bad.sound, bad.rate, 1, 1)
		require.Error(t, err)
	}
}

func TestBackgroundAllocatesNothing(t *testing.T) {
	b := background(t, AmbientOffice, Rate8k, 0.5)
	frame := make([]int16, 160)
	require.Zero(t, testing.AllocsPerRun(100, func() { b.Mix(frame) }))
}

func BenchmarkBackground(b *testing.B) {
	sound := background(b, AmbientOffice, Rate8k, 0.5)
	frame := make([]int16, 160)
	b.ReportAllocs()
	for b.Loop() {
		sound.Read(frame)
	}
}

func BenchmarkRenderAmbient(b *testing.B) {
	for _, sound := range AmbientSounds()[1:] {
		b.Run(string(sound), func(b *testing.B) {
			for b.Loop() {
				renderAmbient(sound, Rate8k, 1)
			}
		})
	}
}
