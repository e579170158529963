package openai_test

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
		Model: "gpt-4o", System: "You are Ada.", Temperature: 0.1, Language: "en",
		Messages: []converse.Message{
			{Role: converse.RoleAssistant, Text: "Hello."},
			{Role: converse.RoleCustomer, Text: "Is a table free?"},
			{Role: converse.RoleAssistant, ToolCalls: []converse.ToolCall{{ID: "c1", Name: "tables", Arguments: map[string]any{"guests": 2.0}}}},
			{Role: converse.RoleTool, ToolCallID: "c1", Text: `{"free":true}`},
		},
		Tools: []converse.ToolSpec{{Name: "tables", Description: "Free tables.", Params: []converse.ParamSpec{
			{Name: "guests", Type: "number", Description: "How many.", Required: true},
			{Name: "terrace", Type: "boolean"},
		}}},
	}
}

func TestWhatAModelIsAsked(t *testing.T) {
	p, server := provider(t, providertest.Events(hello()...))
	var text strings.Builder
	usage, err := p.Model().Reply(t.Context(), prompt(), func(d converse.Delta) { text.WriteString(d.Text) })
	require.NoError(t, err)
	require.Equal(t, "Hello there.", text.String())
	require.Equal(t, converse.Usage{InputTokens: 11, OutputTokens: 3}, usage)

	require.Len(t, server.Requests(), 1)
	r := server.Requests()[0]
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/v1/chat/completions", r.Path)
	require.Equal(t, "Bearer "+key, r.Header.Get("Authorization"))
	require.JSONEq(t, `{
		"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"temperature":0.1,
		"messages":[
			{"role":"system","content":"You are Ada."},
			{"role":"assistant","content":"Hello."},
			{"role":"user","content":"Is a table free?"},
			{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"tables","arguments":"{\"guests\":2}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"{\"free\":true}"}],
		"tools":[{"type":"function","function":{"name":"tables","description":"Free tables.","parameters":{
			"type":"object","required":["guests"],"properties":{
				"guests":{"type":"number","description":"How many."},"terrace":{"type":"boolean","description":""}}}}}]
	}`, string(r.Body))
}

// calls has a model answer with these chunks and gives the tool calls of the answer.
func calls(t *testing.T, chunks ...string) ([]converse.ToolCall, error) {
	t.Helper()
	p, _ := provider(t, providertest.Events(append(chunks, chunk(`{}`, "tool_calls"), "[DONE]")...))
	var got []converse.ToolCall
	_, err := p.Model().Reply(t.Context(), prompt(), func(d converse.Delta) {
		if d.ToolCall != nil {
			got = append(got, *d.ToolCall)
		}
	})
	return got, err
}

func TestParallelToolCallsGrowFromTheirPieces(t *testing.T) {
	got, err := calls(t,
		chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"tables","arguments":""}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"gue"}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"weather","arguments":""}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"sts\":4}"}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`, "null"))
	require.NoError(t, err)
	require.Equal(t, []converse.ToolCall{
		{ID: "a", Name: "tables", Arguments: map[string]any{"guests": 4.0}},
		{ID: "b", Name: "weather", Arguments: map[string]any{}},
	}, got)
}

func TestWholeToolCallsThatShareAnIndexStayApart(t *testing.T) {
	got, err := calls(t,
		chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"tables","arguments":"{\"guests\":4}"}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"tables","arguments":"{\"guests\":5}"}}]}`, "null"))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.InDelta(t, 5.0, got[1].Arguments["guests"], 0)
}

func TestAToolCallWithoutAnIDIsGivenOne(t *testing.T) {
	got, err := calls(t, chunk(`{"tool_calls":[{"index":0,"function":{"name":"tables","arguments":""}}]}`, "null"))
	require.NoError(t, err)
	require.NotEmpty(t, got[0].ID)
}

func TestToolCallsThatMakeNoSense(t *testing.T) {
	_, err := calls(t, chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"tables","arguments":"{\"guests\":"}}]}`, "null"))
	require.ErrorContains(t, err, "openai model: the arguments of the tool call tables are not a JSON object")
	_, err = calls(t, chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`, "null"))
	require.ErrorContains(t, err, "a tool call without a name")
}

func fields() []converse.ParamSpec {
	return []converse.ParamSpec{{Name: "guests", Type: "number", Description: "How many."}}
}

func TestAnExtractionAsksForASchema(t *testing.T) {
	p, server := provider(t, providertest.Events(chunk(`{"content":"{\"guests\":2}"}`, "stop"), "[DONE]"))
	q := prompt()
	q.Extract = fields()
	var text strings.Builder
	_, err := p.Model().Reply(t.Context(), q, func(d converse.Delta) { text.WriteString(d.Text) })
	require.NoError(t, err)
	require.JSONEq(t, `{"guests":2}`, text.String())
	var asked map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(server.Requests()[0].Body, &asked))
	require.NotContains(t, asked, "tools")
	require.JSONEq(t, `{"type":"json_schema","json_schema":{"name":"fields","strict":true,"schema":{
		"type":"object","additionalProperties":false,"required":["guests"],
		"properties":{"guests":{"type":["number","null"],"description":"How many."}}}}}`, string(asked["response_format"]))
}

// picky refuses a request that has a field, as servers do that do not know it.
func picky(field, refusal string) providertest.Handler {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if _, ok := asked[field]; ok {
			providertest.Refuse(400, refusal)(ctx, w, r)
			return
		}
		providertest.SendEvents(w, hello()...)
	}
}

func TestWhatAModelRefusesIsLeftOutFromThenOn(t *testing.T) {
	for field, refusal := range map[string]string{
		"temperature":     `{"error":{"message":"Unsupported value: 'temperature' does not support 0.1 with this model.","param":"temperature"}}`,
		"response_format": `{"error":{"message":"response_format is not supported"}}`,
		"stream_options":  `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`,
	} {
		t.Run(field, func(t *testing.T) {
			p, server := provider(t, picky(field, refusal))
			q := prompt()
			q.Extract = fields()
			for range 2 {
				_, err := p.Model().Reply(t.Context(), q, func(converse.Delta) {})
				require.NoError(t, err)
			}
			require.Len(t, server.Requests(), 3, "only the first request is made twice")
			if field == "response_format" {
				require.Contains(t, string(server.Requests()[1].Body), "Answer with one JSON object and nothing else")
			}
		})
	}
}

func TestARefusalThatCannotBeHelpedIsNotRepeated(t *testing.T) {
	p, server := provider(t, providertest.Refuse(400, `{"error":{"message":"too many tokens"}}`))
	_, err := p.Model().Reply(t.Context(), prompt(), func(converse.Delta) {})
	require.ErrorContains(t, err, "too many tokens")
	require.Len(t, server.Requests(), 1)
}
