package audio

import "time"

// Edge is a change between silence and speech.
type Edge uint8

// What SpeechEdges says after a frame.
const (
	NoEdge Edge = iota
	SpeechStarted
	SpeechEnded
)

// EdgeRule is when a row of verdicts becomes speech, and when speech has ended.
// Its owner sets it from the assistant's sensitivities.
type EdgeRule struct {
	// Start is the likelihood from which a frame counts as speech before an
	// utterance, Stop the one under which it counts as silence inside one. Stop
	// below Start keeps a faint ending from being cut off.
	Start, Stop float32
	// Least is how much speech an utterance begins with. What is shorter, such as
	// a click, a cough or the first frames of a digit, makes no edge at all.
	Least time.Duration
	// Hangover is how much silence ends an utterance.
	Hangover time.Duration
	// Quietest is the level in dBFS under which a frame is silence whatever it
	// sounds like: a television in the next room. Zero means no such limit.
	Quietest float32
}

// DefaultEdgeRule is quick to start (60 ms) and ends after the longest pauses
// that stand inside words and between most of them.
func DefaultEdgeRule() EdgeRule {
	return EdgeRule{Start: 0.6, Stop: 0.35, Least: 60 * time.Millisecond, Hangover: 300 * time.Millisecond}
}

// SpeechEdges turns the verdicts of a VAD into edges. It counts frames, not the
// clock: time passes by FrameDuration with every call of Next.
type SpeechEdges struct {
	rule     EdgeRule
	speaking bool
	run      time.Duration // speech in a row before an utterance, or silence in one
	length   time.Duration // of the utterance up to its last speech
}

// NewSpeechEdges begins in silence.
func NewSpeechEdges(rule EdgeRule) SpeechEdges { return SpeechEdges{rule: rule} }

// SetRule changes the rule, also in the middle of an utterance.
func (s *SpeechEdges) SetRule(rule EdgeRule) { s.rule = rule }

// Next takes the verdict on the next frame.
func (s *SpeechEdges) Next(a Activity) Edge {
	audible := s.rule.Quietest == 0 || a.Level >= s.rule.Quietest
	if s.speaking {
		return s.within(audible && a.Speech >= s.rule.Stop)
	}
	return s.before(audible && a.Speech >= s.rule.Start)
}

func (s *SpeechEdges) before(speech bool) Edge {
	if !speech {
		s.run = 0
		return NoEdge
	}
	s.run += FrameDuration
	if s.run < s.rule.Least {
		return NoEdge
	}
	s.speaking, s.length, s.run = true, s.run, 0
	return SpeechStarted
}

func (s *SpeechEdges) within(speech bool) Edge {
	s.run += FrameDuration
	if speech {
		s.length += s.run
		s.run = 0
		return NoEdge
	}
	if s.run < s.rule.Hangover {
		return NoEdge
	}
	s.speaking, s.run = false, 0
	return SpeechEnded
}

// Speaking tells whether an utterance is under way, hangover included.
func (s *SpeechEdges) Speaking() bool { return s.speaking }

// Quiet is how long the utterance under way has been silent: what an end-of-turn
// rule with a varying wait looks at.
func (s *SpeechEdges) Quiet() time.Duration {
	if !s.speaking {
		return 0
	}
	return s.run
}

// Length is how long the present or last utterance was, without its hangover.
func (s *SpeechEdges) Length() time.Duration { return s.length }
