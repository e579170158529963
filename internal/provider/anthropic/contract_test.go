package anthropic_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/converse"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/providertest"
)

const key = "sk-ant-secret-0123456789"

// bench is a provider and its service, and how to take both down.
func bench(handler providertest.Handler, silence time.Duration) (*anthropic.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*anthropic.Provider, error) {
		return anthropic.New(anthropic.Options{APIKey: key, BaseURL: url, Silence: silence})
	})
}

// provider is a bench for the length of a test.
func provider(t *testing.T, handler providertest.Handler) (*anthropic.Provider, *providertest.Server) {
	t.Helper()
	p, server, release := bench(handler, providertest.Soon)
	t.Cleanup(release)
	return p, server
}

// event is a server-sent event as the vendor writes it, its kind in both places.
func event(kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + fields + "}"
}

func start() string {
	return event("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"usage":{"input_tokens":20,"cache_read_input_tokens":5,"output_tokens":1}}`)
}

func text(s string) string {
	return event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"`+s+`"}`)
}

func end(reason string) []string {
	return []string{
		event("message_delta", `"delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":9}`),
		event("message_stop", ""),
	}
}

func hello() []string {
	return append([]string{
		start(),
		event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
		event("ping", ""),
		text("Hello"),
		text(" there."),
		event("content_block_stop", `"index":0`),
	}, end("end_turn")...)
}

func TestTheModelKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, silence time.Duration) func() (converse.Model, func()) {
		return func() (converse.Model, func()) {
			p, _, release := bench(h, silence)
			return p.Model(), release
		}
	}
	for _, c := range providertest.Model(providertest.Rig[converse.Model]{
		Name: "anthropic", Working: rig(providertest.Events(hello()...), time.Minute),
		Stalled: rig(providertest.Stall, time.Minute), Impatient: rig(providertest.Stall, 30*time.Millisecond),
	}, converse.Prompt{Model: "claude", Messages: []converse.Message{{Role: converse.RoleCustomer, Text: "Hi."}}}) {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func TestErrorsNameTheProviderAndKeepTheKey(t *testing.T) {
	refuse := func(status int, kind, message string, headers ...string) providertest.Handler {
		return providertest.Refuse(status, `{"type":"error","error":{"type":"`+kind+`","message":"`+message+`"},"request_id":"req_1"}`, headers...)
	}
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":       {refuse(401, "authentication_error", "invalid x-api-key "+key), "the key was refused (401)"},
		"not allowed":     {refuse(403, "permission_error", "no"), "the key does not allow this (403)"},
		"no such model":   {refuse(404, "not_found_error", "model: x"), "the request was refused (404): model: x"},
		"rate limit":      {refuse(429, "rate_limit_error", "slow down", "Retry-After", "12"), "too many requests or no credit left (429), to be tried again after 12 s: slow down"},
		"failure":         {providertest.Refuse(500, "<html>"+key), "the service failed (500)"},
		"overloaded":      {refuse(529, "overloaded_error", "Overloaded "+key), "the service is overloaded (529): Overloaded ***"},
		"in the stream":   {providertest.Events(start(), text("Hel"), event("error", `"error":{"type":"overloaded_error","message":"Overloaded `+key+`"}`)), "the answer broke off: Overloaded ***"},
		"malformed event": {providertest.Events(start(), "event: content_block_delta\ndata: {\"type\":"), "what is not JSON"},
		"ends too early":  {providertest.Events(start(), text("Hel")), "the answer broke off"},
		"nothing at all":  {providertest.Events(append([]string{start()}, end("end_turn")...)...), "the answer is empty"},
		"refusal":         {providertest.Events(append([]string{start()}, end("refusal")...)...), "the model refuses to answer"},
		"connection is cut": {func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
			providertest.SendEvents(w, start(), text("Hel"))
			panic(http.ErrAbortHandler)
		}, "the connection was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			p, server := provider(t, c.handler)
			_, err := p.Model().Reply(t.Context(), converse.Prompt{Model: "x"}, func(converse.Delta) {})
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "anthropic model: "), err.Error())
			require.NotContains(t, err.Error(), key)
			require.Len(t, server.Requests(), 1)
		})
	}
}

func TestAStreamThatFallsSilentIsGivenUp(t *testing.T) {
	p, _, release := bench(func(ctx context.Context, w http.ResponseWriter, _ *http.Request) {
		providertest.SendEvents(w, start(), text("Hel"))
		<-ctx.Done()
	}, 100*time.Millisecond)
	defer release()
	var said strings.Builder
	usage, err := p.Model().Reply(t.Context(), converse.Prompt{Model: "x"}, func(d converse.Delta) { said.WriteString(d.Text) })
	require.ErrorContains(t, err, "no word from the service for 100ms")
	require.Equal(t, "Hel", said.String())
	require.Equal(t, 25, usage.InputTokens, "what was used is told even so")
}

func TestSettingsThatCannotWork(t *testing.T) {
	_, err := anthropic.New(anthropic.Options{})
	require.ErrorContains(t, err, "a key is needed")
	_, err = anthropic.New(anthropic.Options{APIKey: key, BaseURL: "api.anthropic.com"})
	require.ErrorContains(t, err, "base URL")
	require.NotContains(t, err.Error(), key)
}
