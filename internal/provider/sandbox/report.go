package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"parley/internal/converse"
)

// report speaks about the results of tools, and goes on.
func (t *talk) report() decision {
	report, some := t.results()
	if !some {
		return decision{}
	}
	return t.onward(report)
}

// results are sentences about the results that came in since the assistant last
// spoke; false if there is none to be spoken about.
func (t *talk) results() (string, bool) {
	messages := t.prompt.Messages
	first := len(messages)
	for first > 0 && (messages[first-1].Role != converse.RoleAssistant || messages[first-1].Text == "") {
		first--
	}
	var sentences []string
	for _, m := range messages[first:] {
		if m.Role == converse.RoleTool {
			if s := spoken(t.nameOf(m.ToolCallID), m.Text); s != "" {
				sentences = append(sentences, s)
			}
		}
	}
	return strings.Join(sentences, " "), len(sentences) > 0
}

// spoken is a tool's result or failure in a sentence. Nothing is to be said after
// a goodbye, to a machine, or to somebody who is being connected.
func spoken(tool, result string) string {
	failure, failed := failureOf(result)
	switch {
	case tool == endCall || tool == sendDTMF:
		return ""
	case tool == transferCall && failed:
		return "I am sorry, I could not connect you."
	case tool == transferCall:
		return ""
	case failed:
		return fmt.Sprintf("I am sorry, the %s did not work: %s.", label(tool), failure)
	default:
		return told(result)
	}
}

// nameOf is the tool that a call ran.
func (t *talk) nameOf(id string) string {
	for _, m := range t.prompt.Messages {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c.Name
			}
		}
	}
	return "request"
}

// failureOf reads a tool's failure in any of the forms it comes in: an object with
// an error, or a text that begins with one.
func failureOf(result string) (string, bool) {
	var object map[string]any
	if json.Unmarshal([]byte(result), &object) == nil {
		for _, key := range []string{"error", "errors", "failure"} {
			if v, ok := object[key]; ok && v != nil && v != false && v != "" {
				if message, ok := object["message"].(string); ok && message != "" {
					return sentence(message), true
				}
				return sentence(speakable(v)), true
			}
		}
		switch object["status"] {
		case "error", "failed", "timeout":
			return sentence(fmt.Sprint(object["status"])), true
		}
		return "", false
	}
	lower := strings.ToLower(strings.TrimSpace(result))
	for _, word := range []string{"error", "failed", "failure", "timeout", "timed out", "time-out"} {
		if strings.HasPrefix(lower, word) {
			rest := strings.TrimLeft(strings.TrimSpace(result)[len(word):], ": ")
			if rest == "" {
				rest = word
			}
			return sentence(rest), true
		}
	}
	return "", false
}

// sentence takes the full stop from a text that goes into a sentence.
func sentence(text string) string { return strings.TrimRight(short(text), ".!? ") }

// told is a tool's result in a sentence.
func told(result string) string {
	result = strings.TrimSpace(result)
	if result == "" || result == "null" {
		return "That is done."
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(result))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return "Here is what I found: " + sentence(result) + "."
	}
	if object, ok := value.(map[string]any); ok {
		if len(object) == 0 {
			return "That is done."
		}
		for _, key := range []string{"message", "speech", "say", "answer"} {
			if text, ok := object[key].(string); ok && text != "" {
				return sentence(text) + "."
			}
		}
		return "Here is what I found: " + sentence(fields(result)) + "."
	}
	return "Here is what I found: " + sentence(speakable(value)) + "."
}

// fields says an object's fields in the order they were sent.
func fields(object string) string {
	decoder := json.NewDecoder(strings.NewReader(object))
	decoder.UseNumber()
	if _, err := decoder.Token(); err != nil {
		return object
	}
	var parts []string
	for decoder.More() && len(parts) < 6 {
		key, err := decoder.Token()
		var value any
		if err != nil || decoder.Decode(&value) != nil {
			break
		}
		parts = append(parts, fmt.Sprintf("%s is %s", label(fmt.Sprint(key)), speakable(value)))
	}
	return strings.Join(parts, ", ")
}

// speakable is a JSON value in words.
func speakable(value any) string {
	switch v := value.(type) {
	case nil:
		return "unknown"
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		var parts []string
		for i, e := range v {
			if i == 3 {
				parts = append(parts, fmt.Sprintf("and %d more", len(v)-i))
				break
			}
			parts = append(parts, speakable(e))
		}
		if len(parts) == 0 {
			return "nothing"
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		var b bytes.Buffer
		if json.NewEncoder(&b).Encode(v) != nil {
			return "unknown"
		}
		return fields(b.String())
	default:
		return fmt.Sprint(v)
	}
}

// short keeps a spoken text to what a listener can follow.
func short(text string) string {
	const most = 40
	words := strings.Fields(text)
	if len(words) > most {
		words = words[:most]
	}
	return strings.Join(words, " ")
}
