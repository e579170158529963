package deepgram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"

	"parley/internal/provider/vendor"
)

const (
	who           = "deepgram transcriber"
	mostErrorBody = 1024 // of a refused opening, as the WebSocket client keeps it
)

// refused says why a stream was not opened.
func (p *Provider) refused(ctx context.Context, response *http.Response, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", who, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no stream within %v", who, p.options.OpenLimit)
	case response == nil:
		return fmt.Errorf("%s: the service cannot be reached", who)
	}
	return fmt.Errorf("%s: %s", who, p.words(response))
}

// words are what the answer to an opening means.
func (p *Provider) words(r *http.Response) string {
	var meaning string
	switch {
	case r.StatusCode == http.StatusUnauthorized:
		return "the key was refused (401)"
	case r.StatusCode == http.StatusForbidden:
		return "the key does not allow this (403)"
	case r.StatusCode == http.StatusPaymentRequired:
		return "no credit left (402)"
	case r.StatusCode == http.StatusTooManyRequests:
		meaning = "too many streams at once (429)"
		if after := r.Header.Get("Retry-After"); after != "" {
			meaning += ", to be tried again after " + p.clean(after) + " s"
		}
	case r.StatusCode >= http.StatusInternalServerError:
		meaning = fmt.Sprintf("the service failed (%d)", r.StatusCode)
	default:
		meaning = fmt.Sprintf("the stream was refused (%d)", r.StatusCode)
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, mostErrorBody)) // what came is what can be told
	var told struct {
		Message string `json:"err_msg"`
	}
	if json.Unmarshal(body, &told) != nil || told.Message == "" {
		told.Message = r.Header.Get("Dg-Error")
	}
	if m := p.clean(told.Message); m != "" {
		meaning += ": " + m
	}
	return meaning
}

// broken says why a stream ended that should not have. The vendor closes with a code
// in words, such as NET-0001 for a stream that brings no sound.
func (p *Provider) broken(err error) error {
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		if reason := p.clean(closed.Reason); reason != "" {
			return fmt.Errorf("%s: the service ended the stream: %s", who, reason)
		}
		return fmt.Errorf("%s: the service ended the stream (%d)", who, int(closed.Code))
	}
	return fmt.Errorf("%s: the connection was lost", who)
}

// clean makes a foreign text safe to keep: short, on one line, and without the key.
func (p *Provider) clean(text string) string { return vendor.Clean(text, p.options.APIKey) }
