package wire

import (
	"time"

	"parley/internal/converse"
)

// Speech is an answer of a speech-to-speech model while it is being spoken: its sound
// is brought to the line's rate, and its words are given their places in it.
type Speech struct {
	halves    Halves
	converter *Converter
	words     Words
}

// NewSpeech begins an answer of a voice of this speed. The converter is the session's:
// answers come one after another.
func NewSpeech(converter *Converter, speed float64) *Speech {
	converter.Reset()
	return &Speech{converter: converter, words: Words{Speed: speed}}
}

// Bytes takes a piece of sound as bare samples.
func (s *Speech) Bytes(b []byte) *converse.Sound { return s.Samples(s.halves.Samples(b)) }

// Samples takes a piece of sound.
func (s *Speech) Samples(samples []int16) *converse.Sound {
	return s.sound(s.converter.Convert(samples), s.words.Begun)
}

// Text takes a piece of what is said. Words come with the sound that they are in; nil
// if that is still to come.
func (s *Speech) Text(piece string) *converse.Sound {
	s.words.Text(piece)
	return s.sound(nil, s.words.Begun)
}

// Finish gives what is left when all has been said, or nil.
func (s *Speech) Finish() *converse.Sound { return s.sound(s.converter.Finish(), s.words.Rest) }

// Length is how much is to be heard so far.
func (s *Speech) Length() time.Duration { return s.words.Length() }

func (s *Speech) sound(samples []int16, words func() []converse.SpokenWord) *converse.Sound {
	s.words.Sound(s.converter.to.Duration(len(samples)))
	sound := &converse.Sound{Samples: samples, Words: words()}
	if len(sound.Samples) == 0 && len(sound.Words) == 0 {
		return nil
	}
	return sound
}
