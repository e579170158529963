package provider_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/promise"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/gemini"
	"parley/internal/provider/openai"
	"parley/internal/provider/providertest"
	"parley/internal/provider/sandbox"
)

// goal is how much a client may add before the first word or sound.
const goal = 5 * time.Millisecond

// client asks its vendor for something; first is called when the first of it comes.
type client func(ctx context.Context, first func()) error

// The services answer at once, so all of the time is ours and the loopback's.
func TestTheClientsAddAlmostNothing(t *testing.T) {
	turns := promise.Figure(60, 1000)
	for _, c := range []struct {
		name string
		ask  client
	}{
		{"openai model", openaiModel(t)}, {"anthropic model", anthropicModel(t)}, {"gemini model", geminiModel(t)},
		{"openai speaker", openaiSpeaker(t)}, {"elevenlabs speaker", elevenlabsSpeaker(t)}, {"cartesia speaker", cartesiaSpeaker(t)},
		{"openai transcriber", openaiTranscriber(t)}, {"deepgram transcriber", deepgramTranscriber(t)}, {"assemblyai transcriber", assemblyaiTranscriber(t)},
		{"openai duplex", openaiDuplex(t)}, {"gemini duplex", geminiDuplex(t)},
	} {
		times := make([]time.Duration, 0, turns)
		for i := range turns + 5 {
			var at time.Duration
			began := time.Now()
			err := c.ask(t.Context(), func() {
				if at == 0 {
					at = time.Since(began)
				}
			})
			require.NoError(t, err, c.name)
			require.NotZero(t, at, c.name)
			if i >= 5 { // the first open connections
				times = append(times, at)
			}
		}
		slices.Sort(times)
		median, p95 := times[len(times)/2], times[len(times)*95/100]
		t.Logf("%-22s first byte: median %v, p95 %v", c.name, median.Round(time.Microsecond), p95.Round(time.Microsecond))
		require.Less(t, median, 4*goal, "%s: even on a busy machine and under the race detector", c.name)
		if promise.Full() {
			require.Less(t, p95, goal, c.name)
		}
	}
}

// at is a provider at its service for the length of a test.
func at[P io.Closer](t *testing.T, handler providertest.Handler, provider func(url string) (P, error)) P {
	t.Helper()
	p, _, release := providertest.On(handler, provider)
	t.Cleanup(release)
	return p
}

func prompt() converse.Prompt {
	return converse.Prompt{Model: "m", Messages: []converse.Message{{Role: converse.RoleCustomer, Text: "Hello."}}}
}

func asksModel(m converse.Model) client {
	return func(ctx context.Context, first func()) error {
		_, err := m.Reply(ctx, prompt(), func(converse.Delta) { first() })
		return err
	}
}

func openaiModel(t *testing.T) client {
	return asksModel(at(t, providertest.Events(
		`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"),
		func(url string) (*openai.Provider, error) { return openai.New(openai.Options{BaseURL: url + "/v1"}) }).Model())
}

func anthropicModel(t *testing.T) client {
	return asksModel(at(t, providertest.Events(
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello.\"}}",
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}",
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}"),
		func(url string) (*anthropic.Provider, error) {
			return anthropic.New(anthropic.Options{APIKey: key, BaseURL: url})
		}).Model())
}

func geminiModel(t *testing.T) client {
	return asksModel(at(t, providertest.Events(`{"candidates":[{"content":{"parts":[{"text":"Hello."}],"role":"model"},"finishReason":"STOP"}]}`), newGemini).Model())
}

func newGemini(url string) (*gemini.Provider, error) {
	return gemini.New(gemini.Options{APIKey: key, BaseURL: url})
}

func asksSpeaker(s converse.Speaker) client {
	u := converse.Utterance{Text: "Hello.", Voice: "v", Rate: audio.Rate8k, Speed: 1}
	return func(ctx context.Context, first func()) error {
		return s.Speak(ctx, u, func(converse.Sound) { first() })
	}
}

func openaiSpeaker(t *testing.T) client {
	return asksSpeaker(at(t, func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "audio/pcm")
		_, _ = w.Write(make([]byte, 4800))
	}, func(url string) (*openai.Provider, error) { return openai.New(openai.Options{BaseURL: url + "/v1"}) }).Speaker())
}

func elevenlabsSpeaker(t *testing.T) client {
	return asksSpeaker(at(t, func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"audio_base64":"`+base64.StdEncoding.EncodeToString(make([]byte, 800))+`"}`)
	}, func(url string) (*elevenlabs.Provider, error) {
		return elevenlabs.New(elevenlabs.Options{APIKey: key, BaseURL: url})
	}).Speaker())
}

func cartesiaSpeaker(t *testing.T) client {
	return asksSpeaker(at(t, providertest.Dialogue(nil, func(m map[string]any) []string {
		if m == nil {
			return nil
		}
		return []string{
			fmt.Sprintf(`{"type":"chunk","context_id":"%s","data":"%s"}`, m["context_id"], base64.StdEncoding.EncodeToString(make([]byte, 1600))),
			fmt.Sprintf(`{"type":"done","context_id":"%s"}`, m["context_id"]),
		}
	}), func(url string) (*cartesia.Provider, error) {
		return cartesia.New(cartesia.Options{APIKey: key, BaseURL: url})
	}).Speaker())
}

// asksTranscriber measures from the pause to the final words.
func asksTranscriber(t *testing.T, tr converse.Transcriber, speech []int16) client {
	t.Helper()
	heard := make(chan converse.Heard, 64)
	l, err := tr.Listen(t.Context(), converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, func(h converse.Heard) { heard <- h })
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return func(_ context.Context, first func()) error {
		for at := 0; at+160 <= len(speech); at += 160 {
			if err := l.Write(speech[at : at+160]); err != nil {
				return err
			}
		}
		if err := l.Flush(); err != nil {
			return err
		}
		h, err := providertest.Next(heard)
		first()
		if err != nil {
			return err
		}
		return h.Err
	}
}

func openaiTranscriber(t *testing.T) client {
	var speech []int16
	u := converse.Utterance{Text: "Yes.", Rate: audio.Rate8k, Speed: 1}
	require.NoError(t, sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), u, func(s converse.Sound) { speech = append(speech, s.Samples...) }))
	return asksTranscriber(t, at(t, func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Yes."}`)
	}, func(url string) (*openai.Provider, error) { return openai.New(openai.Options{BaseURL: url + "/v1"}) }).Transcriber(), speech)
}

// on answers one kind of message.
func on(kind, answer string) func(map[string]any) []string {
	return func(m map[string]any) []string {
		if m == nil || m["type"] != kind {
			return nil
		}
		return []string{answer}
	}
}

func deepgramTranscriber(t *testing.T) client {
	return asksTranscriber(t, at(t, providertest.Dialogue(nil, on("Finalize", `{"type":"Results","is_final":true,"from_finalize":true,"channel":{"alternatives":[{"transcript":"Yes."}]}}`)),
		func(url string) (*deepgram.Provider, error) {
			return deepgram.New(deepgram.Options{APIKey: key, BaseURL: url})
		}).Transcriber(), nil)
}

func assemblyaiTranscriber(t *testing.T) client {
	return asksTranscriber(t, at(t, providertest.Dialogue(nil, on("ForceEndpoint", `{"type":"Turn","end_of_turn":true,"turn_is_formatted":true,"transcript":"Yes."}`)),
		func(url string) (*assemblyai.Provider, error) {
			return assemblyai.New(assemblyai.Options{APIKey: key, BaseURL: url})
		}).Transcriber(), nil)
}

// asksDuplex measures from the end of the turn to the first sound.
func asksDuplex(t *testing.T, d converse.Duplex) client {
	t.Helper()
	events := make(chan converse.DuplexEvent, 64)
	s, err := d.Converse(t.Context(), converse.DuplexOptions{Prompt: prompt(), Utterance: converse.Utterance{Rate: audio.Rate8k}}, func(e converse.DuplexEvent) { events <- e })
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return func(_ context.Context, first func()) error {
		if err := s.EndTurn(); err != nil {
			return err
		}
		for {
			e, err := providertest.Next(events)
			switch {
			case err != nil || e.Err != nil:
				return errors.Join(err, e.Err)
			case e.Sound != nil:
				first()
			case e.Done != nil:
				return nil
			}
		}
	}
}

func openaiDuplex(t *testing.T) client {
	return asksDuplex(t, at(t, providertest.Dialogue(nil, func(m map[string]any) []string {
		switch {
		case m == nil:
			return []string{`{"type":"session.created"}`}
		case m["type"] == "session.update":
			return []string{`{"type":"session.updated"}`}
		case m["type"] == "response.create":
			return []string{`{"type":"response.output_audio.delta","item_id":"i","delta":"` + base64.StdEncoding.EncodeToString(make([]byte, 1600)) + `"}`, `{"type":"response.done","response":{"status":"completed"}}`}
		}
		return nil
	}), func(url string) (*openai.Provider, error) { return openai.New(openai.Options{BaseURL: url + "/v1"}) }).Duplex())
}

func geminiDuplex(t *testing.T) client {
	return asksDuplex(t, at(t, providertest.Dialogue(nil, func(m map[string]any) []string {
		input, _ := m["realtimeInput"].(map[string]any)
		switch {
		case m["setup"] != nil:
			return []string{`{"setupComplete":{}}`}
		case input["activityEnd"] != nil:
			return []string{`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + base64.StdEncoding.EncodeToString(make([]byte, 1920)) + `"}}]}}}`,
				`{"serverContent":{"generationComplete":true,"turnComplete":true}}`}
		}
		return nil
	}), newGemini).Duplex())
}
