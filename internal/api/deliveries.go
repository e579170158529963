package api

import (
	"context"
	"net/http"
	"time"

	"parley"
	"parley/internal/store"
)

func deliveryRoutes() []Route {
	const group = "Webhooks"
	missing := Failure{http.StatusNotFound, "The delivery is unknown or another user's.", "Delivery not found", nil}
	return []Route{
		{Method: "GET", Path: "/user/webhooks/deliveries", Group: group, Summary: "List webhook deliveries", handle: listDeliveries, Query: deliveryQuery.Describe(),
			Detail: "Newest first. A delivery is tried again after 5 s, 30 s, 2 min, 10 min, 1 h, 6 h and 24 h; then it is dead until it is replayed.", Answer: bare(pageOf("Delivery")),
			Errors: []Failure{{http.StatusUnprocessableEntity, "A filter has a bad value.", parley.ValidationFailed, example{"status": {"The selected status is invalid."}}}}},
		{Method: "GET", Path: "/user/webhooks/deliveries/{id}", Group: group, Summary: "Get a webhook delivery", handle: getDelivery,
			Answer: bare(ref("Delivery")), Errors: []Failure{missing}},
		{Method: "POST", Path: "/user/webhooks/deliveries/{id}/replay", Group: group, Summary: "Replay a webhook delivery", handle: replayDelivery,
			Detail: "Sends it again, with the same webhook-id, to the address the assistant has now.", Answer: changed(http.StatusOK, replayMessage, ref("Delivery")),
			Errors: []Failure{missing, {http.StatusUnprocessableEntity, "It is being delivered, or its webhook is off.", replayOff, nil}}},
		{Method: "GET", Path: "/user/webhooks/secret", Group: group, Summary: "Get the webhook secret", handle: getSecret,
			Detail: "Webhooks are signed as Standard Webhooks says: verify `webhook-signature` over `webhook-id`, `webhook-timestamp` and the body with this secret.", Answer: Answer{Status: http.StatusOK, Schema: secretSchema}},
		{Method: "POST", Path: "/user/webhooks/secret", Group: group, Summary: "Rotate the webhook secret", handle: rotateSecret,
			Detail: "For 24 hours webhooks are signed with the old secret too.", Answer: changed(http.StatusOK, rotateMessage, secretSchema)},
	}
}

const (
	replayMessage = "Delivery is being replayed"
	replayOff     = "The webhook is switched off. Enable it first."
	rotateMessage = "Webhook secret rotated successfully"
)

var secretSchema = closed(object{
	"secret": object{"type": "string", "pattern": "^whsec_"}, "created_at": object{"type": "string"},
	"previous_secret":            object{"type": []string{"string", "null"}, "description": "Still valid beside it; null when there is none."},
	"previous_secret_expires_at": object{"type": []string{"string", "null"}},
})

// deliveryList is the query of a list of deliveries.
type deliveryList struct {
	paging
	store.DeliveryFilter
}

var deliveryQuery = append(parley.Form[deliveryList]{
	{Name: "status", At: func(q *deliveryList) any { return &q.Status }, Rule: parley.Rule{In: words(parley.DeliveryStatuses)}, Effect: "Only those of this status."},
	{Name: "call_id", At: func(q *deliveryList) any { return &q.CallID }, Effect: "Only those of this call."},
	{Name: "assistant_id", At: func(q *deliveryList) any { return &q.AssistantID }, Effect: "Only those of this assistant."},
}, pagingFields(func(q *deliveryList) *paging { return &q.paging }, 15)...)

func listDeliveries(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(deliveryQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	all, total, err := rq.tenant.Deliveries(ctx, q.DeliveryFilter, q.PerPage, q.offset())
	items, err := records(parley.DeliveryForm, all, err)
	if err != nil {
		return nil, err
	}
	return ok(rq.server.paginate(rq.Request, q.paging, items, len(all), total), nil)
}

func getDelivery(ctx context.Context, rq *request) (*reply, error) {
	d, err := rq.tenant.Delivery(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	return ok(record(parley.DeliveryForm, d))
}

// replayDelivery begins a delivery anew; its job commits with it.
func replayDelivery(ctx context.Context, rq *request) (*reply, error) {
	var data []byte
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		d, err := t.Delivery(ctx, rq.id())
		if err != nil {
			return err
		}
		if !d.Status.Over() {
			return &parley.Error{Code: parley.Conflict, Message: "The delivery is on its way already."}
		}
		address, err := t.System().WantsWebhook(ctx, d.AssistantID, d.Kind)
		if err != nil {
			return err
		}
		if address == "" {
			return &parley.Error{Code: parley.Conflict, Message: replayOff}
		}
		now := time.Now().UTC()
		d.URL, d.Status, d.Attempts, d.NextAt = address, parley.DeliveryPending, 0, &now
		if err := t.System().SaveDelivery(ctx, d); err != nil {
			return err
		}
		if err := rq.server.config.Queue.Deliver(ctx, t.System(), d.ID, now); err != nil {
			return err
		}
		data, err = record(parley.DeliveryForm, d)
		return err
	})
	return done(http.StatusOK, replayMessage, data), err
}

func getSecret(ctx context.Context, rq *request) (*reply, error) { return ok(rq.secret(ctx)) }

func rotateSecret(ctx context.Context, rq *request) (*reply, error) {
	if err := rq.tenant.RotateWebhookSecret(ctx, rq.server.config.NewSecret()); err != nil {
		return nil, err
	}
	data, err := rq.secret(ctx)
	return done(http.StatusOK, rotateMessage, data), err
}

// secret shows the secrets that receivers verify with.
func (rq *request) secret(ctx context.Context) ([]byte, error) {
	live, err := rq.tenant.WebhookSecrets(ctx, rq.server.config.NewSecret)
	if err != nil {
		return nil, err
	}
	shown := map[string]any{"secret": live[0].Secret, "created_at": parley.Timestamp(live[0].CreatedAt), "previous_secret": nil, "previous_secret_expires_at": nil}
	if len(live) > 1 {
		shown["previous_secret"], shown["previous_secret_expires_at"] = live[1].Secret, parley.Timestamp(*live[1].ExpiresAt)
	}
	return encode(shown), nil
}

// settleFor is how long who switches a webhook off waits for tries that had begun: by then
// each has reached its receiver or given up reaching it.
const settleFor = 4 * time.Second

// awaitQuiet returns when nothing is on its way to the webhooks that an assistant has
// switched off: off means off.
func (rq *request) awaitQuiet(ctx context.Context, a *parley.Assistant) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, kind := range []parley.DeliveryKind{parley.PostCallWebhook, parley.InboundWebhook} {
		for a.WebhookFor(kind) == "" {
			n, err := rq.tenant.Sending(ctx, a.ID, kind)
			if ctx.Err() != nil {
				return nil // it is off; who is still on the way had begun before
			}
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}
	return nil
}
