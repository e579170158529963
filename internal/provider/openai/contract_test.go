package openai_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/openai"
	"parley/internal/provider/providertest"
	"parley/internal/provider/sandbox"
)

const key = "sk-secret-0123456789"

func run(t *testing.T, checks []providertest.Check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

// at is a provider at its server, and how to take both down.
func at(handler providertest.Handler, o openai.Options) (*openai.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*openai.Provider, error) {
		o.APIKey, o.BaseURL = key, url+"/v1"
		return openai.New(o)
	})
}

// bench is the same with a certain patience.
func bench(handler providertest.Handler, silence time.Duration) (*openai.Provider, func()) {
	p, _, release := at(handler, openai.Options{Silence: silence})
	return p, release
}

// provider is one for the length of a test.
func provider(t *testing.T, handler providertest.Handler) (*openai.Provider, *providertest.Server) {
	t.Helper()
	p, server, release := at(handler, openai.Options{Silence: providertest.Soon})
	t.Cleanup(release)
	return p, server
}

const (
	patient   = time.Minute
	impatient = 30 * time.Millisecond
)

// chunk is a piece of a streamed completion.
func chunk(delta, reason string) string {
	if reason != "null" {
		reason = `"` + reason + `"`
	}
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
}

func hello() []string {
	return []string{
		chunk(`{"role":"assistant","content":""}`, "null"),
		chunk(`{"content":"Hello"}`, "null"),
		chunk(`{"content":" there."}`, "null"),
		chunk(`{}`, "stop"),
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}`,
		"[DONE]",
	}
}

func TestTheModelKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, silence time.Duration) func() (converse.Model, func()) {
		return func() (converse.Model, func()) {
			p, release := bench(h, silence)
			return p.Model(), release
		}
	}
	run(t, providertest.Model(providertest.Rig[converse.Model]{
		Name: "openai", Working: rig(providertest.Events(hello()...), patient),
		Stalled: rig(providertest.Stall, patient), Impatient: rig(providertest.Stall, impatient),
	}, converse.Prompt{Model: "gpt-4o", Messages: []converse.Message{{Role: converse.RoleCustomer, Text: "Hi."}}}))
}

// speaking answers with this many bytes of sound in pieces of odd length.
func speaking(size int) providertest.Handler {
	return func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "audio/pcm")
		rest := tone(size)
		for len(rest) > 0 {
			n := min(len(rest), 1001)
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestTheSpeakerKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, silence time.Duration) func() (converse.Speaker, func()) {
		return func() (converse.Speaker, func()) {
			p, release := bench(h, silence)
			return p.Speaker(), release
		}
	}
	run(t, providertest.Speaker(providertest.Rig[converse.Speaker]{
		Name: "openai", Working: rig(speaking(48000), patient),
		Stalled: rig(providertest.Stall, patient), Impatient: rig(providertest.Stall, impatient),
	}, converse.Utterance{Text: "Hello there.", Voice: "alloy", Rate: audio.Rate8k, Speed: 1}))
}

func transcript(text string) providertest.Handler {
	return func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"text": text})
	}
}

// speech is something that the voice detector takes for a voice.
func speech(t *testing.T) (samples []int16) {
	t.Helper()
	u := converse.Utterance{Text: "Good morning, this is Parley.", Rate: audio.Rate8k, Speed: 1}
	require.NoError(t, sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), u, func(s converse.Sound) { samples = append(samples, s.Samples...) }))
	return samples
}

func TestTheTranscriberKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler) func() (converse.Transcriber, func()) {
		return func() (converse.Transcriber, func()) {
			p, release := bench(h, patient)
			return p.Transcriber(), release
		}
	}
	run(t, providertest.Transcriber(providertest.Rig[converse.Transcriber]{
		Name: "openai", Working: rig(transcript("Good morning.")), Stalled: rig(providertest.Stall),
	}, converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, speech(t)))
}

func TestModelsAreListed(t *testing.T) {
	p, server := provider(t, func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"llama3.2","object":"model"},{"id":"qwen3","object":"model"}]}`)
	})
	names, err := p.Models(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"llama3.2", "qwen3"}, names)
	require.Equal(t, "/v1/models", server.Requests()[0].Path)
	require.Equal(t, "Bearer "+key, server.Requests()[0].Header.Get("Authorization"))
}

func TestAServerWithoutAKeyIsAskedWithoutOne(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org-from-the-environment")
	server := providertest.Serve(providertest.Events(hello()...))
	t.Cleanup(server.Close)
	p, err := openai.New(openai.Options{Name: "ollama", BaseURL: server.URL + "/v1/"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	_, err = p.Model().Reply(t.Context(), converse.Prompt{Model: "llama3.2"}, func(converse.Delta) {})
	require.NoError(t, err)
	header := server.Requests()[0].Header
	require.Empty(t, header.Get("Authorization"))
	require.Empty(t, header.Get("OpenAI-Organization"))
}

func TestABaseURLMustBeOne(t *testing.T) {
	for _, bad := range []string{"localhost:11434", "ftp://example.com/v1", "://"} {
		_, err := openai.New(openai.Options{BaseURL: bad, APIKey: key})
		require.ErrorContains(t, err, "base URL", bad)
		require.NotContains(t, err.Error(), key)
	}
}

func TestErrorsNameTheProviderAndKeepTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":       {providertest.Refuse(401, `{"error":{"message":"Incorrect API key provided: `+key+`.","code":"invalid_api_key"}}`), "openai model: the key was refused (401)"},
		"not allowed":     {providertest.Refuse(403, `{}`), "the key does not allow this (403)"},
		"no such model":   {providertest.Refuse(404, `{"error":{"message":"The model 'x' does not exist"}}`), "the request was refused (404): The model 'x' does not exist"},
		"rate limit":      {providertest.Refuse(429, `{"error":{"message":"Rate limit reached"}}`, "Retry-After", "7"), "(429), to be tried again after 7 s: Rate limit reached"},
		"failure":         {providertest.Refuse(500, `oops `+key), "the service failed (500)"},
		"a text":          {providertest.Refuse(503, `{"error":"loading `+key+`"}`), "the service is overloaded (503): loading ***"},
		"vllm":            {providertest.Refuse(400, `{"object":"error","message":"too long"}`), "the request was refused (400): too long"},
		"in the stream":   {providertest.Events(chunk(`{"content":"Hel"}`, "null"), `{"error":{"message":"overloaded `+key+`"}}`), "the answer broke off: overloaded ***"},
		"malformed event": {providertest.Events(`{"choices":[{`), "what is not JSON"},
		"ends too early":  {providertest.Events(chunk(`{"content":"Hel"}`, "null")), "the answer broke off"},
		"nothing at all":  {providertest.Events(chunk(`{}`, "stop"), "[DONE]"), "the answer is empty"},
		"content filter":  {providertest.Events(chunk(`{}`, "content_filter"), "[DONE]"), "content filter"},
		"connection is cut": {func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
			providertest.SendEvents(w, chunk(`{"content":"Hel"}`, "null"))
			panic(http.ErrAbortHandler)
		}, "the connection was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := provider(t, c.handler)
			_, err := p.Model().Reply(t.Context(), converse.Prompt{Model: "x"}, func(converse.Delta) {})
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "openai model: "), err.Error())
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	server := providertest.Serve(providertest.Stall)
	server.Close()
	p, err := openai.New(openai.Options{APIKey: key, BaseURL: server.URL + "/v1"})
	require.NoError(t, err)
	_, err = p.Model().Reply(t.Context(), converse.Prompt{Model: "x"}, func(converse.Delta) {})
	require.ErrorContains(t, err, "openai model: the service cannot be reached")
}

func TestAStreamThatFallsSilentIsGivenUp(t *testing.T) {
	p, release := bench(func(ctx context.Context, w http.ResponseWriter, _ *http.Request) {
		providertest.SendEvents(w, chunk(`{"content":"Hel"}`, "null"))
		<-ctx.Done()
	}, 100*time.Millisecond)
	defer release()
	var text strings.Builder
	_, err := p.Model().Reply(t.Context(), converse.Prompt{Model: "x"}, func(d converse.Delta) { text.WriteString(d.Text) })
	require.ErrorContains(t, err, "no word from the service for 100ms")
	require.Equal(t, "Hel", text.String())
}
