package sandbox

import "math"

// spectrum measures the coded tones in 64 samples at 8 kHz: a Fourier transform
// whose bins are the multiples of 125 Hz. The real samples are taken as 32 complex
// ones, transformed as four transforms of eight joined by eight of four, and taken
// apart again for the bins that are wanted.
type spectrum struct {
	twist  [4][8]complex64 // between the two halves of the transform
	untwin [17]complex64
}

func newSpectrum() *spectrum {
	s := &spectrum{}
	turn := func(part, whole int) complex64 {
		sin, cos := math.Sincos(-2 * math.Pi * float64(part) / float64(whole))
		return complex(float32(cos), float32(sin))
	}
	for a := range s.twist {
		for b := range s.twist[a] {
			s.twist[a][b] = turn(a*b, 32)
		}
	}
	for k := range s.untwin {
		s.untwin[k] = turn(k, 64)
	}
	return s
}

const (
	windowSamples = 64
	windowHops    = 4
)

// window are the samples to be measured, in four parts.
type window [windowHops]*[windowSamples / windowHops]int16

// measure writes the energies of the coded tones, lowest first.
func (s *spectrum) measure(x window, out *[groups * groupTones]float32) {
	var re, im [32]float32
	for a := range 4 {
		s.eight(&x, a, &re, &im)
	}
	var zr, zi [32]float32
	for b := range 8 {
		r0, i0, r1, i1 := re[b], im[b], re[8+b], im[8+b]
		r2, i2, r3, i3 := re[16+b], im[16+b], re[24+b], im[24+b]
		ar, ai, br, bi := r0+r2, i0+i2, r0-r2, i0-i2
		cr, ci, dr, di := r1+r3, i1+i3, r1-r3, i1-i3
		zr[b], zi[b] = ar+cr, ai+ci
		zr[8+b], zi[8+b] = br+di, bi-dr
		zr[16+b], zi[16+b] = ar-cr, ai-ci
		zr[24+b], zi[24+b] = br-di, bi+dr
	}
	// The bins k and 32-k are the sum and the difference of the same two numbers.
	for k := 32 - lastTone + 1; k <= 16; k++ {
		j := 32 - k
		er, ei := zr[k]+zr[j], zi[k]-zi[j]
		or, oi := turned(zi[k]+zi[j], zr[j]-zr[k], s.untwin[k])
		if k >= firstTone {
			out[k-firstTone] = 0.25 * ((er+or)*(er+or) + (ei+oi)*(ei+oi))
		}
		out[j-firstTone] = 0.25 * ((er-or)*(er-or) + (ei-oi)*(ei-oi))
	}
}

// eight transforms every fourth complex sample, beginning with the a-th, and
// turns the result for the join.
func (s *spectrum) eight(x *window, a int, re, im *[32]float32) {
	const h = 0.70710678
	p, q, u, v, i := x[0], x[1], x[2], x[3], 2*a&7
	x0r, x0i, x1r, x1i := float32(p[i]), float32(p[i+1]), float32(p[i+8]), float32(p[i+9])
	x2r, x2i, x3r, x3i := float32(q[i]), float32(q[i+1]), float32(q[i+8]), float32(q[i+9])
	x4r, x4i, x5r, x5i := float32(u[i]), float32(u[i+1]), float32(u[i+8]), float32(u[i+9])
	x6r, x6i, x7r, x7i := float32(v[i]), float32(v[i+1]), float32(v[i+8]), float32(v[i+9])

	ar, ai, br, bi := x0r+x4r, x0i+x4i, x0r-x4r, x0i-x4i
	cr, ci, dr, di := x2r+x6r, x2i+x6i, x2r-x6r, x2i-x6i
	e0r, e0i, e2r, e2i := ar+cr, ai+ci, ar-cr, ai-ci
	e1r, e1i, e3r, e3i := br+di, bi-dr, br-di, bi+dr

	ar, ai, br, bi = x1r+x5r, x1i+x5i, x1r-x5r, x1i-x5i
	cr, ci, dr, di = x3r+x7r, x3i+x7i, x3r-x7r, x3i-x7i
	o0r, o0i, o2r, o2i := ar+cr, ai+ci, ar-cr, ai-ci
	o1r, o1i, o3r, o3i := br+di, bi-dr, br-di, bi+dr

	o1r, o1i = h*(o1r+o1i), h*(o1i-o1r)
	o2r, o2i = o2i, -o2r
	o3r, o3i = h*(o3i-o3r), -h*(o3i+o3r)

	y := (*[8]float32)(re[8*a&31:])
	z := (*[8]float32)(im[8*a&31:])
	t := &s.twist[a&3]
	y[0], z[0] = e0r+o0r, e0i+o0i
	y[1], z[1] = turned(e1r+o1r, e1i+o1i, t[1])
	y[2], z[2] = turned(e2r+o2r, e2i+o2i, t[2])
	y[3], z[3] = turned(e3r+o3r, e3i+o3i, t[3])
	y[4], z[4] = turned(e0r-o0r, e0i-o0i, t[4])
	y[5], z[5] = turned(e1r-o1r, e1i-o1i, t[5])
	y[6], z[6] = turned(e2r-o2r, e2i-o2i, t[6])
	y[7], z[7] = turned(e3r-o3r, e3i-o3i, t[7])
}

func turned(r, i float32, by complex64) (float32, float32) {
	return r*real(by) - i*imag(by), r*imag(by) + i*real(by)
}
