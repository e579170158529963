package openai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"parley/internal/audio"
	"parley/internal/converse"
)

const (
	speechRate = audio.Rate24k // of bare samples, by OpenAI's documentation
	mostHead   = 4 << 10       // within which a WAV header must end
	block      = 64            // more than a resampler's block, at either rate
)

// sound turns the bytes of an answer into speech at the rate that is wanted. Some
// local servers send a WAV file whatever they are asked for; its header then says
// the rate.
type sound struct {
	wanted    audio.Rate
	emit      func(converse.Sound)
	head      []byte // until it is known what comes
	begun     bool
	half      []byte // a sample's first byte whose second is still to come
	resampler *audio.Resampler
	from      audio.Rate
	delay     int // samples of the resampler's delay still to be left out
	in, out   int // samples so far
}

func newSound(wanted audio.Rate, emit func(converse.Sound)) *sound {
	return &sound{wanted: wanted, emit: emit}
}

func (s *sound) write(b []byte) error {
	if s.begun {
		s.samples(b)
		return nil
	}
	s.head = append(s.head, b...)
	rate, body, known, err := opening(s.head)
	if err != nil || !known {
		return err
	}
	return s.begin(rate, body)
}

// begin starts the speech at the rate that its opening told.
func (s *sound) begin(rate audio.Rate, body []byte) error {
	resampler, err := audio.NewResampler(rate, s.wanted)
	if err != nil {
		return fmt.Errorf("speech at %d Hz cannot be brought to %d Hz", rate, s.wanted)
	}
	s.begun, s.resampler, s.from = true, resampler, rate
	s.delay = s.wanted.Samples(resampler.Latency())
	s.samples(body)
	return nil
}

// opening looks for a WAV header: the rate and what follows, once both are known.
func opening(head []byte) (rate audio.Rate, body []byte, known bool, err error) {
	if n := min(len(head), 4); !bytes.Equal(head[:n], []byte("RIFF")[:n]) {
		return speechRate, head, true, nil
	}
	for at := 12; at+8 <= len(head); {
		name, size := string(head[at:at+4]), int(binary.LittleEndian.Uint32(head[at+4:]))
		at += 8
		switch {
		case name == "data" && rate > 0:
			return rate, head[at:], true, nil
		case name == "data":
			return 0, nil, false, errors.New("a WAV file without a format")
		case name == "fmt " && size >= 16 && at+16 <= len(head):
			h := head[at:]
			if binary.LittleEndian.Uint16(h) != 1 || binary.LittleEndian.Uint16(h[2:]) != 1 || binary.LittleEndian.Uint16(h[14:]) != 16 {
				return 0, nil, false, errors.New("a WAV file that is not one channel of 16 bits")
			}
			rate = audio.Rate(binary.LittleEndian.Uint32(h[4:]))
		}
		at += size + size%2
	}
	if len(head) > mostHead {
		return 0, nil, false, errors.New("a WAV file without sound")
	}
	return 0, nil, false, nil
}

// samples converts whole samples and keeps a half one.
func (s *sound) samples(b []byte) {
	b = append(s.half, b...)
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	s.half = append([]byte(nil), b[2*len(pcm):]...)
	s.in += len(pcm)
	s.convert(pcm, -1)
}

// convert resamples and emits, no more than most samples unless that is negative.
// The resampler's delay is left out, so that the speech begins with its first sample.
func (s *sound) convert(pcm []int16, most int) {
	out := make([]int16, s.resampler.OutputSamples(len(pcm))+block)
	out = out[:s.resampler.Resample(out, pcm)]
	early := min(s.delay, len(out))
	s.delay -= early
	out = out[early:]
	if most >= 0 && len(out) > most {
		out = out[:most]
	}
	s.out += len(out)
	if len(out) > 0 {
		s.emit(converse.Sound{Samples: out})
	}
}

// finish pushes out what the resampler still holds.
func (s *sound) finish() error {
	if s.in == 0 {
		return errors.New("the server sent no sound")
	}
	tail := s.resampler.OutputSamples(s.in) - s.out
	if tail > 0 {
		s.convert(make([]int16, s.from.Samples(s.resampler.Latency())+block), tail)
	}
	return nil
}
