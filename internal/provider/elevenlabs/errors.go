package elevenlabs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"parley/internal/provider/wire"
)

const who = "elevenlabs speaker"

// explain says what went wrong in words fit for a call's record.
func (p *Provider) explain(ctx context.Context, err error) error {
	return wire.Explain(ctx, who, p.options.APIKey, err)
}

// refused says what an answer means that is an error. The vendor answers with 401 both
// to a wrong key and to an account without credit, and tells them apart in the body.
func (p *Provider) refused(r *http.Response) error {
	var status string
	refusal := wire.ReadRefusal(r, func(body []byte) (message string) {
		status, message = detail(body)
		return message
	})
	if status == "quota_exceeded" {
		return fmt.Errorf("%s: no credit left (%d)", who, r.StatusCode)
	}
	return fmt.Errorf("%s: %s", who, refusal.Words(p.options.APIKey))
}

// detail reads the vendor's error, an object or, when a field is wrong, a list.
func detail(body []byte) (status, message string) {
	var top struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		return "", ""
	}
	var one struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal(top.Detail, &one) == nil {
		return one.Status, one.Message
	}
	var many []struct {
		Message string `json:"msg"`
	}
	if json.Unmarshal(top.Detail, &many) == nil && len(many) > 0 {
		return "", many[0].Message
	}
	return "", ""
}
