package sandbox

import (
	"math"

	"parley/internal/audio"
)

// decimator brings any rate down to the 8 kHz the decoder works at. The speech
// has nothing above 3.3 kHz, so a short filter is enough: what it lets through
// from above 4 kHz is noise, and little of it.
type decimator struct {
	every int
	taps  []int32 // of unity
	line  []int16 // the samples the filter still sees, and those not yet used
	out   []int16
}

const unity = 1 << 14 // small enough that the sum of any samples fits

// newDecimator makes one for frames of a rate that is a multiple of 8 kHz.
func newDecimator(rate audio.Rate) decimator {
	d := decimator{every: int(rate / audio.Rate8k)}
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
		d.taps = append(d.taps, int32(math.Round(unity*w/sum)))
	}
	d.line = make([]int16, 2*half, 2*half+d.every+rate.FrameSamples())
	d.out = make([]int16, 0, audio.Rate8k.FrameSamples()+1)
	return d
}

// push takes samples and returns those at 8 kHz, valid until the next push.
func (d *decimator) push(samples []int16) []int16 {
	if d.every == 1 {
		return samples
	}
	d.out = d.out[:0]
	d.line = append(d.line, samples...)
	at := 0
	for ; at+len(d.taps) <= len(d.line); at += d.every {
		sum := int32(0)
		x := d.line[at : at+len(d.taps)]
		for i, w := range d.taps {
			sum += w * int32(x[i])
		}
		d.out = append(d.out, int16(max(math.MinInt16, min(math.MaxInt16, sum/unity))))
	}
	d.line = d.line[:copy(d.line, d.line[at:])]
	return d.out
}
