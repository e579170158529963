package simulator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/converse"
	"parley/internal/sip"
)

// Every mistake is told with its file, its line and what to write instead.
func TestMistakesInScenarios(t *testing.T) {
	t.Parallel()
	const good = "assistant: 1\ncallee: \"00\"\nexpect: {end: {status: completed}}\n"
	_, err := ReadScenario("a.yaml", []byte(good))
	require.NoError(t, err)
	for _, c := range []struct{ text, says string }{
		{"", "a.yaml: the file is empty"},
		{"a: [", "a.yaml: this is no YAML: line 1: did not find expected node content"},
		{"- a", "a.yaml:1: a scenario must be a mapping: lines of the form key: value"},
		{"callee: \"00\"\nexpect: {end: {status: busy}}", "a.yaml:1: assistant is missing; write the id"},
		{"assistant: one\ncallee: \"00\"", "a.yaml:1: assistant, the assistant's id, must be a whole number from 1"},
		{"assistant: 1\nassistant: 2\ncallee: \"00\"", `a.yaml:2: a scenario has "assistant" twice; write it once`},
		{"assistant: 1\nexpect: {end: {status: busy}}", "a.yaml:1: a scenario has either callee (one of 00, 01,"},
		{good + "customer: {script: []}", "a.yaml:1: a scenario has either callee"},
		{"assistant: 1\ncallee: \"99\"", `a.yaml:2: callee is "99"; it must be one of 00,`},
		{"assistant: 1\ncallee: \"00\"", "a.yaml:1: expect is missing or empty"},
		{good + "variables: [a]", "a.yaml:4: variables must be a mapping"},
		{good + "call_tools: maybe", "a.yaml:4: call_tools must be true or false"},
		{good + "tools: {t: {answer: x}}", "a.yaml:4: the answers of t must be a list: lines that begin with a dash"},
		{good + "tools: {t: [{after: 1s}]}", "a.yaml:4: an answer of a tool has either answer or fails"},
		{good + "tools: {t: [{answer: x, after: soon}]}", "a.yaml:4: after must be a time such as 600ms or 2s, at most 1m0s"},
		{"assistant: 1\ncustomer:\n  script:\n    - shout: x\n", `a.yaml:4: a step has no key "shout"; its keys are say, press,`},
		{"assistant: 1\ncustomer:\n  script:\n    - hears: x\n", "a.yaml:4: a step must do something: say, press,"},
		{"assistant: 1\ncustomer:\n  script:\n    - say: x\n      again: 1\n", "a.yaml:4: again and or_else belong to a step that waits"},
		{"assistant: 1\ncustomer:\n  script:\n    - say: x\n      hears: y\n      again: 1\n", "a.yaml:4: again repeats the step before, and there is none"},
		{"assistant: 1\ncustomer:\n  script:\n    - say: x\n      hears: y\n      at_once: true\n", "a.yaml:4: a step has one condition"},
		{"assistant: 1\ncustomer:\n  script:\n    - say: x\n      hears: (\n", "a.yaml:5: hears is no regular expression: "},
		{"assistant: 1\ncustomer:\n  script:\n    - press: hello\n", `a.yaml:4: press must be keys of a telephone in quotes, such as "4711#"`},
		{"assistant: 1\ncustomer: {line: {noise: rock}}", `a.yaml:2: noise is "rock"; it must be one of office, city,`},
		{"assistant: 1\ncustomer: {line: {loss_percent: 101}}", "a.yaml:2: loss_percent must be a number from 0 to 100"},
		{"assistant: 1\ncustomer: {refuses: 200}", "a.yaml:2: refuses, a SIP status, must be a whole number from 400 to 699"},
		{"assistant: 1\ncallee: \"00\"\nexpect:\n  turns:\n    - asistant: x\n", `a.yaml:5: an element of turns has no key "asistant"; its keys are assistant, customer`},
		{"assistant: 1\ncallee: \"00\"\nexpect:\n  turns:\n    - {assistant: x, customer: y}\n", "a.yaml:5: an element of turns has one of assistant, customer"},
		{"assistant: 1\ncallee: \"00\"\nexpect:\n  turns:\n    - assistant: /(/\n", "a.yaml:5: assistant is no regular expression"},
		{"assistant: 1\ncallee: \"00\"\nexpect:\n  tools:\n    - arguments: {a: 1}\n", "a.yaml:5: an element of tools needs the name of the tool"},
		{"assistant: 1\ncallee: \"00\"\nexpect:\n  end:\n    status: done\n", `a.yaml:5: status is "done"; it must be one of completed, busy, no-answer, failed`},
		{"assistant: 1\ncallee: \"00\"\nexpect:\n  end:\n    max_seconds: 0\n", "a.yaml:5: max_seconds must be a number from 1 to 7200"},
	} {
		_, err := ReadScenario("a.yaml", []byte(c.text))
		require.ErrorContains(t, err, c.says, c.text)
	}
	_, err = ReadScenario("a.yaml", []byte("assistant: 1\ncallee: \"99\"\nexpect: {end: {status: done}}"))
	require.ErrorContains(t, err, "a.yaml:2")
	require.ErrorContains(t, err, "a.yaml:3", "all mistakes at once")
}

// held is a call held against the expectations of a scenario.
func held(t *testing.T, expect string, c *Call) []Check {
	t.Helper()
	s, err := ReadScenario("a.yaml", []byte("assistant: 1\ncallee: \"00\"\nexpect: "+expect))
	require.NoError(t, err)
	return s.Judge(c)
}

func TestExpectations(t *testing.T) {
	t.Parallel()
	call := &Call{
		Result: converse.Result{
			Turns: []converse.Turn{
				{Sender: converse.Bot, Text: "Hello Ada. What is your order number?"},
				{Sender: converse.Human, Text: "4711, please."},
				{Sender: converse.Bot, Text: "It is shipped. Goodbye."},
			},
			ToolRuns:   []converse.ToolRun{{Name: "get_order", Arguments: map[string]any{"order": "4711", "count": 2.0, "gift": true}, Result: "ok"}},
			AnsweredBy: converse.AnsweredByHuman, EndedBy: converse.ByAssistant, EndReason: converse.EndGoodbye, Digits: "1#", Duration: 12 * time.Second,
		},
		Evaluation: map[string]any{"order": "4711", "count": 2.0, "happy": true, "email": nil},
	}
	for _, c := range []struct {
		expect string
		ok     bool
		got    string
	}{
		{"{turns: [{assistant: hello ada}]}", true, `"Hello Ada. What is your order number?"`},
		{"{turns: [{assistant: '/order (number|id)/'}]}", true, ""},
		{"{turns: [{assistant: Ada}, {assistant: number}, {customer: 4711}, {assistant: /GOODBYE/}]}", true, ""},
		{"{turns: [{customer: Ada}]}", false, `what was said by then: "4711, please."`},
		{"{turns: [{assistant: number}, {assistant: Hello}]}", false, `what was said by then: "?" "It is shipped. Goodbye."`},
		{"{turns: [{assistant: Goodbye}, {customer: please}]}", false, "nothing was said by then"},
		{"{never: [{assistant: /sorry/}, {customer: goodbye}, {tool: cancel}]}", true, ""},
		{"{never: [{assistant: /shipped/}]}", false, `"It is shipped. Goodbye."`},
		{"{never: [{tool: get_order}]}", false, `get_order {"count":2,"gift":true,"order":"4711"}`},
		{"{tools: [{name: get_order}]}", true, ""},
		{"{tools: [{name: get_order, arguments: {order: 4711, count: 2, gift: true}}]}", true, ""},
		{"{tools: [{name: get_order, arguments: {order: /^47/}}]}", true, ""},
		{"{tools: [{name: get_order, arguments: {order: 471}}]}", false, `called were: get_order {"count":2,"gift":true,"order":"4711"}`},
		{"{tools: [{name: get_order, arguments: {colour: red}}]}", false, ""},
		{"{tools: [{name: other}]}", false, ""},
		{"{evaluation: {order: 4711, count: 2, happy: true, email: null}}", true, ""},
		{"{evaluation: {happy: false}}", false, "true"},
		{"{evaluation: {name: null}}", false, "the assistant's post_call_schema has no such name, or post_call_evaluation is off"},
		{"{end: {status: completed, ended_by: assistant, end_reason: assistant_ended, answered_by: human, digits: '1#', opted_out: false, max_seconds: 12}}", true, ""},
		{"{end: {ended_by: customer}}", false, "assistant"},
		{"{end: {max_seconds: 11}}", false, "12.0 s"},
		{"{end: {status: busy}}", false, "completed"},
	} {
		checks := held(t, c.expect, call)
		last := checks[len(checks)-1]
		for _, check := range checks[:len(checks)-1] {
			require.True(t, check.OK, "%s: %+v", c.expect, check)
		}
		require.Equal(t, c.ok, last.OK, "%s: %+v", c.expect, last)
		if c.got != "" {
			require.Equal(t, c.got, last.Got, c.expect)
		}
	}
}

func TestExpectationsOfCallsThatWereNotAnswered(t *testing.T) {
	t.Parallel()
	for outcome, status := range map[sip.Outcome]string{sip.Busy: "busy", sip.NoAnswer: "no-answer", sip.NoSuchNumber: "failed", sip.Unreachable: "failed"} {
		call := &Call{Failure: &sip.Failure{Outcome: outcome}}
		for _, check := range held(t, "{end: {status: "+status+", end_reason: "+string(outcome)+"}}", call) {
			require.True(t, check.OK, check)
		}
		require.False(t, held(t, "{end: {ended_by: customer}}", call)[0].OK)
	}
}

func TestToolsAreAnsweredByTheScenario(t *testing.T) {
	t.Parallel()
	s, err := ReadScenario("a.yaml", []byte(`
assistant: 1
callee: "00"
tools:
  look_up:
    - with: {order: 4711}
      answer: {status: shipped}
    - with: {order: /^9/}
      fails: no such order
    - answer: nothing is known
expect: {end: {status: completed}}
`))
	require.NoError(t, err)
	run := s.RunTool(nil)
	for order, want := range map[string]string{"4711": `{"status":"shipped"}`, "1": "nothing is known"} {
		got, err := run(t.Context(), "look_up", map[string]any{"order": order})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = run(t.Context(), "look_up", map[string]any{"order": "99"})
	require.EqualError(t, err, "no such order")
	_, err = run(t.Context(), "other", map[string]any{"a": 1})
	require.EqualError(t, err, "the scenario has no answer for this tool")
	checks := s.Judge(&Call{})
	require.Equal(t, Check{What: "every tool has an answer", Got: `other {"a":1} has none; add it to tools`}, checks[0])
	require.True(t, s.Judge(&Call{})[0].OK, "the next call begins anew")

	s.CallTools = true
	run = s.RunTool(func(context.Context, string, map[string]any) (string, error) { return "", errors.New("the endpoint") })
	_, err = run(t.Context(), "other", nil)
	require.EqualError(t, err, "the endpoint")
}
