// Package parley is the domain of a voice-assistant calling service: its words,
// rules, state machines and arithmetic. It uses the standard library alone,
// starts no goroutine and touches neither network nor disk, so everything in it
// can be tested by calling it.
package parley

import (
	"bytes"
	"encoding/json"
	"time"
)

// ID identifies a resource. Ids are positive and never reused.
type ID = int64

// Bit is a yes-or-no that the interface shows as 1 or 0.
type Bit bool

// MarshalJSON writes 1 or 0.
func (b Bit) MarshalJSON() ([]byte, error) {
	if b {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

// UnmarshalJSON reads what MarshalJSON wrote, and JSON booleans.
func (b *Bit) UnmarshalJSON(raw []byte) error {
	*b = string(raw) == "1" || string(raw) == "true"
	return nil
}

// Object is an object of a user's own, such as the variables of an assistant. Its
// numbers keep their digits.
type Object map[string]any

// UnmarshalJSON reads an object.
func (o *Object) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(o))
}

// Timestamp is how tools, assistants and campaigns show a time: ISO 8601 in UTC
// with microseconds.
func Timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// ShortTimestamp is how calls and leads show a time.
func ShortTimestamp(t time.Time) string {
	return t.UTC().Format(time.DateTime)
}
