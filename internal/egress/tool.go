package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
)

// Invocation is one wish of a model to run a tool.
type Invocation struct {
	Assistant *parley.Assistant
	Call      parley.CallFacts
	Number    int // of the call's invocations
	Arguments map[string]any
}

const (
	// mostAnswer bounds what a tool tells the model, in bytes.
	mostAnswer = 64 << 10
	// mostReason bounds what a refusal of a tool's adds to the failure.
	mostReason = 160
	// toolLimit is for a tool whose record names none.
	toolLimit = 10 * time.Second
)

// RunTool runs a tool once and says what happened, for the call's record; its Result
// is for the model.
func (c *Client) RunTool(ctx context.Context, tool parley.Tool, in Invocation) parley.Exchange {
	arguments := tool.Arguments(in.Arguments)
	e := parley.Exchange{Tool: tool.Name, Method: tool.Method, Arguments: arguments}
	placed, failure := tool.Place(arguments, in.Call.Values(in.Assistant, time.Now()))
	if failure != nil {
		e.Failure = failure
		return e
	}
	e.URL = placed.Shown
	request, err := toolRequest(ctx, tool.Method, placed, fmt.Sprintf("%s-%d", in.Call.CallID, in.Number))
	if err != nil {
		e.Failure = &parley.Failure{Kind: parley.Unsendable, Message: "the tool's address is not valid"}
		return e
	}
	limit := toolLimit
	if tool.Timeout > 0 {
		limit = time.Duration(tool.Timeout) * time.Second
	}
	a, failure := c.send(ctx, request, limit, mostAnswer)
	e.Status, e.Size, e.Truncated, e.DurationMS = a.status, len(a.body), a.truncated, int(a.took.Milliseconds())
	if failure != nil {
		e.Failure = failure
		return e
	}
	e.Answer, e.Failure = read(a, secrets(placed.Headers))
	return e
}

// Tool is RunTool as the switchboard asks for it.
func (c *Client) Tool(ctx context.Context, a *parley.Assistant, tool parley.Tool, call parley.CallFacts, number int, arguments map[string]any) parley.Exchange {
	return c.RunTool(ctx, tool, Invocation{Assistant: a, Call: call, Number: number, Arguments: arguments})
}

func toolRequest(ctx context.Context, method string, placed parley.Placement, key string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, placed.URL, bytes.NewReader(placed.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, text/plain;q=0.9, */*;q=0.1")
	if placed.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	// The user's headers win over these, and several of one name are all sent.
	for _, h := range placed.Headers {
		request.Header.Del(h.Name)
	}
	for _, h := range placed.Headers {
		request.Header.Add(h.Name, h.Value)
	}
	request.Header.Set("Idempotency-Key", key)
	return request, nil
}

// read is what an answer tells the model. Values of the tool's headers are taken out:
// some servers echo them.
func read(a answer, secrets []string) (string, *parley.Failure) {
	text, ok := readable(a.body, a.truncated)
	text = conceal(text, secrets)
	switch {
	case a.status >= 300 && a.status < 400:
		return "", &parley.Failure{Kind: parley.Moved, Message: fmt.Sprintf("the tool answered with a redirect (status %d), which is not followed", a.status)}
	case a.status < 200 || a.status >= 400:
		return "", &parley.Failure{Kind: parley.BadStatus, Message: refusal(a.status, text)}
	case !ok:
		return "", &parley.Failure{Kind: parley.Unreadable, Message: "the tool answered with something that is neither JSON nor text"}
	}
	return text, nil
}

// refusal names the status and, where the tool says so in a word, the reason: that an
// order does not exist is worth telling the customer.
func refusal(status int, reason string) string {
	message := fmt.Sprintf("the tool answered with status %d", status)
	if name := http.StatusText(status); name != "" {
		message += " (" + name + ")"
	}
	if reason != "" && len(reason) <= mostReason && status < 500 {
		message += ": " + reason
	}
	return message
}

// readable is a body as text, if it is JSON or text. What it is is seen from the body:
// many servers declare one thing and send another.
func readable(body []byte, truncated bool) (string, bool) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if truncated {
		for range utf8.UTFMax - 1 { // the cut may go through a character
			if r, size := utf8.DecodeLastRune(body); r == utf8.RuneError && size == 1 {
				body = body[:len(body)-1]
			}
		}
	}
	text := strings.TrimSpace(string(body))
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' }) {
		return "", false
	}
	start := strings.ToLower(text[:min(len(text), 15)])
	if strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html") {
		return "", false
	}
	return text, true
}

// leastSecret keeps values like "1" or "true" from being taken out of every answer.
const leastSecret = 6

// open are headers whose values are no secret and could well stand in an answer.
var open = []string{"accept", "accept-charset", "accept-language", "cache-control", "content-type", "user-agent"}

// secrets are what must not be told of a request's headers: each value, its part after
// a scheme like Bearer, and both as they would stand in JSON.
func secrets(headers []parley.Header) (all []string) {
	for _, h := range headers {
		if slices.Contains(open, strings.ToLower(h.Name)) {
			continue
		}
		_, credentials, _ := strings.Cut(h.Value, " ")
		for _, s := range []string{h.Value, credentials} {
			if len(s) < leastSecret {
				continue
			}
			quoted, _ := json.Marshal(s) // a string always encodes
			all = append(all, s, string(quoted[1:len(quoted)-1]))
		}
	}
	// The longest first: what is left of it must not stand beside what was taken out.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

func conceal(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}
