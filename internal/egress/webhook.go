package egress

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
)

// Delivery is a message for a webhook. Its ID stays the same on every try.
type Delivery struct {
	ID      string
	URL     string
	Body    []byte
	Secrets []string // the live ones, the newest first
}

// Attempt is one try to deliver a message.
type Attempt struct {
	At         time.Time
	Duration   time.Duration
	Status     int             // 0 when there was no answer
	Answer     string          // text, at most 20,000 bytes
	RetryAfter time.Duration   // what the receiver asked for
	Failure    *parley.Failure // nil when it was delivered
}

// Delivered says whether the receiver has taken the message.
func (a Attempt) Delivered() bool { return a.Failure == nil }

const (
	deliveryLimit = 15 * time.Second
	askLimit      = 2 * time.Second
	mostStored    = 20_000 // bytes of a receiver's answer
)

// Deliver tries once to deliver a message. A 2xx is success, whatever follows it.
func (c *Client) Deliver(ctx context.Context, d Delivery) Attempt {
	attempt, a := c.post(ctx, d, c.deliver, mostStored)
	attempt.Answer = keepable(a.body)
	return attempt
}

// Ask sends a message whose answer counts: the variables of a call that comes in. The
// caller waits on the line, so that a late answer, like a broken one, is none: then
// the variables are nil.
func (c *Client) Ask(ctx context.Context, d Delivery) (variables map[string]any, attempt Attempt) {
	attempt, a := c.post(ctx, d, c.ask, mostAnswer)
	attempt.Answer = keepable(a.body[:min(len(a.body), mostStored)])
	if !attempt.Delivered() || a.truncated || a.broken {
		return nil, attempt
	}
	variables, _ = parley.WebhookVariables(a.body)
	return variables, attempt
}

func (c *Client) post(ctx context.Context, d Delivery, limit time.Duration, most int) (Attempt, answer) {
	attempt := Attempt{At: time.Now()}
	fail := func(kind parley.FailureKind, message string) {
		attempt.Failure = &parley.Failure{Kind: kind, Message: message}
	}
	signed, err := Sign(d.ID, attempt.At, d.Body, d.Secrets)
	if err != nil {
		fail(parley.Unsendable, err.Error())
		return attempt, answer{}
	}
	request, err := http.NewRequestWithContext(ctx, "POST", d.URL, bytes.NewReader(d.Body))
	if err != nil || parley.URL(d.URL) != "" {
		fail(parley.Unsendable, "the webhook's address is not valid")
		return attempt, answer{}
	}
	maps.Copy(request.Header, signed)
	request.Header.Set("Content-Type", "application/json")
	a, failure := c.send(ctx, request, limit, most)
	attempt.Status, attempt.Duration, attempt.Failure = a.status, a.took, failure
	switch {
	case a.status == 0:
	case a.status >= 200 && a.status < 300:
		attempt.Failure = nil
	case a.status >= 300 && a.status < 400:
		fail(parley.Moved, fmt.Sprintf("answered with a redirect (status %d), which is not followed", a.status))
	default:
		fail(parley.BadStatus, fmt.Sprintf("answered with status %d", a.status))
	}
	attempt.RetryAfter = retryAfter(a.header.Get("Retry-After"), attempt.At)
	return attempt, a
}

// longestRetryAfter bounds what a receiver can ask for.
const longestRetryAfter = 24 * time.Hour

// retryAfter reads a Retry-After: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	var after time.Duration
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		after = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), longestRetryAfter)
}

// keepable is a body as a text column holds it, and never longer.
func keepable(body []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(body), "?"), "\x00", "?")
}
