package parley

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Render fills the {{name}} places of a text. A name is letters, digits, '_' and
// '.', with blanks around it allowed. A name without a value becomes nothing: the
// customer must never hear braces. Values are put in as they are and not rendered
// again, so that a value cannot pull in another one.
func Render(text string, values map[string]string) string {
	return RenderFunc(text, func(name string) string { return values[name] })
}

// RenderFunc fills the {{name}} places of a text with what value says.
func RenderFunc(text string, value func(name string) string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var b strings.Builder
	for {
		open := strings.Index(text, "{{")
		if open < 0 {
			break
		}
		name, length := placeName(text[open:])
		if length == 0 {
			b.WriteString(text[:open+1]) // "{{{name}}}" holds a name after its first brace
			text = text[open+1:]
			continue
		}
		b.WriteString(text[:open])
		b.WriteString(value(name))
		text = text[open+length:]
	}
	b.WriteString(text)
	return b.String()
}

// longestName bounds the search for the end of a name.
const longestName = 300

// placeName reads a {{name}} at the start of s and says how long it is; 0 means
// that there is none.
func placeName(s string) (name string, length int) {
	end := strings.Index(s[:min(len(s), longestName)], "}}")
	if end < 0 {
		return "", 0
	}
	name = strings.TrimSpace(s[2:end])
	if name == "" || strings.ContainsFunc(name, notOfName) {
		return "", 0
	}
	return name, end + 2
}

func notOfName(r rune) bool {
	return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// CallFacts are what is known of a call before it begins.
type CallFacts struct {
	CallID         string
	CustomerPhone  string
	AssistantPhone string
	Direction      Direction
	Variables      map[string]any
}

// Values are what a call's texts, tool addresses and tool headers are rendered with:
// the assistant's own variables, then the call's, then the system's, each winning
// over those before.
func (f CallFacts) Values(a *Assistant, now time.Time) map[string]string {
	values := make(map[string]string, len(a.Variables)+len(f.Variables)+8)
	for name, v := range a.Variables {
		values[name] = InWords(v)
	}
	for name, v := range f.Variables {
		values[name] = InWords(v)
	}
	maps.Copy(values, f.systemValues(a, now))
	return values
}

// systemValues are known in every call, whatever its user has set.
func (f CallFacts) systemValues(a *Assistant, now time.Time) map[string]string {
	local := now.In(a.Zone())
	return map[string]string{
		"customer_phone":  f.CustomerPhone,
		"assistant_phone": f.AssistantPhone,
		"assistant_id":    strconv.FormatInt(a.ID, 10),
		"assistant_name":  a.Name,
		"call_id":         f.CallID,
		"current_date":    local.Format(time.DateOnly),
		"current_time":    local.Format("15:04"),
	}
}

// Zone is an assistant's time zone; its form has checked the name, so that UTC
// stands only for an assistant that was never validated.
func (a *Assistant) Zone() *time.Location {
	if at, err := time.LoadLocation(a.Timezone); err == nil {
		return at
	}
	return time.UTC
}

// InWords writes a variable's value as it would be read out.
func InWords(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	default:
		return fmt.Sprint(v)
	}
}
