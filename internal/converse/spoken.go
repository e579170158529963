package converse

import (
	"strings"
	"time"
)

// sentence is what a speaker renders in one piece.
type sentence struct {
	text   string
	sound  tape         // what of it has been taken has been sent
	words  []SpokenWord // as the speaker timed them, from the first sample
	whole  bool         // nothing will be added
	failed bool         // nothing more can be had
	asked  bool         // a speaker has been asked for it
	route  route
	try    int // which attempt is running; the sounds of older ones are void
	base   int // samples that were there before this attempt
	first  time.Duration
	stop   func()
	watch  *time.Timer
}

// over reports that nothing of it is left to play.
func (s *sentence) over() bool { return s.whole && s.sound.left() == 0 }

// halt stops the rendering; sounds on their way are void.
func (s *sentence) halt() {
	s.try++
	s.whole = true
	s.sound.erase()
	s.rest()
}

// rest ends the attempt that is running.
func (s *sentence) rest() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.watch != nil {
		s.watch.Stop()
		s.watch = nil
	}
}

// speakingPace is how many characters a voice says in a second, where nothing
// better is known.
const speakingPace = 14

// expected is about how many samples a text lasts.
func expected(text string, rate int) int { return len([]rune(text)) * rate / speakingPace }

// remaining is about how many samples of it are still to be sent.
func (s *sentence) remaining(rate int) int {
	total := s.sound.length
	if !s.whole {
		total = max(total, expected(s.text, rate))
	}
	return total - s.sound.taken
}

// heard is what of the sentence has been sent, in whole words: a word counts when
// half of it has been.
func (s *sentence) heard(rate int) string {
	if s.sound.taken == 0 {
		return ""
	}
	if s.over() && !s.failed {
		return s.text
	}
	if len(s.words) > 0 {
		return s.heardByTimes(rate)
	}
	return s.heardByLength(rate)
}

func (s *sentence) heardByTimes(rate int) string {
	at := time.Duration(s.sound.taken) * time.Second / time.Duration(rate)
	var heard []string
	for _, w := range s.words {
		if (w.Start+w.End)/2 > at {
			break
		}
		heard = append(heard, w.Text)
	}
	return strings.Join(heard, " ")
}

// heardByLength spreads the characters evenly over the sentence.
func (s *sentence) heardByLength(rate int) string {
	share := len([]rune(s.text)) * s.sound.taken / max(1, s.sound.taken+s.remaining(rate))
	words, length, n := strings.Fields(s.text), 0, 0
	for ; n < len(words); n++ {
		word := len([]rune(words[n]))
		if length+word/2 >= share {
			break
		}
		length += word + 1
	}
	return strings.Join(words[:n], " ")
}

// left is the text that the samples at hand do not yet hold.
func (s *sentence) left(rate int) string {
	words := strings.Fields(s.text)
	known := len(s.words)
	if known == 0 {
		known = len(words) * s.sound.length / max(1, expected(s.text, rate))
	}
	return strings.Join(words[min(known, len(words)):], " ")
}
