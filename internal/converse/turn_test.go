package converse

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// TestEndpointSensitivity: the answer begins as soon as the pause is over: 1000 ms
// divided by one plus the sensitivity.
func TestEndpointSensitivity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sensitivity float64
		begins      time.Duration // of the answer, after the customer's last word at 2.5 s
	}{
		{0, 1000 * ms}, {0.25, 800 * ms}, {1, 500 * ms}, {1.5, 400 * ms}, {4, 200 * ms},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) { a.EndpointSensitivity = tt.sensitivity },
			customer:  []says{{1500 * ms, 2500 * ms, "what are your hours"}},
			words:     wording{final: 11 * ms}, model: always("We open at nine.", 21*ms), speaker: speaking{first: 11 * ms},
			until: 5 * time.Second,
		}.play(t)
		require.Equal(t, 2500*ms+tt.begins, o.at("We open"), "sensitivity %v", tt.sensitivity)
	}
}

// TestEndpointTypeAI: the words before a pause shorten or lengthen it.
func TestEndpointTypeAI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, words string
		begins      time.Duration
	}{
		{"vad", "my number is", 500 * ms},
		{"ai", "my number is", 1260 * ms}, // 1250, and the rest of a frame
		{"vad", "I would like a room.", 500 * ms},
		{"ai", "I would like a room.", 300 * ms},
		{"ai", "tomorrow afternoon", 500 * ms},
		{"ai", "I will come on Monday and", 1260 * ms},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) { a.EndpointType = tt.kind },
			customer:  []says{{1500 * ms, 2500 * ms, tt.words}},
			words:     wording{final: 11 * ms}, model: always("We open at nine.", 21*ms), speaker: speaking{first: 11 * ms},
			until: 5 * time.Second,
		}.play(t)
		require.Equal(t, 2500*ms+tt.begins, o.at("We open"), "%s: %s", tt.kind, tt.words)
	}
}

// TestLongPauseIsNotALateAnswer: after the longest pause an answer that is ready is
// not announced with a plea for patience.
func TestLongPauseIsNotALateAnswer(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.EndpointType, a.EndpointSensitivity = "ai", 0 },
		customer:  []says{{1500 * ms, 2500 * ms, "my number is"}}, words: wording{final: 11 * ms}, model: always("Go on.", 21*ms), until: 8 * time.Second,
	}.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: my number is\nAI: Go on.", o.Transcript)
	require.Equal(t, 5000*ms, o.at("Go on."))
}

// TestPauseInsideASentence: with ai the two halves are one turn.
func TestPauseInsideASentence(t *testing.T) {
	t.Parallel()
	s := scene{
		customer: []says{{1500 * ms, 2500 * ms, "my number is"}, {3300 * ms, 4300 * ms, "five six seven"}},
		words:    wording{final: 11 * ms}, model: always("Thank you.", 21*ms), until: 8 * time.Second,
	}
	require.Equal(t, 2, strings.Count(s.play(t).Transcript, "Customer:"))
	s.assistant = func(a *parley.Assistant) { a.EndpointType = "ai" }
	o := s.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: my number is five six seven\nAI: Thank you.", o.Transcript)
}

// TestWordsStillOwedAreWaitedFor: the second half of a sentence comes late and
// without partial words; it is not cut off the turn.
func TestWordsStillOwedAreWaitedFor(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.EndpointSensitivity = 4 }, // a pause of 200 ms
		customer:  []says{{1500 * ms, 2500 * ms, "I want two"}, {2640 * ms, 3500 * ms, "or better three"}},
		words:     wording{final: 391 * ms}, model: always("Noted.", 21*ms), until: 7 * time.Second,
	}.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: I want two or better three\nAI: Noted.", o.Transcript)
}

// TestEarlyAnswerIsThrownAwayWhenWordsChange: the customer goes on after the early
// start; nothing of the early answer is heard.
func TestEarlyAnswerIsThrownAwayWhenWordsChange(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.EndpointSensitivity = 0 },
		customer:  []says{{1500 * ms, 2500 * ms, "I want two"}, {2900 * ms, 3500 * ms, "no three"}},
		words:     wording{final: 11 * ms, partial: 31 * ms},
		model: func(p Prompt) answer {
			return answer{first: 51 * ms, text: "Noted " + strings.ReplaceAll(lastWords(p), " ", "-") + "."}
		},
		until: 8 * time.Second,
	}.play(t)
	require.Equal(t, "Hello from Acme. Noted I-want-two-no-three.", o.said())
	require.Equal(t, 4500*ms, o.at("Noted"))
	require.GreaterOrEqual(t, len(o.model.prompts()), 2)
}

// TestStablePartialsStartTheModel: a transcriber that is slow with its final words
// costs nothing when they are the partial ones.
func TestStablePartialsStartTheModel(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "what are your hours"}},
		words:    wording{final: 391 * ms, partial: 31 * ms}, model: always("We open at nine.", 201*ms), speaker: speaking{first: 51 * ms},
		until: 5 * time.Second,
	}.play(t)
	require.Equal(t, 3000*ms, o.at("We open"))
	require.Len(t, o.model.prompts(), 1)
}

// TestWaitForCustomer: the customer speaks first, and the initial message is the first
// thing that is said then; a question is answered after it.
func TestWaitForCustomer(t *testing.T) {
	t.Parallel()
	s := scene{
		assistant: func(a *parley.Assistant) { a.WaitForCustomer = true },
		customer:  []says{{1500 * ms, 2100 * ms, "hello hi"}},
		words:     wording{final: 11 * ms}, model: always("At nine.", 21*ms), until: 6 * time.Second,
	}
	o := s.play(t)
	require.Equal(t, "Customer: hello hi\nAI: Hello from Acme.", o.Transcript)
	require.Equal(t, 2600*ms, o.at("Hello from"))
	s.customer[0].words = "when do you open"
	require.Equal(t, "Customer: when do you open\nAI: Hello from Acme.\nAI: At nine.", s.play(t).Transcript)
	s.customer = nil
	require.Empty(t, s.play(t).Transcript)
	s.until = 33 * time.Second
	require.Equal(t, "AI: Hello from Acme.", s.play(t).Transcript, "somebody has to begin")
}

// TestTwoTurnsBeforeAnAnswer: what is added while the model thinks is answered
// together with what came before.
func TestTwoTurnsBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "I want a pizza"}, {3400 * ms, 4000 * ms, "and a salad"}},
		words:    wording{final: 11 * ms},
		model: func(p Prompt) answer {
			if lastWords(p) == "and a salad" {
				return answer{first: 101 * ms, text: "Both it is."}
			}
			return answer{first: 2001 * ms, text: "Just pizza."}
		},
		until: 8 * time.Second,
	}.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: I want a pizza\nCustomer: and a salad\nAI: Both it is.", o.Transcript)
	require.NotContains(t, o.said(), "Just")
}

// TestSentencesFollowWithoutAGap: the second is rendered while the first is said.
func TestSentencesFollowWithoutAGap(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "tell me more"}},
		words:    wording{final: 11 * ms},
		model: func(Prompt) answer {
			return answer{first: 51 * ms, token: 100 * ms, text: "We open at nine. We close at five. We are shut on Sundays."}
		},
		speaker: speaking{first: 201 * ms}, until: 12 * time.Second,
	}.play(t)
	require.Equal(t, [][2]time.Duration{{20 * ms, 920 * ms}, {3140 * ms, 7040 * ms}}, o.spans())
	require.Equal(t, "We open at nine. We close at five. We are shut on Sundays.", o.Turns[2].Text)
}

// TestLateFinalWordsAreNotASecondTurn: words answered on their partial form are not
// answered again when their final form arrives.
func TestLateFinalWordsAreNotASecondTurn(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "what are your hours"}},
		words:    wording{final: 2001 * ms, partial: 31 * ms}, model: always("We open at nine.", 21*ms),
		until: 10 * time.Second,
	}.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: what are your hours\nAI: We open at nine.", o.Transcript)
	require.Equal(t, 3260*ms, o.at("We open"), "the final words are waited for, but not for ever")
}

// TestDamagedWords: the model knows that it did not get everything, and where there
// are no words at all the customer is asked again.
func TestDamagedWords(t *testing.T) {
	t.Parallel()
	s := scene{
		customer: []says{{1500 * ms, 2500 * ms, "my number is five"}}, words: wording{final: 11 * ms, damaged: true}, model: always("Once more please.", 21*ms), until: 7 * time.Second,
	}
	o := s.play(t)
	require.Equal(t, "my number is five [partly unintelligible]", lastWords(o.model.prompts()[0]))
	require.NotContains(t, o.Transcript, "unintelligible")
	s.customer[0].words = ""
	o = s.play(t)
	require.Equal(t, "AI: Hello from Acme.\nAI: "+phraseBook["en"].pardon, o.Transcript)
}
