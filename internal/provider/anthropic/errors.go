package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"parley/internal/provider/wire"
)

// refuse reads errors in place of the vendor's client, whose own words hold the
// address and the whole body.
func (p *Provider) refuse(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	return nil, wire.ReadRefusal(response, messageOf)
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

// explain says what went wrong in words fit for a call's record.
func (p *Provider) explain(ctx context.Context, err error) error {
	const who = name + " model"
	if streamed, ok := errors.AsType[*sdk.Error](err); ok && ctx.Err() == nil {
		return fmt.Errorf("%s: the answer broke off: %s", who, wire.Clean(messageOf([]byte(streamed.RawJSON())), p.options.APIKey))
	}
	return wire.Explain(ctx, who, p.options.APIKey, err)
}
