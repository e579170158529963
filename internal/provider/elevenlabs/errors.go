package elevenlabs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"parley/internal/provider/vendor"
)

const (
	who           = "elevenlabs speaker"
	mostErrorBody = 64 << 10 // read of an answer that is an error
)

// explain says what went wrong in words fit for a call's record: who, and what, and
// nothing that is secret.
func (p *Provider) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%s: no sound from the service for %v", who, p.options.Silence)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", who, ctx.Err())
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var transport *url.Error
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind):
		return fmt.Errorf("%s: the service sent what is not JSON", who)
	case errors.As(err, &transport):
		return fmt.Errorf("%s: the service cannot be reached: %s", who, p.clean(transport.Err.Error()))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the connection was lost in the middle of the sentence", who)
	}
	return fmt.Errorf("%s: %s", who, p.clean(err.Error()))
}

// refused says what an answer means that is an error. The vendor answers with 401 both
// to a wrong key and to an account without credit, and tells them apart in the body.
func (p *Provider) refused(r *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, mostErrorBody)) // what came is what can be told
	status, message := detail(body)
	var meaning string
	switch {
	case status == "quota_exceeded":
		return fmt.Errorf("%s: no credit left (%d)", who, r.StatusCode)
	case r.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s: the key was refused (401)", who)
	case r.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: the key does not allow this (403)", who)
	case r.StatusCode == http.StatusTooManyRequests:
		meaning = "too many requests (429)"
		if after := r.Header.Get("Retry-After"); after != "" {
			meaning += ", to be tried again after " + p.clean(after) + " s"
		}
	case r.StatusCode >= http.StatusInternalServerError:
		meaning = fmt.Sprintf("the service failed (%d)", r.StatusCode)
	default:
		meaning = fmt.Sprintf("the request was refused (%d)", r.StatusCode)
	}
	if m := p.clean(message); m != "" {
		meaning += ": " + m
	}
	return fmt.Errorf("%s: %s", who, meaning)
}

// detail reads the vendor's error, an object or, when a field is wrong, a list.
func detail(body []byte) (status, message string) {
	var top struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		return "", ""
	}
	var one struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal(top.Detail, &one) == nil {
		return one.Status, one.Message
	}
	var many []struct {
		Message string `json:"msg"`
	}
	if json.Unmarshal(top.Detail, &many) == nil && len(many) > 0 {
		return "", many[0].Message
	}
	return "", ""
}

// clean makes a foreign text safe to keep: short, on one line, and without the key.
func (p *Provider) clean(text string) string { return vendor.Clean(text, p.options.APIKey) }
