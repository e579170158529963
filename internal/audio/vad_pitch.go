package audio

import "math"

const (
	pitchFrame  = vadFrame / 2 // a frame at 2 kHz
	pitchLeast  = 5            // samples of the shortest period: 400 Hz
	pitchMost   = 28           // and of the longest: 71 Hz
	pitchWindow = pitchFrame   // samples that are compared with their past
)

// vadPitch measures periodicity in the band under 1 kHz, where every voiced sound
// has harmonics even when the line has cut its fundamental.
type vadPitch struct {
	mean float32
	last [2]float32                       // the frame's tail at 4 kHz
	low  [pitchWindow + pitchMost]float32 // at 2 kHz, oldest first
}

func (v *vadPitch) measure(low []float32, e *vadEvidence) {
	v.decimate(low)
	e.voicing = v.likeness()
}

// decimate appends the frame at 2 kHz: a three-sample mean against aliases, then
// a difference that flattens the fall of a voice's harmonics, without which any
// rumble would look periodic.
func (v *vadPitch) decimate(low []float32) {
	copy(v.low[:], v.low[pitchFrame:])
	out := v.low[len(v.low)-pitchFrame:]
	a, b := v.last[0], v.last[1]
	for i := range out {
		c, d := low[2*i], low[2*i+1]
		mean := a + 2*b + c
		out[i] = mean - 0.9*v.mean
		v.mean = mean
		a, b = c, d
	}
	v.last = [2]float32{a, b}
}

// likeness is how much the frame resembles its own past at the best lag, 0 to 1.
func (v *vadPitch) likeness() float32 {
	const quiet = 4 * 4 * pitchWindow * 100 // ten units RMS: quantisation has no pitch
	energy := v.energies()
	least := quiet + energy[0]*1e-4 // more than the rounding of the running sums
	var best float32
	for l := pitchLeast; l+3 <= pitchMost; l += 4 {
		a, b, c, d := v.products(l)
		// Signed squares, so that only the best needs a root.
		a = a * max(a, 0) / (energy[l] + least)
		b = b * max(b, 0) / (energy[l+1] + least)
		c = c * max(c, 0) / (energy[l+2] + least)
		d = d * max(d, 0) / (energy[l+3] + least)
		best = max(best, max(max(a, b), max(c, d)))
	}
	best /= energy[0] + quiet
	return min(1, float32(math.Sqrt(float64(best))))
}

// energies are those of the frame and of the windows that lie 1, 2, ... samples
// before it, each made from its neighbour.
func (v *vadPitch) energies() (energy [pitchMost + 1]float32) {
	for _, s := range v.low[pitchMost:] {
		energy[0] += s * s
	}
	for l := 1; l <= pitchMost; l++ {
		in, out := v.low[pitchMost-l], v.low[pitchMost-l+pitchWindow]
		energy[l] = energy[l-1] + (in*in - out*out)
	}
	return energy
}

// products are the frame times its past at four lags from l on. Four sums that do
// not wait for each other cost little more than one.
func (v *vadPitch) products(l int) (a, b, c, d float32) {
	now, old := v.low[pitchMost:], v.low[pitchMost-l-3:][:pitchWindow+3]
	for i, s := range now[:pitchWindow] {
		d += s * old[i]
		c += s * old[i+1]
		b += s * old[i+2]
		a += s * old[i+3]
	}
	return a, b, c, d
}
