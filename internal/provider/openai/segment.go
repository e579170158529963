package openai

import (
	"encoding/binary"
	"time"

	"parley/internal/audio"
)

const (
	onset    = 600 * time.Millisecond // kept from before it is clear that somebody speaks
	longest  = 30 * time.Second       // Whisper's window; of a longer segment the end is kept
	isVoiced = 0.5                    // likelihood from which a frame counts as speech
	enough   = 5                      // voiced frames that make it speech and not a click
)

// cutter gathers a segment of speech. While nobody speaks it keeps only the last
// moment, so that a segment does not begin with the assistant's whole answer.
type cutter struct {
	rate   audio.Rate
	vad    *audio.VAD
	sound  []int16
	voiced int // frames
}

func newCutter(rate audio.Rate) (*cutter, error) {
	vad, err := audio.NewVAD(rate)
	if err != nil {
		return nil, err
	}
	return &cutter{rate: rate, vad: vad}, nil
}

func (c *cutter) add(frame []int16) {
	if len(frame) == c.rate.FrameSamples() && c.vad.Process(frame).Speech >= isVoiced {
		c.voiced++
	}
	c.sound = append(c.sound, frame...)
	most := c.rate.Samples(onset)
	if c.voiced >= enough {
		most = c.rate.Samples(longest)
	}
	if extra := len(c.sound) - most; extra > 0 {
		c.sound = append(c.sound[:0], c.sound[extra:]...)
	}
}

// cut takes the segment out; it is empty if nobody spoke in it.
func (c *cutter) cut() []int16 {
	segment, voiced := c.sound, c.voiced
	c.sound, c.voiced = nil, 0
	if voiced < enough {
		return nil
	}
	return segment
}

// wav is a segment as a WAV file of one channel and 16 bits.
func wav(rate audio.Rate, samples []int16) []byte {
	const header = 44
	size := 2 * len(samples)
	le := binary.LittleEndian
	b := make([]byte, 0, header+size)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(header-8+size))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // PCM
	b = le.AppendUint16(b, 1) // channels
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(2*rate))
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(size))
	for _, s := range samples {
		b = le.AppendUint16(b, uint16(s))
	}
	return b
}
