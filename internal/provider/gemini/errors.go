package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"parley/internal/provider/wire"
)

// explain says what went wrong in words fit for a call's record.
func (p *Provider) explain(ctx context.Context, who string, err error) error {
	if ctx.Err() == nil {
		if refused, ok := errors.AsType[genai.APIError](err); ok {
			return fmt.Errorf("%s: %s", who, p.words(&refused))
		}
		if strings.Contains(err.Error(), "invalid stream chunk") {
			return fmt.Errorf("%s: the service sent what is not JSON", who)
		}
	}
	return wire.Explain(ctx, who, p.options.APIKey, err)
}

// words are what an error means. The vendor refuses a wrong key with 400 and says so
// only in the details.
func (p *Provider) words(e *genai.APIError) string {
	if detail(e, "reason") == "API_KEY_INVALID" {
		return fmt.Sprintf("the key was refused (%d)", e.Code)
	}
	refusal := wire.RefusalError{Status: e.Code, Message: e.Message, RetryAfter: detail(e, "retryDelay")}
	return refusal.Words(p.options.APIKey)
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

// messageOf finds the vendor's words in the body of an error.
func messageOf(body []byte) string {
	var top struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &top) // what is not JSON says nothing
	return top.Error.Message
}
