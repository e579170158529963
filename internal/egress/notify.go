package egress

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"parley"
	"parley/internal/jobs"
	"parley/internal/store"
)

// Notifier tells users' webhooks of calls. A message and its job commit with the state
// that causes them; what became of each try is written before the next.
type Notifier struct {
	DB     *store.DB
	Client *Client
	Log    *slog.Logger
	// Recording is a link to a call's recording, nil without one.
	Recording func(*parley.Call) *string
	// Schedule says when a message is tried again after its failed try of this number, or
	// that it is dead; nil for the documented one.
	Schedule func(try int, a Attempt, now time.Time) (at time.Time, dead bool)

	queue     *jobs.Queue
	receivers *Receivers
	patient   chan struct{} // who waits for room
}

// Start gives the notifier the queue that its deliveries come by.
func (n *Notifier) Start(queue *jobs.Queue) {
	n.queue, n.receivers, n.patient = queue, NewReceivers(), make(chan struct{}, mostPatient)
	if n.Schedule == nil {
		n.Schedule = func(try int, a Attempt, now time.Time) (time.Time, bool) {
			return Next(try, a, now, 2*rand.Float64()-1)
		}
	}
}

// Concluded has the end of a call told to those who want to know, in the transaction
// that gave it its final status.
func (n *Notifier) Concluded(ctx context.Context, tx *store.System, c *parley.Call, a *parley.Assistant) error {
	for _, kind := range []parley.DeliveryKind{parley.PostCallWebhook, parley.InboundWebhook} {
		if !a.Notifies(kind, c) {
			continue
		}
		body, err := n.completed(ctx, tx, c, a)
		if err != nil {
			return err
		}
		d := &parley.Delivery{UserID: c.UserID, CallID: c.ID, AssistantID: a.ID, Kind: kind, Event: parley.EventCompleted, URL: a.WebhookFor(kind), Body: string(body)}
		if err := tx.AddDelivery(ctx, d); err != nil {
			return err
		}
		if err := n.queue.Deliver(ctx, tx, d.ID, d.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

// completed is the message of a call that is over.
func (n *Notifier) completed(ctx context.Context, tx *store.System, c *parley.Call, a *parley.Assistant) ([]byte, error) {
	lead, campaign, err := tx.LeadOf(ctx, c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(parley.NewCompletedMessage(c, a, lead, campaign, n.Recording(c), time.Now()))
}

// Incoming tells of a call that rings and returns what the receiver adds to its variables.
func (n *Notifier) Incoming(ctx context.Context, c *parley.Call, a *parley.Assistant) parley.Object {
	address := a.WebhookFor(parley.InboundWebhook)
	if address == "" {
		return nil
	}
	body, err := json.Marshal(parley.NewIncomingMessage(c, a, time.Now()))
	if err != nil {
		n.Log.Error("an inbound message could not be written", "call", c.ID, "error", err)
		return nil
	}
	secrets, err := n.secrets(ctx, c.UserID)
	if err != nil {
		n.Log.Error("a webhook's secret could not be read", "call", c.ID, "error", err)
		return nil
	}
	variables, attempt := n.Client.Ask(ctx, Delivery{ID: "msg_incoming_" + strconv.FormatInt(c.ID, 10), URL: address, Body: body, Secrets: secrets})
	if err := n.DB.System().AddEvent(ctx, step(c.ID, parley.EventIncoming, 1, attempt)); err != nil {
		n.Log.Error("a webhook attempt could not be written", "call", c.ID, "error", err)
	}
	return variables
}

// step is a try as a call's timeline shows it.
func step(call parley.ID, event string, try int, a Attempt) parley.CallEvent {
	detail := parley.Object{"event": event, "attempt": try, "status": a.Status, "duration_ms": a.Duration.Milliseconds()}
	if a.Failure != nil {
		detail["error"] = a.Failure.Message
	}
	return parley.CallEvent{CallID: call, At: a.At.UTC(), Event: parley.EventWebhook, Detail: detail}
}

func (n *Notifier) secrets(ctx context.Context, user parley.ID) ([]string, error) {
	live, err := n.DB.Tenant(user).WebhookSecrets(ctx, NewSecret)
	secrets := make([]string, len(live))
	for i, s := range live {
		secrets[i] = s.Secret
	}
	return secrets, err
}

// Deliver makes one try of a delivery: the work of a deliver job. A job that comes again
// after its node died tries again, with the same message id.
func (n *Notifier) Deliver(ctx context.Context, id parley.ID) error {
	d, err := n.DB.System().Delivery(ctx, id)
	if parley.ErrorCode(err) == parley.NotFound {
		return nil // deleted with its call
	}
	if err != nil || d.Status.Over() {
		return err
	}
	if wait := time.Until(due(d)); wait > 0 {
		return jobs.Later(wait)
	}
	done, wait := n.admit(ctx, receiverOf(d))
	if done == nil {
		return jobs.Later(wait)
	}
	attempt := Attempt{Failure: &parley.Failure{Kind: parley.Cancelled}}
	defer func() { done(attempt) }()
	if d, err = n.begin(ctx, id); err != nil || d == nil {
		return err
	}
	secrets, err := n.secrets(ctx, d.UserID)
	if err != nil {
		return err
	}
	attempt = n.Client.Deliver(ctx, Delivery{ID: d.MessageID, URL: d.URL, Body: []byte(d.Body), Secrets: secrets})
	if !attempt.Delivered() && ctx.Err() != nil {
		return ctx.Err() // the node stops: the try does not count
	}
	// What was delivered is written down even now: it need not be sent again.
	return n.written(context.WithoutCancel(ctx), d, attempt)
}

const (
	// mostPatient is how many deliveries may wait for room: half of the workers are left
	// for other receivers.
	mostPatient = 50
	// patientFor is how long they wait, and lookEvery how often they look.
	patientFor = 200 * time.Millisecond
	lookEvery  = 10 * time.Millisecond
)

// admit asks to send to a receiver. One that keeps up has room again in a moment: to wait
// for it is cheaper than the way back to the queue.
func (n *Notifier) admit(ctx context.Context, receiver string) (done func(Attempt), wait time.Duration) {
	done, wait = n.receivers.Admit(receiver)
	if done != nil {
		return done, wait
	}
	select {
	case n.patient <- struct{}{}:
		defer func() { <-n.patient }()
	default:
		return nil, wait
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for end := time.Now().Add(patientFor); done == nil && wait <= leastWait && time.Now().Before(end); {
		select {
		case <-look.C:
			done, wait = n.receivers.Admit(receiver)
		case <-ctx.Done():
			return nil, wait
		}
	}
	return done, wait
}

func due(d *parley.Delivery) time.Time {
	if d.NextAt == nil {
		return time.Time{}
	}
	return *d.NextAt
}

// receiverOf names whom a delivery is for: users do not share a receiver's failures.
func receiverOf(d *parley.Delivery) string {
	host := d.URL
	if u, err := url.Parse(d.URL); err == nil {
		host = u.Host
	}
	return strconv.FormatInt(d.UserID, 10) + " " + host
}

// begin writes that a try is about to be made, if it still may: who switches a webhook off
// waits for those that were begun, and none begins after.
func (n *Notifier) begin(ctx context.Context, id parley.ID) (d *parley.Delivery, err error) {
	err = n.DB.System().Batch(ctx, func(tx *store.System) error {
		if d, err = tx.Delivery(ctx, id); err != nil || d.Status.Over() {
			d = nil
			return err
		}
		address, err := tx.WantsWebhook(ctx, d.AssistantID, d.Kind)
		if err != nil {
			return err
		}
		if address == "" {
			d.Status, d.NextAt = parley.DeliveryCancelled, nil
			err := tx.SaveDelivery(ctx, d)
			d = nil
			return err
		}
		// An address that was changed meanwhile is where the user wants it now.
		d.URL, d.Status = address, parley.DeliverySending
		d.Attempts++
		return tx.SaveDelivery(ctx, d)
	})
	return d, err
}

// written keeps what became of a try, and puts the next one off.
func (n *Notifier) written(ctx context.Context, d *parley.Delivery, a Attempt) error {
	var later error
	err := n.DB.System().Batch(ctx, func(tx *store.System) error {
		now := time.Now().UTC()
		d.ResponseStatus, d.ResponseBody, d.Error, d.NextAt = nil, nil, nil, nil
		if a.Status > 0 {
			d.ResponseStatus, d.ResponseBody = &a.Status, &a.Answer
		}
		var err error
		if a.Delivered() {
			d.Status, d.DeliveredAt = parley.DeliveryDelivered, &now
			err = tx.SetWebhookResponse(ctx, d.CallID, response(a, now))
		} else {
			d.Error = &a.Failure.Message
			later, err = n.failed(ctx, tx, d, a, now)
		}
		if err != nil {
			return err
		}
		if err := tx.SaveDelivery(ctx, d); err != nil {
			return err
		}
		return tx.AddEvent(ctx, step(d.CallID, d.Event, d.Attempts, a))
	})
	if err != nil {
		return err
	}
	return later
}

// failed decides what follows a try that failed: another, or none any more.
func (n *Notifier) failed(ctx context.Context, tx *store.System, d *parley.Delivery, a Attempt, now time.Time) (later, err error) {
	next, dead := n.Schedule(d.Attempts, a, now)
	if !dead {
		d.Status, d.NextAt = parley.DeliveryPending, &next
		return jobs.Later(next.Sub(now)), nil
	}
	d.Status = parley.DeliveryDead
	since, err := tx.FailingSince(ctx, d.AssistantID, d.Kind)
	if err != nil || !parley.Hopeless(since, now) {
		return nil, err
	}
	n.Log.Warn("a webhook that has only failed for days is switched off", "assistant", d.AssistantID, "kind", d.Kind)
	return nil, tx.SwitchOff(ctx, d.AssistantID, d.Kind)
}

// response is what a call's record shows of an answer.
func response(a Attempt, now time.Time) *parley.WebhookResponse {
	r := &parley.WebhookResponse{Status: a.Status, Body: a.Answer, DeliveredAt: parley.Timestamp(now)}
	var document any
	if json.Unmarshal([]byte(a.Answer), &document) == nil {
		r.Body = document
	}
	return r
}
