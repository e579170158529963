package parley

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Arguments keeps of what was given those that the tool declares, as the types it
// declares. The rest is dropped: a tool is sent nothing that its owner did not ask for.
func (t *Tool) Arguments(given map[string]any) map[string]any {
	out := make(map[string]any, len(t.Schema))
	for _, p := range t.Schema {
		if typed, ok := TypedAs(p.Type, given[p.Name]); ok {
			out[p.Name] = typed
		}
	}
	return out
}

// SampleArguments are values of the declared types, to try a tool with.
func (t *Tool) SampleArguments() map[string]any {
	samples := map[string]any{"string": "sample", "number": 1.0, "boolean": true}
	out := make(map[string]any, len(t.Schema))
	for _, p := range t.Schema {
		out[p.Name] = samples[p.Type]
	}
	return out
}

// TypedAs reads a value as a Param's type, if it can be read so: models send numbers
// as strings and the reverse.
func TypedAs(kind string, v any) (typed any, ok bool) {
	switch kind {
	case "number":
		return asNumber(v)
	case "boolean", "bool":
		return asBool(v)
	}
	switch v := v.(type) {
	case nil:
		return nil, false
	case map[string]any, []any:
		raw, err := json.Marshal(v)
		return string(raw), err == nil
	default:
		return InWords(v), true
	}
}

func asNumber(v any) (any, bool) {
	var f float64
	var err error
	switch v := v.(type) {
	case float64:
		f = v
	case int:
		f = float64(v)
	case json.Number:
		f, err = v.Float64()
	case string:
		f, err = strconv.ParseFloat(strings.TrimSpace(v), 64)
	default:
		return nil, false
	}
	// "NaN" and "Inf" parse, but no JSON can carry them.
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	return f, true
}

func asBool(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes", "1":
			return true, true
		case "false", "no", "0":
			return false, true
		}
	}
	return nil, false
}
