package converse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// TestReengagement: the customer is asked after each interval of silence, to the
// millisecond, and an answer begins the silence anew.
func TestReengagement(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.ReengagementInterval, a.MaxSilenceDuration = 7, 30 },
		customer:  []says{{9500 * ms, 10500 * ms, "yes I am here"}}, words: wording{final: 11 * ms}, model: always("Good.", 21*ms), speaker: speaking{first: 19 * ms},
	}.play(t)
	// The greeting ends at 920 ms; the question takes 1.2 s from the frame after the
	// alarm; "Good." is said from 11.0 to 11.3 s.
	var asked []time.Duration
	for _, turn := range o.Turns {
		if turn.Text == "Are you still there?" {
			asked = append(asked, turn.Started)
		}
	}
	require.Equal(t, []time.Duration{7940 * ms, 18320 * ms, 26540 * ms, 34760 * ms}, asked)
	require.Equal(t, EndMaxSilence, o.EndReason)
	require.Equal(t, 11300*ms+30*time.Second, o.hungUp, "the questions do not break the silence")
}

// TestReengagementInOtherLanguages: where Parley has no phrase the model asks.
func TestReengagementInOtherLanguages(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.ReengagementInterval, a.Language = 7, "Finnish" },
		model:     always("Oletteko vielä siellä?", 51*ms), until: 12 * time.Second,
	}.play(t)
	require.Contains(t, o.Transcript, "AI: Oletteko vielä siellä?")
	require.Contains(t, o.model.prompts()[0].System, "still there")
}

// TestMaxSilence ends a call in which nobody speaks, exactly.
func TestMaxSilence(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{1, 7, fewer(40), fewer(120)} {
		o := scene{assistant: func(a *parley.Assistant) { a.MaxSilenceDuration = seconds }, until: 5 * time.Minute}.play(t)
		require.Equal(t, EndMaxSilence, o.EndReason)
		require.Equal(t, BySystem, o.EndedBy)
		require.Equal(t, 920*ms+time.Duration(seconds)*time.Second, o.hungUp)
	}
}

// TestMaxDuration: a last sentence, then the end exactly at the limit.
func TestMaxDuration(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{20, 61, fewer(600)} {
		o := scene{
			assistant: func(a *parley.Assistant) {
				a.MaxDuration, a.MaxSilenceDuration, a.ReengagementInterval = seconds, 120, 600
			},
			customer: chatter(time.Duration(seconds) * time.Second), words: wording{final: 11 * ms}, model: always("I see. Go on.", 51*ms), until: time.Hour,
		}.play(t)
		require.Equal(t, EndMaxDuration, o.EndReason)
		require.Equal(t, time.Duration(seconds)*time.Second, o.hungUp)
		closing := phraseBook["en"].closing
		require.True(t, strings.HasSuffix(o.said(), closing), o.said())
		last := o.heard[len(o.heard)-1]
		require.InDelta(t, o.hungUp-tail, last.to, float64(20*ms), "it is heard to its end, and silence does not drag on")
	}
}

// chatter is a customer who says something every five seconds.
func chatter(until time.Duration) []says {
	var script []says
	for at := 2 * time.Second; at < until-16*time.Second; at += 5 * time.Second {
		script = append(script, says{at, at + time.Second, fmt.Sprintf("well number %d", len(script))})
	}
	return script
}

// TestNotAnswered: a call that nobody takes ends without a word.
func TestNotAnswered(t *testing.T) {
	t.Parallel()
	o := scene{ring: time.Second, until: 20 * ms}.play(t)
	require.True(t, o.Answered)
	require.Equal(t, EndStopped, o.EndReason)
}

// TestCustomerHangsUp in the middle of a sentence.
func TestCustomerHangsUp(t *testing.T) {
	t.Parallel()
	o := scene{assistant: long, hangUp: 1000 * ms}.play(t)
	require.Equal(t, EndHungUp, o.EndReason)
	require.Equal(t, ByCustomer, o.EndedBy)
	require.Equal(t, "AI: One two three", o.Transcript)
	require.Equal(t, 1000*ms, o.Duration)
}

// TestSilenceDoesNotCountWhileTheCustomerSpeaks, nor while the assistant thinks.
func TestSilenceDoesNotCountWhileTheCustomerSpeaks(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.MaxSilenceDuration, a.ReengagementInterval = 5, 7 },
		customer:  []says{{2 * time.Second, 12 * time.Second, "this is a very long story about a horse"}}, words: wording{final: 11 * ms, partial: 11 * ms},
		model: always("What a horse.", 3001*ms),
	}.play(t)
	require.NotContains(t, o.Transcript, "still there")
	require.Equal(t, EndMaxSilence, o.EndReason)
	last := o.Turns[len(o.Turns)-1]
	require.Equal(t, "What a horse.", last.Text)
	require.Equal(t, last.Ended+5*time.Second, o.hungUp)
}
