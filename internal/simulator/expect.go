package simulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley"
	"parley/internal/converse"
	"parley/internal/sip"
)

// Expectations are what a scenario's call must have been like. What is not named is
// not checked.
type Expectations struct {
	Turns      []utterance // in this order
	Never      []utterance
	Tools      []toolCall // in any order
	Evaluation []argument
	End        ending
}

func (e *Expectations) empty() bool {
	return len(e.Turns)+len(e.Never)+len(e.Tools)+len(e.Evaluation)+len(e.End.words) == 0 && e.End.maxSeconds == 0
}

// utterance is something said by somebody, or a tool that is called.
type utterance struct {
	who  string // assistant, customer or tool
	text matcher
}

type toolCall struct {
	name      string
	arguments []argument
}

// argument is a name and the value it must have.
type argument struct {
	name  string
	value matcher
}

type ending struct {
	words      []argument // of status, ended_by, end_reason, answered_by, digits, opted_out
	maxSeconds float64
}

// matcher is a text to look for, or /a regular expression/. Case does not matter.
type matcher struct {
	written string
	regular bool
	pattern *regexp.Regexp
}

// newMatcher reads a text as it is written in a scenario.
func newMatcher(written string) (m matcher, err error) {
	m = matcher{written: written, regular: len(written) > 1 && strings.HasPrefix(written, "/") && strings.HasSuffix(written, "/")}
	pattern := regexp.QuoteMeta(written)
	if m.regular {
		pattern = written[1 : len(written)-1]
	}
	m.pattern, err = regexp.Compile(`(?is)` + pattern)
	return m, err
}

func (m matcher) String() string {
	if m.regular {
		return m.written
	}
	return `"` + m.written + `"`
}

// find says where in a text it is, and where that ends.
func (m matcher) find(in string) (end int, found bool) {
	at := m.pattern.FindStringIndex(in)
	if at == nil {
		return 0, false
	}
	return at[1], true
}

// is says whether a value is the one that is meant: a number may be written as a text.
func (m matcher) is(value any) bool {
	if m.regular {
		return m.pattern.MatchString(plainly(value))
	}
	return strings.EqualFold(m.written, plainly(value))
}

// plainly is a value as one would write it.
func plainly(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// misfit says which of the arguments was not as expected, "" if all were.
func misfit(want []argument, got map[string]any) string {
	for _, a := range want {
		value, given := got[a.name]
		switch {
		case !given && a.value.written != "null":
			return a.name + " was not given"
		case !a.value.is(value):
			return a.name + " was " + inJSON(value)
		}
	}
	return ""
}

func (r *reader) matcher(n *yaml.Node, what string) matcher {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return matcher{written: "null"} // it was not learnt
	}
	m, err := newMatcher(r.text(n, what))
	if err != nil {
		r.wrongf(n, "%s is no regular expression: %v", what, err)
	}
	return m
}

func (r *reader) arguments(n *yaml.Node, what string) (all []argument) {
	r.pairs(n, what, func(name, value *yaml.Node) {
		all = append(all, argument{name.Value, r.matcher(value, name.Value)})
	})
	return all
}

func (r *reader) expectations(n *yaml.Node) (e Expectations) {
	r.mapping(n, "expect", []key{
		{"turns", func(n *yaml.Node) { e.Turns = r.utterances(n, "turns", "assistant", "customer") }},
		{"never", func(n *yaml.Node) { e.Never = r.utterances(n, "never", "assistant", "customer", "tool") }},
		{"tools", func(n *yaml.Node) {
			r.list(n, "tools", func(n *yaml.Node) { e.Tools = append(e.Tools, r.toolCall(n)) })
		}},
		{"evaluation", func(n *yaml.Node) { e.Evaluation = r.arguments(n, "evaluation") }},
		{"end", func(n *yaml.Node) { e.End = r.ending(n) }},
	})
	return e
}

// utterances reads a list whose elements each say who said what.
func (r *reader) utterances(n *yaml.Node, what string, who ...string) (all []utterance) {
	r.list(n, what, func(n *yaml.Node) {
		keys := make([]key, len(who))
		for i, w := range who {
			keys[i] = key{w, func(n *yaml.Node) { all = append(all, utterance{w, r.matcher(n, w)}) }}
		}
		before := len(all)
		r.mapping(n, "an element of "+what, keys)
		if len(all) > before+1 {
			r.wrongf(n, "an element of %s has one of %s; begin a new one with a dash", what, strings.Join(who, ", "))
		}
	})
	return all
}

func (r *reader) toolCall(n *yaml.Node) (c toolCall) {
	r.mapping(n, "an element of tools", []key{
		{"name", func(n *yaml.Node) { c.name = r.text(n, "name") }},
		{"arguments", func(n *yaml.Node) { c.arguments = r.arguments(n, "arguments") }},
	})
	if c.name == "" {
		r.wrongf(n, "an element of tools needs the name of the tool")
	}
	return c
}

func (r *reader) ending(n *yaml.Node) (e ending) {
	word := func(name string, words ...string) key {
		return key{name, func(n *yaml.Node) {
			e.words = append(e.words, argument{name, matcher{written: r.oneOf(n, name, words)}})
		}}
	}
	r.mapping(n, "end", []key{
		word("status", string(parley.CallCompleted), string(parley.CallBusy), string(parley.CallNoAnswer), string(parley.CallFailed)),
		word("ended_by", string(converse.ByCustomer), string(converse.ByAssistant), string(converse.BySystem)),
		word("end_reason", endReasons()...),
		word("answered_by", string(converse.AnsweredByHuman), string(converse.AnsweredByMachine), string(converse.AnsweredByUnknown)),
		word("opted_out", "true", "false"),
		{"digits", func(n *yaml.Node) {
			e.words = append(e.words, argument{"digits", matcher{written: r.keypad(n, "digits")}})
		}},
		{"max_seconds", func(n *yaml.Node) { e.maxSeconds = r.number(n, "max_seconds", 1, 7200) }},
	})
	return e
}

// endReasons are those of conversations and those of calls that were not answered.
func endReasons() (all []string) {
	for _, reason := range []converse.EndReason{
		converse.EndHungUp, converse.EndGoodbye, converse.EndTransferred, converse.EndOptOut, converse.EndMaxDuration, converse.EndMaxSilence,
		converse.EndVoicemail, converse.EndMessageLeft, converse.EndTranscriber, converse.EndModel, converse.EndSpeaker, converse.EndDuplex, converse.EndMediaFailure,
	} {
		all = append(all, string(reason))
	}
	for _, outcome := range []sip.Outcome{sip.Busy, sip.NoAnswer, sip.NoSuchNumber, sip.Declined, sip.Forbidden, sip.CarrierFailed, sip.Unreachable} {
		all = append(all, string(outcome))
	}
	return all
}
