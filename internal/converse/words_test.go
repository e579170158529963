package converse

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

// TestTemplates: initial_message and system_prompt know the assistant's variables,
// the call's and the system's; the later win.
func TestTemplates(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) {
			a.Variables = map[string]any{"company": "Acme", "name": "nobody", "rooms": 3.0}
			a.InitialMessage = "Hi {{ name }}, {{company}} has {{rooms}} rooms{{missing}}."
			a.SystemPrompt = "You are {{assistant_name}} ({{assistant_id}}) on {{assistant_phone}}, calling {{customer_phone}} in {{call_id}} on {{current_date}} at {{current_time}}."
		},
		config:   func(c *Config) { c.Call.Variables = map[string]any{"name": "Eva"} },
		customer: []says{{3500 * ms, 4500 * ms, "good morning"}}, words: wording{final: 11 * ms}, until: 7 * time.Second,
	}.play(t)
	require.Equal(t, "Hi Eva, Acme has 3 rooms.", o.Turns[0].Text)
	// The bubble's clock begins at midnight UTC on 1 January 2000, when it is one o'clock in Berlin.
	require.True(t, strings.HasPrefix(o.model.prompts()[0].System,
		"You are Front desk (12) on +4930123456, calling +12025550100 in call-1 on 2000-01-01 at 01:00."), o.model.prompts()[0].System)
}

// TestTimezone: the model knows the local date and time at each answer.
func TestTimezone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, says string }{
		{"Europe/Berlin", "Saturday, 1 January 2000, 01:02 (Europe/Berlin)"},
		{"America/New_York", "Friday, 31 December 1999, 19:02 (America/New_York)"},
	} {
		o := scene{
			assistant: func(a *parley.Assistant) {
				a.Timezone, a.MaxSilenceDuration, a.ReengagementInterval = tt.zone, 120, 600
			},
			customer: []says{{118 * time.Second, 119 * time.Second, "what day is it"}}, words: wording{final: 11 * ms}, until: 122 * time.Second,
		}.play(t)
		require.Contains(t, o.model.prompts()[0].System, tt.says)
	}
}

// TestLanguage: it reaches every provider, and the engine's own phrases follow it.
func TestLanguage(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) { a.Language, a.ReengagementInterval = "German", 7 },
		customer:  []says{{1500 * ms, 2500 * ms, "guten Tag auch"}}, words: wording{final: 11 * ms}, until: 15 * time.Second,
	}.play(t)
	require.Equal(t, "de", o.ears.asked.Language)
	require.Equal(t, "de", o.model.prompts()[0].Language)
	require.Contains(t, o.model.prompts()[0].System, "Speak German.")
	require.Equal(t, "de", o.voice.asked[0].Language)
	require.Contains(t, o.Transcript, "AI: Sind Sie noch da?")
}

// TestProviderSettings: how to speak and to think is handed on.
func TestProviderSettings(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: func(a *parley.Assistant) {
			a.SpeechSpeed, a.VoiceStability, a.VoiceSimilarity, a.LLMTemperature = 1.2, 0.3, 0.9, 0.8
			a.PostCallSchema = []parley.Param{{Name: "appointment", Type: "string", Description: "the date agreed on"}}
		},
		config:   func(c *Config) { c.Hints = []string{"Acme"} },
		customer: []says{{1500 * ms, 2500 * ms, "good morning"}}, words: wording{final: 11 * ms}, until: 5 * time.Second,
	}.play(t)
	u, p := o.voice.asked[0], o.model.prompts()[0]
	require.Equal(t, [3]float64{1.2, 0.3, 0.9}, [3]float64{u.Speed, u.Stability, u.Similarity})
	require.Equal(t, "voice-1", u.Voice)
	require.InDelta(t, 0.8, p.Temperature, 0)
	require.Equal(t, "mind-1", p.Model)
	require.Contains(t, p.System, "- appointment (string): the date agreed on", "the model knows what to find out")
	require.Equal(t, []string{"Acme"}, o.ears.asked.Hints)
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"Hello there. How are you? Fine!", []string{"Hello there.", "How are you?", "Fine!"}},
		{"Dr. Smith is in. He costs 3.50 euros.", []string{"Dr. Smith is in.", "He costs 3.50 euros."}},
		{"J. R. Tolkien wrote it. Yes.", []string{"J. R. Tolkien wrote it.", "Yes."}},
		{"Am 3. Oktober ist zu. Danke.", []string{"Am 3. Oktober ist zu.", "Danke."}},
		{"Das kostet z.B. 5 Euro. Gut?", []string{"Das kostet z.B. 5 Euro.", "Gut?"}},
		{"Really?! Yes... indeed. Ok.", []string{"Really?!", "Yes... indeed.", "Ok."}},
		{`He said "stop." Then he left.`, []string{`He said "stop."`, "Then he left."}},
		{"今日は晴れです。明日は雨です。", []string{"今日は晴れです。", "明日は雨です。"}},
		{"आप कैसे हैं। मैं ठीक हूँ।", []string{"आप कैसे हैं।", "मैं ठीक हूँ।"}},
		{"كيف حالك؟ أنا بخير.", []string{"كيف حالك؟", "أنا بخير."}},
		{"First line\nsecond line", []string{"First line", "second line"}},
		{"**Bold** and `code`.", []string{"Bold and code."}},
		{"At 5 p.m. we close. Bye.", []string{"At 5 p.m. we close.", "Bye."}},
		{"... *** !!!", nil},
	} {
		var s splitter
		var got []string
		for _, r := range tt.text { // as a model streams it, but worse
			got = append(got, s.add(string(r))...)
		}
		got = append(got, s.flush()...)
		require.Equal(t, tt.want, got, tt.text)
	}
}

// FuzzSplitter: whatever a model streams, and however it is cut, no word is lost or
// made up, and no sentence is endless.
func FuzzSplitter(f *testing.F) {
	f.Add("Hello there. How are you?", 3)
	f.Add("3.14 is e.g. a number\n\nnot a word。終わり", 1)
	f.Fuzz(func(t *testing.T, text string, step int) {
		var s splitter
		var got []string
		rest := text
		for rest != "" {
			n := min(len(rest), max(1, step%17))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			got = append(got, s.add(rest[:n])...)
			rest = rest[n:]
		}
		got = append(got, s.flush()...)
		for _, line := range got {
			if len(line) > longest+utf8.UTFMax+8 {
				t.Fatalf("a sentence of %d bytes", len(line))
			}
		}
		if want, have := letters(text), letters(strings.Join(got, "")); want != have {
			t.Fatalf("%q became %q", want, have)
		}
	})
}

// letters are what must survive.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r)) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}

// FuzzTemplate: rendering ends, and leaves nothing of a place it knows.
func FuzzTemplate(f *testing.F) {
	f.Add("Hello {{name}}, {{ missing }} {{{name}}} {{na me}} {{", "Eva")
	f.Fuzz(func(t *testing.T, text, value string) {
		out := parley.Render(text, map[string]string{"name": value})
		if strings.Contains(out, "{{name}}") && !strings.Contains(value, "{{name}}") && !strings.Contains(value, "name") && !strings.ContainsAny(value, "{}") && value != "" {
			t.Fatalf("%q left its place in %q", text, out)
		}
	})
}

// TestBackchannelsPerLanguage: each language has its own.
func TestBackchannelsPerLanguage(t *testing.T) {
	t.Parallel()
	for language, text := range map[string]string{"en": "Yeah, right.", "de": "Ja, genau!", "fr": "d'accord", "es": "sí, claro", "it": "va bene", "pt": "pois é", "nl": "ja, precies", "fi": "mm-hm"} {
		require.True(t, isBackchannel(text, language), text)
	}
	require.False(t, isBackchannel("yes but I want another one", "en"))
	require.False(t, isBackchannel("", "en"))
}

// TestSensitivitiesAreMonotone: raising one never lengthens its pause or its speech,
// and the words' judgement never reverses that.
func TestSensitivitiesAreMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64Range(0, 5).Draw(t, "a"), rapid.Float64Range(0, 5).Draw(t, "b")
		low, high := min(a, b), max(a, b)
		require.GreaterOrEqual(t, endpointPause(low), endpointPause(high))
		require.GreaterOrEqual(t, interruptSpeech(low), interruptSpeech(high))
		text := rapid.SampledFrom([]string{"", "my number is", "I am done.", "tomorrow", "and"}).Draw(t, "text")
		slow, quick := endpointing{endpointPause(low), true, "en"}, endpointing{endpointPause(high), true, "en"}
		require.GreaterOrEqual(t, slow.wait(text, false), quick.wait(text, false))
	})
}

// TestGarbageIsSplitQuickly: a model gone wild must not hold up its call.
func TestGarbageIsSplitQuickly(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{".", "a", "?)", "…", "1.", " ", "\"", "漢", "。"} {
		began := time.Now()
		var s splitter
		for range mostText {
			s.add(piece)
		}
		s.flush()
		require.Less(t, time.Since(began), 5*time.Second, piece)
	}
}

// A demand never to be called again must survive a word that the line lost, and must
// not be heard in one that never was.
func TestARefusalIsHeardOnABadLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Please never call me again.":          true,
		"Please never … me again.":             true,
		"Never call … again, thank you":        true,
		"Do not … me again before Monday.":     false,
		"Stop … me.":                           false, // too little is left to be sure
		"Never … … again.":                     false,
		"You could call me again.":             false,
		"Do not call me again before tomorrow": false,
	} {
		if got := wantsNoCalls(text, "en"); got != want {
			t.Errorf("%q: refuses further calls = %v, want %v", text, got, want)
		}
	}
}
