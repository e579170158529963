package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley"
)

// EraseNumber forgets a number: its calls go with everything that belongs to them, leads
// that have it are deleted, it is taken out of what is kept of others, and where it must
// not be called only its hash is kept. Everything of the user's is searched. The
// recordings go first: no row must be left to say where an orphan is from.
func (t *Tenant) EraseNumber(ctx context.Context, number string, recordings Recordings) (calls int, err error) {
	err = t.Tx(ctx, func(t *Tenant) error {
		if err := t.lockDoNotCall(ctx, "pg_advisory_xact_lock"); err != nil {
			return err
		}
		if calls, err = t.eraseCalls(ctx, number, recordings); err != nil {
			return err
		}
		if err := t.eraseLeads(ctx, number); err != nil {
			return err
		}
		return t.eraseMentions(ctx, number)
	})
	return calls, err
}

func (t *Tenant) eraseCalls(ctx context.Context, number string, recordings Recordings) (int, error) {
	calls, err := list(ctx, t.session, scanCall, "SELECT "+callColumns+" FROM calls c WHERE c.user_id = ? AND (c.client_phone_number = ? OR c.assistant_phone_number = ?) ORDER BY c.id"+t.forUpdate(), t.user, number, number)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(calls, func(c parley.Call) bool { return c.Status.Live() }) {
		return 0, &parley.Error{Code: parley.Conflict, Message: "A call with the number is under way. Hang it up first, and erase the number when it has ended."}
	}
	for i := range calls {
		if err := t.forgetCall(ctx, &calls[i], recordings); err != nil {
			return 0, err
		}
	}
	return len(calls), nil
}

// forgetCall removes a call, its recording first.
func (s session) forgetCall(ctx context.Context, c *parley.Call, recordings Recordings) error {
	if err := recordings.Delete(c.Recording); err != nil {
		return err
	}
	return s.removeCall(ctx, c.ID)
}

func (t *Tenant) eraseLeads(ctx context.Context, number string) error {
	hash, err := t.suppressor(ctx)
	if err != nil {
		return err
	}
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		// A round under way is over when one of its contacts goes: the others move up.
		{"UPDATE leads SET next_contact = (SELECT COUNT(*) FROM lead_contacts x WHERE x.lead_id = leads.id) WHERE next_contact > 0 AND id IN (SELECT lead_id FROM lead_contacts WHERE user_id = ? AND phone_number = ?)", []any{t.user, number}},
		{"DELETE FROM lead_contacts WHERE user_id = ? AND phone_number = ?", []any{t.user, number}},
		{"DELETE FROM leads WHERE user_id = ? AND phone_number = ?", []any{t.user, number}},
		{"UPDATE do_not_call SET phone_number = NULL, reason = '' WHERE user_id = ? AND hash = ?", []any{t.user, hash(number)}},
	} {
		if _, err := t.exec(ctx, statement.sql, statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// mentions are the columns in which a number may stand that is not the row's own, with the
// condition of the user's rows.
var mentions = []struct{ table, owned, columns string }{
	{"lead_contacts", "user_id = ?", "variables"},
	{"leads", "user_id = ?", "variables"},
	{"do_not_call", "user_id = ?", "reason"},
	{"calls", "user_id = ?", "variables input_variables evaluation webhook_response transcript turns failure"},
	{"call_events", "call_id IN (SELECT id FROM calls WHERE user_id = ?)", "detail"},
	{"webhook_deliveries", "user_id = ?", "body response_body error"},
	{"idempotency_keys", "user_id = ?", "answer"},
}

// eraseMentions takes a number out of texts. A 0 in its place leaves JSON what it was,
// whether the number stood there as text or as a number.
func (t *Tenant) eraseMentions(ctx context.Context, number string) error {
	digits := strings.TrimPrefix(number, "+")
	for _, m := range mentions {
		for column := range strings.FieldsSeq(m.columns) {
			_, err := t.exec(ctx, "UPDATE "+m.table+" SET "+column+" = REPLACE("+column+", ?, '0') WHERE "+m.owned+" AND "+column+" LIKE ?", digits, t.user, "%"+digits+"%")
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Vacuum gives the space of what was deleted back, and what stood in it with it.
func (s *System) Vacuum(ctx context.Context) error {
	statements := []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"}
	if s.db.postgres {
		statements = []string{"VACUUM FULL"}
	}
	for _, statement := range statements {
		if _, err := s.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// expireBatch keeps each transaction of a sweep short beside a running server.
const expireBatch = 500

// Expire removes the calls that were made before a time and are over, with all that belongs
// to them, some at a time. It goes on where it stopped when it is asked again.
func (s *System) Expire(ctx context.Context, before time.Time, recordings Recordings) (removed int, err error) {
	users, err := list(ctx, s.session, scanID, "SELECT id FROM users ORDER BY id")
	for _, user := range users {
		for {
			n, err := s.expire(ctx, user, before, recordings)
			removed += n
			if err != nil {
				return removed, err
			}
			if n < expireBatch {
				break
			}
		}
	}
	return removed, err
}

func (s *System) expire(ctx context.Context, user parley.ID, before time.Time, recordings Recordings) (n int, err error) {
	err = s.Tx(ctx, func(s *System) error {
		calls, err := list(ctx, s.session, scanCall, "SELECT "+callColumns+" FROM calls c WHERE c.user_id = ? AND c.created_at < ? AND c.status IN ('completed', 'busy', 'no-answer', 'failed') ORDER BY c.created_at, c.id LIMIT ?"+s.forUpdate(),
			user, before.UnixMicro(), expireBatch)
		if err != nil {
			return err
		}
		for i := range calls {
			if err := s.forgetCall(ctx, &calls[i], recordings); err != nil {
				return err
			}
		}
		n = len(calls)
		return nil
	})
	return n, err
}
