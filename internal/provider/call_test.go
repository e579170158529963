package provider_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/gemini"
	"parley/internal/provider/openai"
	"parley/internal/provider/providertest"
	"parley/internal/provider/sandbox"
	"parley/internal/provider/wire"
)

// overPipes serves a dialogue in memory until the end of a test.
func overPipes(t *testing.T, reply func(message map[string]any) []string) *http.Client {
	t.Helper()
	client, release := providertest.InMemory(providertest.Dialogue(nil, reply))
	t.Cleanup(release)
	return client
}

// wave is a tone that an assistant is heard by.
func wave(rate audio.Rate, length time.Duration) []int16 {
	samples := make([]int16, rate.Samples(length))
	for i := range samples {
		samples[i] = int16(6000 * math.Sin(2*math.Pi*300*float64(i)/float64(rate)))
	}
	return samples
}

// line counts what the assistant sends.
type line struct {
	mu     sync.Mutex
	voiced int
}

func (l *line) Send(frame []int16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range frame {
		if s > 1000 {
			l.voiced++
			return
		}
	}
}

func (l *line) heard() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.voiced) * audio.FrameDuration
}

func (*line) SendDigits(string) error                { return nil }
func (*line) Transfer(context.Context, string) error { return nil }
func (*line) HangUp()                                {}

// talks is a whole call: the greeting, a question, an answer that the customer
// interrupts, and another. It gives what the engine made of it.
func talks(t *testing.T, d converse.Duplex) converse.Result {
	t.Helper()
	a := parley.Assistant{Name: "Front desk", Type: parley.Outbound, Mode: parley.Multimodal}
	parley.AssistantForm.SetDefaults(&a)
	a.Mode, a.Language, a.Timezone, a.InitialMessage, a.SystemPrompt = parley.Multimodal, "English", "UTC", "Hello, this is Acme.", "Be brief."
	var spoken []int16
	u := converse.Utterance{Text: "Good morning, when do you open on Sundays?", Rate: audio.Rate8k, Speed: 1}
	require.NoError(t, sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), u, func(s converse.Sound) { spoken = append(spoken, s.Samples...) }))
	phone := &line{}
	c, err := converse.New(converse.Config{
		Assistant: a, Rate: audio.Rate8k, Line: phone, Call: converse.Facts{CallID: "1", Direction: parley.Outbound},
		Duplexes: []converse.Provider[converse.Duplex]{{Name: "vendor", Key: "m", Voice: "v", Use: d}},
		Watch:    func(e converse.Event) { require.Empty(t, e.Failure) },
	})
	require.NoError(t, err)
	result := make(chan converse.Result, 1)
	go func() { result <- c.Run(t.Context()) }()
	passes := func(samples []int16) {
		for ; len(samples) >= 160; samples = samples[160:] {
			time.Sleep(audio.FrameDuration) // virtual: the media's pace
			c.Frame(samples[:160])
		}
	}
	silence := make([]int16, 8000)
	time.Sleep(time.Second) // it rings
	c.Answered()
	passes(silence)
	passes(silence)
	require.Equal(t, time.Second, phone.heard(), "the greeting was ready when the call was answered")
	passes(spoken)
	passes(silence)
	passes(silence)
	passes(spoken) // while the answer is being said
	passes(silence)
	passes(silence)
	passes(silence)
	c.HungUp()
	return <-result
}

func requireCall(t *testing.T, r converse.Result) {
	t.Helper()
	var said []string
	for _, turn := range r.Turns {
		said = append(said, fmt.Sprintf("%s: %s", turn.Sender, turn.Text))
	}
	require.Len(t, said, 5, said)
	require.Equal(t, "bot: Hello, this is Acme.", said[0])
	require.Equal(t, "human: When do you open?", said[1])
	require.True(t, r.Turns[2].Interrupted, said)
	require.True(t, strings.HasPrefix("bot: We open at nine and close at five every day of the week.", said[2]), said[2])
	require.NotContains(t, said[2], "week")
	require.Equal(t, []string{"human: When do you open?", "bot: Yes."}, said[3:])
}

func TestACallOverRealtime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut []float64
		asked := 0
		answer := func(length time.Duration, text string, before ...string) []string {
			asked++
			sound := base64.StdEncoding.EncodeToString(wire.MuLaw(wave(audio.Rate8k, length)))
			return append(before, `{"type":"response.output_audio_transcript.delta","delta":"`+text+`"}`,
				fmt.Sprintf(`{"type":"response.output_audio.delta","item_id":"item_%d","delta":"%s"}`, asked, sound),
				`{"type":"response.done","response":{"status":"completed","usage":{"input_tokens":10,"output_tokens":5}}}`)
		}
		heard := `{"type":"conversation.item.input_audio_transcription.completed","item_id":"c","transcript":"When do you open?"}`
		client := overPipes(t, func(m map[string]any) []string {
			switch {
			case m["type"] == "session.update":
				return []string{`{"type":"session.updated"}`}
			case m["type"] == "conversation.item.truncate":
				cut = append(cut, m["audio_end_ms"].(float64))
			case m["type"] == "response.create" && asked == 0:
				return answer(time.Second, "Hello, this is Acme.")
			case m["type"] == "response.create" && asked == 1:
				return answer(6*time.Second, "We open at nine and close at five every day of the week.", heard)
			case m["type"] == "response.create":
				return answer(time.Second, "Yes.", heard)
			}
			return nil
		})
		p, err := openai.New(openai.Options{BaseURL: "http://vendor/v1", Client: client})
		require.NoError(t, err)
		r := talks(t, p.Duplex())
		requireCall(t, r)
		require.Len(t, cut, 1)
		require.InDelta(t, 1700, cut[0], 600, "what was heard before the customer spoke")
	})
}

func TestACallOverLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		asked := 0
		answer := func(length time.Duration, text string, before ...string) []string {
			asked++
			sound := base64.StdEncoding.EncodeToString(wire.Samples(wave(audio.Rate24k, length)))
			return append(before, `{"serverContent":{"outputTranscription":{"text":"`+text+`"}}}`,
				`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"`+sound+`"}}]}}}`,
				`{"serverContent":{"generationComplete":true}}`, `{"serverContent":{"turnComplete":true}}`)
		}
		heard := `{"serverContent":{"inputTranscription":{"text":"When do you open?"}}}`
		client := overPipes(t, func(m map[string]any) []string {
			input, _ := m["realtimeInput"].(map[string]any)
			content, _ := m["clientContent"].(map[string]any)
			switch {
			case m["setup"] != nil:
				return []string{`{"setupComplete":{}}`}
			case content != nil && content["turnComplete"] == true:
				return answer(time.Second, "Hello, this is Acme.")
			case content != nil:
				notes = append(notes, fmt.Sprint(content["turns"]))
			case input["activityEnd"] != nil && asked == 1:
				return answer(6*time.Second, "We open at nine and close at five every day of the week.", heard)
			case input["activityEnd"] != nil:
				return answer(time.Second, "Yes.", heard)
			}
			return nil
		})
		p, err := gemini.New(gemini.Options{APIKey: key, BaseURL: "http://vendor", Client: client})
		require.NoError(t, err)
		requireCall(t, talks(t, p.Duplex()))
		require.Len(t, notes, 1)
		require.Contains(t, notes[0], "We open at nine")
		require.NotContains(t, notes[0], "week")
	})
}
