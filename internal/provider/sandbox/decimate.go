package sandbox

import (
	"math"
	"slices"

	"parley/internal/audio"
)

// decimator brings any rate down to the 8 kHz the decoder works at. The speech
// has nothing above 3.3 kHz, so a short filter is enough: what it lets through
// from above 4 kHz is noise, and little of it.
type decimator struct {
	every int
	taps  []float32
	line  []float32 // the samples the filter still sees, and those not yet used
	out   []float32
}

// newDecimator makes one for frames of a rate that is a multiple of 8 kHz.
func newDecimator(rate audio.Rate) *decimator {
	d := &decimator{every: int(rate / audio.Rate8k)}
	d.out = make([]float32, 0, audio.Rate8k.FrameSamples()+1)
	if d.every == 1 {
		return d
	}
	half := 2 * d.every
	weights, sum := make([]float64, 2*half+1), 0.0
	for i := range weights {
		x := float64(i-half) / float64(d.every)
		weights[i] = 0.54 + 0.46*math.Cos(math.Pi*float64(i-half)/float64(half))
		if x != 0 {
			weights[i] *= math.Sin(math.Pi*x) / (math.Pi * x)
		}
		sum += weights[i]
	}
	for _, w := range weights {
		d.taps = append(d.taps, float32(w/sum))
	}
	d.line = make([]float32, 2*half, 2*half+d.every+rate.FrameSamples())
	return d
}

// push takes samples and returns those at 8 kHz, valid until the next push.
func (d *decimator) push(samples []int16) []float32 {
	if d.every == 1 {
		d.out = slices.Grow(d.out[:0], len(samples))[:len(samples)]
		out := d.out[:len(samples)]
		for i, s := range samples {
			out[i] = float32(s)
		}
		return out
	}
	d.out = d.out[:0]
	for _, s := range samples {
		d.line = append(d.line, float32(s))
	}
	at := 0
	for ; at+len(d.taps) <= len(d.line); at += d.every {
		d.out = append(d.out, dot(d.taps, d.line[at:]))
	}
	d.line = d.line[:copy(d.line, d.line[at:])]
	return d.out
}

// dot is the sum of products. Four sums side by side keep the processor busy.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return s0 + s1 + s2 + s3
}
