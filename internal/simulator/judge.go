package simulator

import (
	"fmt"
	"strings"

	"parley/internal/converse"
)

// Check is one expectation and whether it was met.
type Check struct {
	OK   bool
	What string // was expected
	Got  string // and what really was
}

// Judge holds a call against a scenario's expectations, in the order of the file.
func (s *Scenario) Judge(c *Call) []Check {
	checks := inOrder(s.Expect.Turns, c.Result.Turns)
	for _, never := range s.Expect.Never {
		checks = append(checks, never.isAbsent(&c.Result))
	}
	for _, want := range s.Expect.Tools {
		checks = append(checks, want.isAmong(c.Result.ToolRuns))
	}
	s.mu.Lock()
	for _, call := range s.lack {
		checks = append(checks, Check{What: "every tool has an answer", Got: call + " has none; add it to tools"})
	}
	s.lack = nil // the next call begins anew
	s.mu.Unlock()
	for _, want := range s.Expect.Evaluation {
		value, known := c.Evaluation[want.name]
		check := Check{OK: known && want.value.is(value), What: fmt.Sprintf("evaluation %s is %s", want.name, want.value), Got: inJSON(value)}
		if !known {
			check.Got = "the assistant's post_call_schema has no such name, or post_call_evaluation is off"
		}
		checks = append(checks, check)
	}
	return append(checks, s.Expect.End.judge(c)...)
}

// inOrder finds each expected utterance after the one before it.
func inOrder(want []utterance, turns []converse.Turn) (checks []Check) {
	turn, from := 0, 0
	for _, w := range want {
		check := Check{What: fmt.Sprintf("%s said %s", w.who, w.text)}
		for i, at := turn, from; i < len(turns) && !check.OK; i, at = i+1, 0 {
			if !w.by(turns[i].Sender) {
				continue
			}
			if end, found := w.text.find(turns[i].Text[at:]); found {
				check.OK, check.Got = true, `"`+turns[i].Text+`"`
				turn, from = i, at+end
			}
		}
		if !check.OK {
			check.Got = w.saidInstead(turns, turn, from)
		}
		checks = append(checks, check)
	}
	return checks
}

func (u utterance) by(sender converse.Sender) bool {
	return (u.who == "assistant") == (sender == converse.Bot)
}

// saidInstead is what the same party said from there on.
func (u utterance) saidInstead(turns []converse.Turn, turn, from int) string {
	var said []string
	for i := turn; i < len(turns); i++ {
		text := turns[i].Text
		if i == turn {
			text = text[from:]
		}
		if u.by(turns[i].Sender) && strings.TrimSpace(text) != "" {
			said = append(said, `"`+strings.TrimSpace(text)+`"`)
		}
	}
	if len(said) == 0 {
		return "nothing was said by then"
	}
	return "what was said by then: " + strings.Join(said, " ")
}

// isAbsent checks that something was never said, or never called.
func (u utterance) isAbsent(r *converse.Result) Check {
	check := Check{OK: true, What: fmt.Sprintf("%s never said %s", u.who, u.text)}
	if u.who == "tool" {
		check.What = "tool " + u.text.written + " was never called"
		for _, run := range r.ToolRuns {
			if u.text.is(run.Name) {
				check.OK, check.Got = false, run.Name+" "+inJSON(run.Arguments)
			}
		}
		return check
	}
	for _, t := range r.Turns {
		if _, found := u.text.find(t.Text); found && u.by(t.Sender) {
			check.OK, check.Got = false, `"`+t.Text+`"`
		}
	}
	return check
}

// isAmong checks that a tool was called in this way.
func (c toolCall) isAmong(runs []converse.ToolRun) Check {
	check := Check{What: "tool " + c.name + " was called"}
	for i, a := range c.arguments {
		check.What += []string{" with ", " and "}[min(i, 1)] + a.name + " " + a.value.String()
	}
	var got []string
	for _, run := range runs {
		call := run.Name + " " + inJSON(run.Arguments)
		if run.Name == c.name && misfit(c.arguments, run.Arguments) == "" {
			check.OK, check.Got = true, call+" -> "+run.Result
			return check
		}
		got = append(got, call)
	}
	check.Got = "called were: " + strings.Join(got, "; ")
	if len(got) == 0 {
		check.Got = "no tool was called"
	}
	return check
}

func (e ending) judge(c *Call) (checks []Check) {
	got := map[string]string{
		"status": string(c.status()), "ended_by": string(c.Result.EndedBy), "end_reason": c.endReason(),
		"answered_by": string(c.Result.AnsweredBy), "digits": c.Result.Digits, "opted_out": fmt.Sprint(c.Result.OptOut),
	}
	if c.Failure != nil {
		got["ended_by"], got["answered_by"] = "nobody: it was not answered", "nobody"
	}
	for _, want := range e.words {
		checks = append(checks, Check{OK: want.value.is(got[want.name]), What: want.name + " is " + want.value.written, Got: got[want.name]})
	}
	if e.maxSeconds > 0 {
		seconds := c.Result.Duration.Seconds()
		checks = append(checks, Check{OK: seconds <= e.maxSeconds, What: fmt.Sprintf("it lasts at most %v s", e.maxSeconds), Got: fmt.Sprintf("%.1f s", seconds)})
	}
	return checks
}
