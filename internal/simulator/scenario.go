package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"parley"
	"parley/internal/converse"
	"parley/internal/provider/sandbox"
	"parley/internal/sip"
)

// Scenario is a call that a user tests an assistant with, and what they expect of it.
type Scenario struct {
	Name      string
	Assistant parley.ID
	User      string // the e-mail address of its owner; empty for the default
	Callee    Callee
	Variables map[string]any
	CallTools bool // by their endpoints, where Tools has no answer
	Tools     map[string][]ToolAnswer
	Expect    Expectations

	mu   sync.Mutex
	lack []string // tools that were called without an answer to give
}

// ToolAnswer stands in for a tool's endpoint.
type ToolAnswer struct {
	With   []argument // what the call must have been given for this answer; none for any call
	Result string
	Fails  string // the error, in place of a result
	After  time.Duration
}

// ReadScenario reads a scenario file. The error tells every mistake with its line and
// its remedy.
func ReadScenario(file string, raw []byte) (*Scenario, error) {
	r := &reader{file: file}
	s := &Scenario{Variables: map[string]any{}, Tools: map[string][]ToolAnswer{}}
	root := r.document(raw)
	if root == nil {
		return nil, r.err()
	}
	whom := 0
	r.mapping(root, "a scenario", []key{
		{"name", func(n *yaml.Node) { s.Name = r.text(n, "name") }},
		{"assistant", func(n *yaml.Node) { s.Assistant = parley.ID(r.whole(n, "assistant, the assistant's id,", 1, 1<<53)) }},
		{"user", func(n *yaml.Node) { s.User = r.text(n, "user") }},
		{"callee", func(n *yaml.Node) { s.Callee, whom = r.known(n), whom+1 }},
		{"customer", func(n *yaml.Node) { s.Callee, whom = r.callee(n), whom+1 }},
		{"variables", func(n *yaml.Node) { s.Variables = r.values(n, "variables") }},
		{"call_tools", func(n *yaml.Node) { s.CallTools = r.flag(n, "call_tools") }},
		{"tools", func(n *yaml.Node) { s.Tools = r.toolAnswers(n) }},
		{"expect", func(n *yaml.Node) { s.Expect = r.expectations(n) }},
	})
	if s.Assistant == 0 && len(r.mistakes) == 0 {
		r.wrongf(root, "assistant is missing; write the id of the assistant to be tested, such as assistant: 1")
	}
	if whom != 1 {
		r.wrongf(root, "a scenario has either callee (one of %s) or customer (with a script of its own)", strings.Join(codes(), ", "))
	}
	if len(r.mistakes) == 0 && s.Expect.empty() {
		r.wrongf(root, "expect is missing or empty; write what the call must be like: turns, never, tools, evaluation or end")
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	if s.Callee.Code == "" {
		s.Callee.Code = "00"
	}
	return s, r.err()
}

func codes() (all []string) {
	for _, c := range Callees() {
		all = append(all, c.Code)
	}
	return all
}

// known reads the digits of a built-in callee.
func (r *reader) known(n *yaml.Node) Callee {
	callee, ok := FindCallee(n.Value)
	if !ok || n.Kind != yaml.ScalarNode {
		r.wrongf(n, `callee is %q; it must be one of %s, in quotes`, n.Value, strings.Join(codes(), ", "))
	}
	return callee
}

// values reads a mapping of names to any values.
func (r *reader) values(n *yaml.Node, what string) map[string]any {
	all := map[string]any{}
	r.pairs(n, what, func(name, value *yaml.Node) { all[name.Value] = r.value(value) })
	return all
}

// value reads anything that JSON can hold too.
func (r *reader) value(n *yaml.Node) (v any) {
	if err := n.Decode(&v); err != nil {
		r.wrongf(n, "this value cannot be read: %v", err)
	}
	return v
}

func (r *reader) toolAnswers(n *yaml.Node) map[string][]ToolAnswer {
	tools := map[string][]ToolAnswer{}
	r.pairs(n, "tools", func(name, answers *yaml.Node) {
		r.list(answers, "the answers of "+name.Value, func(n *yaml.Node) {
			a, given := r.toolAnswer(n)
			if given != 1 {
				r.wrongf(n, "an answer of a tool has either answer or fails")
			}
			tools[name.Value] = append(tools[name.Value], a)
		})
	})
	return tools
}

func (r *reader) toolAnswer(n *yaml.Node) (a ToolAnswer, given int) {
	r.mapping(n, "an answer of a tool", []key{
		{"with", func(n *yaml.Node) { a.With = r.arguments(n, "with") }},
		{"answer", func(n *yaml.Node) { a.Result, given = r.result(n), given+1 }},
		{"fails", func(n *yaml.Node) { a.Fails, given = r.text(n, "fails"), given+1 }},
		{"after", func(n *yaml.Node) { a.After = r.duration(n, "after", time.Minute) }},
	})
	return a, given
}

// result is what an endpoint would have sent: a text as it is, anything else as JSON.
func (r *reader) result(n *yaml.Node) string {
	v := r.value(n)
	if text, ok := v.(string); ok {
		return text
	}
	raw, err := json.Marshal(v)
	if err != nil {
		r.wrongf(n, "answer must be a text or what JSON can hold: %v", err)
	}
	return string(raw)
}

// RunTool answers a tool with the scenario's own answers: the first whose arguments
// fit. Where there is none the endpoint is called, if the scenario wants that; otherwise
// the tool fails, and the scenario with it.
func (s *Scenario) RunTool(endpoint func(context.Context, string, map[string]any) (string, error)) func(context.Context, string, map[string]any) (string, error) {
	return func(ctx context.Context, name string, arguments map[string]any) (string, error) {
		for _, a := range s.Tools[name] {
			if why := misfit(a.With, arguments); why != "" {
				continue
			}
			select {
			case <-time.After(a.After):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if a.Fails != "" {
				return "", errors.New(a.Fails)
			}
			return a.Result, nil
		}
		if s.CallTools && endpoint != nil {
			return endpoint(ctx, name, arguments)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lack = append(s.lack, name+" "+inJSON(arguments))
		return "", errors.New("the scenario has no answer for this tool")
	}
}

func inJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Call is what became of a scenario's call.
type Call struct {
	Result     converse.Result
	Failure    *sip.Failure   // why it was not answered; nil if it was
	Evaluation map[string]any // by name of the assistant's post_call_schema
}

// Damaged says that words were lost between the two sides though their line is a good
// one: the machine was too busy to carry the sound in time. heard is what the callee
// heard.
func (s *Scenario) Damaged(c *Call, heard Outcome) bool {
	if s.Callee.Line != (Line{}) {
		return false
	}
	for _, t := range c.Result.Turns {
		if t.Sender == converse.Human && strings.Contains(t.Text, sandbox.Damage) {
			return true
		}
	}
	return strings.Contains(heard.Heard, sandbox.Damage)
}

// status is how the call's record would show it.
func (c *Call) status() parley.CallStatus {
	switch {
	case c.Failure == nil:
		return parley.CallCompleted
	case c.Failure.Outcome == sip.Busy:
		return parley.CallBusy
	case c.Failure.Outcome == sip.NoAnswer:
		return parley.CallNoAnswer
	default:
		return parley.CallFailed
	}
}

// endReason is why the call ended, or why there was none.
func (c *Call) endReason() string {
	if c.Failure != nil {
		return string(c.Failure.Outcome)
	}
	return string(c.Result.EndReason)
}
