package cartesia

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"parley/internal/provider/vendor"
)

const (
	who = "cartesia speaker"
)

// refusal is an error that the service told: a status, and words if it has any.
type refusal struct {
	status     int
	message    string
	retryAfter string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d", r.status) }

// explain says what went wrong in words fit for a call's record: who, and what, and
// nothing that is secret.
func (p *Provider) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%s: no sound from the service for %v", who, p.options.Silence)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", who, ctx.Err())
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return fmt.Errorf("%s: %s", who, p.words(r))
	}
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		return fmt.Errorf("%s: the service ended the connection (%d)", who, int(closed.Code))
	}
	if errors.Is(err, errMalformed) || errors.Is(err, errEmpty) || errors.Is(err, errUnreachable) {
		return fmt.Errorf("%s: %w", who, err)
	}
	return fmt.Errorf("%s: the connection was lost", who)
}

var (
	errMalformed   = errors.New("the service sent what is not an event")
	errEmpty       = errors.New("the service sent no sound")
	errUnreachable = errors.New("the service cannot be reached")
)

// words are what a status means.
func (p *Provider) words(r *refusal) string {
	var meaning string
	switch {
	case r.status == http.StatusUnauthorized:
		return "the key was refused (401)"
	case r.status == http.StatusPaymentRequired:
		return "no credit left (402)"
	case r.status == http.StatusForbidden:
		return "the key does not allow this (403)"
	case r.status == http.StatusTooManyRequests:
		meaning = "too many requests (429)"
		if r.retryAfter != "" {
			meaning += ", to be tried again after " + p.clean(r.retryAfter) + " s"
		}
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
