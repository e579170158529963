package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"parley/internal/provider/vendor"
)

const (
	mostErrorBody = 64 << 10 // read of an answer that is an error
	overloaded    = 529      // the vendor's own status
)

// refusal is an answer that is an error.
type refusal struct {
	status     int
	message    string
	retryAfter string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d", r.status) }

// refuse reads errors in place of the vendor's client, whose own words hold the
// address and the whole body.
func (p *Provider) refuse(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, mostErrorBody)) // what came is what can be told
	return nil, &refusal{status: response.StatusCode, message: messageOf(body), retryAfter: response.Header.Get("Retry-After")}
}

// messageOf finds the vendor's words in the body of an error.
func messageOf(body []byte) string {
	var top struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &top) != nil {
		return ""
	}
	return top.Error.Message
}

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
	var refused *refusal
	var streamed *sdk.Error
	var syntax *json.SyntaxError
	var transport *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", who, p.words(refused))
	case errors.As(err, &streamed):
		return fmt.Errorf("%s: the answer broke off: %s", who, p.clean(messageOf([]byte(streamed.RawJSON()))))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: the service sent what is not JSON", who)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s: the connection was lost in the middle of the answer", who)
	case errors.As(err, &transport):
		return fmt.Errorf("%s: the service cannot be reached: %s", who, p.clean(transport.Err.Error()))
	}
	return fmt.Errorf("%s: %s", who, p.clean(err.Error()))
}

// words are what a status means.
func (p *Provider) words(r *refusal) string {
	var meaning string
	switch {
	case r.status == http.StatusUnauthorized:
		return "the key was refused (401)"
	case r.status == http.StatusForbidden:
		return "the key does not allow this (403)"
	case r.status == http.StatusTooManyRequests:
		meaning = "too many requests (429)"
		if r.retryAfter != "" {
			meaning += ", to be tried again after " + p.clean(r.retryAfter) + " s"
		}
	case r.status == overloaded:
		meaning = "the service is overloaded (529)"
	case r.status >= http.StatusInternalServerError:
		meaning = fmt.Sprintf("the service failed (%d)", r.status)
	default:
		meaning = fmt.Sprintf("the request was refused (%d)", r.status)
	}
	if m := p.clean(r.message); m != "" {
		meaning += ": " + m
	}
	return meaning
}

// clean makes a foreign text safe to keep: short, on one line, and without the key.
func (p *Provider) clean(text string) string { return vendor.Clean(text, p.options.APIKey) }
