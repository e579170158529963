package gemini

import (
	"encoding/json"

	"google.golang.org/genai"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// A conversation must begin and end with the customer, and a telephone call does
// neither always. These stand where the customer has said nothing.
const (
	answered = "(The customer has answered the telephone.)"
	silent   = "(The customer says nothing.)"
	hungUp   = "(The call is over.)"
)

// config is how a prompt is to be answered.
func config(prompt converse.Prompt) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{Temperature: new(float32(prompt.Temperature))}
	if prompt.System != "" {
		c.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: prompt.System}}}
	}
	if prompt.Extract != nil {
		c.ResponseMIMEType = "application/json"
		c.ResponseSchema = extraction(prompt.Extract)
		return c
	}
	if len(prompt.Tools) > 0 {
		c.Tools = []*genai.Tool{{FunctionDeclarations: declarations(prompt.Tools)}}
	}
	return c
}

func declarations(tools []converse.ToolSpec) []*genai.FunctionDeclaration {
	var out []*genai.FunctionDeclaration
	for _, t := range tools {
		d := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
		if len(t.Params) > 0 { // an object without properties is refused
			d.ParametersJsonSchema = wire.SchemaObject(t.Params)
		}
		out = append(out, d)
	}
	return out
}

// extraction is the schema of fields to fill in; one that the call did not yield is null.
func extraction(fields []converse.ParamSpec) *genai.Schema {
	s := &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{}}
	for _, f := range fields {
		s.Properties[f.Name] = &genai.Schema{Type: kind(f.Type), Description: f.Description, Nullable: new(true)}
		s.Required = append(s.Required, f.Name)
		s.PropertyOrdering = append(s.PropertyOrdering, f.Name)
	}
	return s
}

// kind is the type of a field as the vendor calls it.
func kind(of string) genai.Type {
	switch of {
	case "number":
		return genai.TypeNumber
	case "boolean":
		return genai.TypeBoolean
	default:
		return genai.TypeString
	}
}

// contents are the conversation so far: turns of the customer and the model one after
// the other, the results of tools in the customer's.
func (p *Provider) contents(prompt converse.Prompt) []*genai.Content {
	var out []*genai.Content
	add := func(role string, parts ...*genai.Part) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Parts = append(out[n-1].Parts, parts...)
			return
		}
		out = append(out, &genai.Content{Role: role, Parts: parts})
	}
	if len(prompt.Messages) == 0 || prompt.Messages[0].Role != converse.RoleCustomer {
		add(genai.RoleUser, &genai.Part{Text: answered})
	}
	tools := map[string]string{} // names by the calls' ids: results must repeat them
	for _, m := range prompt.Messages {
		switch m.Role {
		case converse.RoleAssistant:
			for _, c := range m.ToolCalls {
				tools[c.ID] = c.Name
			}
			add(genai.RoleModel, p.said(m)...)
		case converse.RoleTool:
			add(genai.RoleUser, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: m.ToolCallID, Name: tools[m.ToolCallID], Response: result(m.Text)}})
		default:
			add(genai.RoleUser, &genai.Part{Text: m.Text})
		}
	}
	switch {
	case prompt.Extract != nil:
		add(genai.RoleUser, &genai.Part{Text: hungUp})
	case out[len(out)-1].Role == genai.RoleModel:
		add(genai.RoleUser, &genai.Part{Text: silent})
	}
	return out
}

// said is what the assistant said and which tools it called.
func (p *Provider) said(m converse.Message) []*genai.Part {
	var parts []*genai.Part
	if m.Text != "" {
		parts = append(parts, &genai.Part{Text: m.Text})
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, &genai.Part{
			FunctionCall:     &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: c.Arguments},
			ThoughtSignature: p.signatures.of(c.ID),
		})
	}
	return parts
}

// result is a tool's result as the object that the vendor wants.
func result(text string) map[string]any {
	object := map[string]any{}
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return object
	}
	return map[string]any{"output": text}
}
