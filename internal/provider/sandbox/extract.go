package sandbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/internal/converse"
)

// extract answers an evaluation: one JSON object with the fields asked for, in
// their order, typed as declared, null where the conversation does not say.
func (t *talk) extract() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, spec := range t.prompt.Extract {
		if i > 0 {
			b.WriteString(", ")
		}
		// Names and values are strings, numbers, booleans and nil: they always encode.
		name, _ := json.Marshal(spec.Name)
		value, _ := json.Marshal(t.evaluate(spec))
		b.Write(name)
		b.WriteString(": ")
		b.Write(value)
	}
	b.WriteByte('}')
	return b.String()
}

// evaluate finds the value of one field.
func (t *talk) evaluate(spec converse.ParamSpec) any {
	w := newWanted(spec)
	about := strings.ToLower(w.label + " " + spec.Description)
	switch {
	case w.kind == yesOrNo:
		return t.judge(&w, about)
	case w.kind == freeText && (strings.Contains(about, "summary") || strings.Contains(about, "summar")):
		return t.summary()
	}
	if value, known := t.learnt(&w); known {
		return value
	}
	return nil
}

// learnt is a value from the transcript or, failing that, from what a tool was
// called with.
func (t *talk) learnt(w *wanted) (any, bool) {
	if v, ok := w.learn(t.prompt.Messages); ok {
		return v, true
	}
	for _, known := range t.wants() {
		// The question may have been asked in the words of a tool or of the prompt.
		if known.label == w.label || shares(known.names, w.names) {
			alike := *w
			alike.question = known.question
			if v, ok := alike.learn(t.prompt.Messages); ok {
				return v, true
			}
		}
	}
	return nil, false
}

func shares(a, b []string) bool {
	for _, x := range a {
		if slices.Contains(b, x) {
			return true
		}
	}
	return false
}

// judge answers a yes-or-no field.
func (t *talk) judge(w *wanted, about string) any {
	switch {
	case has(about, "opt out", "opt_out", "optout", "do not call", "not to be called", "unsubscribe"):
		return t.anySaid(optOutPhrases.MatchString)
	case has(about, "status", "objective", "goal", "success", "reached", "completed"):
		return t.reached()
	}
	if v, known := t.learnt(w); known {
		return v
	}
	if has(about, "interest") {
		if t.anySaid(refusalPhrases.MatchString) || t.anySaid(optOutPhrases.MatchString) {
			return false
		}
	}
	// The answer to a question about the same thing, in whatever words it was asked.
	asked := false
	for _, m := range t.prompt.Messages {
		switch m.Role {
		case converse.RoleAssistant:
			asked = strings.Contains(m.Text, "?") && overlap(m.Text, about)
		case converse.RoleCustomer:
			if yes, known := yesNo(m.Text); asked && known {
				return yes
			}
		case converse.RoleTool:
		}
	}
	return nil
}

func has(text string, parts ...string) bool {
	for _, a := range parts {
		if strings.Contains(text, a) {
			return true
		}
	}
	return false
}

// overlap says whether a question shares a telling word with a description.
func overlap(question, about string) bool {
	topic := map[string]bool{}
	for _, word := range wordsOf(about) {
		if len(word) > 3 && !common[word] {
			topic[stem(word)] = true
		}
	}
	for _, word := range wordsOf(question) {
		if topic[stem(word)] {
			return true
		}
	}
	return false
}

func (t *talk) anySaid(match func(string) bool) bool {
	for _, m := range t.prompt.Messages {
		if m.Role == converse.RoleCustomer && match(plain(m.Text)) {
			return true
		}
	}
	return false
}

// reached says whether the call did what it was for: the customer took part and
// did not refuse, everything asked for was learnt, and no tool failed for good.
func (t *talk) reached() bool {
	if !t.anySaid(func(s string) bool { return len(wordsOf(s)) > 0 }) || t.anySaid(refusalPhrases.MatchString) || t.anySaid(optOutPhrases.MatchString) {
		return false
	}
	for _, w := range t.wants() {
		if _, known := w.learn(t.prompt.Messages); !known {
			return false
		}
	}
	failed, worked := false, false
	for _, m := range t.prompt.Messages {
		if m.Role != converse.RoleTool {
			continue
		}
		if _, bad := failureOf(m.Text); bad {
			failed = true
		} else {
			worked = true
		}
	}
	return worked || !failed
}

// summary is a call in two or three sentences.
func (t *talk) summary() string {
	var facts []string
	for _, w := range t.wants() {
		if v, known := w.learn(t.prompt.Messages); known {
			facts = append(facts, fmt.Sprintf("%s: %s", w.label, speakable(v)))
		}
	}
	var said []string
	for _, m := range t.prompt.Messages {
		if text := strings.TrimSpace(m.Text); m.Role == converse.RoleCustomer && len(wordsOf(text)) > 0 {
			said = append(said, text)
		}
	}
	var b strings.Builder
	switch {
	case len(said) == 0:
		return "The customer said nothing."
	case t.anySaid(optOutPhrases.MatchString):
		b.WriteString("The customer asked not to be called again.")
	case t.anySaid(refusalPhrases.MatchString):
		b.WriteString("The customer was not interested.")
	case len(facts) > 0:
		fmt.Fprintf(&b, "The customer gave %s.", strings.Join(facts, "; "))
	default:
		fmt.Fprintf(&b, "The customer said: %s", short(strings.Join(said, " ")))
	}
	for _, m := range t.prompt.Messages {
		for _, c := range m.ToolCalls {
			if c.Name != endCall && c.Name != sendDTMF {
				fmt.Fprintf(&b, " The assistant used %s.", c.Name)
			}
		}
	}
	return b.String()
}
