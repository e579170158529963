package audio

import "math"

const (
	pitchFrame = vadFrame / 2 // a frame at 2 kHz: what is compared with its past
	pitchLeast = 5            // samples of the shortest period: 400 Hz
	pitchMost  = 28           // and of the longest: 71 Hz
)

// vadPitch measures periodicity in the band under 1 kHz, where every voiced sound
// has harmonics even when the line has cut its fundamental.
type vadPitch struct {
	mean float32
	last [2]float32         // the frame's tail at 4 kHz
	past [pitchMost]float32 // at 2 kHz, oldest first
}

func (v *vadPitch) measure(w *vadWork, e *vadEvidence) {
	x := &w.pitch
	copy(x[:], v.past[:])
	v.decimate((*[pitchFrame]float32)(x[pitchMost:]), (*[vadFrame]float32)(w.low[vadFFT-vadFrame:]))
	copy(v.past[:], x[pitchFrame:])
	e.voicing = likeness(x)
}

// decimate gives the frame at 2 kHz: a three-sample mean against aliases, then
// a difference that flattens the fall of a voice's harmonics, without which any
// rumble would look periodic.
func (v *vadPitch) decimate(out *[pitchFrame]float32, low *[vadFrame]float32) {
	a, b, was := v.last[0], v.last[1], v.mean
	for i := range out {
		c, d := low[2*i], low[2*i+1]
		mean := a + 2*b + c
		out[i] = mean - 0.9*was
		a, b, was = c, d, mean
	}
	v.last, v.mean = [2]float32{a, b}, was
}

// likeness is how much the frame at the end of x resembles its own past at the best
// lag, 0 to 1.
func likeness(x *[pitchMost + pitchFrame]float32) float32 {
	const quiet = 4 * 4 * pitchFrame * 100 // ten units RMS: quantisation has no pitch
	energy := energies(x)
	least := quiet + energy[0]*1e-4 // more than the rounding of the running sums
	var top uint32
	for l := pitchLeast; l+7 <= pitchMost; l += 8 {
		e := (*[8]float32)(energy[l:])
		for i, p := range products(x, l) {
			// The square of what is positive, so that only the best needs a root. Such
			// floats are ordered like their bits.
			p = positive(p)
			top = max(top, math.Float32bits(p*p/(e[i]+least)))
		}
	}
	best := math.Float32frombits(top) / (energy[0] + quiet)
	return min(1, float32(math.Sqrt(float64(best))))
}

// energies are those of the frame and of the windows that lie 1, 2, ... samples
// before it, each made from its neighbour.
func energies(x *[pitchMost + pitchFrame]float32) (energy [pitchMost + 1]float32) {
	var a, b, c, d float32 // four sums that do not wait for each other
	for now := x[pitchMost:]; len(now) >= 4; now = now[4:] {
		a += now[0] * now[0]
		b += now[1] * now[1]
		c += now[2] * now[2]
		d += now[3] * now[3]
	}
	sum := a + b + c + d
	energy[0] = sum
	for l := 1; l <= pitchMost; l++ {
		in, out := x[pitchMost-l], x[pitchMost-l+pitchFrame]
		sum += in*in - out*out
		energy[l] = sum
	}
	return energy
}

// products are the frame times its past at eight lags from l on. Eight sums that do
// not wait for each other cost little more than one.
func products(x *[pitchMost + pitchFrame]float32, l int) [8]float32 {
	var a, b, c, d, e, f, g, h float32
	now, past := (*[pitchFrame]float32)(x[pitchMost:]), x[pitchMost-l-7:]
	for i, s := range now {
		old := (*[8]float32)(past[i:])
		a += s * old[7]
		b += s * old[6]
		c += s * old[5]
		d += s * old[4]
		e += s * old[3]
		f += s * old[2]
		g += s * old[1]
		h += s * old[0]
	}
	return [8]float32{a, b, c, d, e, f, g, h}
}
