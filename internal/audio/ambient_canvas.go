package audio

import (
	"math"
	"math/rand/v2"
)

// ambientCanvas is a loop in the making. Everything on it is a circle: events wrap
// around its end, slow movements take whole turns, and a filter has run over the
// end of its noise before it meets the beginning. So there is no seam to hide.
type ambientCanvas struct {
	rate float64
	rng  *rand.Rand
	mix  []float64
}

func newAmbientCanvas(rate Rate, seed uint64, sound AmbientSound) *ambientCanvas {
	var salt uint64
	for _, c := range []byte(sound) {
		salt = salt*131 + uint64(c)
	}
	return &ambientCanvas{
		rate: float64(rate),
		rng:  rand.New(rand.NewPCG(seed, salt)),
		mix:  make([]float64, rate.Samples(AmbientLoop)),
	}
}

// seconds is the length of the loop.
func (c *ambientCanvas) seconds() float64 { return float64(len(c.mix)) / c.rate }

// between draws evenly from a range.
func (c *ambientCanvas) between(low, high float64) float64 {
	return low + (high-low)*c.rng.Float64()
}

// bed adds noise between two frequencies under an envelope over time, nil for a
// steady one. A gain of 1 is an RMS of 1.
func (c *ambientCanvas) bed(low, high, gain float64, envelope func(seconds float64) float64) {
	noise := make([]float64, len(c.mix))
	// One generator per bed: the draws of a longer loop at a higher rate must not
	// move the events that are drawn after it.
	rng := rand.New(rand.NewPCG(c.rng.Uint64(), 1))
	for i := range noise {
		noise[i] = rng.NormFloat64()
	}
	c.band(noise, low, high)
	scale := gain / rootMeanSquare(noise)
	for i, v := range noise {
		if envelope != nil {
			v *= envelope(float64(i) / c.rate)
		}
		c.mix[i] += v * scale
	}
}

// band filters a circle of samples in place: twice a one-pole low-pass at high, less
// twice one at low.
func (c *ambientCanvas) band(x []float64, low, high float64) {
	high = math.Min(high, 0.45*c.rate)
	up := 1 - math.Exp(-2*math.Pi*high/c.rate)
	down := 1 - math.Exp(-2*math.Pi*low/c.rate)
	var a, b, p, q float64
	step := func(v float64) float64 {
		a += up * (v - a)
		b += up * (a - b)
		p += down * (b - p)
		q += down * (b - p - q)
		return b - p - q
	}
	for _, v := range x[len(x)-len(x)/8:] { // three seconds settle every filter
		step(v)
	}
	for i, v := range x {
		x[i] = step(v)
	}
}

func rootMeanSquare(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum/float64(len(x))) + 1e-12
}

// event adds a sound at a place and for a length in seconds, wrapping around. Its
// function gets the time since it began.
func (c *ambientCanvas) event(at, length float64, sound func(seconds float64) float64) {
	start, n := int(at*c.rate), int(length*c.rate)
	for i := range min(n, len(c.mix)) {
		c.mix[(start+i)%len(c.mix)] += sound(float64(i) / c.rate)
	}
}

// scatter calls place at random times, about every so many seconds.
func (c *ambientCanvas) scatter(every float64, place func(at float64)) {
	for range int(c.seconds()/every + 0.5) {
		place(c.between(0, c.seconds()))
	}
}

// swell is a slow movement between low and high that takes whole turns in a loop.
func (c *ambientCanvas) swell(low, high float64, turns ...int) func(float64) float64 {
	phase := make([]float64, len(turns))
	for i := range phase {
		phase[i] = c.between(0, 2*math.Pi)
	}
	return func(seconds float64) float64 {
		var sum float64
		for i, n := range turns {
			sum += math.Sin(2*math.Pi*float64(n)*seconds/c.seconds() + phase[i])
		}
		return low + (high-low)*(0.5+0.5*sum/float64(len(turns)))
	}
}

// strike is a decaying set of partials: a cup, a bell, a key. Partials that the rate
// cannot carry are left out.
func (c *ambientCanvas) strike(at, gain, decay float64, partials ...float64) {
	c.event(at, 7*decay, func(s float64) float64 {
		env := gain * math.Exp(-s/decay) * math.Min(1, s/0.0008)
		var sum float64
		for i, f := range partials {
			if f < 0.45*c.rate {
				sum += math.Sin(2*math.Pi*f*s) / float64(i+1)
			}
		}
		return env * sum
	})
}

// puff is a burst of noise between two frequencies with a rise and a fall.
func (c *ambientCanvas) puff(at, length, low, high, gain float64) {
	rng := rand.New(rand.NewPCG(c.rng.Uint64(), 2))
	noise := make([]float64, max(64, int(length*c.rate)))
	for i := range noise {
		noise[i] = rng.NormFloat64()
	}
	c.band(noise, low, high)
	scale := gain / rootMeanSquare(noise)
	c.event(at, length, func(s float64) float64 {
		i := min(len(noise)-1, int(s*c.rate))
		return scale * noise[i] * math.Sin(math.Pi*s/length)
	})
}

// finish brings the loop to its level. Peaks bend instead of clipping.
func (c *ambientCanvas) finish() []int16 {
	c.band(c.mix, 60, 0.45*c.rate)
	scale := 32768 * float64(GainOf(AmbientLevel)) / rootMeanSquare(c.mix)
	out := make([]int16, len(c.mix))
	const knee = 12000
	for i, v := range c.mix {
		out[i] = int16(math.Round(knee * math.Tanh(v*scale/knee)))
	}
	return out
}
