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
	taps  []float32
	line  []float32 // the samples the filter still sees, and those not yet used
	fill  int
	skip  int // samples until the next output
	out   []float32
}

// newDecimator makes one for frames of a rate that is a multiple of 8 kHz.
func newDecimator(rate audio.Rate) *decimator {
	d := &decimator{every: int(rate / audio.Rate8k)}
	d.out = make([]float32, 0, audio.Rate8k.FrameSamples()+1)
	if d.every == 1 {
		return d
	}
	n := 8*d.every + 1
	d.taps = make([]float32, n)
	sum := 0.0
	w := make([]float64, n)
	for i := range w {
		x := float64(i-n/2) / float64(d.every)
		w[i] = 0.54 + 0.46*math.Cos(math.Pi*float64(i-n/2)/float64(n/2))
		if x != 0 {
			w[i] *= math.Sin(math.Pi*x) / (math.Pi * x)
		}
		sum += w[i]
	}
	for i := range w {
		d.taps[i] = float32(w[i] / sum)
	}
	d.line = make([]float32, n+rate.FrameSamples())
	return d
}

// push takes samples and returns those at 8 kHz, valid until the next push.
func (d *decimator) push(samples []int16) []float32 {
	d.out = d.out[:0]
	if d.every == 1 {
		for _, s := range samples {
			d.out = append(d.out, float32(s))
		}
		return d.out
	}
	for _, s := range samples {
		if d.fill == len(d.line) {
			keep := len(d.taps) - 1
			copy(d.line, d.line[d.fill-keep:])
			d.fill = keep
		}
		d.line[d.fill] = float32(s)
		d.fill++
		if d.skip > 0 {
			d.skip--
			continue
		}
		d.skip = d.every - 1
		if d.fill < len(d.taps) {
			d.out = append(d.out, 0)
			continue
		}
		var sum float32
		window := d.line[d.fill-len(d.taps) : d.fill]
		for i, t := range d.taps {
			sum += t * window[i]
		}
		d.out = append(d.out, sum)
	}
	return d.out
}
