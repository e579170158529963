package audio

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var fftSizes = []int{16, 32, 64, 128, 256, 512, 1024}

// slowDFT is the definition, in double precision.
func slowDFT(x []float32) []complex128 {
	out := make([]complex128, len(x)/2+1)
	for k := range out {
		for i, v := range x {
			phase := -2 * math.Pi * float64(k*i%len(x)) / float64(len(x))
			out[k] += complex(float64(v), 0) * cmplx.Exp(complex(0, phase))
		}
	}
	return out
}

// pairs lays a real block out as the transform wants it.
func pairs(f *fft, x []float32) []complex64 {
	out := make([]complex64, len(x)/2)
	for i := range out {
		out[f.order[i]] = complex(x[2*i], x[2*i+1])
	}
	return out
}

func TestFFTEqualsTheDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom(fftSizes[:5]).Draw(t, "n")
		x := rapid.SliceOfN(rapid.Float32Range(-1, 1), n, n).Draw(t, "x")
		want := slowDFT(x)
		f := newFFT(n)
		y := pairs(f, x)
		f.forward(y)
		got := make([]complex128, n/2+1)
		for k, v := range y {
			got[k] = complex128(v)
		}
		got[0], got[n/2] = complex(real(got[0]), 0), complex(imag(got[0]), 0)
		for k := range want {
			require.Less(t, cmplx.Abs(got[k]-want[k]), 1e-4*float64(n)/16, "bin %d of %d", k, n)
		}
	})
}

func TestFFTInverseReturnsTheBlock(t *testing.T) {
	t.Parallel()
	for _, n := range fftSizes {
		x := stimFloats(stimWhite(7, n, -20))
		f := newFFT(n)
		y, got := pairs(f, x), make([]complex64, n/2)
		f.forward(y)
		f.inverse(got, y)
		for i, v := range got {
			require.InDelta(t, x[2*i], real(v), 0.05, "pair %d of %d", i, n)
			require.InDelta(t, x[2*i+1], -imag(v), 0.05, "pair %d of %d", i, n)
		}
	}
}

func TestFFTPowersOfATone(t *testing.T) {
	t.Parallel()
	x := make([]float32, 256)
	for i := range x {
		x[i] = float32(math.Cos(2 * math.Pi * 20 * float64(i) / 256))
	}
	y := pairs(fft256(), x)
	fft256().forward(y)
	p := make([]float32, 129)
	powers(p, y)
	require.InDelta(t, 128*128, p[20], 1)
	p[20] = 0
	for k, v := range p {
		require.Less(t, v, float32(1e-4), "bin %d", k)
	}
}

func TestFFTRefusesOddSizes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-4, 0, 1, 8, 48, 100} {
		require.Panics(t, func() { newFFT(n) }, "size %d", n)
	}
}

func TestFFTAllocatesNothing(t *testing.T) {
	f, x, y := newFFT(256), make([]complex64, 128), make([]complex64, 128)
	require.Zero(t, testing.AllocsPerRun(100, func() { f.forward(x); f.inverse(y, x) }))
}

func BenchmarkFFT(b *testing.B) {
	for _, n := range []int{128, 256, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, x, y := newFFT(n), make([]complex64, n/2), make([]complex64, n/2)
			b.ReportAllocs()
			for b.Loop() {
				x[3] = 1
				f.forward(x)
				f.inverse(y, x)
			}
		})
	}
}
