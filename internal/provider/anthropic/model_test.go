package anthropic_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/converse"
	"parley/internal/provider/providertest"
)

func prompt() converse.Prompt {
	return converse.Prompt{
		Model: "claude-haiku", System: "You are Ada.", Temperature: 0.1,
		Messages: []converse.Message{
			{Role: converse.RoleAssistant, Text: "Hello."},
			{Role: converse.RoleCustomer, Text: "Is a table free?"},
			{Role: converse.RoleAssistant, Text: "One moment.", ToolCalls: []converse.ToolCall{
				{ID: "c1", Name: "tables", Arguments: map[string]any{"guests": 2.0}}, {ID: "c2", Name: "weather"}}},
			{Role: converse.RoleTool, ToolCallID: "c1", Text: `{"free":true}`},
			{Role: converse.RoleTool, ToolCallID: "c2", Text: "rain"},
			{Role: converse.RoleCustomer, Text: "Well?"},
		},
		Tools: []converse.ToolSpec{{Name: "tables", Description: "Free tables.", Params: []converse.ParamSpec{
			{Name: "guests", Type: "number", Description: "How many.", Required: true},
		}}},
	}
}

func TestWhatAModelIsAsked(t *testing.T) {
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	p, server := provider(t, providertest.Events(hello()...))
	var said strings.Builder
	usage, err := p.Model().Reply(t.Context(), prompt(), func(d converse.Delta) { said.WriteString(d.Text) })
	require.NoError(t, err)
	require.Equal(t, "Hello there.", said.String())
	require.Equal(t, converse.Usage{InputTokens: 25, OutputTokens: 9}, usage)

	r := server.Requests()[0]
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/v1/messages", r.Path)
	require.Equal(t, key, r.Header.Get("X-Api-Key"))
	require.Equal(t, "2023-06-01", r.Header.Get("Anthropic-Version"))
	require.Empty(t, r.Header.Get("Authorization"))
	require.JSONEq(t, `{
		"model":"claude-haiku","max_tokens":4096,"stream":true,"temperature":0.1,
		"system":[{"type":"text","text":"You are Ada."}],
		"messages":[
			{"role":"user","content":[{"type":"text","text":"(The customer has answered the telephone.)"}]},
			{"role":"assistant","content":[{"type":"text","text":"Hello."}]},
			{"role":"user","content":[{"type":"text","text":"Is a table free?"}]},
			{"role":"assistant","content":[{"type":"text","text":"One moment."},
				{"type":"tool_use","id":"c1","name":"tables","input":{"guests":2}},
				{"type":"tool_use","id":"c2","name":"weather","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"c1","is_error":false,"content":[{"type":"text","text":"{\"free\":true}"}]},
				{"type":"tool_result","tool_use_id":"c2","is_error":false,"content":[{"type":"text","text":"rain"}]},
				{"type":"text","text":"Well?"}]}],
		"tools":[{"name":"tables","description":"Free tables.","input_schema":{
			"type":"object","required":["guests"],"properties":{"guests":{"type":"number","description":"How many."}}}}]
	}`, string(r.Body))
}

func TestAConversationEndsWithTheCustomer(t *testing.T) {
	p, server := provider(t, providertest.Events(hello()...))
	q := converse.Prompt{Model: "claude", Messages: []converse.Message{{Role: converse.RoleCustomer, Text: "Hi."}, {Role: converse.RoleAssistant, Text: "Hello?"}}}
	_, err := p.Model().Reply(t.Context(), q, func(converse.Delta) {})
	require.NoError(t, err)
	require.Contains(t, string(server.Requests()[0].Body), "(The customer says nothing.)")
}

func toolUse(index, id, name string, pieces ...string) []string {
	events := []string{event("content_block_start", `"index":`+index+`,"content_block":{"type":"tool_use","id":"`+id+`","name":"`+name+`","input":{}}`)}
	for _, piece := range pieces {
		quoted, _ := json.Marshal(piece)
		events = append(events, event("content_block_delta", `"index":`+index+`,"delta":{"type":"input_json_delta","partial_json":`+string(quoted)+`}`))
	}
	return append(events, event("content_block_stop", `"index":`+index))
}

func TestToolCallsGrowFromTheirPieces(t *testing.T) {
	events := append([]string{start()}, toolUse("1", "a", "tables", "", `{"gue`, `sts":4}`)...)
	events = append(events, toolUse("2", "b", "weather")...)
	p, _ := provider(t, providertest.Events(append(events, end("tool_use")...)...))
	var got []converse.ToolCall
	_, err := p.Model().Reply(t.Context(), prompt(), func(d converse.Delta) { got = append(got, *d.ToolCall) })
	require.NoError(t, err)
	require.Equal(t, []converse.ToolCall{
		{ID: "a", Name: "tables", Arguments: map[string]any{"guests": 4.0}},
		{ID: "b", Name: "weather", Arguments: map[string]any{}},
	}, got)
}

func TestAToolCallThatMakesNoSense(t *testing.T) {
	events := append([]string{start()}, toolUse("0", "a", "tables", `{"gue`)...)
	p, _ := provider(t, providertest.Events(append(events, end("max_tokens")...)...))
	_, err := p.Model().Reply(t.Context(), prompt(), func(converse.Delta) {})
	require.EqualError(t, err, "anthropic model: the arguments of the tool call tables are not a JSON object")
}

func TestAnExtractionForcesATool(t *testing.T) {
	events := append([]string{start()}, toolUse("0", "a", "fields", `{"guests":`, `2}`)...)
	p, server := provider(t, providertest.Events(append(events, end("tool_use")...)...))
	q := prompt()
	q.Extract = []converse.ParamSpec{{Name: "guests", Type: "number", Description: "How many."}}
	var said strings.Builder
	_, err := p.Model().Reply(t.Context(), q, func(d converse.Delta) {
		require.Nil(t, d.ToolCall)
		said.WriteString(d.Text)
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"guests":2}`, said.String())
	var asked struct {
		Tools      json.RawMessage `json:"tools"`
		ToolChoice json.RawMessage `json:"tool_choice"`
	}
	require.NoError(t, json.Unmarshal(server.Requests()[0].Body, &asked))
	require.JSONEq(t, `{"type":"tool","name":"fields"}`, string(asked.ToolChoice))
	require.JSONEq(t, `[{"name":"fields","description":"Takes the fields that were filled in.","input_schema":{
		"type":"object","required":["guests"],"properties":{"guests":{"type":["number","null"],"description":"How many."}}}}]`, string(asked.Tools))
}

func TestAModelThatChoosesItsOwnTemperature(t *testing.T) {
	p, server := provider(t, func(ctx context.Context, w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if _, ok := asked["temperature"]; ok {
			providertest.Refuse(400, `{"type":"error","error":{"type":"invalid_request_error","message":"temperature is not supported by this model"}}`)(ctx, w, r)
			return
		}
		providertest.SendEvents(w, hello()...)
	})
	for range 2 {
		_, err := p.Model().Reply(t.Context(), prompt(), func(converse.Delta) {})
		require.NoError(t, err)
	}
	require.Len(t, server.Requests(), 3, "only the first request is made twice")
}
