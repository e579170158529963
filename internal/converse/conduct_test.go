package converse

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// TestFillers: a slow answer is bridged in the mood of what was said, by the
// assistant's own words or the language's, and only when they are switched on.
func TestFillers(t *testing.T) {
	t.Parallel()
	own := parley.FillerConfig{Neutral: []string{"Hm, let me think."}, Negative: []string{"I hear you."}, Positive: []string{"Wonderful."}, Question: []string{"Well."}}
	for _, tt := range []struct {
		name     string
		on       parley.Bit
		config   parley.FillerConfig
		language string
		said     string
		filler   string
	}{
		{"neutral", true, own, "English", "tomorrow at noon", "Hm, let me think."},
		{"negative", true, own, "English", "this is not working", "I hear you."},
		{"positive", true, own, "English", "great thanks", "Wonderful."},
		{"question", true, own, "English", "what does it cost", "Well."},
		{"built in", true, parley.FillerConfig{}, "English", "what does it cost", "Let me check."},
		{"built in German", true, parley.FillerConfig{}, "German", "das ist nicht gut", "Das tut mir leid."},
		{"none for the language", true, parley.FillerConfig{}, "Finnish", "paljonko", ""},
		{"off", false, own, "English", "what does it cost", ""},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) { a.Fillers, a.FillerConfig, a.Language = tt.on, tt.config, tt.language },
			customer:  []says{{1500 * ms, 2500 * ms, tt.said}}, words: wording{final: 11 * ms}, model: always("Ten euros.", 2001*ms), speaker: speaking{first: 51 * ms},
			until: 10 * time.Second,
		}.play(t)
		want := "AI: Hello from Acme.\nCustomer: " + tt.said + "\n"
		if tt.filler != "" {
			want += "AI: " + tt.filler + "\n"
			require.Equal(t, 3700*ms, o.at(tt.filler), "%s: 700 ms after the turn; heard %q", tt.name, o.said())
		}
		require.Equal(t, want+"AI: Ten euros.", o.Transcript, tt.name)
	}
}

// TestFillerWhileAToolRuns: a tool's slowness is bridged like the model's.
func TestFillerWhileAToolRuns(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { withTool(a); a.Fillers = true },
		customer:  []says{{1500 * ms, 2500 * ms, "my order please"}}, words: wording{final: 11 * ms},
		model: func(p Prompt) answer {
			if p.Messages[len(p.Messages)-1].Role == RoleTool {
				return answer{text: "Shipped today."}
			}
			return answer{first: 51 * ms, calls: []ToolCall{call("1", "get_order", nil)}}
		},
		tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": func(ctx context.Context, _ map[string]any) (string, error) {
			return "ok", sleep(ctx, 4001*ms)
		}}, until: 15 * time.Second,
	}.play(t)
	require.Equal(t, 3700*ms, o.at("One moment."))
	require.Contains(t, o.Transcript, "AI: Shipped today.")
}

// TestNoticeIsFirstAndFirm: it is the first audio, nothing interrupts it, and the
// recording begins at its end.
func TestNoticeIsFirstAndFirm(t *testing.T) {
	t.Parallel()
	var tapped time.Duration
	o := scene{
		config: func(c *Config) {
			c.Notice, c.OptOutHint = "This call is recorded by an AI.", "Say stop to refuse calls."
			c.Tap = func(_, _ []int16) {
				if tapped == 0 {
					tapped = c.Line.(*scriptLine).since()
				}
			}
		},
		customer: []says{{500 * ms, 1500 * ms, "who is this please"}}, words: wording{final: 11 * ms, partial: 11 * ms},
		model: always("I am Acme.", 21*ms), until: 12 * time.Second,
	}.play(t)
	require.Equal(t, "This call is recorded by an AI. Say stop to refuse calls. Hello from Acme. I am Acme.", o.said())
	require.Equal(t, 20*ms, o.at("This call"))
	require.Equal(t, 2120*ms, o.at("Say stop"), "seven words later, without a pause")
	require.Equal(t, 2120*ms, o.NoticeEnded)
	require.Equal(t, 2120*ms, tapped)
}

// TestOptOut: a spoken or keyed refusal ends the call politely within two seconds.
func TestOptOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ language, said string }{
		{"English", "please never call me again"}, {"German", "rufen Sie mich nie wieder an"}, {"French", "ne m'appelez plus"},
		{"Spanish", "no me llame más por favor"}, {"Italian", "non mi chiami più"}, {"Portuguese", "não me ligue mais"}, {"Dutch", "bel me niet meer"},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) { a.Language = tt.language },
			customer:  []says{{1500 * ms, 3500 * ms, tt.said}}, words: wording{final: 151 * ms},
		}.play(t)
		require.True(t, o.OptOut, tt.said)
		require.Equal(t, EndOptOut, o.EndReason)
		require.LessOrEqual(t, o.hungUp, 5500*ms)
		require.Greater(t, o.hungUp, 4000*ms, "with a word of goodbye")
		require.Empty(t, o.model.prompts(), "the model is not asked")
	}
	o := scene{config: func(c *Config) { c.OptOutDigit = '9' }, digits: map[time.Duration]byte{2 * time.Second: '9'}}.play(t)
	require.True(t, o.OptOut)
	require.LessOrEqual(t, o.hungUp, 4*time.Second)
	o = scene{
		assistant: func(a *parley.Assistant) { a.MaxDuration = 6 }, config: func(c *Config) { c.OptOutDigit = '9' },
		digits: map[time.Duration]byte{5500 * ms: '9'},
	}.play(t)
	require.True(t, o.OptOut, "also while the last words are being said")
	require.Equal(t, "9", o.Digits)
	require.Equal(t, EndMaxDuration, o.EndReason)
	o = scene{customer: []says{{1500 * ms, 3500 * ms, "do not call me again before Monday"}}, words: wording{final: 151 * ms}, until: 8 * time.Second}.play(t)
	require.False(t, o.OptOut, "an appointment, not a refusal")
}

// TestRecordingRefused: nothing is tapped after the refusal, and the result says so.
func TestRecordingRefused(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	o := scene{
		config:   func(c *Config) { c.Tap = func(_, _ []int16) { last = c.Line.(*scriptLine).since() } },
		customer: []says{{1500 * ms, 2500 * ms, "I do not want to be recorded"}}, words: wording{final: 11 * ms}, until: 8 * time.Second,
	}.play(t)
	require.True(t, o.RecordingRefused)
	require.Less(t, last, 3*time.Second)
}

// TestUsage: what each part of the call is billed by.
func TestUsage(t *testing.T) {
	t.Parallel()
	o := scene{customer: []says{{1500 * ms, 2500 * ms, "good morning"}}, words: wording{final: 11 * ms}, model: always("Good morning to you.", 21*ms), until: 10 * time.Second}.play(t)
	by := map[Part]PartUsage{}
	for _, u := range o.Usage {
		by[u.Part] = u
	}
	require.Equal(t, 10*time.Second, by[PartTranscriber].Heard)
	require.Equal(t, [2]int{10, 4}, [2]int{by[PartModel].InputTokens, by[PartModel].OutputTokens})
	require.GreaterOrEqual(t, by[PartSpeaker].Characters, len("Hello from Acme.")+len("Good morning to you."))
}

// TestPromiseG7NoticeFirst and G8: whatever the customer says meanwhile, the notice is
// the first audio and whole, the way to refuse follows at once, and nothing is
// recorded before its end.
func TestPromiseG7G8NoticeBeforeAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for range fewer(100) {
		from := time.Duration(random.IntN(110)) * 20 * ms
		first := time.Duration(-1)
		o := scene{
			config: func(c *Config) {
				c.Notice, c.OptOutHint = "This is an AI and the call is recorded.", "Say stop to refuse calls."
				c.Tap = func(_, _ []int16) {
					if first < 0 {
						first = c.Line.(*scriptLine).since()
					}
				}
			},
			customer: []says{{from, from + time.Duration(1+random.IntN(60))*20*ms, "stop talking right now"}}, words: wording{final: 11 * ms, partial: 11 * ms}, until: 4 * time.Second,
		}.play(t)
		require.True(t, strings.HasPrefix(o.said(), "This is an AI and the call is recorded."), o.said())
		require.Equal(t, 20*ms, o.heard[0].from)
		require.Equal(t, "This is an AI and the call is recorded.", o.Turns[slices.IndexFunc(o.Turns, func(t Turn) bool { return t.Sender == Bot })].Text)
		require.GreaterOrEqual(t, first, o.NoticeEnded)
		require.Equal(t, 2720*ms, o.NoticeEnded)
	}
}
