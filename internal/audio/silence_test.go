package audio

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// silentCall is a voice, a long digital silence, which A-law carries as a constant,
// and a voice again.
func silentCall(rate Rate, value int16) []int16 {
	voice := stimSum(stimSyllables(1, rate, 2*int(rate), 120, -25), stimWhite(2, 2*int(rate), -50))
	silence := make([]int16, 20*int(rate))
	for i := range silence {
		silence[i] = value
	}
	return append(append(append([]int16(nil), voice...), silence...), voice...)
}

// What is left out in silence must not be missed afterwards: a detector that is kept
// from taking the short way says the same.
func TestVADSaysTheSameWithoutTheShortWay(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		for _, value := range []int16{0, 8} {
			x, size := silentCall(rate, value), rate.FrameSamples()
			quick, err := NewVAD(rate)
			require.NoError(t, err)
			whole, err := NewVAD(rate)
			require.NoError(t, err)
			short := 0
			for at := 0; at < len(x); at += size {
				whole.still = 0
				want, got := whole.Process(x[at:at+size]), quick.Process(x[at:at+size])
				require.InDelta(t, want.Speech, got.Speech, 0.01, "sample %d, silence is %d", at, value)
				require.InDelta(t, want.Level, got.Level, 1e-3)
				require.InDelta(t, want.Floor, got.Floor, 0.01)
				if quick.still > vadRest {
					short++
				}
			}
			require.Greater(t, short, 500)
		}
	}
}

// A line without noise is not touched, and where the suppressor begins or ceases to
// work nothing is heard of it: with nothing to suppress the sound is only delayed.
func TestDenoiserPassesALineWithoutNoise(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		for _, x := range [][]int16{
			silentCall(rate, 0), silentCall(rate, 8),
			stimSum(stimSyllables(7, rate, 20*int(rate), 180, -25), stimWhite(8, 20*int(rate), -70)),
		} {
			d, err := NewDenoiser(rate)
			require.NoError(t, err)
			d.floor = 1
			size, got := rate.FrameSamples(), append([]int16(nil), x...)
			passed, changes := 0, 0
			for at := 0; at+size <= len(x); at += size {
				before := d.passed
				d.Process(got[at : at+size])
				if d.passed {
					passed++
				}
				if d.passed != before {
					changes++
				}
			}
			t.Logf("%d Hz: %d of %d frames passed, %d changes", rate, passed, len(x)/size, changes)
			require.Greater(t, passed, len(x)/size/2)
			require.Positive(t, changes)
			for i := d.Delay(); i < len(x); i++ {
				require.InDelta(t, x[i-d.Delay()], got[i], 1.01, "sample %d", i)
			}
		}
	}
}

// A lost packet or two is no silence to trust.
func TestDenoiserComesBackAfterAGap(t *testing.T) {
	t.Parallel()
	noise := stimWhite(5, 8000*6, -35)
	clear(noise[8000*4 : 8000*4+480])
	got := denoised(t, Rate8k, noise)
	after := 8000*4 + 480 + 2400 // 300 ms
	require.Greater(t, Level(noise[after:])-Level(got[after:]), 13.0)
}

// A line that was clean may become noisy in the middle of a call.
func TestDenoiserHearsNoiseBegin(t *testing.T) {
	t.Parallel()
	x := append(silentCall(Rate8k, 0), stimWhite(6, 8000*8, -35)...)
	got := denoised(t, Rate8k, x)
	after := len(x) - 8000*4
	require.Greater(t, Level(x[after:])-Level(got[after:]), 13.0, "4 s after it began")
}

// Arithmetic on denormal numbers takes a hundred times as long, and every mean that
// falls toward zero comes to them: a silent line would cost more than a voice.
func TestSilenceLeavesNoDenormalNumbers(t *testing.T) {
	t.Parallel()
	vad, err := NewVAD(Rate8k)
	require.NoError(t, err)
	denoiser, err := NewDenoiser(Rate8k)
	require.NoError(t, err)
	echo := NewEchoReference(Rate8k)
	x, voice := silentCall(Rate8k, 0), 2*int(Rate8k)
	for at := 0; at < voice; at += 160 {
		denoiser.Process(append([]int16(nil), x[at:at+160]...))
	}
	nothing := make([]complex64, 128)
	for i := range 8000 {
		frame := make([]int16, 160)
		if at := 160 * i; at < voice {
			copy(frame, x[at:])
		}
		vad.Process(frame)
		vad.still = min(vad.still, 2) // silence, but never at rest
		echo.Sent(frame)
		echo.Received(frame)
		denoiser.suppress(nothing)
	}
	for name, thing := range map[string]any{"vad": vad, "denoiser": denoiser, "echo": echo} {
		requireNormal(t, name, reflect.ValueOf(thing).Elem())
	}
}

func requireNormal(t *testing.T, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			requireNormal(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			requireNormal(t, name, v.Index(i))
		}
	case reflect.Float32:
		if f := math.Abs(v.Float()); f != 0 {
			require.GreaterOrEqual(t, f, 0x1p-126, name)
		}
	default:
	}
}
