package gemini_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/converse"
	"parley/internal/provider/gemini"
	"parley/internal/provider/providertest"
)

const key = "AIza-secret-0123456789"

// bench is a provider and its service, and how to take both down.
func bench(handler providertest.Handler, silence time.Duration) (*gemini.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*gemini.Provider, error) {
		return gemini.New(gemini.Options{APIKey: key, BaseURL: url, Silence: silence})
	})
}

// provider is a bench for the length of a test.
func provider(t *testing.T, handler providertest.Handler) (*gemini.Provider, *providertest.Server) {
	t.Helper()
	p, server, release := bench(handler, providertest.Soon)
	t.Cleanup(release)
	return p, server
}

// chunk is a piece of streamed content.
func chunk(parts, reason string) string {
	if reason != "" {
		reason = `,"finishReason":"` + reason + `"`
	}
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + reason + `,"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":4,"thoughtsTokenCount":2,"totalTokenCount":14},"modelVersion":"gemini-2.5-flash"}`
}

func hello() []string {
	return []string{chunk(`{"text":"thinking","thought":true}`, ""), chunk(`{"text":"Hello"}`, ""), chunk(`{"text":" there."}`, "STOP")}
}

func prompt() converse.Prompt {
	return converse.Prompt{
		Model: "gemini-2.5-flash", System: "You are Ada.", Temperature: 0.5,
		Messages: []converse.Message{
			{Role: converse.RoleAssistant, Text: "Hello."},
			{Role: converse.RoleCustomer, Text: "Is a table free?"},
			{Role: converse.RoleAssistant, ToolCalls: []converse.ToolCall{
				{ID: "c1", Name: "tables", Arguments: map[string]any{"guests": 2.0}}, {ID: "c2", Name: "weather"}}},
			{Role: converse.RoleTool, ToolCallID: "c1", Text: `{"free":true}`},
			{Role: converse.RoleTool, ToolCallID: "c2", Text: "rain"},
		},
		Tools: []converse.ToolSpec{
			{Name: "tables", Description: "Free tables.", Params: []converse.ParamSpec{{Name: "guests", Type: "number", Description: "How many.", Required: true}}},
			{Name: "weather", Description: "The weather."},
		},
	}
}

func TestTheModelKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, silence time.Duration) func() (converse.Model, func()) {
		return func() (converse.Model, func()) {
			p, _, release := bench(h, silence)
			return p.Model(), release
		}
	}
	for _, c := range providertest.Model(providertest.Rig[converse.Model]{
		Name: "gemini", Working: rig(providertest.Events(hello()...), time.Minute),
		Stalled: rig(providertest.Stall, time.Minute), Impatient: rig(providertest.Stall, 30*time.Millisecond),
	}, prompt()) {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func TestWhatAModelIsAsked(t *testing.T) {
	t.Setenv("GOOGLE_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	p, server := provider(t, providertest.Events(hello()...))
	var said strings.Builder
	usage, err := p.Model().Reply(t.Context(), prompt(), func(d converse.Delta) { said.WriteString(d.Text) })
	require.NoError(t, err)
	require.Equal(t, "Hello there.", said.String())
	require.Equal(t, converse.Usage{InputTokens: 8, OutputTokens: 6}, usage)

	r := server.Requests()[0]
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/v1beta/models/gemini-2.5-flash:streamGenerateContent", r.Path)
	require.Equal(t, "alt=sse", r.Query)
	require.Equal(t, key, r.Header.Get("X-Goog-Api-Key"))
	require.JSONEq(t, `{
		"systemInstruction":{"role":"user","parts":[{"text":"You are Ada."}]},
		"generationConfig":{"temperature":0.5},
		"contents":[
			{"role":"user","parts":[{"text":"(The customer has answered the telephone.)"}]},
			{"role":"model","parts":[{"text":"Hello."}]},
			{"role":"user","parts":[{"text":"Is a table free?"}]},
			{"role":"model","parts":[{"functionCall":{"id":"c1","name":"tables","args":{"guests":2}}},{"functionCall":{"id":"c2","name":"weather"}}]},
			{"role":"user","parts":[
				{"functionResponse":{"id":"c1","name":"tables","response":{"free":true}}},
				{"functionResponse":{"id":"c2","name":"weather","response":{"output":"rain"}}}]}],
		"tools":[{"functionDeclarations":[
			{"name":"tables","description":"Free tables.","parametersJsonSchema":{"type":"object","required":["guests"],"properties":{"guests":{"type":"number","description":"How many."}}}},
			{"name":"weather","description":"The weather."}]}]
	}`, string(r.Body))
}

func TestToolCallsKeepTheirSignatures(t *testing.T) {
	p, server := provider(t, providertest.Events(
		chunk(`{"functionCall":{"id":"a","name":"tables","args":{"guests":4}},"thoughtSignature":"c2lnbmVk"}`, ""),
		chunk(`{"functionCall":{"name":"weather"}}`, "STOP")))
	q := prompt()
	var got []converse.ToolCall
	_, err := p.Model().Reply(t.Context(), q, func(d converse.Delta) { got = append(got, *d.ToolCall) })
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, converse.ToolCall{ID: "a", Name: "tables", Arguments: map[string]any{"guests": 4.0}}, got[0])
	require.NotEmpty(t, got[1].ID)
	require.NotNil(t, got[1].Arguments)

	q.Messages = []converse.Message{{Role: converse.RoleCustomer, Text: "Hi."}, {Role: converse.RoleAssistant, ToolCalls: got[:1]}, {Role: converse.RoleTool, ToolCallID: "a", Text: "{}"}}
	_, err = p.Model().Reply(t.Context(), q, func(converse.Delta) {})
	require.NoError(t, err)
	require.Contains(t, string(server.Requests()[1].Body), `"thoughtSignature":"c2lnbmVk"`)
}

func TestAnExtractionAsksForASchema(t *testing.T) {
	p, server := provider(t, providertest.Events(chunk(`{"text":"{\"guests\":2}"}`, "STOP")))
	q := prompt()
	q.Extract = []converse.ParamSpec{{Name: "guests", Type: "number", Description: "How many."}, {Name: "window", Type: "boolean"}}
	var said strings.Builder
	_, err := p.Model().Reply(t.Context(), q, func(d converse.Delta) { said.WriteString(d.Text) })
	require.NoError(t, err)
	require.JSONEq(t, `{"guests":2}`, said.String())
	var asked struct {
		GenerationConfig json.RawMessage `json:"generationConfig"`
		Tools            json.RawMessage `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(server.Requests()[0].Body, &asked))
	require.Empty(t, asked.Tools)
	require.JSONEq(t, `{"temperature":0.5,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT",
		"required":["guests","window"],"propertyOrdering":["guests","window"],"properties":{
			"guests":{"type":"NUMBER","description":"How many.","nullable":true},"window":{"type":"BOOLEAN","nullable":true}}}}`, string(asked.GenerationConfig))
}

func TestErrorsNameTheProviderAndKeepTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":       {providertest.Refuse(400, `{"error":{"code":400,"message":"API key not valid `+key+`","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`), "the key was refused (400)"},
		"not allowed":     {providertest.Refuse(403, `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`), "the key does not allow this (403)"},
		"rate limit":      {providertest.Refuse(429, `{"error":{"code":429,"message":"Quota exceeded","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`), "(429), to be tried again after 7s: Quota exceeded"},
		"failure":         {providertest.Refuse(500, "oops "+key), "the service failed (500): oops ***"},
		"overloaded":      {providertest.Refuse(503, `{"error":{"code":503,"message":"The model is overloaded."}}`), "the service is overloaded (503)"},
		"in the stream":   {providertest.Events(chunk(`{"text":"Hel"}`, ""), `{"error":{"code":500,"message":"Internal `+key+`"}}`), "the service failed (500): Internal ***"},
		"malformed event": {providertest.Events(`{"candidates":[`), "what is not JSON"},
		"not an event":    {func(_ context.Context, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n")) }, "what is not JSON"},
		"ends too early":  {providertest.Events(chunk(`{"text":"Hel"}`, "")), "the answer broke off"},
		"nothing at all":  {providertest.Events(chunk(``, "STOP")), "the answer is empty"},
		"withheld":        {providertest.Events(chunk(``, "SAFETY")), "no answer (safety)"},
		"blocked":         {providertest.Events(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`), "the question was withheld (prohibited_content)"},
		"connection is cut": {func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
			providertest.SendEvents(w, chunk(`{"text":"Hel"}`, ""))
			panic(http.ErrAbortHandler)
		}, "the answer broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			p, server := provider(t, c.handler)
			_, err := p.Model().Reply(t.Context(), prompt(), func(converse.Delta) {})
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "gemini model: "), err.Error())
			require.NotContains(t, err.Error(), key)
			require.Len(t, server.Requests(), 1)
		})
	}
}

func TestAStreamThatFallsSilentIsGivenUp(t *testing.T) {
	p, _, release := bench(func(ctx context.Context, w http.ResponseWriter, _ *http.Request) {
		providertest.SendEvents(w, chunk(`{"text":"Hel"}`, ""))
		<-ctx.Done()
	}, 100*time.Millisecond)
	defer release()
	_, err := p.Model().Reply(t.Context(), prompt(), func(converse.Delta) {})
	require.ErrorContains(t, err, "no word from the service for 100ms")
}

func TestSettingsThatCannotWork(t *testing.T) {
	_, err := gemini.New(gemini.Options{})
	require.ErrorContains(t, err, "a key is needed")
	_, err = gemini.New(gemini.Options{APIKey: key, BaseURL: "example"})
	require.ErrorContains(t, err, "base URL")
	require.NotContains(t, err.Error(), key)
}
