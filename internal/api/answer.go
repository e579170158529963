package api

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"

	"parley"
)

// answerWriter writes one JSON answer and remembers its status.
type answerWriter struct {
	http.ResponseWriter
	id     string
	status int
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func newAnswerWriter(w http.ResponseWriter, r *http.Request) *answerWriter {
	id := r.Header.Get("X-Request-Id")
	if !requestID.MatchString(id) {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails on a supported system
		id = hex.EncodeToString(b[:])
	}
	header := w.Header()
	header.Set("X-Request-Id", id)
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	return &answerWriter{ResponseWriter: w, id: id}
}

func (w *answerWriter) json(status int, body []byte) {
	w.status = status
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone away is nobody's error
}

func (w *answerWriter) message(status int, message string) {
	w.json(status, encode(struct {
		Message string `json:"message"`
	}{message}))
}

// encode writes JSON without escaping <, > and &, which stand in page labels and addresses.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only values made here come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// statusOf are the statuses of failures that are not 422.
var statusOf = map[parley.Code]int{
	parley.NotFound:  http.StatusNotFound,
	parley.Forbidden: http.StatusForbidden,
	parley.Payment:   http.StatusPaymentRequired,
	parley.TooMany:   http.StatusTooManyRequests,
	parley.Reused:    http.StatusConflict,
}

// problem is the answer to an error that is meant for the user.
func problem(err error) (status int, body []byte, ok bool) {
	e, ok := errors.AsType[*parley.Error](err)
	if !ok {
		return 0, nil, false
	}
	status = http.StatusUnprocessableEntity
	if other, ok := statusOf[e.Code]; ok {
		status = other
	}
	if e.Code == parley.TooMany {
		return status, encode(struct {
			Message    string `json:"message"`
			RetryAfter int    `json:"retry_after"`
			Reason     string `json:"reason"`
		}{"Too Many Attempts.", e.RetryAfter, e.Message}), true
	}
	if e.Fields == nil {
		return status, encode(map[string]string{"message": e.Message}), true
	}
	return status, encode(struct {
		Message string             `json:"message"`
		Errors  parley.FieldErrors `json:"errors"`
	}{e.Message, e.Fields}), true
}

// ok is a bare answer.
func ok(body []byte, err error) (*reply, error) {
	return &reply{status: http.StatusOK, body: body}, err
}

// done is the envelope of a change: a message, and what there is now.
func done(status int, message string, data []byte) *reply {
	b := append([]byte(`{"message":`), encode(message)...)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return &reply{status: status, body: append(b, '}')}
}

// record is a resource as its owner sees it.
func record[T any](form parley.Form[T], of *T) ([]byte, error) { return form.AppendRecord(nil, of) }

// records is a bare array of resources.
func records[T any](form parley.Form[T], all []T, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	b := []byte{'['}
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = form.AppendRecord(b, &all[i]); err != nil {
			return nil, err
		}
		if i == 0 {
			b = slices.Grow(b, len(b)*len(all)) // the others will be about as long as the first
		}
	}
	return append(b, ']'), nil
}
