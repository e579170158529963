package store

import (
	"context"
	"encoding/json"
	"time"

	"parley"
)

const (
	// webhookSecretColumn is what webhook secrets are sealed for.
	webhookSecretColumn = "webhook_secrets.secret"
	// secretOverlap is how long a replaced secret still signs.
	secretOverlap = 24 * time.Hour
)

// WebhookSecret is a secret that webhooks are signed with.
type WebhookSecret struct {
	Secret    string
	CreatedAt time.Time
	ExpiresAt *time.Time // of one that was replaced
}

// WebhookSecrets are the live ones, the newest first. The first is made when it is
// first asked for; fresh makes it.
func (t *Tenant) WebhookSecrets(ctx context.Context, fresh func() string) (secrets []WebhookSecret, err error) {
	if secrets, err = t.webhookSecrets(ctx); err != nil || len(secrets) > 0 {
		return secrets, err
	}
	if err = t.addSecret(ctx, fresh()); err != nil { // somebody who was quicker is no error
		return nil, err
	}
	return t.webhookSecrets(ctx)
}

func (t *Tenant) webhookSecrets(ctx context.Context) ([]WebhookSecret, error) {
	return list(ctx, t.session, func(row scanner, s *WebhookSecret) error {
		var sealed []byte
		if err := row.Scan(&sealed, micros{&s.CreatedAt}, nullMicros{&s.ExpiresAt}); err != nil {
			return err
		}
		secret, _, err := t.db.keys.open(sealed, webhookSecretColumn)
		s.Secret = string(secret)
		return err
	}, "SELECT secret, created_at, expires_at FROM webhook_secrets WHERE user_id = ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY id DESC", t.user, now().UnixMicro())
}

func (t *Tenant) addSecret(ctx context.Context, secret string) error {
	sealed, err := t.db.keys.seal([]byte(secret), webhookSecretColumn)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, "INSERT INTO webhook_secrets (user_id, secret, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", t.user, sealed, now().UnixMicro())
	return err
}

// RotateWebhookSecret makes a new secret the first. The one before signs beside it for a
// day; older ones end now.
func (t *Tenant) RotateWebhookSecret(ctx context.Context, secret string) error {
	return t.Tx(ctx, func(t *Tenant) error {
		if _, err := t.number(ctx, "SELECT id FROM users WHERE id = ?"+t.forUpdate(), t.user); err != nil {
			return err
		}
		at := now()
		if _, err := t.exec(ctx, "DELETE FROM webhook_secrets WHERE user_id = ? AND expires_at IS NOT NULL", t.user); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "UPDATE webhook_secrets SET expires_at = ? WHERE user_id = ? AND expires_at IS NULL", at.Add(secretOverlap).UnixMicro(), t.user); err != nil {
			return err
		}
		return t.addSecret(ctx, secret)
	})
}

const deliveryColumns = "id, user_id, call_id, assistant_id, kind, message_id, event, url, body, status, attempts, response_status, response_body, error, next_at, created_at, updated_at, delivered_at"

// AddDelivery adds a message that is to be delivered.
func (s *System) AddDelivery(ctx context.Context, d *parley.Delivery) error {
	d.CreatedAt, d.Status, d.MessageID = now(), parley.DeliveryPending, "msg_"+newUUID()
	d.UpdatedAt = d.CreatedAt
	var err error
	d.ID, err = s.insert(ctx, `INSERT INTO webhook_deliveries (user_id, call_id, assistant_id, kind, message_id, event, url, body, status, next_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.UserID, d.CallID, d.AssistantID, d.Kind, d.MessageID, d.Event, d.URL, d.Body, d.Status, d.CreatedAt.UnixMicro(), d.CreatedAt.UnixMicro(), d.UpdatedAt.UnixMicro())
	return err
}

// Delivery is anybody's delivery; inside a transaction it is locked until the end.
func (s *System) Delivery(ctx context.Context, id parley.ID) (*parley.Delivery, error) {
	return one(ctx, s.session, "Delivery", scanDelivery, "SELECT "+deliveryColumns+" FROM webhook_deliveries WHERE id = ?"+s.forUpdate(), id)
}

// WantsWebhook is the address that an assistant wants messages of a kind at now; "" when
// it wants none. Until the transaction ends nobody can switch it off.
func (s *System) WantsWebhook(ctx context.Context, assistant parley.ID, kind parley.DeliveryKind) (string, error) {
	a, err := one(ctx, s.session, "Assistant", scanAssistant, "SELECT "+assistantColumns+" FROM assistants WHERE id = ?"+s.forShare(), assistant)
	if err != nil {
		return "", err
	}
	return a.WebhookFor(kind), nil
}

// SaveDelivery writes a changed delivery back.
func (s *System) SaveDelivery(ctx context.Context, d *parley.Delivery) error {
	d.UpdatedAt = now()
	result, err := s.exec(ctx, `UPDATE webhook_deliveries SET url = ?, status = ?, attempts = ?, response_status = ?, response_body = ?, error = ?, next_at = ?, updated_at = ?, delivered_at = ? WHERE id = ?`,
		d.URL, d.Status, d.Attempts, d.ResponseStatus, d.ResponseBody, d.Error, microsOf(d.NextAt), d.UpdatedAt.UnixMicro(), microsOf(d.DeliveredAt), d.ID)
	return affected(result, err, "Delivery")
}

// SetWebhookResponse shows what a receiver answered on the call.
func (s *System) SetWebhookResponse(ctx context.Context, call parley.ID, r *parley.WebhookResponse) error {
	document, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "UPDATE calls SET webhook_response = ? WHERE id = ?", string(document), call)
	return err
}

// FailingSince is when the first message was made of those that a webhook has taken none
// after.
func (s *System) FailingSince(ctx context.Context, assistant parley.ID, kind parley.DeliveryKind) (time.Time, error) {
	us, err := s.number(ctx, `SELECT COALESCE(MIN(created_at), 0) FROM webhook_deliveries WHERE assistant_id = ? AND kind = ? AND status IN ('pending', 'sending', 'dead')
		AND created_at > COALESCE((SELECT MAX(delivered_at) FROM webhook_deliveries WHERE assistant_id = ? AND kind = ? AND status = 'delivered'), 0)`, assistant, kind, assistant, kind)
	if err != nil || us == 0 {
		return now(), err
	}
	return time.UnixMicro(us).UTC(), nil
}

// SwitchOff turns a webhook of an assistant off. Its address is kept, so that it can be
// turned on again; that of the inbound one is its switch.
func (s *System) SwitchOff(ctx context.Context, assistant parley.ID, kind parley.DeliveryKind) error {
	a, err := one(ctx, s.session, "Assistant", scanAssistant, "SELECT "+assistantColumns+" FROM assistants WHERE id = ?"+s.forUpdate(), assistant)
	if err != nil {
		return err
	}
	if kind == parley.PostCallWebhook {
		a.IsWebhookActive = false
	} else {
		a.InboundWebhookURL = nil
	}
	settings, err := json.Marshal(a.Settings)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "UPDATE assistants SET settings = ?, updated_at = ? WHERE id = ?", string(settings), now().UnixMicro(), assistant)
	return err
}

// DeliveryFilter chooses deliveries; what is empty does not filter.
type DeliveryFilter struct {
	Status              string
	CallID, AssistantID *parley.ID
}

// Deliveries are a page of the user's deliveries, newest first, and how many there are.
func (t *Tenant) Deliveries(ctx context.Context, f DeliveryFilter, limit, offset int) ([]parley.Delivery, int, error) {
	where, args := "user_id = ?", []any{t.user}
	if f.Status != "" {
		where, args = where+" AND status = ?", append(args, f.Status)
	}
	if f.CallID != nil {
		where, args = where+" AND call_id = ?", append(args, *f.CallID)
	}
	if f.AssistantID != nil {
		where, args = where+" AND assistant_id = ?", append(args, *f.AssistantID)
	}
	total, err := t.number(ctx, "SELECT COUNT(*) FROM webhook_deliveries WHERE "+where, args...)
	if err != nil {
		return nil, 0, err
	}
	all, err := list(ctx, t.session, scanDelivery, "SELECT "+deliveryColumns+" FROM webhook_deliveries WHERE "+where+" ORDER BY id DESC LIMIT ? OFFSET ?", append(args, limit, offset)...)
	return all, int(total), err
}

// Delivery is one of the user's deliveries; inside a transaction it is locked until the end.
func (t *Tenant) Delivery(ctx context.Context, id parley.ID) (*parley.Delivery, error) {
	return one(ctx, t.session, "Delivery", scanDelivery, "SELECT "+deliveryColumns+" FROM webhook_deliveries WHERE user_id = ? AND id = ?"+t.forUpdate(), t.user, id)
}

// Sending counts the deliveries to an assistant's webhook that are on their way.
func (t *Tenant) Sending(ctx context.Context, assistant parley.ID, kind parley.DeliveryKind) (int64, error) {
	return t.number(ctx, "SELECT COUNT(*) FROM webhook_deliveries WHERE user_id = ? AND assistant_id = ? AND kind = ? AND status = 'sending'", t.user, assistant, kind)
}

func scanDelivery(row scanner, d *parley.Delivery) error {
	return row.Scan(&d.ID, &d.UserID, &d.CallID, &d.AssistantID, &d.Kind, &d.MessageID, &d.Event, &d.URL, &d.Body, &d.Status, &d.Attempts,
		&d.ResponseStatus, &d.ResponseBody, &d.Error, nullMicros{&d.NextAt}, micros{&d.CreatedAt}, micros{&d.UpdatedAt}, nullMicros{&d.DeliveredAt})
}
