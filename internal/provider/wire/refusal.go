package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

const (
	mostErrorBody    = 64 << 10 // read of an answer that is an error
	statusOverloaded = 529      // which some vendors made up
)

// RefusalError is an answer that is an error: a status, and the vendor's words if it has any.
type RefusalError struct {
	Status     int
	Message    string
	RetryAfter string // with its unit
}

func (r *RefusalError) Error() string { return fmt.Sprintf("status %d", r.Status) }

// ReadRefusal reads an answer that is an error; message finds the vendor's words in it.
func ReadRefusal(r *http.Response, message func(body []byte) string) *RefusalError {
	body, _ := io.ReadAll(io.LimitReader(r.Body, mostErrorBody)) // what came is what can be told
	refusal := &RefusalError{Status: r.StatusCode, Message: message(body)}
	if after := r.Header.Get("Retry-After"); after != "" {
		refusal.RetryAfter = after + " s"
	}
	return refusal
}

// Words are what a refusal means. The vendor's message to a wrong key is left out,
// because some repeat parts of the key.
func (r *RefusalError) Words(key string) string {
	var meaning string
	switch {
	case r.Status == http.StatusUnauthorized:
		return "the key was refused (401)"
	case r.Status == http.StatusPaymentRequired:
		return "no credit left (402)"
	case r.Status == http.StatusForbidden:
		return "the key does not allow this (403)"
	case r.Status == http.StatusTooManyRequests:
		meaning = "too many requests or no credit left (429)"
	case r.Status == statusOverloaded || r.Status == http.StatusServiceUnavailable:
		meaning = fmt.Sprintf("the service is overloaded (%d)", r.Status)
	case r.Status >= http.StatusInternalServerError:
		meaning = fmt.Sprintf("the service failed (%d)", r.Status)
	default:
		meaning = fmt.Sprintf("the request was refused (%d)", r.Status)
	}
	if r.RetryAfter != "" {
		meaning += ", to be tried again after " + Clean(r.RetryAfter, key)
	}
	if m := Clean(r.Message, key); m != "" {
		meaning += ": " + m
	}
	return meaning
}

// Explain says what went wrong in words fit for a call's record: who, and what, and
// nothing that is secret. An error of a kind that only the vendor's client knows must
// have been put into words before.
func Explain(ctx context.Context, who, key string, err error) error {
	if silent, ok := errors.AsType[*silentError](context.Cause(ctx)); ok {
		return fmt.Errorf("%s: %w", who, silent)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", who, ctx.Err())
	}
	var refused *RefusalError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var transport *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", who, refused.Words(key))
	case errors.As(err, &syntax), errors.As(err, &kind):
		return fmt.Errorf("%s: the service sent what is not JSON", who)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s: the connection was lost in the middle of the answer", who)
	case errors.As(err, &transport):
		return fmt.Errorf("%s: the service cannot be reached: %s", who, Clean(transport.Err.Error(), key))
	}
	return fmt.Errorf("%s: %s", who, Clean(err.Error(), key))
}
