package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"parley"
)

const callColumns = `c.id, c.user_id, c.assistant_id, c.assistant_name, c.campaign_id, c.campaign_name, c.lead_id, c.lead_contact, c.lead_attempt, c.type, c.status,
	c.assistant_phone_number, c.client_phone_number, c.carrier, c.sip_trunk_id, c.variables, c.input_variables, c.evaluation, c.webhook_response, c.transcript, c.turns,
	c.answered_by, c.ended_by, c.end_reason, c.failure, c.carrier_cost, c.total_cost, c.costs, c.recording, c.quality, c.opted_out, c.duration,
	c.created_at, c.updated_at, c.dialed_at, c.answered_at, c.ended_at`

// live is the condition of calls_live: a call that is under way or waits to be placed.
const live = "status IN ('initiated', 'ringing', 'in-progress')"

// ErrFenced means that the call is no longer this node's to change: it was taken from it,
// or it has moved on.
var ErrFenced = errors.New("store: the call is no longer held by this node")

// CallFilter chooses calls; what is empty does not filter.
type CallFilter struct {
	Status, Type, PhoneNumber string
	AssistantID, CampaignID   *parley.ID
	From, To                  time.Time // days of creation; To is not included
	Limit, Offset             int
}

func (f *CallFilter) where(user parley.ID) (string, []any) {
	conditions, args := []string{"c.user_id = ?"}, []any{user}
	add := func(condition string, arg any) {
		conditions = append(conditions, condition)
		args = append(args, arg)
	}
	if f.Status != "" {
		add("c.status = ?", f.Status)
	}
	if f.Type != "" {
		add("c.type = ?", f.Type)
	}
	if f.PhoneNumber != "" {
		add("c.client_phone_number = ?", f.PhoneNumber)
	}
	if f.AssistantID != nil {
		add("c.assistant_id = ?", *f.AssistantID)
	}
	if f.CampaignID != nil {
		add("c.campaign_id = ?", *f.CampaignID)
	}
	if !f.From.IsZero() {
		add("c.created_at >= ?", f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		add("c.created_at < ?", f.To.UnixMicro())
	}
	return strings.Join(conditions, " AND "), args
}

// counted says whether call_counts knows how many calls the filter chooses. It does not
// know numbers, nor statuses that pass; of both there are few, and they have an index.
func (f *CallFilter) counted() bool {
	return f.PhoneNumber == "" && (f.Status == "" || parley.CallStatus(f.Status).Final())
}

// Calls are a page of the user's calls, newest first, with their timelines, and how many there are.
func (t *Tenant) Calls(ctx context.Context, f CallFilter) ([]parley.Call, int, error) {
	where, args := f.where(t.user)
	total, err := t.countCalls(ctx, &f, where, args)
	if err != nil || total == 0 {
		return []parley.Call{}, total, err
	}
	// For the casts see Assistants.
	calls, err := list(ctx, t.session, scanCall,
		"SELECT "+callColumns+" FROM calls c WHERE "+where+" ORDER BY c.created_at DESC, c.id DESC LIMIT CAST(? AS BIGINT) OFFSET CAST(? AS BIGINT)", append(args, f.Limit, f.Offset)...)
	if err != nil {
		return nil, 0, err
	}
	return calls, total, t.timelines(ctx, calls)
}

func (t *Tenant) countCalls(ctx context.Context, f *CallFilter, where string, args []any) (int, error) {
	if !f.counted() {
		n, err := t.number(ctx, "SELECT COUNT(*) FROM calls c WHERE "+where, args...)
		return int(n), err
	}
	days := *f
	days.From, days.To = time.Time{}, time.Time{}
	where, args = days.where(t.user)
	if !f.From.IsZero() {
		where, args = where+" AND c.day >= ?", append(args, day(f.From))
	}
	if !f.To.IsZero() {
		where, args = where+" AND c.day < ?", append(args, day(f.To))
	}
	n, err := t.number(ctx, "SELECT CAST(COALESCE(SUM(c.n), 0) AS BIGINT) FROM call_counts c WHERE "+where, args...)
	return int(n), err
}

// day is the number of a time's day in UTC.
func day(at time.Time) int64 { return at.UnixMicro() / (24 * time.Hour).Microseconds() }

// Call is one call with its timeline.
func (t *Tenant) Call(ctx context.Context, id parley.ID) (*parley.Call, error) {
	call, err := one(ctx, t.session, "Call", scanCall, "SELECT "+callColumns+" FROM calls c WHERE c.user_id = ? AND c.id = ?"+t.forUpdate(), t.user, id)
	if err != nil {
		return nil, err
	}
	calls := []parley.Call{*call}
	if err := t.timelines(ctx, calls); err != nil {
		return nil, err
	}
	return &calls[0], nil
}

// timelines gives calls their timelines.
func (s session) timelines(ctx context.Context, calls []parley.Call) error {
	if len(calls) == 0 {
		return nil
	}
	index, args := map[parley.ID]*parley.Call{}, make([]any, 0, len(calls)+1)
	for i := range calls {
		calls[i].Timeline = []parley.CallEvent{}
		index[calls[i].ID] = &calls[i]
		args = append(args, calls[i].ID)
	}
	events, err := list(ctx, s, scanEvent, "SELECT id, call_id, at, event, detail FROM call_events WHERE call_id IN ("+placeholders(len(calls))+") AND event <> ? ORDER BY call_id, id",
		append(args, parley.EventTurn)...)
	for _, e := range events {
		index[e.CallID].Timeline = append(index[e.CallID].Timeline, e)
	}
	return err
}

// CallEvents are the steps and turns of a call after the one with this id.
func (t *Tenant) CallEvents(ctx context.Context, call, after parley.ID) ([]parley.CallEvent, error) {
	return list(ctx, t.session, scanEvent, `SELECT e.id, e.call_id, e.at, e.event, e.detail FROM call_events e JOIN calls c ON c.id = e.call_id
		WHERE c.user_id = ? AND e.call_id = ? AND e.id > ? ORDER BY e.id`, t.user, call, after)
}

func scanEvent(row scanner, e *parley.CallEvent) error {
	var detail []byte
	if err := row.Scan(&e.ID, &e.CallID, micros{&e.At}, &e.Event, &detail); err != nil {
		return err
	}
	return json.Unmarshal(detail, &e.Detail)
}

// Load is what the user has under way. In a transaction it holds the user's other
// requests for a call off until the end, so that no two take the same last place.
func (t *Tenant) Load(ctx context.Context, at time.Time) (load parley.Load, err error) {
	if err := t.lockUser(ctx); err != nil {
		return load, err
	}
	scan := func(row scanner, l *parley.Load) error { return row.Scan(&l.Live, &l.Begun, &l.Seconds, &l.Spent) }
	found, err := one(ctx, t.session, "Load", scan, `SELECT
		(SELECT COUNT(*) FROM calls WHERE user_id = ? AND `+live+`),
		(SELECT COUNT(*) FROM calls WHERE user_id = ? AND created_at > ?),
		COALESCE((SELECT seconds FROM call_usage WHERE user_id = ? AND day = ?), 0),
		COALESCE((SELECT cost FROM call_usage WHERE user_id = ? AND day = ?), 0)`,
		t.user, t.user, at.Add(-time.Second).UnixMicro(), t.user, day(at), t.user, day(at))
	if err != nil {
		return load, err
	}
	return *found, nil
}

// lockUser holds other requests of the user's off until the end of a transaction, but for
// rows that refer to the user.
func (t *Tenant) lockUser(ctx context.Context) error {
	lock := ""
	if t.tx != nil && t.db.postgres {
		lock = " FOR NO KEY UPDATE"
	}
	_, err := t.number(ctx, "SELECT id FROM users WHERE id = ?"+lock, t.user)
	return err
}

// CreateCall adds a call. An inbound one is held by a node from the start; an outbound
// one by nobody, until a node claims it.
func (t *Tenant) CreateCall(ctx context.Context, c *parley.Call, node string) error {
	if c.Variables == nil {
		c.Variables = parley.Object{}
	}
	variables, err := json.Marshal(c.Variables)
	if err != nil {
		return err
	}
	var holder *string
	if node != "" {
		holder = &node
	}
	c.UserID, c.CreatedAt, c.Input = t.user, now(), c.Variables
	c.UpdatedAt = c.CreatedAt
	c.Evaluation, c.Turns, c.Timeline, c.AnsweredBy = parley.Object{}, []parley.Turn{}, []parley.CallEvent{}, "unknown"
	c.ID, err = t.insert(ctx, `INSERT INTO calls (user_id, assistant_id, assistant_name, campaign_id, campaign_name, lead_id, lead_contact, lead_attempt, type, status,
			assistant_phone_number, client_phone_number, carrier, sip_trunk_id, variables, input_variables, created_at, updated_at, node)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		t.user, c.AssistantID, c.AssistantName, c.CampaignID, c.CampaignName, c.LeadID, c.LeadContact, c.LeadAttempt, c.Type, c.Status,
		c.AssistantNumber, c.CustomerNumber, c.Carrier, c.TrunkID, string(variables), string(variables), c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro(), holder)
	if err != nil {
		return err
	}
	first := parley.CallEvent{CallID: c.ID, At: c.CreatedAt, Event: parley.EventStatus, Detail: parley.Object{"status": string(c.Status)}}
	c.Timeline = append(c.Timeline, first)
	return t.addEvents(ctx, []parley.CallEvent{first})
}

// addEvents appends steps to timelines.
func (s session) addEvents(ctx context.Context, events []parley.CallEvent) error {
	for _, e := range events {
		detail, err := json.Marshal(e.Detail)
		if err != nil {
			return err
		}
		if _, err := s.exec(ctx, "INSERT INTO call_events (call_id, at, event, detail) VALUES (?, ?, ?, ?)", e.CallID, e.At.UnixMicro(), e.Event, string(detail)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteCall removes a call that has ended with everything of it. The recording goes
// first: no row must be left to say where an orphan is from.
func (t *Tenant) DeleteCall(ctx context.Context, id parley.ID, recordings Recordings) error {
	return t.Tx(ctx, func(t *Tenant) error {
		call, err := t.Call(ctx, id)
		if err != nil {
			return err
		}
		if !call.Status.Final() {
			return &parley.Error{Code: parley.Conflict, Message: "The call has not ended yet. Hang it up first, and delete it when it is completed."}
		}
		if err := recordings.Delete(call.Recording); err != nil {
			return err
		}
		return t.removeCall(ctx, id)
	})
}

// Caller is an assistant and the line it calls from, nil without one. Neither is locked.
func (t *Tenant) Caller(ctx context.Context, assistant parley.ID) (*parley.Assistant, *parley.PhoneNumber, error) {
	a, err := one(ctx, t.session, "Assistant", scanAssistant, "SELECT "+assistantColumns+" FROM assistants WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.user, assistant)
	if err != nil || a.PhoneNumberID == nil {
		return a, nil, err
	}
	line, err := one(ctx, t.session, "Phone number", scanNumber, "SELECT "+numberColumns+" FROM phone_numbers n WHERE n.user_id = ? AND n.id = ?", t.user, *a.PhoneNumberID)
	return a, line, err
}

// HasTrunk says whether the user has a SIP trunk.
func (t *Tenant) HasTrunk(ctx context.Context) (bool, error) {
	n, err := t.number(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM sip_trunks WHERE user_id = ? LIMIT 1) AS found", t.user)
	return n > 0, err
}

// removeCall removes a call with everything that belongs to it.
func (s session) removeCall(ctx context.Context, id parley.ID) error {
	for _, table := range []string{"webhook_deliveries WHERE call_id", "call_events WHERE call_id", "calls WHERE id"} {
		if _, err := s.exec(ctx, "DELETE FROM "+table+" = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// RequestHangup asks for the end of a live call. One that no node holds yet is never
// placed; otherwise its node sees the request.
func (t *Tenant) RequestHangup(ctx context.Context, id parley.ID) (*parley.Call, error) {
	result, err := t.exec(ctx, "UPDATE calls SET hangup_at = COALESCE(hangup_at, ?) WHERE user_id = ? AND id = ? AND "+live, now().UnixMicro(), t.user, id)
	if err = affected(result, err, "Call"); err != nil && parley.ErrorCode(err) != parley.NotFound {
		return nil, err
	}
	call, missing := t.Call(ctx, id)
	if missing != nil {
		return nil, missing
	}
	if err != nil {
		return nil, &parley.Error{Code: parley.Conflict, Message: "The call has ended already."}
	}
	return call, nil
}

// Remembered is the first answer to a request with this key, "" when there was none. In
// a transaction it also takes the key, so that an equal request beside it waits for the
// outcome: Remember must follow.
func (t *Tenant) Remembered(ctx context.Context, key string, request []byte) (answer string, err error) {
	hash := sha256.Sum256(request)
	// One that has had its day is gone, tidied up or not.
	if _, err := t.exec(ctx, "DELETE FROM idempotency_keys WHERE user_id = ? AND key = ? AND created_at < ?", t.user, key, now().Add(-rememberFor).UnixMicro()); err != nil {
		return "", err
	}
	result, err := t.exec(ctx, "INSERT INTO idempotency_keys (user_id, key, request, answer, created_at) VALUES (?, ?, ?, '', ?) ON CONFLICT DO NOTHING", t.user, key, hash[:], now().UnixMicro())
	if err != nil {
		return "", err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return "", err
	}
	type kept struct {
		request []byte
		answer  string
	}
	first, err := one(ctx, t.session, "Key", func(row scanner, k *kept) error { return row.Scan(&k.request, &k.answer) },
		"SELECT request, answer FROM idempotency_keys WHERE user_id = ? AND key = ?", t.user, key)
	if err != nil {
		return "", err
	}
	if string(first.request) != string(hash[:]) {
		return "", &parley.Error{Code: parley.Reused, Message: "The Idempotency-Key was used for another request within the last 24 hours. Send a new one."}
	}
	return first.answer, nil
}

// Remember keeps the answer for the key that Remembered took.
func (t *Tenant) Remember(ctx context.Context, key, answer string) error {
	_, err := t.exec(ctx, "UPDATE idempotency_keys SET answer = ? WHERE user_id = ? AND key = ?", answer, t.user, key)
	return err
}

// rememberFor is how long an Idempotency-Key counts.
const rememberFor = 24 * time.Hour

// ForgetKeys removes the Idempotency-Keys that count no more.
func (s *System) ForgetKeys(ctx context.Context) error {
	_, err := s.exec(ctx, "DELETE FROM idempotency_keys WHERE created_at < ?", now().Add(-rememberFor).UnixMicro())
	return err
}

func scanCall(row scanner, c *parley.Call) error {
	var variables, input, evaluation, turns, costs []byte
	var response, quality sql.Null[[]byte]
	err := row.Scan(&c.ID, &c.UserID, &c.AssistantID, &c.AssistantName, &c.CampaignID, &c.CampaignName, &c.LeadID, &c.LeadContact, &c.LeadAttempt, &c.Type, &c.Status,
		&c.AssistantNumber, &c.CustomerNumber, &c.Carrier, &c.TrunkID, &variables, &input, &evaluation, &response, &c.Transcript, &turns,
		&c.AnsweredBy, &c.EndedBy, &c.EndReason, &c.Failure, &c.CarrierCost, &c.TotalCost, &costs, &c.Recording, &quality, &c.OptedOut, &c.Duration,
		micros{&c.CreatedAt}, micros{&c.UpdatedAt}, nullMicros{&c.DialedAt}, nullMicros{&c.AnsweredAt}, nullMicros{&c.EndedAt})
	if err != nil {
		return err
	}
	return errors.Join(json.Unmarshal(variables, &c.Variables), json.Unmarshal(input, &c.Input), json.Unmarshal(evaluation, &c.Evaluation), json.Unmarshal(turns, &c.Turns), json.Unmarshal(costs, &c.Costs),
		optional(response, &c.WebhookResponse), optional(quality, &c.Quality))
}

// optional reads a document that may be missing.
func optional[T any](document sql.Null[[]byte], to **T) error {
	if !document.Valid {
		*to = nil
		return nil
	}
	*to = new(T)
	return json.Unmarshal(document.V, *to)
}
