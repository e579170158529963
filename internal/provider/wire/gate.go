package wire

import (
	"time"

	"parley/internal/audio"
)

const (
	onset      = 600 * time.Millisecond // kept from before it is clear that somebody speaks
	hangover   = time.Second            // let through after the last voice
	isVoiced   = 0.5                    // likelihood from which a frame counts as speech
	fewVoiced  = 3                      // more voiced than unvoiced frames by this many open the gate
	hangFrames = int(hangover / audio.FrameDuration)
)

// Gate lets a customer's sound through while they speak: from a moment before to a
// moment after. A speech-to-speech model bills what it is sent, and hears the
// assistant's own echo in what is not speech.
type Gate struct {
	rate audio.Rate
	vad  *audio.VAD
	down *audio.Resampler // to a rate that the detector takes, or nil
	low  []int16
	held []int16
	run  int // voiced frames over unvoiced ones
	open int // frames until it shuts
}

// NewGate makes a gate for one call.
func NewGate(rate audio.Rate) (*Gate, error) {
	g := &Gate{rate: rate}
	at := rate
	if rate == audio.Rate24k || rate == audio.Rate48k {
		at = audio.Rate16k
		down, err := audio.NewResampler(rate, at)
		if err != nil {
			return nil, err
		}
		g.down, g.low = down, make([]int16, at.FrameSamples()+block)
	}
	vad, err := audio.NewVAD(at)
	if err != nil {
		return nil, err
	}
	g.vad = vad
	return g, nil
}

// Add takes a frame and gives what is to be sent of the sound so far.
func (g *Gate) Add(frame []int16) []int16 {
	if g.voiced(frame) {
		g.run = min(g.run+1, fewVoiced)
	} else {
		g.run = max(g.run-1, 0)
	}
	g.held = append(g.held, frame...)
	if g.run >= fewVoiced {
		g.open = hangFrames
	}
	if g.open > 0 {
		g.open--
		return g.Rest()
	}
	if extra := len(g.held) - g.rate.Samples(onset); extra > 0 {
		g.held = append(g.held[:0], g.held[extra:]...)
	}
	return nil
}

// Rest takes out what is held, for a turn that was too quiet to be noticed.
func (g *Gate) Rest() []int16 {
	sound := g.held
	g.held = nil
	return sound
}

func (g *Gate) voiced(frame []int16) bool {
	if len(frame) != g.rate.FrameSamples() {
		return false
	}
	if g.down != nil {
		frame = g.low[:g.down.Resample(g.low, frame)]
	}
	return g.vad.Process(frame).Speech >= isVoiced
}
