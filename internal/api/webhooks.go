package api

import (
	"context"
	"net/http"

	"parley"
	"parley/internal/store"
)

func webhookRoutes() []Route {
	const group = "Webhooks"
	missing := Failure{http.StatusNotFound, "The assistant is unknown or another user's.", "Assistant not found", nil}
	on := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.DataInvalid,
		example{"assistant_id": {"The assistant id field is required."}, "webhook_url": {"The webhook url must be a valid URL."}}}
	off := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.DataInvalid,
		example{"assistant_id": {"The assistant id field is required."}}}
	enable := func(path, summary, message string, turn func(*parley.Assistant, string)) Route {
		return Route{Method: "POST", Path: path, Group: group, Summary: summary, Body: parley.EnableWebhookForm.Describe(),
			Answer: changed(http.StatusOK, message, reserved), Errors: []Failure{missing, on},
			handle: switchWebhook(parley.EnableWebhookForm, message, turn)}
	}
	disable := func(path, summary, message string, turn func(*parley.Assistant)) Route {
		return Route{Method: "POST", Path: path, Group: group, Summary: summary, Body: parley.DisableWebhookForm.Describe(),
			Answer: changed(http.StatusOK, message, reserved), Errors: []Failure{missing, off},
			handle: switchWebhook(parley.DisableWebhookForm, message, func(a *parley.Assistant, _ string) { turn(a) })}
	}
	return []Route{
		enable("/user/assistants/enable-webhook", "Turn post-call notifications on", "Webhook enabled successfully", (*parley.Assistant).EnableWebhook),
		disable("/user/assistants/disable-webhook", "Turn post-call notifications off", "Webhook disabled successfully", (*parley.Assistant).DisableWebhook),
		enable("/user/assistants/enable-inbound-webhook", "Turn inbound notifications on", "Inbound webhook enabled successfully", (*parley.Assistant).EnableInboundWebhook),
		disable("/user/assistants/disable-inbound-webhook", "Turn inbound notifications off", "Inbound webhook disabled successfully", (*parley.Assistant).DisableInboundWebhook),
	}
}

func switchWebhook(form parley.Form[parley.WebhookSwitch], message string, turn func(*parley.Assistant, string)) func(context.Context, *request) (*reply, error) {
	return func(ctx context.Context, rq *request) (*reply, error) {
		wanted, err := parley.ReadWebhookSwitch(form, rq.input)
		if err != nil {
			return nil, err
		}
		var a *parley.Assistant
		err = rq.tenant.Tx(ctx, func(t *store.Tenant) error {
			if a, err = t.Assistant(ctx, wanted.AssistantID); err != nil {
				return err
			}
			turn(a, wanted.URL)
			return t.SaveAssistant(ctx, a, false)
		})
		if err != nil {
			return nil, err
		}
		return done(http.StatusOK, message, []byte("[]")), rq.awaitQuiet(ctx, a)
	}
}
