package elevenlabs

import (
	"errors"
	"strings"
	"time"
	"unicode"

	"parley/internal/audio"
	"parley/internal/converse"
)

// chunk is a piece of a sentence as the service sends it.
type chunk struct {
	Audio     []byte     `json:"audio_base64"`
	Alignment *alignment `json:"alignment"`
	Detail    *struct {
		Message string `json:"message"`
	} `json:"detail"`
}

// alignment is when each character is heard.
type alignment struct {
	Characters []string  `json:"characters"`
	Starts     []float64 `json:"character_start_times_seconds"`
	Ends       []float64 `json:"character_end_times_seconds"`
}

// sameMoment is how much earlier than the last character a piece may begin and still
// be counted from the start of the sentence.
const sameMoment = 50 * time.Millisecond

// sentence puts words together from characters as their sound comes.
type sentence struct {
	rate   audio.Rate
	decode func([]byte) []int16
	emit   func(converse.Sound)

	samples int // so far
	last    time.Duration
	word    strings.Builder
	at      converse.SpokenWord
}

func (s *sentence) take(c *chunk) {
	words := s.words(c.Alignment)
	samples := s.decode(c.Audio)
	s.samples += len(samples)
	if len(samples) > 0 || len(words) > 0 {
		s.emit(converse.Sound{Samples: samples, Words: words})
	}
}

// words are the words that end in a piece. Characters without times are left out.
func (s *sentence) words(a *alignment) (words []converse.SpokenWord) {
	if a == nil {
		return nil
	}
	n := min(len(a.Characters), len(a.Starts), len(a.Ends))
	base := s.base(a, n)
	for i := range n {
		start, end := base+seconds(a.Starts[i]), base+seconds(a.Ends[i])
		s.last = max(s.last, end)
		if strings.TrimFunc(a.Characters[i], unicode.IsSpace) == "" {
			words = s.complete(words)
			continue
		}
		if s.word.Len() == 0 {
			s.at.Start = start
		}
		s.word.WriteString(a.Characters[i])
		s.at.End = max(end, s.at.Start)
	}
	return words
}

// base is what the times of a piece count from. The documentation does not say
// whether that is the sentence or the piece: one that begins before the last one
// ended counts from itself.
func (s *sentence) base(a *alignment, n int) time.Duration {
	if n == 0 || seconds(a.Starts[0])+sameMoment >= s.last {
		return 0
	}
	return s.rate.Duration(s.samples)
}

// complete adds the word that has ended, if there is one.
func (s *sentence) complete(words []converse.SpokenWord) []converse.SpokenWord {
	if s.word.Len() == 0 {
		return words
	}
	s.at.Text = s.word.String()
	s.word.Reset()
	return append(words, s.at)
}

// finish gives the last word, which no space ends.
func (s *sentence) finish() error {
	if s.samples == 0 {
		return errors.New(who + ": the service sent no sound")
	}
	if words := s.complete(nil); words != nil {
		s.emit(converse.Sound{Words: words})
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
