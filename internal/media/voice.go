package media

import (
	"fmt"

	"parley/internal/audio"
)

// frameTicks is a frame in the RTP clock, and so in octets of any codec.
const frameTicks = clockRate / 50

// ear turns the octets of one codec into samples of the session's rate, with
// concealment where octets are missing.
type ear struct {
	codec     Codec
	g722      *audio.G722Decoder // of that codec
	concealer *audio.Concealer
	resampler *audio.Resampler // nil when the codec has the session's rate
	samples   []int16          // a frame at the codec's rate
	at        int
	lost      int // octets concealed in a row
}

// earGivesUp is how much is concealed in a row: a concealer has long fallen silent by
// then, and a peer on hold should not cost more than one that speaks.
const earGivesUp = 5 * frameTicks

func newEar(codec Codec, rate audio.Rate) (*ear, error) {
	e := &ear{
		codec:     codec,
		concealer: audio.NewConcealer(codec.Rate()),
		samples:   make([]int16, codec.Rate().FrameSamples()),
	}
	if codec == G722 {
		e.g722 = audio.NewG722Decoder()
	}
	if codec.Rate() != rate {
		resampler, err := audio.NewResampler(codec.Rate(), rate)
		if err != nil {
			return nil, fmt.Errorf("media: %w", err)
		}
		e.resampler = resampler
	}
	return e, nil
}

// next is the room for the next octets' samples.
func (e *ear) next(octets int) []int16 {
	n := octets * len(e.samples) / frameTicks
	room := e.samples[e.at : e.at+n]
	e.at += n
	return room
}

func (e *ear) decode(octets []byte) {
	room := e.next(len(octets))
	switch e.codec {
	case PCMA:
		audio.DecodeALaw(room, octets)
	case G722:
		e.g722.Decode(room, octets)
	default:
		audio.DecodeMuLaw(room, octets)
	}
	e.concealer.Good(room)
	e.lost = 0
}

func (e *ear) conceal(octets int) {
	room := e.next(octets)
	if e.lost += octets; e.lost > earGivesUp {
		e.lost = earGivesUp
		clear(room)
		return
	}
	e.concealer.Lost(room)
}

// finish writes the frame to dst, which has room for one at the session's rate.
func (e *ear) finish(dst []int16) int {
	e.at = 0
	if e.resampler != nil {
		return e.resampler.Resample(dst, e.samples)
	}
	return copy(dst, e.samples)
}

// mouth turns frames of the session's rate into the octets of one codec.
type mouth struct {
	codec     Codec
	g722      *audio.G722Encoder // of that codec
	resampler *audio.Resampler   // nil when the codec has the session's rate
	samples   []int16            // of the resampler
}

func newMouth(codec Codec, rate audio.Rate) (*mouth, error) {
	m := &mouth{codec: codec}
	if codec == G722 {
		m.g722 = audio.NewG722Encoder()
	}
	if codec.Rate() != rate {
		resampler, err := audio.NewResampler(rate, codec.Rate())
		if err != nil {
			return nil, fmt.Errorf("media: %w", err)
		}
		m.resampler, m.samples = resampler, make([]int16, codec.Rate().FrameSamples())
	}
	return m, nil
}

// encode writes a frame to dst, which has room for frameTicks octets.
func (m *mouth) encode(dst []byte, frame []int16) int {
	if m.resampler != nil {
		m.resampler.Resample(m.samples, frame)
		frame = m.samples
	}
	switch m.codec {
	case PCMA:
		return audio.EncodeALaw(dst, frame)
	case G722:
		return m.g722.Encode(dst, frame)
	default:
		return audio.EncodeMuLaw(dst, frame)
	}
}
