package audio

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// The filter of a Resampler passes up to 0.85 of the lower Nyquist frequency (3.4
// kHz on a telephone line, the band a telephone promises) and stops from that
// Nyquist frequency on, so that nothing folds back into the band. Between the
// two, at 8 kHz, lie 600 Hz; their width is what the filter's length costs.
const (
	resamplePass  = 0.85
	resampleStop  = 1.0
	resampleDecay = 66.0  // dB of the Kaiser window, above the 60 that are promised
	resampleOne   = 28000 // the coefficient that means 1: the finest that cannot overflow
	resampleGroup = 8     // coefficients per turn of the inner loop
)

// Resampler converts a stream from one rate to another by a polyphase windowed
// sinc. It is linear in phase, and so keeps the shape of tones and clicks. It
// carries the tail of the last frame, hence frame borders leave no trace.
//
// Two outputs are computed by one multiplication: their coefficients sit in the
// upper and the lower half of a 64-bit word, and both sums stay below 2^31
// because the magnitudes of a phase's coefficients sum to less than 2.34. That
// nearly halves the cost of a filter this sharp.
type Resampler struct {
	from, to Rate
	filter   *resampleFilter
	held     int // input samples kept in window, reach of them history
	window   []int16
}

// resampleFilter is what all calls share that convert between the same rates.
type resampleFilter struct {
	block   int            // input samples after which the phases repeat
	pairs   []resamplePair // the outputs of a block, two by two
	reach   int            // input samples before the block that its outputs see
	latency int            // in output samples
}

// resampleFilters are designed when they are first wanted.
var resampleFilters = func() map[[2]Rate]func() *resampleFilter {
	filters := map[[2]Rate]func() *resampleFilter{}
	rates := []Rate{Rate8k, Rate16k, Rate24k, Rate48k}
	for _, from := range rates {
		for _, to := range rates {
			filters[[2]Rate{from, to}] = sync.OnceValue(func() *resampleFilter { return newResampleFilter(from, to) })
		}
	}
	return filters
}()

// resamplePair is the coefficients of two neighbouring outputs over the input
// samples that either needs.
type resamplePair struct {
	start int // first input sample, counted from the start of the window
	taps  [][resampleGroup]int64
}

// NewResampler makes a resampler between any two of the four rates. Equal rates
// are allowed and copy.
func NewResampler(from, to Rate) (*Resampler, error) {
	filter, ok := resampleFilters[[2]Rate{from, to}]
	if !ok {
		return nil, fmt.Errorf("audio: no resampling from %d to %d Hz", from, to)
	}
	r := &Resampler{from: from, to: to, filter: filter()}
	if from != to {
		r.held = r.filter.reach
		r.window = make([]int16, r.filter.reach+r.filter.block+from.FrameSamples())
	}
	return r, nil
}

// Latency is how much later than the input the output is, the filter's group
// delay: a whole number of samples at both rates.
func (r *Resampler) Latency() time.Duration { return r.to.Duration(r.filter.latency) }

// OutputSamples is how many samples come out for n that go in when n is a whole
// number of blocks, as every 20 ms frame is.
func (r *Resampler) OutputSamples(n int) int { return n * int(r.to) / int(r.from) }

// Reset forgets the stream.
func (r *Resampler) Reset() {
	clear(r.window)
	r.held = r.filter.reach
}

// Resample writes the converted stream of src to dst and returns how many
// samples it wrote. A 20 ms frame gives exactly a 20 ms frame. dst must hold
// OutputSamples(len(src)) rounded up to a block (12 input samples at the most);
// what does not fit is dropped. Input that is not whole blocks waits for more.
func (r *Resampler) Resample(dst, src []int16) int {
	if r.from == r.to {
		return copy(dst, src)
	}
	written := 0
	for len(src) > 0 {
		taken := copy(r.window[r.held:], src)
		src = src[taken:]
		r.held += taken
		written += r.drain(dst[written:])
	}
	return written
}

// drain converts the whole blocks in the window and moves the rest to its front.
func (r *Resampler) drain(dst []int16) int {
	f := r.filter
	at, written := 0, 0
	for ; at+f.reach+f.block <= r.held; at += f.block {
		for i := range f.pairs {
			first, second := f.pairs[i].outputs(r.window[at:])
			if written+2 > len(dst) {
				continue
			}
			dst[written], dst[written+1] = first, second
			written += 2
		}
	}
	copy(r.window, r.window[at:r.held])
	r.held -= at
	return written
}

// outputs runs both filters of a pair. The lower half of the sum borrows from
// the upper when it is negative, which taking it off again undoes.
func (p *resamplePair) outputs(window []int16) (first, second int16) {
	x := window[p.start:]
	var even, odd int64
	for i := range p.taps {
		c, v := &p.taps[i], (*[resampleGroup]int16)(x)
		even += c[0]*int64(v[0]) + c[2]*int64(v[2]) + c[4]*int64(v[4]) + c[6]*int64(v[6])
		odd += c[1]*int64(v[1]) + c[3]*int64(v[3]) + c[5]*int64(v[5]) + c[7]*int64(v[7])
		x = x[resampleGroup:]
	}
	sum := even + odd
	low := int64(int32(sum))
	return roundSum(low), roundSum((sum - low) >> 32)
}

// roundSum divides by resampleOne, by way of its reciprocal.
func roundSum(sum int64) int16 {
	const bits = 34
	const reciprocal = (1<<bits + resampleOne/2) / resampleOne
	return int16(clip16(int((sum*reciprocal + 1<<(bits-1)) >> bits)))
}

// newResampleFilter computes the prototype at the common multiple of both rates and
// deals it out to the outputs of a block.
func newResampleFilter(from, to Rate) *resampleFilter {
	if from == to {
		return &resampleFilter{block: 1}
	}
	divisor := greatestDivisor(int(from), int(to))
	up, down := int(to)/divisor, int(from)/divisor
	half := resampleHalf(up, down)
	prototype := resamplePrototype(half, max(up, down))
	f := &resampleFilter{
		block:   down,
		reach:   2*half/up + resampleGroup - 1, // as pairs are filled up to whole groups
		latency: half / down,
	}
	outputs := up
	if outputs%2 == 1 {
		outputs, f.block = 2*outputs, 2*f.block
	}
	for n := 0; n < outputs; n += 2 {
		f.pairs = append(f.pairs, resampleTaps(prototype, up, down, n, f.reach))
	}
	return f
}

// resampleHalf is half the prototype's length by Kaiser's formula, rounded up so
// that the delay is whole in samples of both rates.
func resampleHalf(up, down int) int {
	width := math.Pi * (resampleStop - resamplePass) / float64(max(up, down))
	order := (resampleDecay - 7.95) / (2.285 * width)
	return (int(order/2)/(up*down) + 1) * up * down
}

// resamplePrototype is the low-pass of 2*half+1 taps whose cut-off lies in the
// middle of the transition; limit is the common rate over the lower rate.
func resamplePrototype(half, limit int) []float64 {
	cut := (resamplePass + resampleStop) / 2 / float64(limit)
	beta := 0.1102 * (resampleDecay - 8.7)
	taps := make([]float64, 2*half+1)
	for i := range taps {
		x := float64(i - half)
		taps[i] = cut * kaiser(x/float64(half), beta)
		if x != 0 {
			taps[i] *= math.Sin(math.Pi*cut*x) / (math.Pi * cut * x)
		}
	}
	return taps
}

// resampleTaps packs the coefficients of outputs n and n+1 of a block. Output n
// lies at prototype step n*down; input sample i of the window lies at
// (i-reach)*up, and the filter looks back from the output by up to its length.
func resampleTaps(prototype []float64, up, down, n, reach int) resamplePair {
	newest := reach + (n+1)*down/up
	oldest := reach - (len(prototype)-1-n*down)/up
	groups := (newest - oldest + resampleGroup) / resampleGroup
	count := groups * resampleGroup
	start := newest + 1 - count
	taps := make([][resampleGroup]int64, groups)
	for lane := range 2 {
		phase := make([]float64, count)
		at := (n + lane) * down
		for i := range phase {
			if k := at - (start+i-reach)*up; k >= 0 && k < len(prototype) {
				phase[i] = prototype[k] * float64(up)
			}
		}
		for i, c := range roundPhase(phase) {
			taps[i/resampleGroup][i%resampleGroup] += c << (32 * lane)
		}
	}
	return resamplePair{start: start, taps: taps}
}

// roundPhase rounds coefficients so that they sum to exactly one: all phases then
// pass a constant alike, which would otherwise become a whistle. What plain
// rounding leaves goes, one unit each, to the coefficients it wronged most.
func roundPhase(phase []float64) []int64 {
	var sum float64
	for _, c := range phase {
		sum += c
	}
	rounded, wrong := make([]int64, len(phase)), make([]float64, len(phase))
	left := int64(resampleOne)
	for i, c := range phase {
		exact := c / sum * resampleOne
		rounded[i] = int64(math.Round(exact))
		wrong[i] = exact - math.Round(exact)
		left -= rounded[i]
	}
	for ; left != 0; left -= int64(math.Copysign(1, float64(left))) {
		unit := math.Copysign(1, float64(left))
		most := 0
		for i := range wrong {
			if wrong[i]*unit > wrong[most]*unit {
				most = i
			}
		}
		rounded[most] += int64(unit)
		wrong[most] -= unit
	}
	return rounded
}

// kaiser is Kaiser's window at x from -1 to 1.
func kaiser(x, beta float64) float64 {
	return besselI0(beta*math.Sqrt(max(0, 1-x*x))) / besselI0(beta)
}

// besselI0 is the modified Bessel function of order zero, by its power series.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-16; k++ {
		term *= x / (2 * k) * x / (2 * k)
		sum += term
	}
	return sum
}

func greatestDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
