package audio

import (
	"math"
	"time"
)

// Levels of tones are in dB of a full-scale sine. A telephone line calls its
// reference 0 dBm0, which lies 3.14 dB (A-law) or 3.17 dB below full scale (G.711).
const (
	beepLevel     = -12.0
	ringbackLevel = -22.0 // -19 dBm0 of each frequency
	busyLevel     = -27.0 // -24 dBm0 of each frequency

	// toneRamp smooths the edges of a tone: a hard edge is a click across the
	// whole band.
	toneRamp = 4 * time.Millisecond
)

// ToneGenerator makes a sound of one or two sine waves that goes on and off in a
// cadence. The phase runs on through the pauses and across frames.
type ToneGenerator struct {
	rate    Rate
	waves   [2]oscillator
	cadence [4]int // on, off, on, off in samples; all zero is on for ever
	once    bool
	part    int // index into cadence
	at      int // samples into that part
	ramp    int
}

// NewSine makes an endless sine at this level in dB below full scale, counted
// negative.
func NewSine(rate Rate, hertz, level float64) *ToneGenerator {
	return NewDualTone(rate, hertz, 0, level)
}

// NewDualTone makes an endless sum of two sines, each at this level. A frequency
// of zero is left out.
func NewDualTone(rate Rate, low, high, level float64) *ToneGenerator {
	peak := math.MaxInt16 * math.Pow(10, level/20)
	return &ToneGenerator{
		rate:  rate,
		waves: [2]oscillator{newOscillator(rate, low, peak), newOscillator(rate, high, peak)},
		ramp:  rate.Samples(toneRamp),
	}
}

// ToneRegion is whose telephone network a progress tone belongs to.
type ToneRegion uint8

// The two families of progress tones that most of the world's networks follow:
// North America's precise tone plan (ANSI T1.401), and the single 425 Hz of
// ITU-T E.180 and ETSI TR 101 041.
const (
	RegionUS ToneRegion = iota
	RegionEU
)

// NewRingback makes what a caller hears while the other side rings: 440 and 480
// Hz, 2 s of 6 in North America, and 425 Hz, 1 s of 5 in Europe.
func NewRingback(rate Rate, region ToneRegion) *ToneGenerator {
	if region == RegionEU {
		return NewSine(rate, 425, ringbackLevel).repeating(time.Second, 4*time.Second)
	}
	return NewDualTone(rate, 440, 480, ringbackLevel).repeating(2*time.Second, 4*time.Second)
}

// NewBusy makes the busy tone: 480 and 620 Hz in North America, 425 Hz in Europe,
// half a second on and off.
func NewBusy(rate Rate, region ToneRegion) *ToneGenerator {
	if region == RegionEU {
		return NewSine(rate, 425, busyLevel).repeating(time.Second/2, time.Second/2)
	}
	return NewDualTone(rate, 480, 620, busyLevel).repeating(time.Second/2, time.Second/2)
}

// NewBeep makes the tone after which an answering machine records: once, then
// silence.
func NewBeep(rate Rate, hertz float64, length time.Duration) *ToneGenerator {
	g := NewSine(rate, hertz, beepLevel)
	g.cadence[0], g.once = max(1, rate.Samples(length)), true
	return g
}

func (g *ToneGenerator) repeating(parts ...time.Duration) *ToneGenerator {
	for i, d := range parts {
		g.cadence[i] = g.rate.Samples(d)
	}
	return g
}

// Done says that a beep is over. Tones that repeat are never done.
func (g *ToneGenerator) Done() bool { return g.once && g.part > 0 }

// Fill writes the next samples of the tone over frame.
func (g *ToneGenerator) Fill(frame []int16) {
	for i := range frame {
		v := g.waves[0].next() + g.waves[1].next()
		frame[i] = int16(clip16(int(math.RoundToEven(v * g.envelope()))))
	}
}

// envelope is the gain of the next sample.
func (g *ToneGenerator) envelope() float64 {
	if g.cadence[0] == 0 {
		return 1
	}
	if g.Done() {
		return 0
	}
	length := g.cadence[g.part]
	gain := 0.0
	if g.part%2 == 0 {
		edge := min(g.at+1, length-g.at)
		gain = min(1, float64(edge)/float64(g.ramp+1))
	}
	g.at++
	if g.at >= length {
		g.at, g.part = 0, g.part+1
		if !g.once && (g.part == len(g.cadence) || g.cadence[g.part] == 0) {
			g.part = 0
		}
	}
	return gain
}

// oscillator is a sine by the recurrence y[n] = 2 cos(w) y[n-1] - y[n-2]: one
// multiplication per sample. In 64 bits its amplitude stays within a millionth
// over any call.
type oscillator struct {
	turn     float64
	now, old float64
}

func newOscillator(rate Rate, hertz, peak float64) oscillator {
	if hertz <= 0 || hertz >= float64(rate)/2 {
		return oscillator{}
	}
	step := 2 * math.Pi * hertz / float64(rate)
	return oscillator{turn: 2 * math.Cos(step), now: 0, old: -peak * math.Sin(step)}
}

func (o *oscillator) next() float64 {
	v := o.now
	o.now, o.old = o.turn*o.now-o.old, o.now
	return v
}
