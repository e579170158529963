package parley

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Code says what kind of failure an Error is, for machines.
type Code string

// The kinds of failure a user can meet.
const (
	Invalid   Code = "invalid"   // what was sent breaks a rule
	NotFound  Code = "not_found" // unknown, or another user's: the two look the same
	Limit     Code = "limit"     // a limit of the user's plan
	Conflict  Code = "conflict"  // the resource is in use or in another state
	Forbidden Code = "forbidden" // the operator's policy does not allow it
	Payment   Code = "payment"   // a limit of what may be spent
	TooMany   Code = "too_many"  // a limit of how much at once
	Reused    Code = "reused"    // an Idempotency-Key that stands for another request
)

// Error is a failure meant for a user's eyes: its message names what is wrong and
// what to do. Every other error is internal and never leaves the process.
type Error struct {
	Code    Code
	Message string
	Fields  FieldErrors // what is wrong with each field, for Invalid

	RetryAfter int // seconds, for TooMany
}

func (e *Error) Error() string { return e.Message }

// ErrNotFound is the error of an id that does not exist for the caller.
func ErrNotFound(what string) *Error {
	return &Error{Code: NotFound, Message: what + " not found"}
}

// ErrorCode is the code of the Error in err's chain, or "" for an internal error.
func ErrorCode(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// FieldErrors lists what is wrong with the fields of a request, in the order of
// the resource's table.
type FieldErrors []FieldError

// FieldError is what is wrong with one field.
type FieldError struct {
	Field    string
	Messages []string
}

// Add appends a message for a field.
func (es *FieldErrors) Add(field, message string) {
	for i := range *es {
		if (*es)[i].Field == field {
			(*es)[i].Messages = append((*es)[i].Messages, message)
			return
		}
	}
	*es = append(*es, FieldError{Field: field, Messages: []string{message}})
}

// Has reports whether a field has an error.
func (es FieldErrors) Has(field string) bool {
	for _, e := range es {
		if e.Field == field {
			return true
		}
	}
	return false
}

// Under reports whether the field or anything inside it has an error.
func (es FieldErrors) Under(field string) bool {
	for _, e := range es {
		if e.Field == field || strings.HasPrefix(e.Field, field+".") {
			return true
		}
	}
	return false
}

// Count is how many messages there are.
func (es FieldErrors) Count() (n int) {
	for _, e := range es {
		n += len(e.Messages)
	}
	return n
}

// MarshalJSON writes an object of arrays: {"name": ["The name field is required."]}.
func (es FieldErrors) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range es {
		if i > 0 {
			b.WriteByte(',')
		}
		field, err := json.Marshal(e.Field)
		if err != nil {
			return nil, err
		}
		messages, err := json.Marshal(e.Messages)
		if err != nil {
			return nil, err
		}
		b.Write(field)
		b.WriteByte(':')
		b.Write(messages)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
