package sandbox

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpectrumIsTheFourierTransform(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	s := newSpectrum()
	for range 50 {
		var x [windowSamples]int16
		for i := range x {
			x[i] = int16(random.NormFloat64() * 1000)
		}
		var got [groups * groupTones]float32
		s.measure(windowOf(&x), &got)
		for k := firstTone; k < lastTone; k++ {
			var sum complex128
			for i, v := range x {
				sum += complex(float64(v), 0) * cmplx.Rect(1, -2*math.Pi*float64(k*i)/windowSamples)
			}
			want := real(sum)*real(sum) + imag(sum)*imag(sum)
			require.InEpsilon(t, want+1e6, float64(got[k-firstTone])+1e6, 1e-3, "tone %d", k)
		}
	}
}

func windowOf(x *[windowSamples]int16) window {
	return window{(*[16]int16)(x[:]), (*[16]int16)(x[16:]), (*[16]int16)(x[32:]), (*[16]int16)(x[48:])}
}

func BenchmarkSpectrum(b *testing.B) {
	s := newSpectrum()
	var x [windowSamples]int16
	for i := range x {
		x[i] = int16(i)
	}
	w := windowOf(&x)
	var out [groups * groupTones]float32
	b.ReportAllocs()
	for b.Loop() {
		s.measure(w, &out)
	}
}
