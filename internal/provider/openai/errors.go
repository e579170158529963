package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"parley/internal/provider/wire"
)

// refusal is an answer that is an error, and which setting it is about.
type refusal struct {
	wire.RefusalError

	param string
}

// Unwrap has the refusal put into words like any other.
func (r *refusal) Unwrap() error { return &r.RefusalError }

// refuse reads errors in place of the vendor's client, which loses the status of one
// whose body is not as OpenAI writes it.
func (p *Provider) refuse(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	var refused refusal
	refused.RefusalError = *wire.ReadRefusal(response, func(body []byte) (message string) {
		message, refused.param = messageOf(body)
		return message
	})
	return nil, &refused
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

// explain says what went wrong in words fit for a call's record.
func (p *Provider) explain(ctx context.Context, part string, err error) error {
	who := p.options.Name + " " + part
	if streamed, ok := errors.AsType[*ssestream.StreamError](err); ok && ctx.Err() == nil {
		message, _ := messageOf(streamed.Event.Data)
		return fmt.Errorf("%s: the answer broke off: %s", who, wire.Clean(message, p.options.APIKey))
	}
	return wire.Explain(ctx, who, p.options.APIKey, err)
}
