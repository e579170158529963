package converse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley"
)

// Evaluation is what a model made of a call after it.
type Evaluation struct {
	Values map[string]any // by name of the post-call schema; nil for what the call did not yield
	Usage  []PartUsage
}

// evaluationLimit bounds one attempt at an evaluation; nobody is waiting on a line.
const evaluationLimit = 60 * time.Second

// Evaluate has a model fill an assistant's post_call_schema from a call. Every name of
// the schema is in the values, typed as declared or nil. An assistant without
// post_call_evaluation, or without a schema, yields no values and costs nothing.
func Evaluate(ctx context.Context, a *parley.Assistant, r *Result, models []Provider[Model]) (Evaluation, error) {
	if !a.PostCallEvaluation || len(a.PostCallSchema) == 0 {
		return Evaluation{Values: map[string]any{}}, nil
	}
	e := Evaluation{Values: make(map[string]any, len(a.PostCallSchema))}
	for _, p := range a.PostCallSchema {
		e.Values[p.Name] = nil
	}
	if len(r.Turns) == 0 {
		return e, nil
	}
	prompt := Prompt{
		System:   "Fill in the fields from this telephone call. Use null for what the call did not yield. Answer with one JSON object and nothing else.",
		Messages: spokenMessages(r.Turns),
		Language: isoOf(a.Language),
		Extract:  extraction(a.PostCallSchema),
	}
	var m meter
	err := evaluate(ctx, prompt, models, &m, func(object map[string]any) {
		for _, p := range a.PostCallSchema {
			if v, ok := parley.TypedAs(p.Type, object[p.Name]); ok {
				e.Values[p.Name] = v
			}
		}
	})
	e.Usage = m.all()
	return e, err
}

// evaluate asks the models in their order until one answers with an object.
func evaluate(ctx context.Context, prompt Prompt, models []Provider[Model], m *meter, take func(map[string]any)) error {
	err := errors.New("no model is configured")
	ch := newChain(len(models))
	for r := (route{}); ; r.fail() {
		i, ok := ch.provider(&r)
		if !ok {
			return err
		}
		var object map[string]any
		if object, err = extract(ctx, prompt, models[i], m); err == nil {
			take(object)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// extract is one attempt.
func extract(ctx context.Context, prompt Prompt, p Provider[Model], m *meter) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, evaluationLimit)
	defer cancel()
	prompt.Model = p.Key
	var text strings.Builder
	usage, err := p.Use.Reply(ctx, prompt, func(d Delta) {
		if text.Len() < mostResult {
			text.WriteString(d.Text)
		}
	})
	m.add(PartUsage{Part: PartModel, Provider: p.Name, Key: p.Key, InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens, Requests: 1})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	object := map[string]any{}
	if err := json.Unmarshal([]byte(jsonObject(text.String())), &object); err != nil {
		return nil, fmt.Errorf("%s: no JSON object in the answer", p.Name)
	}
	return object, nil
}

// jsonObject is the object in a text that may be wrapped in words or a fence.
func jsonObject(text string) string {
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	if from < 0 || to < from {
		return ""
	}
	return text[from : to+1]
}

// spokenMessages are a call's turns as messages.
func spokenMessages(turns []Turn) []Message {
	messages := make([]Message, len(turns))
	for i, t := range turns {
		messages[i] = Message{Role: RoleCustomer, Text: t.Text}
		if t.Sender == Bot {
			messages[i].Role = RoleAssistant
		}
	}
	return messages
}

// extraction is a post-call schema as a model is asked to fill it.
func extraction(schema []parley.Param) []ParamSpec {
	specs := make([]ParamSpec, len(schema))
	for i, p := range schema {
		kind := p.Type
		if kind == "bool" {
			kind = "boolean"
		}
		specs[i] = ParamSpec{Name: p.Name, Type: kind, Description: p.Description}
	}
	return specs
}
