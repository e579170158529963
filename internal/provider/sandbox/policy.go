package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/internal/converse"
)

// The tools that the engine itself offers.
const (
	endCall      = "end_call"
	transferCall = "transfer_call"
	sendDTMF     = "send_dtmf"
	collectKeys  = "collect_digits"
)

// The sentences of the policy.
const (
	greetingSentence = "Hello, how can I help you?"
	closingSentence  = "Thank you for your time. Goodbye."
	optOutSentence   = "I am sorry for the disturbance. We will not call you again. Goodbye."
	refusalSentence  = "I understand. Thank you for your time. Goodbye."
	transferSentence = "One moment, I will connect you."
	noHumanSentence  = "I am sorry, I cannot connect you to a person, but I can help you myself."
	unheardSentence  = "Sorry, I did not catch that. Could you say it again?"
	completeSentence = "I have everything I need."
	moreSentence     = "Is there anything else I can do for you?"
	lookSentence     = "Let me check that for you."
	fineSentence     = "I am fine, thank you."
	whatSentence     = "What can I do for you?"
	unsureSentence   = "I am not sure about that."
)

// thanks acknowledge an answer. A cool model always says the first.
var thanks = []string{"Thank you.", "Thanks.", "Great.", "Very good."}

// decision is what the policy chose: words to say, and tools to call after them.
type decision struct {
	text  string
	calls []converse.ToolCall
}

// talk is a conversation as the policy sees it.
type talk struct {
	prompt converse.Prompt
	hints  hints
	tools  []offered
	made   int // tool calls so far
	last   string
	before string // what the assistant said last
}

// offered is a tool of the user's and what it needs to be told.
type offered struct {
	spec   converse.ToolSpec
	params []wanted
}

func newTalk(p converse.Prompt) *talk {
	t := &talk{prompt: p, hints: readHints(p.System)}
	for _, spec := range p.Tools {
		switch spec.Name {
		case endCall, transferCall, sendDTMF, collectKeys:
			continue
		}
		o := offered{spec: spec}
		for _, param := range spec.Params {
			o.params = append(o.params, newWanted(param))
		}
		t.tools = append(t.tools, o)
	}
	for _, m := range p.Messages {
		t.made += len(m.ToolCalls)
		switch {
		case m.Role == converse.RoleCustomer:
			t.last = plain(m.Text)
		case m.Role == converse.RoleAssistant && m.Text != "":
			t.before = m.Text
		}
	}
	return t
}

// decide chooses the next thing to say and do.
func (t *talk) decide() decision {
	n := len(t.prompt.Messages)
	if n == 0 {
		return decision{text: t.greeting()}
	}
	switch t.prompt.Messages[n-1].Role {
	case converse.RoleTool:
		return t.report()
	case converse.RoleAssistant:
		if len(t.prompt.Messages[n-1].ToolCalls) > 0 {
			return decision{} // the result is still to come
		}
		return t.onward("") // asked to go on although the customer said nothing
	default:
		return t.belated(t.respond())
	}
}

// belated puts before an answer the results that came in while the customer spoke.
func (t *talk) belated(d decision) decision {
	if report, some := t.results(); some && len(d.calls) == 0 && d.text != "" {
		d.text = report + " " + d.text
	}
	return d
}

func (t *talk) greeting() string {
	greeting := t.hints.greeting
	if greeting == "" {
		greeting = greetingSentence
	}
	if next, ok := t.missing(); ok && !strings.HasSuffix(greeting, "?") {
		greeting += " " + next.question
	}
	return greeting
}

// respond answers what the customer said. What ends a conversation comes first.
func (t *talk) respond() decision {
	said := t.last
	if key, ok := menuKey(said); ok {
		if call, ok := t.call(sendDTMF, map[string]any{"digits": key}); ok {
			return decision{calls: []converse.ToolCall{call}}
		}
	}
	switch {
	case strings.Trim(said, " .,?!"+Damage) == "":
		return decision{text: unheardSentence}
	case optOutPhrases.MatchString(said):
		return t.hangUp(optOutSentence, "opt_out")
	case refusalPhrases.MatchString(said):
		return t.hangUp(refusalSentence, "not_interested")
	case humanPhrases.MatchString(said) && !t.answering():
		if call, ok := t.call(transferCall, t.destination()); ok {
			return decision{text: transferSentence, calls: []converse.ToolCall{call}}
		}
		return t.onward(noHumanSentence)
	case t.done(said):
		return t.hangUp(t.closing(), "completed")
	}
	for _, a := range t.hints.answers {
		if a.about.MatchString(said) {
			return t.onward(a.say)
		}
	}
	if repeatWish.MatchString(said) && t.before != "" {
		return decision{text: t.before}
	}
	if calls := t.ready(); len(calls) > 0 {
		return decision{text: lookSentence, calls: calls}
	}
	return t.onward(t.acknowledge())
}

// answering says whether the last question was one of ours for a wanted thing.
func (t *talk) answering() bool {
	for _, w := range t.wants() {
		if w.asks(t.before) {
			return true
		}
	}
	return false
}

// done says whether the customer has nothing more. A plain no means that only
// where we asked for more, or whether the call is welcome.
func (t *talk) done(said string) bool {
	if strings.Contains(t.before, moreSentence) || t.opening() {
		if yes, known := yesNo(said); known && !yes && len(wordsOf(said)) <= 6 {
			return true
		}
	}
	return goodbyePhrases.MatchString(said)
}

// opening says whether the assistant has only greeted and asked for leave to speak.
func (t *talk) opening() bool {
	lower := strings.ToLower(t.before)
	return strings.HasSuffix(lower, "?") && (strings.Contains(lower, "minute") || strings.Contains(lower, "moment") || strings.Contains(lower, "time to talk"))
}

func (t *talk) closing() string {
	if t.hints.closing != "" {
		return t.hints.closing
	}
	return closingSentence
}

// hangUp says a last sentence and ends the call.
func (t *talk) hangUp(sentence, reason string) decision {
	d := decision{text: sentence}
	if call, ok := t.call(endCall, map[string]any{"reason": reason, "message": sentence}); ok {
		d.calls = append(d.calls, call)
	}
	return d
}

// destination is where to transfer to, under the names a tool may have for it.
func (t *talk) destination() map[string]any {
	args := map[string]any{"reason": "the customer asked for a person"}
	if t.hints.transfer != "" {
		for _, name := range []string{"number", "phone_number", "destination", "to"} {
			args[name] = t.hints.transfer
		}
	}
	return args
}

// call makes a tool call with those of the arguments that the tool takes; false if
// it is not offered.
func (t *talk) call(name string, args map[string]any) (converse.ToolCall, bool) {
	for _, spec := range t.prompt.Tools {
		if spec.Name != name {
			continue
		}
		taken := map[string]any{}
		for _, p := range spec.Params {
			if v, ok := args[p.Name]; ok {
				taken[p.Name] = v
			}
		}
		t.made++
		return converse.ToolCall{ID: fmt.Sprintf("call_%d", t.made), Name: name, Arguments: taken}, true
	}
	return converse.ToolCall{}, false
}

// ready are the calls of tools whose required parameters are all known, and that
// were not made before with the same arguments.
func (t *talk) ready() []converse.ToolCall {
	var calls []converse.ToolCall
	for _, o := range t.tools {
		if !t.concerns(&o) {
			continue
		}
		args, complete := map[string]any{}, true
		for _, w := range o.params {
			v, known := w.learn(t.prompt.Messages)
			if known {
				args[w.spec.Name] = v
			}
			complete = complete && (known || !w.spec.Required)
		}
		if !complete || t.wasCalled(o.spec.Name, args) {
			continue
		}
		if call, ok := t.call(o.spec.Name, args); ok {
			calls = append(calls, call)
		}
	}
	return calls
}

// wasCalled compares arguments as JSON, the form in which they were sent.
func (t *talk) wasCalled(name string, args map[string]any) bool {
	want, err := json.Marshal(args)
	if err != nil {
		return true
	}
	for _, m := range t.prompt.Messages {
		for _, c := range m.ToolCalls {
			if c.Name != name {
				continue
			}
			if got, err := json.Marshal(c.Arguments); err == nil && (string(got) == string(want) || len(args) == 0) {
				return true
			}
		}
	}
	return false
}

// concerns says whether a tool has to do with this conversation: it is the only
// one and needs something from the customer, one of its parameters was given, or
// the customer used a word of its name or description.
func (t *talk) concerns(o *offered) bool {
	needs := false
	for _, w := range o.params {
		if !w.spec.Required {
			continue
		}
		needs = true
		if _, known := w.learn(t.prompt.Messages); known {
			return true
		}
	}
	if needs && len(t.tools) == 1 {
		return true
	}
	topic := map[string]bool{}
	for _, word := range wordsOf(label(o.spec.Name) + " " + o.spec.Description) {
		if len(word) > 3 && !common[word] {
			topic[stem(word)] = true
		}
	}
	for _, m := range t.prompt.Messages {
		if m.Role != converse.RoleCustomer {
			continue
		}
		for _, word := range wordsOf(m.Text) {
			if topic[stem(word)] {
				return true
			}
		}
	}
	return false
}

// common are words of tool descriptions that say nothing about their subject.
var common = map[string]bool{
	"this": true, "that": true, "with": true, "when": true, "what": true, "from": true, "customer": true, "call": true, "calls": true,
	"look": true, "looks": true, "their": true, "your": true, "returns": true, "gets": true, "number": true, "name": true, "used": true,
	"have": true, "they": true, "them": true, "tool": true, "wants": true, "want": true, "given": true, "about": true, "please": true,
}

func stem(word string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if cut, ok := strings.CutSuffix(word, end); ok && len(cut) > 3 {
			return cut
		}
	}
	return word
}

// wants is everything to be learnt, in order: what the prompt asks for, then what
// the tools need.
func (t *talk) wants() []wanted {
	all := append([]wanted(nil), t.hints.fields...)
	seen := map[string]bool{}
	for _, w := range all {
		seen[w.label] = true
	}
	for _, o := range t.tools {
		if !t.concerns(&o) {
			continue
		}
		for _, w := range o.params {
			if w.spec.Required && !seen[w.label] {
				seen[w.label] = true
				all = append(all, w)
			}
		}
	}
	return all
}

// patience is how often the same question is asked.
const patience = 2

// missing is the next thing to ask for: not known, and not asked for in vain.
func (t *talk) missing() (wanted, bool) {
	for _, w := range t.wants() {
		if _, known := w.learn(t.prompt.Messages); known {
			continue
		}
		asked := 0
		for _, m := range t.prompt.Messages {
			if m.Role == converse.RoleAssistant && w.asks(m.Text) {
				asked++
			}
		}
		if asked < patience {
			return w, true
		}
	}
	return wanted{}, false
}

// onward continues after a first sentence: with the next question, or by asking
// whether there is more to do.
func (t *talk) onward(first string) decision {
	next := moreSentence
	if w, ok := t.missing(); ok {
		next = w.question
	} else if len(t.wants()) > 0 && !t.saidBefore(completeSentence) {
		next = completeSentence + " " + moreSentence
	}
	if strings.HasSuffix(first, "?") {
		next = ""
	}
	return decision{text: strings.TrimSpace(first + " " + next)}
}

func (t *talk) saidBefore(sentence string) bool {
	for _, m := range t.prompt.Messages {
		if m.Role == converse.RoleAssistant && strings.Contains(m.Text, sentence) {
			return true
		}
	}
	return false
}

// acknowledge is a first sentence for something the customer said.
func (t *talk) acknowledge() string {
	switch {
	case howAreYou.MatchString(t.last):
		return fineSentence
	case t.answering():
		turn := 0
		if t.prompt.Temperature >= 0.5 {
			turn = len(t.prompt.Messages) / 2
		}
		return thanks[turn%len(thanks)]
	case strings.Contains(t.before, moreSentence):
		if yes, known := yesNo(t.last); known && yes && len(wordsOf(t.last)) <= 3 {
			return whatSentence
		}
		if _, asking := t.missing(); asking {
			return ""
		}
		return unsureSentence
	case strings.HasSuffix(t.last, "?") && len(t.wants()) == 0:
		return unsureSentence
	default:
		return ""
	}
}
