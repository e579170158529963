package audio

import (
	"math"
	"math/bits"
	"sync"
)

// fft is the discrete Fourier transform of a real block whose length is a power
// of two. The tables are read-only after newFFT, and all calls share them; the
// transforms work in the caller's block and allocate nothing.
//
// A block of n real samples is held as n/2 complex numbers, even samples in the
// real and odd ones in the imaginary parts. It is transformed by one radix-4 or
// radix-8 pass and then radix-4 passes, and untangled into the n/2+1 bins of a
// real signal. Products are written out in parts because the compiler multiplies
// complex64 in double precision.
//
// Whoever fills a block puts pair i at order[i], where the transform wants it:
// sound is written into a block once, under a window, and moving it again costs
// more than finding its place.
type fft struct {
	half  int
	order []uint16
	turns []fftTurn   // per radix-4 pass and k
	split []complex64 // e^(-2 pi i k/n), k = 0..n/4, to untangle the real spectrum
}

// fftTurn is w^k, w^2k, w^3k.
type fftTurn struct{ one, two, three complex64 }

// The sizes that calls use.
var (
	fft128 = sync.OnceValue(func() *fft { return newFFT(128) })
	fft256 = sync.OnceValue(func() *fft { return newFFT(256) })
	fft512 = sync.OnceValue(func() *fft { return newFFT(512) })
)

// newFFT makes the tables for blocks of n samples, n a power of two from 16 up.
// Any other size is a mistake in this package, not in its input, and panics.
func newFFT(n int) *fft {
	if n < 16 || n&(n-1) != 0 {
		panic("audio: fft size must be a power of two of at least 16")
	}
	f := &fft{half: n / 2}
	shift := 64 - bits.TrailingZeros(uint(f.half))
	for i := range f.half {
		f.order = append(f.order, uint16(bits.Reverse64(uint64(i))>>shift))
	}
	for span := f.first(); span < f.half; span *= 4 {
		for k := range span {
			f.turns = append(f.turns, fftTurn{turn(k, 4*span), turn(2*k, 4*span), turn(3*k, 4*span)})
		}
	}
	for k := range n/4 + 1 {
		f.split = append(f.split, turn(k, n))
	}
	return f
}

// first is the size of the first pass: what is left of half when radix-4 passes
// have taken all they can.
func (f *fft) first() int {
	if bits.TrailingZeros(uint(f.half))%2 == 1 {
		return 8
	}
	return 4
}

func turn(k, n int) complex64 {
	sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
	return complex(float32(cos), float32(sin))
}

// forward replaces a block by its spectrum: x[k] is bin k, except that x[0] holds
// the two real bins, 0 in its real and n/2 in its imaginary part.
func (f *fft) forward(x []complex64) {
	x = x[:f.half]
	f.transform(x)
	f.untangle(x)
}

// inverse makes the block of a spectrum in another place, including its scale. The
// odd samples, in the imaginary parts, have the opposite sign.
func (f *fft) inverse(to, spectrum []complex64) {
	to = to[:f.half]
	f.tangle(to, spectrum[:f.half])
	f.transform(to)
}

// transform is the complex transform in place, from bit-reversed to natural order.
func (f *fft) transform(x []complex64) {
	span := f.first()
	if span == 8 {
		pass8(x)
	} else {
		pass4(x)
	}
	turns := f.turns
	for ; span < f.half; span *= 4 {
		for block := 0; block < len(x); block += 4 * span {
			radix4(x[block:block+4*span], turns[:span])
		}
		turns = turns[span:]
	}
}

// pass4 transforms every four neighbours, in bit-reversed order.
func pass4(x []complex64) {
	for ; len(x) >= 4; x = x[4:] {
		q := x[:4:4]
		a, b, c, d := q[0]+q[1], q[0]-q[1], q[2]+q[3], q[2]-q[3]
		d = complex(imag(d), -real(d))
		q[0], q[1], q[2], q[3] = a+c, b+d, a-c, b-d
	}
}

// pass8 transforms every eight neighbours, in bit-reversed order.
func pass8(x []complex64) {
	const r = math.Sqrt2 / 2
	for ; len(x) >= 8; x = x[8:] {
		q := x[:8:8]
		a, b, c, d := q[0]+q[1], q[0]-q[1], q[2]+q[3], q[2]-q[3]
		d = complex(imag(d), -real(d))
		e0, e1, e2, e3 := a+c, b+d, a-c, b-d
		a, b, c, d = q[4]+q[5], q[4]-q[5], q[6]+q[7], q[6]-q[7]
		d = complex(imag(d), -real(d))
		o0, o1, o2, o3 := a+c, b+d, a-c, b-d
		o1 = complex(r*(real(o1)+imag(o1)), r*(imag(o1)-real(o1)))
		o2 = complex(imag(o2), -real(o2))
		o3 = complex(r*(imag(o3)-real(o3)), -r*(imag(o3)+real(o3)))
		q[0], q[1], q[2], q[3] = e0+o0, e1+o1, e2+o2, e3+o3
		q[4], q[5], q[6], q[7] = e0-o0, e1-o1, e2-o2, e3-o3
	}
}

// radix4 joins four transforms, in bit-reversed order, into one.
func radix4(x []complex64, turns []fftTurn) {
	n := len(turns)
	a, b, c, d := x[:n], x[n:][:n], x[2*n:][:n], x[3*n:][:n]
	for k := range turns {
		w := &turns[k]
		br, bi := times(b[k], w.two)
		cr, ci := times(c[k], w.one)
		dr, di := times(d[k], w.three)
		ar, ai := real(a[k]), imag(a[k])
		er, ei, fr, fi := ar+br, ai+bi, ar-br, ai-bi
		gr, gi, hr, hi := cr+dr, ci+di, cr-dr, ci-di
		a[k], c[k] = complex(er+gr, ei+gi), complex(er-gr, ei-gi)
		b[k], d[k] = complex(fr+hi, fi-hr), complex(fr-hi, fi+hr)
	}
}

// times is a product in single precision.
func times(x, w complex64) (re, im float32) {
	return real(x)*real(w) - imag(x)*imag(w), real(x)*imag(w) + imag(x)*real(w)
}

// untangle turns the transform of the complex reading into the real spectrum.
func (f *fft) untangle(x []complex64) {
	x[0] = complex(real(x[0])+imag(x[0]), real(x[0])-imag(x[0]))
	j := len(x) - 1
	for i, w := range f.split {
		if i == 0 || j < i {
			continue
		}
		p, q := x[i], x[j]
		er, ei := (real(p)+real(q))/2, (imag(p)-imag(q))/2
		tr, ti := times(complex((imag(p)+imag(q))/2, (real(q)-real(p))/2), w)
		x[i], x[j] = complex(er+tr, ei+ti), complex(er-tr, ti-ei)
		j--
	}
}

// tangle undoes untangle and conjugates, so that a forward transform inverts; the
// result lies where that wants it, at the scale that it needs.
func (f *fft) tangle(to, x []complex64) {
	order, scale := f.order[:len(x)], 0.5/float32(len(x))
	to[0] = complex((real(x[0])+imag(x[0]))*scale, (imag(x[0])-real(x[0]))*scale)
	j := len(x) - 1
	for i, w := range f.split {
		if i == 0 || j < i {
			continue
		}
		p, q := x[i], x[j]
		er, ei := (real(p)+real(q))*scale, (imag(p)-imag(q))*scale
		or, oi := times(complex((real(p)-real(q))*scale, (imag(p)+imag(q))*scale), complex(real(w), -imag(w)))
		to[order[i]], to[order[j]] = complex(er-oi, -(ei+or)), complex(er+oi, ei-or)
		j--
	}
}

// powers writes |bin|^2 of a spectrum: len(spectrum)+1 values.
func powers(to []float32, spectrum []complex64) {
	n := len(spectrum)
	to = to[:n+1]
	for k, v := range spectrum {
		to[k] = real(v)*real(v) + imag(v)*imag(v)
	}
	dc, top := real(spectrum[0]), imag(spectrum[0])
	to[0], to[n] = dc*dc, top*top
}
