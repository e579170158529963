package audio

import (
	"math"
	"time"
)

// SilenceLevel is the level, in dBFS, that Level gives to digital silence and
// the lowest that it gives at all: half a quantisation step below one unit.
const SilenceLevel = -96.0

// MaxGain bounds every gain in this package (+18 dB). More would only clip, and
// the bound keeps the fixed-point products exact.
const MaxGain = 8

// A gain in fixed point: 1<<gainBits is 1. Integers make a mix of the same
// frames the same on every machine.
const (
	gainBits = 15
	gainHalf = 1 << (gainBits - 1)
)

func fixedGain(gain float32) int64 {
	switch {
	case !(gain > 0): // a NaN is no gain at all, not a loud one
		return 0
	case gain > MaxGain:
		return MaxGain << gainBits
	}
	return int64(math.Round(float64(gain) * (1 << gainBits)))
}

// saturate holds v to the range of a sample: wrapping around would turn an
// overload into a loud crack.
func saturate(v int64) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, v)))
}

// Level is the RMS level of a frame in dBFS, where 0 is a full-scale square wave
// (a full-scale sine is -3). An empty or silent frame is at SilenceLevel.
func Level(frame []int16) float64 {
	if len(frame) == 0 {
		return SilenceLevel
	}
	return powerLevel(squareSum(frame) / float64(len(frame)))
}

// powerLevel is the level in dBFS of a mean square in sample units.
func powerLevel(meanSquare float64) float64 {
	if meanSquare <= 0 {
		return SilenceLevel
	}
	return max(SilenceLevel, 10*math.Log10(meanSquare/(1<<30)))
}

// GainOf is the linear gain of a change in decibels.
func GainOf(decibels float64) float32 {
	return float32(math.Pow(10, decibels/20))
}

// Mix adds src at the given gain into dst and saturates. The frames may differ
// in length: what the shorter one lacks is silence.
func Mix(dst, src []int16, gain float32) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	g := fixedGain(gain)
	for i, s := range src {
		dst[i] = saturate(int64(dst[i]) + (int64(s)*g+gainHalf)>>gainBits)
	}
}

// Scale multiplies a frame in place and saturates.
func Scale(frame []int16, gain float32) {
	g := fixedGain(gain)
	if g == 1<<gainBits {
		return
	}
	for i, s := range frame {
		frame[i] = saturate((int64(s)*g + gainHalf) >> gainBits)
	}
}

// A Fader is a gain that moves in a straight line from where it is to where it
// was last sent, sample by sample, so that no change of volume is heard as a
// click. It belongs to one stream; the zero Fader is silent and steps at once.
type Fader struct {
	gain   int64 // now, with fadeBits more bits than a fixed gain
	target int64
	step   int64
	left   int // samples until target
	ramp   int // samples a fade takes
}

// fadeBits are the extra fraction bits of a gain under way: a second-long fade
// at 48 kHz still moves in exact steps.
const fadeBits = 20

// NewFader starts at gain and takes ramp for each change. 5 ms are enough to
// hide a click; 20 ms or more sound like a fade.
func NewFader(rate Rate, ramp time.Duration, gain float32) Fader {
	g := fixedGain(gain) << fadeBits
	return Fader{gain: g, target: g, ramp: max(0, rate.Samples(ramp))}
}

// To begins a fade from the present gain to another one.
func (f *Fader) To(gain float32) {
	f.target = fixedGain(gain) << fadeBits
	f.left = f.ramp
	if f.target == f.gain || f.left == 0 {
		f.gain, f.left = f.target, 0
		return
	}
	f.step = (f.target - f.gain) / int64(f.left)
}

// Gain is the gain that the next sample will meet.
func (f *Fader) Gain() float32 {
	return float32(float64(f.gain) / (1 << (gainBits + fadeBits)))
}

// Fading tells whether the gain is still on its way.
func (f *Fader) Fading() bool { return f.left > 0 }

// Apply scales a frame in place.
func (f *Fader) Apply(frame []int16) {
	n := min(f.left, len(frame))
	for i, s := range frame[:n] {
		frame[i] = saturate((int64(s)*(f.gain>>fadeBits) + gainHalf) >> gainBits)
		f.gain += f.step
	}
	f.advance(n)
	Scale(frame[n:], f.Gain())
}

// Mix adds src into dst at the moving gain; lengths as in the function Mix.
func (f *Fader) Mix(dst, src []int16) {
	dst = dst[:min(len(dst), len(src))]
	src = src[:len(dst)]
	n := min(f.left, len(dst))
	for i, s := range src[:n] {
		dst[i] = saturate(int64(dst[i]) + (int64(s)*(f.gain>>fadeBits)+gainHalf)>>gainBits)
		f.gain += f.step
	}
	f.advance(n)
	if f.gain != 0 {
		Mix(dst[n:], src[n:], f.Gain())
	}
}

func (f *Fader) advance(n int) {
	if f.left == 0 {
		return
	}
	if f.left -= n; f.left == 0 {
		f.gain = f.target
	}
}
