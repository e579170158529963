package sandbox

import (
	"regexp"
	"strings"
	"unicode"

	"parley/internal/converse"
)

// hints are what a system prompt tells the sandbox model in its own convention;
// see the package comment. Everything else in the prompt is for other models.
type hints struct {
	greeting string
	closing  string
	transfer string
	fields   []wanted
	answers  []answer
}

// answer is what to say when asked about something.
type answer struct {
	about *phrase
	say   string
}

var (
	saidLine   = regexp.MustCompile(`^\s*:\s*(.+)`)
	askLine    = regexp.MustCompile(`(?m)\A\s*:\s*([^(\n]+?)\s*(?:\(([^)\n]*)\))?\s*$`)
	answerLine = regexp.MustCompile(`(?i)^\s+(.+?),?\s+say\s*:\s*(.+)`)
)

// readHints looks at how each line begins: prompts are long and read in every turn.
func readHints(system string) hints {
	var h hints
	for system != "" {
		system = strings.TrimLeftFunc(system, ornament)
		h.read(system)
		_, system, _ = strings.Cut(system, "\n")
	}
	return h
}

// ornament are the dashes, stars and blanks that may stand before a hint: all that
// English words are not made of.
func ornament(r rune) bool {
	return r > unicode.MaxASCII || r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// read takes the hint with which a text begins, if it does. Of what can be said only
// once, the first counts.
func (h *hints) read(text string) {
	once := func(to *string, rest string) {
		if m := saidLine.FindStringSubmatch(rest); m != nil && *to == "" {
			*to = strings.TrimSpace(m[1])
		}
	}
	if rest, ok := after(text, "greeting", "say first"); ok {
		once(&h.greeting, rest)
	} else if rest, ok = after(text, "closing", "say at the end"); ok {
		once(&h.closing, rest)
	} else if rest, ok = after(text, "transfer to"); ok {
		once(&h.transfer, rest)
	} else if rest, ok = after(text, "ask for"); ok {
		if m := askLine.FindStringSubmatch(rest); m != nil {
			h.fields = append(h.fields, newWanted(converse.ParamSpec{Name: m[1], Description: m[2], Type: typeHint(m[2])}))
		}
	} else if rest, ok = after(text, "when asked about"); ok {
		if m := answerLine.FindStringSubmatch(rest); m != nil {
			h.answer(m[1], m[2])
		}
	}
}

// after is what follows in a text that begins with one of the words, in whatever case.
func after(text string, words ...string) (string, bool) {
	for _, w := range words {
		if len(text) >= len(w) && strings.EqualFold(text[:len(w)], w) {
			return text[len(w):], true
		}
	}
	return "", false
}

// answer takes what to say when asked about one of some subjects.
func (h *hints) answer(subjects, say string) {
	var about []string
	for _, a := range strings.FieldsFunc(strings.ReplaceAll(subjects, " or ", ","), func(r rune) bool { return r == ',' }) {
		if a = strings.Trim(a, " \"'"); a != "" {
			about = append(about, regexp.QuoteMeta(a)+`\pL*`)
		}
	}
	if len(about) > 0 {
		h.answers = append(h.answers, answer{about: phrases(about...), say: strings.TrimSpace(say)})
	}
}

// typeHint is the type that a description in an Ask line names.
func typeHint(description string) string {
	switch d := strings.ToLower(description); {
	case strings.HasPrefix(d, "yes or no"), strings.HasPrefix(d, "bool"):
		return "boolean"
	case strings.HasPrefix(d, "number"), strings.HasPrefix(d, "how many"), strings.HasPrefix(d, "how much"):
		return "number"
	default:
		return "string"
	}
}

// label is a name as people say it: order_number and orderNumber are "order number".
func label(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if r == '_' || r == '-' {
			r = ' '
		}
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
