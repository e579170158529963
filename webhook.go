package parley

import (
	"encoding/json"
	"slices"
)

// WebhookSwitch is a request to turn one of an assistant's webhooks on or off.
type WebhookSwitch struct {
	AssistantID ID
	URL         string
}

// DisableWebhookForm is the table of a request that turns a webhook off.
var DisableWebhookForm = Form[WebhookSwitch]{
	{Name: "assistant_id", At: func(s *WebhookSwitch) any { return &s.AssistantID }, Rule: Rule{Required: true}, Effect: "The assistant.", Example: 12},
}

// EnableWebhookForm is the table of a request that turns a webhook on.
var EnableWebhookForm = append(slices.Clip(DisableWebhookForm), Field[WebhookSwitch]{
	Name: "webhook_url", At: func(s *WebhookSwitch) any { return &s.URL }, Rule: Rule{Required: true, Max: 2048, Check: URL},
	Effect: "Where the notifications go.", Example: "https://crm.example.com/parley",
})

// ReadWebhookSwitch reads a request of one of the two forms.
func ReadWebhookSwitch(form Form[WebhookSwitch], in Input) (WebhookSwitch, error) {
	var s WebhookSwitch
	_, errs := form.Create(in, &s)
	return s, invalid(errs, DataInvalid)
}

// WebhookVariables reads what an inbound webhook answered: an object of variables, or
// one that holds them under "variables". Anything else, and what could not be kept
// with the call, is no answer.
func WebhookVariables(answer []byte) (variables Object, ok bool) {
	if !json.Valid(answer) || json.Unmarshal(answer, &variables) != nil || variables == nil {
		return nil, false
	}
	if inner, nested := variables["variables"]; nested {
		if list, isList := inner.([]any); isList && len(list) == 0 {
			inner = map[string]any{} // some languages write an empty object so
		}
		if variables, ok = inner.(map[string]any); !ok {
			return nil, false
		}
	}
	_, wrong := unkept(map[string]any(variables))
	return variables, wrong == ""
}
