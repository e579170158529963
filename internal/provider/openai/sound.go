package openai

import (
	"bytes"
	"encoding/binary"
	"errors"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

const (
	speechRate = audio.Rate24k // of bare samples, by OpenAI's documentation
	mostHead   = 4 << 10       // within which a WAV header must end
)

// sound turns the bytes of an answer into speech at the rate that is wanted. Some
// local servers send a WAV file whatever they are asked for; its header then says
// the rate.
type sound struct {
	wanted    audio.Rate
	emit      func(converse.Sound)
	head      []byte // until it is known what comes
	begun     bool
	any       bool // samples have come
	halves    wire.Halves
	converter *wire.Converter
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
	converter, err := wire.NewConverter(rate, s.wanted)
	if err != nil {
		return err
	}
	s.begun, s.converter = true, converter
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

// samples emits whole samples at the rate that is wanted.
func (s *sound) samples(b []byte) {
	pcm := s.halves.Samples(b)
	s.any = s.any || len(pcm) > 0
	s.say(s.converter.Convert(pcm))
}

func (s *sound) say(samples []int16) {
	if len(samples) > 0 {
		s.emit(converse.Sound{Samples: samples})
	}
}

// finish pushes out what is still held.
func (s *sound) finish() error {
	if !s.any {
		return errors.New("the server sent no sound")
	}
	s.say(s.converter.Finish())
	return nil
}
