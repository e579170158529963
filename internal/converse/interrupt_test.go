package converse

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// tenWords takes three seconds to say, from 20 ms on.
const tenWords = "One two three four five six seven eight nine ten."

func long(a *parley.Assistant) { a.InitialMessage = tenWords }

// TestInterruption: the customer speaks into the greeting from 1.0 s. The mouth is
// held with the first voiced frame, and the transcript ends where the sound did.
func TestInterruption(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: long, customer: []says{{1000 * ms, 2200 * ms, "stop right there please"}},
		words: wording{final: 11 * ms, partial: 31 * ms}, model: always("Sorry.", 21*ms), until: 8 * time.Second,
	}.play(t)
	require.Equal(t, [][2]time.Duration{{20 * ms, 1020 * ms}, {2700 * ms, 3000 * ms}}, o.spans())
	require.Equal(t, "AI: One two three\nCustomer: stop right there please\nAI: Sorry.", o.Transcript)
	require.True(t, o.Turns[0].Interrupted)
	require.Equal(t, "One two three", o.model.prompts()[0].Messages[0].Text, "the model knows what was heard")
}

// TestCoughResumes: 200 ms without words hold the mouth and let it go on where it
// stopped; not a word is lost.
func TestCoughResumes(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: long, customer: []says{{1000 * ms, 1200 * ms, ""}},
		words: wording{final: 11 * ms}, until: 8 * time.Second,
	}.play(t)
	require.Equal(t, tenWords, o.said())
	require.Equal(t, [][2]time.Duration{{20 * ms, 1020 * ms}, {1440 * ms, 3440 * ms}}, o.spans())
	require.Equal(t, "AI: "+tenWords, o.Transcript)
	require.False(t, o.Turns[0].Interrupted)
}

// TestBackchannelResumes: "mm-hm" is no interruption however long it is drawn, but a
// "yes" into a question is an answer.
func TestBackchannelResumes(t *testing.T) {
	t.Parallel()
	s := scene{
		assistant: long, customer: []says{{1000 * ms, 1800 * ms, "mm-hm yeah"}},
		words: wording{final: 11 * ms, partial: 31 * ms}, model: always("Sorry.", 21*ms), until: 8 * time.Second,
	}
	o := s.play(t)
	require.Equal(t, tenWords, o.said())
	require.Equal(t, "Customer: mm-hm yeah\nAI: "+tenWords, o.Transcript)
	require.Empty(t, o.model.prompts(), "a sign of listening wants no answer")

	s.assistant = func(a *parley.Assistant) { a.InitialMessage = strings.TrimSuffix(tenWords, ".") + "?" }
	o = s.play(t)
	require.Equal(t, "AI: One two three\nCustomer: mm-hm yeah\nAI: Sorry.", o.Transcript)
}

// TestPickUpWordsDoNotInterruptTheGreeting: people say hello when they pick up.
func TestPickUpWordsDoNotInterruptTheGreeting(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: long, customer: []says{{200 * ms, 900 * ms, "hello hi"}},
		words: wording{final: 11 * ms, partial: 31 * ms}, until: 8 * time.Second,
	}.play(t)
	require.Equal(t, tenWords, o.said())
	require.Empty(t, o.model.prompts())
}

// TestAllowInterruptions: without it the assistant speaks on, and answers what was
// said into its words afterwards.
func TestAllowInterruptions(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { long(a); a.AllowInterruptions = false },
		customer:  []says{{1000 * ms, 2200 * ms, "stop right there please"}},
		words:     wording{final: 11 * ms, partial: 31 * ms}, model: always("Sorry.", 21*ms), until: 8 * time.Second,
	}.play(t)
	require.Equal(t, tenWords+" Sorry.", o.said())
	require.Equal(t, 2720*ms, o.at("ten."), "not a frame was held")
	require.Equal(t, 3060*ms, o.at("Sorry."))
	require.False(t, o.Turns[0].Interrupted)
}

// interruptedAt is when the assistant gave up its sentence, or never.
func interruptedAt(o *outcome) bool {
	for _, turn := range o.Turns {
		if turn.Interrupted {
			return true
		}
	}
	return false
}

// TestInterruptSensitivity: 750 ms divided by one plus the sensitivity is the
// speech that interrupts.
func TestInterruptSensitivity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sensitivity float64
		speech      time.Duration
		interrupts  bool
	}{
		{0, 740 * ms, false}, {0, 760 * ms, true},
		{0.5, 480 * ms, false}, {0.5, 500 * ms, true},
		{2, 240 * ms, false}, {2, 260 * ms, true},
		{5, 120 * ms, false}, {5, 140 * ms, true},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) { long(a); a.InterruptSensitivity = tt.sensitivity },
			customer:  []says{{1000 * ms, 1000*ms + tt.speech, "stop right there"}},
			words:     wording{final: 11 * ms, partial: 1 * ms}, model: always("Sorry.", 21*ms), until: 8 * time.Second,
		}.play(t)
		require.Equal(t, tt.interrupts, interruptedAt(o), "sensitivity %v, speech %v: %s", tt.sensitivity, tt.speech, o.Transcript)
	}
}

// TestMinInterruptWords: fewer words than that do not interrupt, unless the switch is
// off.
func TestMinInterruptWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		least, said int
		use         bool
		interrupts  bool
	}{
		{3, 2, true, false}, {3, 3, true, true}, {3, 2, false, true}, {0, 1, true, true}, {10, 9, true, false}, {10, 10, true, true},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) { long(a); a.MinInterruptWords, a.UseMinInterruptWords = tt.least, tt.use },
			customer:  []says{{1000 * ms, 2000 * ms, strings.TrimSpace(strings.Repeat("wait ", tt.said))}},
			words:     wording{final: 11 * ms, partial: 1 * ms}, model: always("Sorry.", 21*ms), until: 8 * time.Second,
		}.play(t)
		require.Equal(t, tt.interrupts, interruptedAt(o), "%+v: %s", tt, o.Transcript)
	}
}

// TestOwnEchoIsNotACustomer: our own words heard back neither interrupt nor are
// answered.
func TestOwnEchoIsNotACustomer(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: long, customer: []says{{700 * ms, 1500 * ms, "one two three"}},
		words: wording{final: 11 * ms, partial: 31 * ms}, until: 8 * time.Second,
	}.play(t)
	require.Equal(t, tenWords, o.said())
	require.Equal(t, "AI: "+tenWords, o.Transcript)
	require.Empty(t, o.model.prompts())
}

// TestNothingOldIsHeardLater: an answer that was interrupted while it was still
// being thought of and rendered never comes back.
func TestNothingOldIsHeardLater(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "tell me everything"}, {4000 * ms, 5000 * ms, "no wait please stop"}},
		words:    wording{final: 11 * ms, partial: 31 * ms},
		model: func(p Prompt) answer {
			if lastWords(p) == "tell me everything" {
				return answer{first: 51 * ms, token: 80 * ms, text: strings.Repeat("Old words are here. ", 20)}
			}
			return answer{first: 51 * ms, text: "New answer."}
		},
		speaker: speaking{first: 301 * ms}, until: 20 * time.Second,
	}.play(t)
	after := false
	for _, w := range o.heard {
		if w.from >= 4020*ms {
			require.Contains(t, []string{"New", "answer."}, w.text)
			after = true
		}
	}
	require.True(t, after)
	require.True(t, strings.HasSuffix(o.Transcript, "Customer: no wait please stop\nAI: New answer."))
}

// TestUntimedWordsAreSpread: a speaker that knows no word times still leaves a
// transcript within a word of what was heard.
func TestUntimedWordsAreSpread(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: long, customer: []says{{1000 * ms, 2200 * ms, "stop right there please"}},
		words: wording{final: 11 * ms, partial: 31 * ms}, speaker: speaking{untimed: true}, until: 5 * time.Second,
	}.play(t)
	require.InDelta(t, 3, len(strings.Fields(o.Turns[0].Text)), 1)
}

// TestNobodySpeaksOverTheCustomer: an answer that is ready waits for the end of
// what the customer adds.
func TestNobodySpeaksOverTheCustomer(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "I want a pizza"}, {3050 * ms, 3250 * ms, ""}},
		words:    wording{final: 11 * ms}, model: always("Right away.", 601*ms), until: 8 * time.Second,
	}.play(t)
	require.Equal(t, "Hello from Acme. Right away.", o.said())
	require.GreaterOrEqual(t, o.at("Right away."), 3250*ms)
}

// TestNoiseThatInterruptsIsForgiven: a second of a voice without words drops the
// sentence; as no words follow, the model goes on by itself.
func TestNoiseThatInterruptsIsForgiven(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "tell me everything"}, {3600 * ms, 5000 * ms, ""}}, words: wording{final: 11 * ms, partial: 11 * ms},
		model: func(p Prompt) answer {
			if strings.HasPrefix(lastWords(p), "[There was noise") {
				return answer{first: 51 * ms, text: "As I was saying."}
			}
			return answer{first: 51 * ms, text: tenWords}
		},
		until: 12 * time.Second,
	}.play(t)
	require.True(t, o.Turns[2].Interrupted)
	require.True(t, strings.HasSuffix(o.Transcript, "AI: As I was saying."), o.Transcript)
}

// TestNoiseDoesNotKeepACallAlive: a television that nobody stops ends in silence.
func TestNoiseDoesNotKeepACallAlive(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.MaxSilenceDuration = 20 },
		customer:  []says{{2 * time.Second, 5 * time.Minute, ""}}, words: wording{final: 11 * ms, partial: 11 * ms}, until: 6 * time.Minute,
	}.play(t)
	require.Equal(t, EndMaxSilence, o.EndReason)
	require.Equal(t, 20920*ms, o.hungUp)
}

// TestBackchannelInAnAnswerResumes: signs of listening do not stop an answer either.
func TestBackchannelInAnAnswerResumes(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "tell me everything"}, {4000 * ms, 4900 * ms, "right I see"}},
		words:    wording{final: 11 * ms, partial: 31 * ms}, model: always(tenWords, 21*ms), until: 10 * time.Second,
	}.play(t)
	require.Equal(t, "Hello from Acme. "+tenWords, o.said())
	require.Len(t, o.model.prompts(), 1)
}
