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
	about *regexp.Regexp
	say   string
}

var (
	greetingLine = regexp.MustCompile(`(?im)^\W*(?:greeting|say first)\s*:\s*(.+)$`)
	closingLine  = regexp.MustCompile(`(?im)^\W*(?:closing|say at the end)\s*:\s*(.+)$`)
	transferLine = regexp.MustCompile(`(?im)^\W*transfer to\s*:\s*(\S.*?)\s*$`)
	askLine      = regexp.MustCompile(`(?im)^\W*ask for\s*:\s*([^(\n]+?)\s*(?:\(([^)\n]*)\))?\s*$`)
	answerLine   = regexp.MustCompile(`(?im)^\W*when asked about\s+(.+?),?\s+say\s*:\s*(.+)$`)
)

func readHints(system string) hints {
	var h hints
	if m := greetingLine.FindStringSubmatch(system); m != nil {
		h.greeting = strings.TrimSpace(m[1])
	}
	if m := closingLine.FindStringSubmatch(system); m != nil {
		h.closing = strings.TrimSpace(m[1])
	}
	if m := transferLine.FindStringSubmatch(system); m != nil {
		h.transfer = m[1]
	}
	for _, m := range askLine.FindAllStringSubmatch(system, -1) {
		h.fields = append(h.fields, newWanted(converse.ParamSpec{Name: m[1], Description: m[2], Type: typeHint(m[2])}))
	}
	for _, m := range answerLine.FindAllStringSubmatch(system, -1) {
		var about []string
		for _, a := range strings.FieldsFunc(strings.ReplaceAll(m[1], " or ", ","), func(r rune) bool { return r == ',' }) {
			if a = strings.Trim(a, " \"'"); a != "" {
				about = append(about, regexp.QuoteMeta(a)+`\pL*`)
			}
		}
		if len(about) > 0 {
			h.answers = append(h.answers, answer{about: phrases(about...), say: strings.TrimSpace(m[2])})
		}
	}
	return h
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
