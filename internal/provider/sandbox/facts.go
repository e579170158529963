package sandbox

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/converse"
)

// wanted is something to be learnt from the customer.
type wanted struct {
	spec     converse.ParamSpec
	label    string
	names    []string // the ways a customer may call it, longest first
	kind     kind
	question string
}

// kind is what the value of a wanted thing looks like.
type kind int

const (
	freeText kind = iota
	yesOrNo
	figure // a number
	code   // a number or identifier that is not counted with
	person
	moment
	email
	phone
)

// kindsByWord are the kinds of strings by a word of their name.
var kindsByWord = map[string]kind{
	"email": email, "mail": email, "phone": phone, "telephone": phone, "mobile": phone,
	"date": moment, "day": moment, "time": moment, "when": moment, "appointment": moment, "datetime": moment, "slot": moment,
	"name": person, "firstname": person, "lastname": person, "surname": person,
	"number": code, "code": code, "id": code, "zip": code, "postcode": code, "order": code, "account": code, "pin": code, "reference": code,
}

func newWanted(spec converse.ParamSpec) wanted {
	w := wanted{spec: spec, label: label(spec.Name)}
	w.names = []string{w.label}
	words := strings.Fields(w.label)
	if len(words) > 1 {
		switch words[0] {
		case "customer", "caller", "user", "client", "full", "first", "preferred", "callback", "contact", "desired", "your":
			w.names = append(w.names, strings.Join(words[1:], " "))
		}
	}
	switch spec.Type {
	case "boolean", "bool":
		w.kind = yesOrNo
	case "number", "integer":
		w.kind = figure
	default:
		for _, word := range words {
			if k, ok := kindsByWord[word]; ok {
				w.kind = k
			}
		}
	}
	w.question = w.ask()
	return w
}

// ask is the question for it: the description where it is one.
func (w *wanted) ask() string {
	description := strings.TrimSpace(w.spec.Description)
	switch {
	case strings.HasSuffix(description, "?"):
		return description
	case w.kind == yesOrNo && description != "":
		return "Just to be sure, yes or no: " + strings.TrimRight(lowerFirst(description), ".") + "?"
	case w.kind == moment && strings.Contains(w.label, "time"):
		return "What time would suit you?"
	case w.kind == moment:
		return "Which " + w.label + " would suit you?"
	case strings.HasPrefix(w.label, "your "):
		return "What is " + w.label + "?"
	default:
		return "What is your " + w.names[len(w.names)-1] + "?"
	}
}

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsUpper(next) {
		return s // an abbreviation
	}
	return string(unicode.ToLower(r)) + s[n:]
}

// asks says whether a text ends in this question, or in most of it: an interrupted
// sentence stops in its middle.
func (w *wanted) asks(text string) bool {
	text, question := strings.ToLower(strings.TrimSpace(text)), strings.ToLower(w.question)
	if strings.Contains(text, question) {
		return true
	}
	text = strings.TrimRight(text, "… -")
	for i := range text {
		if i > 0 && text[i-1] != ' ' {
			continue
		}
		if rest := text[i:]; len(rest) >= len(question)/2 && strings.HasPrefix(question, rest) {
			return true
		}
	}
	return false
}

// learn finds its value in a conversation; what was said last counts.
func (w *wanted) learn(messages []converse.Message) (value any, known bool) {
	asked := false
	for _, m := range messages {
		switch m.Role {
		case converse.RoleAssistant:
			if m.Text != "" {
				asked = w.asks(m.Text)
			}
		case converse.RoleCustomer:
			if v, ok := w.hear(plain(m.Text), asked); ok {
				value, known = v, true
			}
		case converse.RoleTool:
		}
	}
	return value, known
}

// hear takes its value from one thing the customer said, which may be the answer
// to the question for it.
func (w *wanted) hear(text string, asked bool) (any, bool) {
	if rest, ok := w.statement(text); ok {
		if v, ok := w.value(rest, true); ok {
			return v, true
		}
	}
	switch w.kind {
	case email, moment, phone, person:
		if v, ok := w.pattern(text, asked); ok {
			return v, true
		}
	case yesOrNo, figure, code, freeText:
	}
	if asked && !evasive(text) {
		return w.value(text, false)
	}
	return nil, false
}

// statement finds "my order number is ..." and returns what follows.
func (w *wanted) statement(text string) (string, bool) {
	lower := strings.ToLower(text)
	for _, name := range w.names {
		at := 0
		for {
			i := strings.Index(lower[at:], name)
			if i < 0 {
				break
			}
			i += at
			at = i + len(name)
			if i > 0 && isLetter(lower[:i]) || at < len(lower) && startsWithLetter(lower[at:]) && !strings.HasPrefix(lower[at:], "'s ") {
				continue
			}
			rest, linked := cutLink(text[min(at, len(text)):])
			if linked || w.kind == code || w.kind == figure {
				return rest, strings.TrimSpace(rest) != ""
			}
		}
	}
	return "", false
}

func isLetter(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLetter(r)
}

func startsWithLetter(after string) bool {
	r, _ := utf8.DecodeRuneInString(after)
	return unicode.IsLetter(r)
}

var link = regexp.MustCompile(`(?i)^(?:'s|,?\s*(?:it )?(?:is|was|are|will be|would be|should be|equals))\s*:?\s+|^\s*[:=]\s*`)

// cutLink removes the verb between a name and its value.
func cutLink(rest string) (string, bool) {
	if loc := link.FindStringIndex(rest); loc != nil {
		return rest[loc[1]:], true
	}
	return rest, false
}

var (
	leadIn = regexp.MustCompile(`(?i)^(?:(?:yes|yeah|sure|okay|ok|well|oh|uh|um|er|hi|hello|so|please|certainly|of course)[,.!]?\s+|(?:it's|it is|that's|that is|that would be|it would be|this is|i am|i'm|i'd say|i would say|my name is|the name is|i need|i want|i would like|i'd like|let's say|make it|call me)\s+)+`)
	clause = regexp.MustCompile(`(?i)[.,;!?](?:\s|$)|\s+and (?:my|the|i|it)\s`)
)

// value reads the value from the front of a text.
func (w *wanted) value(text string, stated bool) (any, bool) {
	switch w.kind {
	case yesOrNo:
		yes, ok := yesNo(text)
		return yes, ok
	case figure:
		digits, ok := spokenNumber(text)
		if !ok {
			return nil, false
		}
		return number(digits), true
	case code:
		return identifier(text)
	case moment, email, phone, person:
		if v, ok := w.pattern(text, true); ok || w.kind == email || w.kind == phone {
			return v, ok
		}
	case freeText:
	}
	text = leadIn.ReplaceAllString(strings.TrimSpace(text), "")
	if stated || w.kind != freeText {
		if loc := clause.FindStringIndex(text); loc != nil {
			text = text[:loc[0]]
		}
	}
	text = strings.TrimSpace(strings.TrimRight(strings.ReplaceAll(text, Damage, ""), ".,;!? "))
	if w.kind == person {
		text = nameIn(text)
	}
	return text, text != ""
}

var identifierToken = regexp.MustCompile(`(?i)^[a-z]{0,6}[-/]?\d[a-z0-9/-]*$`)

// identifier is a number or something like AB-123.
func identifier(text string) (any, bool) {
	for f := range strings.FieldsSeq(text) {
		if f = strings.Trim(f, `.,;:!?"'()#`); identifierToken.MatchString(f) && strings.ContainsFunc(f, unicode.IsLetter) {
			return f, true
		}
	}
	digits, ok := spokenNumber(text)
	return digits, ok
}

// nameIn is the name at the front of a text: its capitalised words, or its first two.
func nameIn(text string) string {
	words := strings.Fields(text)
	n := 0
	for n < len(words) && n < 4 {
		if r, _ := utf8.DecodeRuneInString(words[n]); !unicode.IsUpper(r) {
			break
		}
		n++
	}
	if n == 0 {
		n = min(2, len(words))
	}
	return strings.Join(words[:n], " ")
}

// evasive says whether an answer is none.
func evasive(text string) bool {
	words := wordsOf(text)
	return len(words) == 0 || strings.HasSuffix(strings.TrimSpace(text), "?") || repeatWish.MatchString(text) ||
		goodbyePhrases.MatchString(text) || optOutPhrases.MatchString(text) || humanPhrases.MatchString(text) && len(words) > 2
}

const (
	dayNames   = `(?:mon|tues|wednes|thurs|fri|satur|sun)day`
	monthNames = `(?:january|february|march|april|may|june|july|august|september|october|november|december)`
	partOfDay  = `(?:(?: in the)? (?:morning|afternoon|evening|night))?`
	hourNames  = `(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)`
	dayText    = `(?:the day after tomorrow|today|tonight|tomorrow` + partOfDay + `|(?:next |this )?` + dayNames + partOfDay +
		`|\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}\.?(?:\d{2,4})?|` + monthNames + ` (?:the )?\d{1,2}(?:st|nd|rd|th)?|(?:the )?\d{1,2}(?:st|nd|rd|th)? (?:of )?` + monthNames + `)`
	clockText = `(?:\d{1,2}(?::\d{2})?|(?:half past |(?:a )?quarter (?:past|to) )?` + hourNames + `(?: thirty| fifteen| forty-five)?|noon|midnight)` +
		`(?: ?[ap]\.?m\.?| o'clock)?` + partOfDay
)

var (
	momentPattern = regexp.MustCompile(`(?i)\b(?:` + dayText + `(?:,? (?:at|around|about) ` + clockText + `)?|` +
		`(?:at|around|about) ` + clockText + `|\d{1,2}:\d{2}(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?|noon)`)
	bareClock    = regexp.MustCompile(`(?i)\b` + clockText)
	emailPattern = regexp.MustCompile(`(?i)[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b([\w.+-]+(?: dot [\w-]+)*) at ([\w-]+(?: dot [\w-]+)+)`)
	phonePattern = regexp.MustCompile(`\+?\d[\d ()/-]{5,}\d`)
	selfPattern  = regexp.MustCompile(`(?:[Mm]y name is|[Mm]y name's|I am|I'm|[Tt]his is|[Ii]t's|[Cc]all me|[Tt]he name is) ((?:\p{Lu}[\pL'-]+ ?){1,3})`)
)

// pattern finds a value that is recognised by its form, wherever it stands.
func (w *wanted) pattern(text string, asked bool) (any, bool) {
	switch w.kind {
	case moment:
		m := momentPattern.FindString(text)
		if m == "" && asked {
			m = bareClock.FindString(text)
		}
		m = strings.TrimSpace(strings.TrimRight(m, ".,"))
		return m, m != ""
	case email:
		m := emailPattern.FindStringSubmatch(text)
		if m == nil {
			return nil, false
		}
		if m[1] == "" {
			return strings.ToLower(m[0]), true
		}
		return strings.ToLower(strings.ReplaceAll(m[1], " dot ", ".") + "@" + strings.ReplaceAll(m[2], " dot ", ".")), true
	case phone:
		m := phonePattern.FindString(text)
		if m != "" {
			return strings.NewReplacer(" ", "", "(", "", ")", "", "/", "", "-", "").Replace(m), true
		}
		digits, ok := spokenNumber(text)
		return digits, ok && len(digits) >= 6
	case person:
		m := selfPattern.FindStringSubmatch(text)
		if m == nil {
			return nil, false
		}
		return strings.TrimSpace(m[1]), true
	case freeText, yesOrNo, figure, code:
	}
	return nil, false
}
