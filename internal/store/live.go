package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"parley"
)

// clock is the database's own time in microseconds: nodes need not agree on theirs.
func (s session) clock() string {
	if s.db.postgres {
		return "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"
	}
	return "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
}

// Join announces a node that takes so many calls at once, or says so anew.
func (s *System) Join(ctx context.Context, node string, calls int) error {
	_, err := s.exec(ctx, "INSERT INTO nodes (id, started_at, beat_at, max_calls) VALUES (?, "+s.clock()+", "+s.clock()+", ?) ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, max_calls = excluded.max_calls", node, calls)
	return err
}

// Room is how many calls all nodes take at once.
func (s *System) Room(ctx context.Context) (int, error) {
	n, err := s.number(ctx, "SELECT COALESCE(SUM(max_calls), 0) FROM nodes")
	return int(n), err
}

// Beat keeps a node alive. False: it was declared dead, and holds nothing any more.
func (s *System) Beat(ctx context.Context, node string) (bool, error) {
	result, err := s.exec(ctx, "UPDATE nodes SET beat_at = "+s.clock()+" WHERE id = ?", node)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// DeadNodes are those that have not beaten for so long, and those that left while
// they held something.
func (s *System) DeadNodes(ctx context.Context, silence time.Duration) ([]string, error) {
	return list(ctx, s.session, func(row scanner, id *string) error { return row.Scan(id) },
		`SELECT id FROM nodes WHERE beat_at < `+s.clock()+` - ?
		UNION SELECT c.node FROM calls c WHERE c.node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node)`, silence.Microseconds())
}

// Bury takes everything from a node that is dead: its jobs are to be run again, its
// calls are given to conclude, in one transaction. A node that has beaten in the
// meantime is left alone.
func (s *System) Bury(ctx context.Context, node string, silence time.Duration, conclude func(*System, *parley.Call) error) error {
	return s.Tx(ctx, func(s *System) error {
		alive, err := s.number(ctx, "SELECT COUNT(*) FROM (SELECT id FROM nodes WHERE id = ? AND beat_at >= "+s.clock()+" - ?"+s.forUpdate()+") AS beating", node, silence.Microseconds())
		if err != nil || alive > 0 {
			return err
		}
		calls, err := list(ctx, s.session, scanCall, "SELECT "+callColumns+" FROM calls c WHERE c.node = ? ORDER BY c.id"+s.forUpdate(), node)
		if err != nil {
			return err
		}
		for i := range calls {
			if err := conclude(s, &calls[i]); err != nil {
				return err
			}
		}
		if err := s.returnJobs(ctx, node); err != nil {
			return err
		}
		_, err = s.exec(ctx, "DELETE FROM nodes WHERE id = ?", node)
		return err
	})
}

// Leave forgets a node that has stopped in good order.
func (s *System) Leave(ctx context.Context, node string) error {
	_, err := s.exec(ctx, "DELETE FROM nodes WHERE id = ?", node)
	return err
}

// Call is anybody's call; inside a transaction it is locked until the end.
func (s *System) Call(ctx context.Context, id parley.ID) (*parley.Call, error) {
	return one(ctx, s.session, "Call", scanCall, "SELECT "+callColumns+" FROM calls c WHERE c.id = ?"+s.forUpdate(), id)
}

// Tenant is a user's view in the same transaction.
func (s *System) Tenant(user parley.ID) *Tenant { return &Tenant{session: s.session, user: user} }

// System is the view across users in the same transaction.
func (t *Tenant) System() *System { return &System{t.session} }

// ClaimCall makes a node the holder of a call that is about to be dialled. From the
// commit on it counts as dialled, whatever happens to the node. False: somebody has
// claimed it, or it is over.
func (s *System) ClaimCall(ctx context.Context, id parley.ID, node string) (bool, error) {
	result, err := s.exec(ctx, "UPDATE calls SET node = ?, dialed_at = ?, updated_at = ? WHERE id = ? AND node IS NULL AND dialed_at IS NULL AND status = ?",
		node, now().UnixMicro(), now().UnixMicro(), id, parley.CallInitiated)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// UnclaimCall makes a call that a node claimed one that was never dialled. Only the node
// itself can tell that, and only before anything of it was sent.
func (s *System) UnclaimCall(ctx context.Context, id parley.ID, node string) error {
	return changed(s.exec(ctx, "UPDATE calls SET node = NULL, dialed_at = NULL, updated_at = ? WHERE id = ? AND node = ? AND status = ?",
		now().UnixMicro(), id, node, parley.CallInitiated))
}

// TrunkLoad is how many calls a carrier has up, and how many it began within the last second.
func (s *System) TrunkLoad(ctx context.Context, trunk parley.ID) (up, begun int, err error) {
	type load struct{ up, begun int }
	found, err := one(ctx, s.session, "Load", func(row scanner, l *load) error { return row.Scan(&l.up, &l.begun) },
		`SELECT COUNT(*), COALESCE(SUM(CASE WHEN dialed_at > ? THEN 1 ELSE 0 END), 0) FROM calls WHERE sip_trunk_id = ? AND node IS NOT NULL AND `+live,
		now().Add(-time.Second).UnixMicro(), trunk)
	if err != nil {
		return 0, 0, err
	}
	return found.up, found.begun, nil
}

// HangupAsked says whether somebody asked for a call's end.
func (s *System) HangupAsked(ctx context.Context, id parley.ID) (bool, error) {
	n, err := s.number(ctx, "SELECT COUNT(*) FROM calls WHERE id = ? AND hangup_at IS NOT NULL", id)
	return n > 0, err
}

// Hangups are the calls of a node whose end was asked for.
func (s *System) Hangups(ctx context.Context, node string) ([]parley.ID, error) {
	return list(ctx, s.session, func(row scanner, id *parley.ID) error { return row.Scan(id) }, "SELECT id FROM calls WHERE node = ? AND hangup_at IS NOT NULL", node)
}

// Step is something that happened in a live call: a new status, something for its
// timeline, or a turn.
type Step struct {
	Event  parley.CallEvent
	Status parley.CallStatus // "" when it is none
}

// Advance writes the steps of calls that a node holds. A step of a call that it does not
// hold any more, or that would go backward, is left out.
func (s *System) Advance(ctx context.Context, node string, steps []Step) error {
	return s.Tx(ctx, func(s *System) error {
		for _, step := range steps {
			if step.Status != "" {
				moved, err := s.move(ctx, node, step)
				if err != nil {
					return err
				}
				if !moved {
					continue
				}
			}
			if err := s.addStep(ctx, node, step.Event); err != nil {
				return err
			}
		}
		return nil
	})
}

// addStep appends to the timeline of a call that the node holds.
func (s *System) addStep(ctx context.Context, node string, e parley.CallEvent) error {
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "INSERT INTO call_events (call_id, at, event, detail) SELECT id, ?, ?, ? FROM calls WHERE id = ? AND node = ?", e.At.UnixMicro(), e.Event, string(detail), e.CallID, node)
	return err
}

func (s *System) move(ctx context.Context, node string, step Step) (bool, error) {
	before, args := among(step.Status.Before())
	at := step.Event.At.UnixMicro()
	var answered *int64
	if step.Status == parley.CallInProgress {
		answered = &at
	}
	result, err := s.exec(ctx, "UPDATE calls SET status = ?, updated_at = ?, answered_at = COALESCE(?, answered_at) WHERE id = ? AND node = ? AND status IN ("+before+")",
		append([]any{step.Status, at, answered, step.Event.CallID, node}, args...)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// EndCall writes what became of a call and lets go of it. node is its holder, "" for a
// call that nobody holds.
func (s *System) EndCall(ctx context.Context, node string, c *parley.Call) error {
	documents, err := callDocuments(c)
	if err != nil {
		return err
	}
	if err := s.beforeLead(ctx, c, c.OptedOut); err != nil {
		return err
	}
	c.UpdatedAt = now()
	before, statuses := among(c.Status.Before())
	args := append([]any{c.Status, documents[0], documents[4], c.Transcript, documents[1], c.AnsweredBy, c.EndedBy, c.EndReason, c.Failure, c.CarrierCost, c.TotalCost, documents[2], c.Recording, documents[3],
		c.OptedOut, c.Duration, c.UpdatedAt.UnixMicro(), microsOf(c.AnsweredAt), microsOf(c.EndedAt), c.ID, node}, statuses...)
	result, err := s.exec(ctx, `UPDATE calls SET status = ?, variables = ?, input_variables = ?, transcript = ?, turns = ?, answered_by = ?, ended_by = ?, end_reason = ?, failure = ?,
		carrier_cost = ?, total_cost = ?, costs = ?, recording = ?, quality = ?, opted_out = ?, duration = ?, updated_at = ?, answered_at = ?, ended_at = ?, ended_on = node, node = NULL
		WHERE id = ? AND COALESCE(node, '') = ? AND status IN (`+before+")", args...)
	if err := changed(result, err); err != nil {
		return err
	}
	return s.addEvents(ctx, []parley.CallEvent{{CallID: c.ID, At: c.UpdatedAt, Event: parley.EventStatus, Detail: endDetail(c)}})
}

// beforeLead takes the do-not-call lock of a call's user ahead of the counts that follow
// its status: who claims a lead has the lock when it comes to the counts, and the lead
// that the end of the call moves on is behind it.
func (s *System) beforeLead(ctx context.Context, c *parley.Call, lists bool) error {
	switch {
	case lists:
		return s.Tenant(c.UserID).lockDoNotCall(ctx, "pg_advisory_xact_lock")
	case c.LeadID != nil:
		return s.Tenant(c.UserID).lockDoNotCall(ctx, "pg_advisory_xact_lock_shared")
	default:
		return nil
	}
}

// endDetail is what a timeline says of the end.
func endDetail(c *parley.Call) parley.Object {
	detail := parley.Object{"status": string(c.Status)}
	if c.EndReason != nil {
		detail["end_reason"] = string(*c.EndReason)
	}
	return detail
}

// CompleteCall writes what the work after a call yielded and its final status. False: it
// had been completed before.
func (s *System) CompleteCall(ctx context.Context, c *parley.Call) (bool, error) {
	evaluation, err := json.Marshal(c.Evaluation)
	if err != nil {
		return false, err
	}
	costs, err := json.Marshal(c.Costs)
	if err != nil {
		return false, err
	}
	if err := s.beforeLead(ctx, c, false); err != nil {
		return false, err
	}
	c.UpdatedAt = now()
	before, args := among([]parley.CallStatus{parley.CallEnded, parley.CallEndedByAssistant, parley.CallEndedByCustomer})
	result, err := s.exec(ctx, "UPDATE calls SET status = ?, evaluation = ?, total_cost = ?, costs = ?, updated_at = ? WHERE id = ? AND status IN ("+before+")",
		append([]any{parley.CallCompleted, string(evaluation), c.TotalCost, string(costs), c.UpdatedAt.UnixMicro(), c.ID}, args...)...)
	if err := changed(result, err); err != nil {
		if errors.Is(err, ErrFenced) {
			return false, nil
		}
		return false, err
	}
	c.Status = parley.CallCompleted
	return true, s.addEvents(ctx, []parley.CallEvent{{CallID: c.ID, At: c.UpdatedAt, Event: parley.EventStatus, Detail: parley.Object{"status": string(c.Status)}}})
}

// AddUsage counts what a call took of its account's day.
func (s *System) AddUsage(ctx context.Context, c *parley.Call, cost parley.Money, seconds int) error {
	_, err := s.exec(ctx, `INSERT INTO call_usage (user_id, day, seconds, cost) VALUES (?, ?, ?, ?)
		ON CONFLICT (user_id, day) DO UPDATE SET seconds = call_usage.seconds + excluded.seconds, cost = call_usage.cost + excluded.cost`, c.UserID, day(now()), seconds, cost)
	return err
}

// AddEvent appends a step to a call's timeline.
func (s *System) AddEvent(ctx context.Context, e parley.CallEvent) error {
	return s.addEvents(ctx, []parley.CallEvent{e})
}

// TurnsOf are the turns that a call's node had written before it died.
func (s *System) TurnsOf(ctx context.Context, call parley.ID) ([]parley.Turn, error) {
	return list(ctx, s.session, func(row scanner, t *parley.Turn) error {
		var detail []byte
		if err := row.Scan(&detail); err != nil {
			return err
		}
		return json.Unmarshal(detail, t)
	}, "SELECT detail FROM call_events WHERE call_id = ? AND event = ? ORDER BY id", call, parley.EventTurn)
}

// changed turns a change of no row into ErrFenced.
func changed(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return ErrFenced
}

func callDocuments(c *parley.Call) (documents [5]any, err error) {
	for i, v := range []any{c.Variables, c.Turns, c.Costs, c.Quality, c.Input} {
		document, err := json.Marshal(v)
		if err != nil {
			return documents, err
		}
		if string(document) != "null" {
			documents[i] = string(document)
		}
	}
	return documents, nil
}

// among is the list of an IN and its arguments; nothing is among none.
func among(statuses []parley.CallStatus) (string, []any) {
	if len(statuses) == 0 {
		return "NULL", nil
	}
	args := make([]any, len(statuses))
	for i, status := range slices.Clone(statuses) {
		args[i] = status
	}
	return placeholders(len(statuses)), args
}

func microsOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	us := t.UnixMicro()
	return &us
}

// AssistantOf is the assistant of a call, also when it was deleted since.
func (s *System) AssistantOf(ctx context.Context, c *parley.Call) (*parley.Assistant, error) {
	a, err := one(ctx, s.session, "Assistant", scanAssistant, "SELECT "+assistantColumns+" FROM assistants WHERE user_id = ? AND id = ?", c.UserID, c.AssistantID)
	if err != nil {
		return nil, err
	}
	return a, s.Tenant(c.UserID).loadTools(ctx, []*parley.Assistant{a})
}

// InboundAssistant is who answers a number: of the owner of the trunk it was called by
// or, with no owner, of the first user who has it. Without one it is a not-found error.
func (s *System) InboundAssistant(ctx context.Context, owner parley.ID, number string) (*parley.Assistant, *parley.PhoneNumber, error) {
	n, err := one(ctx, s.session, "Phone number", scanNumber, "SELECT "+numberColumns+` FROM phone_numbers n
		WHERE n.phone_number = ? AND (? = 0 OR n.user_id = ?) AND n.type_label <> 'Caller ID'
		ORDER BY (SELECT COUNT(*) FROM assistants a WHERE a.phone_number_id = n.id AND a.type = 'inbound' AND a.deleted_at IS NULL) DESC, n.id LIMIT 1`, number, owner, owner)
	if err != nil {
		return nil, nil, err
	}
	a, err := one(ctx, s.session, "Assistant", scanAssistant,
		"SELECT "+assistantColumns+" FROM assistants WHERE phone_number_id = ? AND type = 'inbound' AND deleted_at IS NULL", n.ID)
	if err != nil {
		return nil, n, err
	}
	return a, n, s.Tenant(a.UserID).loadTools(ctx, []*parley.Assistant{a})
}

// Trunks are everybody's SIP trunks.
func (s *System) Trunks(ctx context.Context) ([]parley.Trunk, error) {
	return list(ctx, s.session, s.db.scanTrunk, "SELECT "+trunkColumns+" FROM sip_trunks ORDER BY id")
}

// Trunk is anybody's SIP trunk; inside a transaction it is locked until the end.
func (s *System) Trunk(ctx context.Context, id parley.ID) (*parley.Trunk, error) {
	return one(ctx, s.session, "SIP trunk", s.db.scanTrunk, "SELECT "+trunkColumns+" FROM sip_trunks WHERE id = ?"+s.forUpdate(), id)
}

// Release takes a call from the node that holds it.
func (s *System) Release(ctx context.Context, id parley.ID) error {
	_, err := s.exec(ctx, "UPDATE calls SET node = NULL WHERE id = ?", id)
	return err
}

// UnfinishedCalls counts the calls that a node has ended and that are not completed.
func (s *System) UnfinishedCalls(ctx context.Context, node string) (int64, error) {
	return s.number(ctx, "SELECT COUNT(*) FROM calls WHERE status IN ('ended', 'ended_by_customer', 'ended_by_assistant') AND ended_on = ?", node)
}
