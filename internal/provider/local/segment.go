//go:build speech

package local

import "time"

// segment is a stretch of speech as it comes in. While nobody speaks it keeps only
// the last moment, because words begin softly.
type segment struct {
	watcher *watcher
	sound   []float32
	open    bool // somebody has begun to speak
	voiced  int  // glances with speech
	quiet   int  // glances without, since the last with
}

const (
	begins = 0.5  // likelihood from which a glance begins speech
	goesOn = 0.35 // and from which it continues it

	enough  = 3                      // voiced glances that make it speech and not a click
	onset   = 250 * time.Millisecond // kept from before the speech
	pause   = 400 * time.Millisecond // that ends a segment
	longest = 15 * time.Second       // a longer one is cut: what it costs grows with the square
)

// hear takes one glance of sound and says whether there was speech in it.
func (s *segment) hear(samples []float32) (bool, error) {
	likelihood, err := s.watcher.likelihood(samples)
	if err != nil {
		return false, err
	}
	s.sound = append(s.sound, samples...)
	speech := likelihood >= begins || s.open && likelihood >= goesOn
	switch {
	case speech:
		s.open, s.quiet = true, 0
		s.voiced++
	case s.open:
		s.quiet++
	default:
		s.keep(hearingRate.Samples(onset))
	}
	return speech, nil
}

// spoken reports that there is speech in it.
func (s *segment) spoken() bool { return s.voiced >= enough }

// over reports that the speech has ended, or must be cut.
func (s *segment) over() bool {
	return s.open && s.quiet*glance >= hearingRate.Samples(pause) || len(s.sound) >= hearingRate.Samples(longest)
}

// next begins another segment with the silence at the end of this one.
func (s *segment) next() {
	s.keep(min(s.quiet*glance, hearingRate.Samples(onset)))
	s.open, s.voiced, s.quiet = false, 0, 0
}

// keep forgets all but the last samples.
func (s *segment) keep(last int) {
	if extra := len(s.sound) - last; extra > 0 {
		s.sound = append(s.sound[:0], s.sound[extra:]...)
	}
}
