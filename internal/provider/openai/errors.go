package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"parley/internal/provider/vendor"
)

const (
	mostErrorBody = 64 << 10 // read of an answer that is an error
)

// refusal is an answer that is an error.
type refusal struct {
	status     int
	message    string
	param      string
	retryAfter string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d", r.status) }

// refuse reads errors in place of the vendor's client, which loses the status of one
// whose body is not as OpenAI writes it.
func (p *Provider) refuse(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, mostErrorBody)) // what came is what can be told
	message, param := messageOf(body)
	return nil, &refusal{status: response.StatusCode, message: message, param: param, retryAfter: response.Header.Get("Retry-After")}
}

// messageOf finds the words in the shapes of error that servers use: an object under
// "error" (OpenAI, Ollama), a text there (llama.cpp), or a message at the top (vLLM).
func messageOf(body []byte) (message, param string) {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		return "", ""
	}
	var inner struct {
		Message string `json:"message"`
		Param   string `json:"param"`
	}
	var text string
	switch {
	case json.Unmarshal(top.Error, &inner) == nil && inner.Message != "":
		return inner.Message, inner.Param
	case json.Unmarshal(top.Error, &text) == nil:
		return text, ""
	case top.Message != "":
		return top.Message, ""
	}
	return top.Detail, ""
}

// explain says what went wrong in words fit for a call's record: who, and what, and
// nothing that is secret.
func (p *Provider) explain(ctx context.Context, part string, err error) error {
	who := p.options.Name + " " + part
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%s: no word from the server for %v", who, p.options.Silence)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", who, ctx.Err())
	}
	var refused *refusal
	var streamed *ssestream.StreamError
	var syntax *json.SyntaxError
	var transport *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", who, p.words(refused))
	case errors.As(err, &streamed):
		message, _ := messageOf(streamed.Event.Data)
		return fmt.Errorf("%s: the answer broke off: %s", who, p.clean(message))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: the server sent what is not JSON", who)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s: the connection was lost in the middle of the answer", who)
	case errors.As(err, &transport):
		return fmt.Errorf("%s: the server cannot be reached: %s", who, p.clean(transport.Err.Error()))
	}
	return fmt.Errorf("%s: %s", who, p.clean(err.Error()))
}

// words are what a status means. The vendor's message to a wrong key is left out,
// because it repeats parts of the key.
func (p *Provider) words(r *refusal) string {
	var meaning string
	switch {
	case r.status == http.StatusUnauthorized:
		return "the key was refused (401)"
	case r.status == http.StatusForbidden:
		return "the key does not allow this (403)"
	case r.status == http.StatusTooManyRequests:
		meaning = "too many requests or no credit left (429)"
		if r.retryAfter != "" {
			meaning += ", to be tried again after " + p.clean(r.retryAfter) + " s"
		}
	case r.status >= http.StatusInternalServerError:
		meaning = fmt.Sprintf("the server failed (%d)", r.status)
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
