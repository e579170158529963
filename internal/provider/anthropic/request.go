package anthropic

import (
	"errors"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

const (
	// fieldsTool is the tool that an extraction has to call: its arguments are the fields.
	fieldsTool = "fields"

	// A conversation must begin and end with the customer, and a telephone call does
	// neither always. These stand where the customer has said nothing.
	answered = "(The customer has answered the telephone.)"
	silent   = "(The customer says nothing.)"
	hungUp   = "(The call is over.)"
)

// takesNoTemperature is what is known of a model.
func (p *Provider) takesNoTemperature(model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cooler[model]
}

// learn takes from a refusal that a model chooses its own temperature. It reports
// whether that is news, and so whether the request is worth repeating.
func (p *Provider) learn(model string, err error) bool {
	var r *wire.RefusalError
	if !errors.As(err, &r) || r.Status != http.StatusBadRequest || !strings.Contains(r.Message, "temperature") {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.cooler[model]
	p.cooler[model] = true
	return !known
}

// request is a prompt as the vendor wants it.
func (p *Provider) request(prompt converse.Prompt) sdk.MessageNewParams {
	params := sdk.MessageNewParams{
		Model: prompt.Model, MaxTokens: int64(p.options.MostTokens),
		Messages: messages(prompt),
	}
	if prompt.System != "" {
		params.System = []sdk.TextBlockParam{{Text: prompt.System}}
	}
	if !p.takesNoTemperature(prompt.Model) {
		params.Temperature = sdk.Float(prompt.Temperature)
	}
	if prompt.Extract != nil {
		params.Tools = []sdk.ToolUnionParam{tool(converse.ToolSpec{Name: fieldsTool, Description: "Takes the fields that were filled in."}, extraction(prompt.Extract))}
		params.ToolChoice = sdk.ToolChoiceParamOfTool(fieldsTool)
		return params
	}
	for _, t := range prompt.Tools {
		params.Tools = append(params.Tools, tool(t, schema(t.Params)))
	}
	return params
}

// messages are the conversation so far: turns of the customer and the assistant one
// after the other, the results of tools in the customer's.
func messages(prompt converse.Prompt) []sdk.MessageParam {
	var out []sdk.MessageParam
	add := func(role sdk.MessageParamRole, blocks ...sdk.ContentBlockParamUnion) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	if len(prompt.Messages) == 0 || prompt.Messages[0].Role != converse.RoleCustomer {
		add(sdk.MessageParamRoleUser, sdk.NewTextBlock(answered))
	}
	for _, m := range prompt.Messages {
		add(role(m), blocks(m)...)
	}
	switch {
	case prompt.Extract != nil:
		add(sdk.MessageParamRoleUser, sdk.NewTextBlock(hungUp))
	case out[len(out)-1].Role == sdk.MessageParamRoleAssistant:
		add(sdk.MessageParamRoleUser, sdk.NewTextBlock(silent))
	}
	return out
}

func role(m converse.Message) sdk.MessageParamRole {
	if m.Role == converse.RoleAssistant {
		return sdk.MessageParamRoleAssistant
	}
	return sdk.MessageParamRoleUser
}

// blocks are what a message holds. Empty texts are refused by the vendor.
func blocks(m converse.Message) []sdk.ContentBlockParamUnion {
	if m.Role == converse.RoleTool {
		return []sdk.ContentBlockParamUnion{sdk.NewToolResultBlock(m.ToolCallID, m.Text, false)}
	}
	var out []sdk.ContentBlockParamUnion
	if strings.TrimSpace(m.Text) != "" {
		out = append(out, sdk.NewTextBlock(m.Text))
	}
	for _, c := range m.ToolCalls {
		input := c.Arguments
		if input == nil {
			input = map[string]any{}
		}
		out = append(out, sdk.NewToolUseBlock(c.ID, input, c.Name))
	}
	if len(out) == 0 {
		out = append(out, sdk.NewTextBlock("…"))
	}
	return out
}

func tool(t converse.ToolSpec, input sdk.ToolInputSchemaParam) sdk.ToolUnionParam {
	out := sdk.ToolParam{Name: t.Name, InputSchema: input}
	if t.Description != "" {
		out.Description = sdk.String(t.Description)
	}
	return sdk.ToolUnionParam{OfTool: &out}
}

// schema is the JSON schema of a tool's parameters.
func schema(params []converse.ParamSpec) sdk.ToolInputSchemaParam {
	properties, required := wire.Schema(params)
	return sdk.ToolInputSchemaParam{Properties: properties, Required: required}
}

// extraction is the JSON schema of fields to fill in; one that the call did not
// yield is null.
func extraction(fields []converse.ParamSpec) sdk.ToolInputSchemaParam {
	properties := map[string]any{}
	var required []string
	for _, p := range fields {
		properties[p.Name] = map[string]any{"type": []string{p.Type, "null"}, "description": p.Description}
		required = append(required, p.Name)
	}
	return sdk.ToolInputSchemaParam{Properties: properties, Required: required}
}
