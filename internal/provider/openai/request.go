package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// quirks are what a model or its server will not take. They are learnt from its
// refusals, so that only the first request after a start is made twice.
type quirks struct {
	temperature bool // reasoning models choose their own
	schema      bool // response_format, which older local servers do not know
	usage       bool // stream_options, likewise
}

// quirksOf is what is known of a model.
func (p *Provider) quirksOf(model string) quirks {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quirks[model]
}

// learn takes from a refusal what the model will not take. It reports whether that
// is news, and so whether the request is worth repeating.
func (p *Provider) learn(model string, err error) bool {
	var r *refusal
	if !errors.As(err, &r) || r.Status != http.StatusBadRequest && r.Status != http.StatusUnprocessableEntity {
		return false
	}
	about := func(name string) bool { return strings.HasPrefix(r.param, name) || strings.Contains(r.Message, name) }
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.quirks[model]
	now := was
	now.temperature = now.temperature || about("temperature")
	now.schema = now.schema || about("response_format") || about("json_schema")
	now.usage = now.usage || about("stream_options")
	p.quirks[model] = now
	return now != was
}

// request is a prompt as the server wants it.
func request(p converse.Prompt, q quirks) sdk.ChatCompletionNewParams {
	params := sdk.ChatCompletionNewParams{Model: p.Model}
	system := p.System
	if !q.temperature {
		params.Temperature = sdk.Float(p.Temperature)
	}
	if !q.usage {
		params.StreamOptions.IncludeUsage = sdk.Bool(true)
	}
	switch {
	case p.Extract == nil:
		params.Tools = tools(p.Tools)
	case q.schema:
		system = strings.TrimSpace(system + "\n\n" + inWords(p.Extract))
	default:
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "fields", Strict: sdk.Bool(true), Schema: extraction(p.Extract)},
		}
	}
	if system != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(system))
	}
	for _, m := range p.Messages {
		params.Messages = append(params.Messages, message(m))
	}
	return params
}

func message(m converse.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case converse.RoleTool:
		return sdk.ToolMessage(m.Text, m.ToolCallID)
	case converse.RoleAssistant:
		said := sdk.ChatCompletionAssistantMessageParam{}
		if m.Text != "" {
			said.Content.OfString = sdk.String(m.Text)
		}
		for _, c := range m.ToolCalls {
			said.ToolCalls = append(said.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID:       c.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: arguments(c.Arguments)},
				},
			})
		}
		return sdk.ChatCompletionMessageParamUnion{OfAssistant: &said}
	default:
		return sdk.UserMessage(m.Text)
	}
}

// arguments are a tool call's arguments as the text that the server sent them in.
func arguments(a map[string]any) string {
	text, err := json.Marshal(a)
	if err != nil || a == nil {
		return "{}"
	}
	return string(text)
}

func tools(specs []converse.ToolSpec) []sdk.ChatCompletionToolUnionParam {
	var out []sdk.ChatCompletionToolUnionParam
	for _, t := range specs {
		function := shared.FunctionDefinitionParam{Name: t.Name, Parameters: wire.SchemaObject(t.Params)}
		if t.Description != "" {
			function.Description = sdk.String(t.Description)
		}
		out = append(out, sdk.ChatCompletionFunctionTool(function))
	}
	return out
}

// extraction is the JSON schema of fields to fill in. In strict mode every field is
// required, and one that the call did not yield is null.
func extraction(fields []converse.ParamSpec) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, p := range fields {
		properties[p.Name] = map[string]any{"type": []string{p.Type, "null"}, "description": p.Description}
		required = append(required, p.Name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// inWords asks for the same of a server that takes no schema.
func inWords(fields []converse.ParamSpec) string {
	text, _ := json.Marshal(extraction(fields)) //nolint:errchkjson // texts only
	return "Answer with one JSON object and nothing else. It must match this JSON schema: " + string(text)
}
