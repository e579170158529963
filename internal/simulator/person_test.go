package simulator

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/sandbox"
)

// stage is a person without a telephone: the test is the line, frame by frame.
type stage struct {
	*person
	ears  converse.Listener
	said  string // what the person has said
	keys  string
	loud  int // frames that were not silent
	left  bool
	t     *testing.T
	quiet []int16
	noisy []int16
}

func newStage(t *testing.T, script ...Step) *stage {
	t.Helper()
	voice := sandbox.New(sandbox.Options{})
	p, err := newPerson(t.Context(), &sounds{voice: voice.Speaker(), ambience: audio.NewAmbience(1), said: map[string][]int16{}}, Callee{Script: script}, 1)
	require.NoError(t, err)
	s := &stage{person: p, t: t, quiet: make([]int16, lineRate.FrameSamples()), noisy: make([]int16, lineRate.FrameSamples())}
	for i := range s.noisy {
		s.noisy[i] = int16(4000 * (i%2*2 - 1))
	}
	s.ears, err = voice.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: lineRate}, func(h converse.Heard) {
		if h.Final {
			s.said = strings.TrimSpace(s.said + " " + h.Text)
		}
	})
	require.NoError(t, err)
	p.press = func(keys string) error { s.keys += keys; return nil }
	p.connected(func() { s.left = true })
	return s
}

// runs lets time pass; line is what the person hears meanwhile.
func (s *stage) runs(d time.Duration, line []int16) {
	s.t.Helper()
	for range d / audio.FrameDuration {
		frame := s.next(line)
		if audio.Level(frame) > quietLevel {
			s.loud++
		}
		require.NoError(s.t, s.ears.Write(frame))
	}
}

// silence lets time pass in which the assistant says nothing.
func (s *stage) silence(d time.Duration) { s.t.Helper(); s.runs(d, s.quiet) }

// assistant says something, word by word.
func (s *stage) assistant(text string) {
	s.t.Helper()
	words := strings.Fields(text)
	for i := range words {
		s.runs(300*time.Millisecond, s.noisy)
		s.hear(converse.Heard{Text: strings.Join(words[:i+1], " ")})
	}
	s.runs(160*time.Millisecond, s.quiet)
	s.hear(converse.Heard{Text: text, Final: true})
}

func TestAPersonWaitsForTheirTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, Step{Say: "Yes."}, Step{Press: "12"}, Step{Say: "Bye.", HangUp: true})
	s.silence(20 * time.Second)
	require.Zero(t, s.loud, "nobody has spoken yet")
	s.assistant("Hello, do you have a minute?")
	require.Zero(t, s.loud)
	s.silence(3 * time.Second)
	require.Equal(t, "Yes.", s.said)
	s.silence(20 * time.Second)
	require.Empty(t, s.keys, "one turn, one step")
	s.assistant("Type something.")
	s.silence(time.Second)
	require.Equal(t, "12", s.keys)
	s.assistant("Thank you.")
	require.False(t, s.left)
	s.silence(3 * time.Second)
	require.Equal(t, "Yes. Bye.", s.said)
	require.True(t, s.left)
}

func TestAPersonCutsIn(t *testing.T) {
	t.Parallel()
	s := newStage(t, Step{Say: "Wait.", AfterWords: 3}, Step{Say: "Go on."})
	s.assistant("One two")
	s.assistant("three four five six seven eight")
	require.Equal(t, "Wait.", s.said, "before the assistant's turn was over")
	s.silence(700 * time.Millisecond)
	require.Equal(t, "Wait.", s.said, "whoever has cut in waits longer")
	s.silence(3 * time.Second)
	require.Equal(t, "Wait. Go on.", s.said)

	short := newStage(t, Step{Say: "Wait.", AfterWords: 30})
	short.assistant("One two")
	short.silence(3 * time.Second)
	require.Equal(t, "Wait.", short.said, "a short turn has no middle")
}

// An assistant that falls silent at a cough is given time to go on.
func TestACoughDoesNotTakeTheTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, Step{Cough: true, AfterWords: 2}, Step{Say: "Yes."})
	s.runs(300*time.Millisecond, s.noisy)
	s.hear(converse.Heard{Text: "One two"})
	s.silence(400 * time.Millisecond)
	coughed := s.loud
	require.Positive(t, coughed)
	s.silence(800 * time.Millisecond) // the assistant waits too
	s.runs(300*time.Millisecond, s.noisy)
	s.hear(converse.Heard{Text: "One two three"})
	require.Equal(t, coughed, s.loud, "it was still the assistant's turn")
	s.silence(3 * time.Second)
	require.Equal(t, "Yes.", s.said)
}

// What the assistant still said when it was interrupted is no answer to the
// interruption.
func TestAnInterruptedSentenceIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, Step{Say: "Sorry, who is calling, please?", AfterWords: 2}, Step{Say: "I see."})
	s.runs(300*time.Millisecond, s.noisy)
	s.hear(converse.Heard{Text: "One"})
	s.runs(300*time.Millisecond, s.noisy)
	s.hear(converse.Heard{Text: "One two"})
	s.runs(200*time.Millisecond, s.noisy)
	s.hear(converse.Heard{Text: "One two three"})
	s.silence(10 * time.Second)
	require.Equal(t, "Sorry, who is calling, please?", s.said)
	s.assistant("This is Acme.")
	s.silence(3 * time.Second)
	require.Equal(t, "Sorry, who is calling, please? I see.", s.said)
}

func TestAMenuAsksAgainAndGivesUp(t *testing.T) {
	t.Parallel()
	menu := []Step{{Say: "Press one.", AtOnce: true}, {Key: "1", Say: "Anna here.", Again: 1, OrElse: "Too late."}}
	s := newStage(t, menu...)
	s.assistant("Hello, this is Acme.") // a menu speaks on
	s.silence(2 * time.Second)
	require.Equal(t, "Press one.", s.said)
	s.key('2')
	s.silence(8 * time.Second)
	require.Equal(t, "Press one. Press one.", s.said)
	s.key('1')
	s.silence(3 * time.Second)
	require.Equal(t, "Press one. Press one. Anna here.", s.said)
	require.False(t, s.left)

	deaf := newStage(t, menu...)
	deaf.silence(20 * time.Second)
	require.Equal(t, "Press one. Press one. Too late.", deaf.said)
	require.True(t, deaf.left)
}

func TestAScreenerWantsAnAnswer(t *testing.T) {
	t.Parallel()
	screener := []Step{{Say: "Who is calling?", AtOnce: true}, {Hears: regexp.MustCompile(`(\S+\s+){3}\S+`), Say: "One moment.", Again: 1, OrElse: "Not accepted."}}
	s := newStage(t, screener...)
	s.silence(3 * time.Second)
	s.assistant("Me.")
	s.silence(3 * time.Second)
	require.Equal(t, "Who is calling? Who is calling?", s.said)
	s.assistant("This is Acme, about your appointment tomorrow in the afternoon, as you asked us to arrange it last week.")
	s.silence(3 * time.Second)
	require.Equal(t, "Who is calling? Who is calling? One moment.", s.said)

	rude := newStage(t, screener...)
	rude.silence(3 * time.Second)
	rude.assistant("Me.")
	rude.silence(3 * time.Second)
	rude.assistant("Guess.")
	rude.silence(3 * time.Second)
	require.Equal(t, "Who is calling? Who is calling? Not accepted.", rude.said)
	require.True(t, rude.left)
}

// On a line that is never silent, and after a last word that was lost, the turn comes
// all the same.
func TestTurnsOnABadLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, Step{Say: "Yes."}, Step{Say: "Bye."})
	s.hear(converse.Heard{Text: "Hello there.", Final: true})
	s.runs(2*time.Second, s.noisy)
	require.Equal(t, "Yes.", s.said)
	s.hear(converse.Heard{Text: "And then"})
	s.runs(time.Second, s.noisy)
	require.Equal(t, "Yes.", s.said)
	s.runs(4*time.Second, s.noisy)
	require.Equal(t, "Yes. Bye.", s.said)
}

func TestABeepAndACoughAreHeard(t *testing.T) {
	t.Parallel()
	s := newStage(t, Step{Cough: true}, Step{Wait: time.Second}, Step{Beep: true})
	s.silence(500 * time.Millisecond)
	coughed := s.loud
	require.Positive(t, coughed)
	s.silence(500 * time.Millisecond)
	require.Equal(t, coughed, s.loud, "a pause")
	s.silence(2 * time.Second)
	require.InDelta(t, beepLength/audio.FrameDuration, s.loud-coughed, 2)
	require.Empty(t, s.said)
}
