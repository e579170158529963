package wire

import "parley/internal/converse"

// Schema is the JSON schema of a tool's parameters: its properties, and which of them
// are required.
func Schema(params []converse.ParamSpec) (properties map[string]any, required []string) {
	properties, required = map[string]any{}, []string{}
	for _, p := range params {
		properties[p.Name] = map[string]any{"type": p.Type, "description": p.Description}
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return properties, required
}

// SchemaObject is the same in one piece.
func SchemaObject(params []converse.ParamSpec) map[string]any {
	properties, required := Schema(params)
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
