package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genai"

	"parley/internal/provider/vendor"
)

// explain says what went wrong in words fit for a call's record: who, and what, and
// nothing that is secret.
func (p *Provider) explain(ctx context.Context, err error) error {
	const who = name + " model"
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%s: no word from the service for %v", who, p.options.Silence)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", who, ctx.Err())
	}
	var refused genai.APIError
	var syntax *json.SyntaxError
	var transport *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", who, p.words(&refused))
	case errors.As(err, &syntax), strings.Contains(err.Error(), "invalid stream chunk"):
		return fmt.Errorf("%s: the service sent what is not JSON", who)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s: the connection was lost in the middle of the answer", who)
	case errors.As(err, &transport):
		return fmt.Errorf("%s: the service cannot be reached: %s", who, p.clean(transport.Err.Error()))
	}
	return fmt.Errorf("%s: %s", who, p.clean(err.Error()))
}

// words are what an error means. The vendor refuses a wrong key with 400 and says so
// only in the details.
func (p *Provider) words(e *genai.APIError) string {
	var meaning string
	switch {
	case e.Code == http.StatusUnauthorized, detail(e, "reason") == "API_KEY_INVALID":
		return fmt.Sprintf("the key was refused (%d)", e.Code)
	case e.Code == http.StatusForbidden:
		return "the key does not allow this (403)"
	case e.Code == http.StatusTooManyRequests:
		meaning = "too many requests or no credit left (429)"
		if delay := detail(e, "retryDelay"); delay != "" {
			meaning += ", to be tried again after " + p.clean(delay)
		}
	case e.Code == http.StatusServiceUnavailable:
		meaning = "the service is overloaded (503)"
	case e.Code >= http.StatusInternalServerError:
		meaning = fmt.Sprintf("the service failed (%d)", e.Code)
	default:
		meaning = fmt.Sprintf("the request was refused (%d)", e.Code)
	}
	if m := p.clean(e.Message); m != "" {
		meaning += ": " + m
	}
	return meaning
}

// detail finds a field in an error's details, whichever of them has it.
func detail(e *genai.APIError, field string) string {
	for _, d := range e.Details {
		if text, ok := d[field].(string); ok {
			return text
		}
	}
	return ""
}

// clean makes a foreign text safe to keep: short, on one line, and without the key.
func (p *Provider) clean(text string) string { return vendor.Clean(text, p.options.APIKey) }
