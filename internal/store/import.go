package store

import (
	"context"
	"encoding/json"
	"strings"

	"parley"
)

// NewLead is a lead as an import brings it. Its form was checked.
type NewLead struct {
	PhoneNumber string
	Variables   string // a JSON object
	Timezone    string // empty: found from the number
}

// ImportLeads adds leads to a campaign in one transaction, but for those whose number
// the campaign has already. blacklisted is how many of the imported must not be called.
func (t *Tenant) ImportLeads(ctx context.Context, campaign parley.ID, leads []NewLead) (imported, blacklisted int, err error) {
	err = t.Tx(ctx, func(t *Tenant) error {
		// One import at a time: two that bring the same numbers in another order would wait
		// for each other.
		if err := t.advise(ctx, "pg_advisory_xact_lock", importLock, campaign); err != nil {
			return err
		}
		if _, err := t.CampaignToUse(ctx, campaign); err != nil {
			return err
		}
		listed, err := t.listedAmong(ctx, leads)
		if err != nil {
			return err
		}
		if imported, err = t.insertLeads(ctx, campaign, leads, func(l *NewLead) bool { return !listed[l.PhoneNumber] }, parley.LeadCreated); err != nil {
			return err
		}
		blacklisted, err = t.insertLeads(ctx, campaign, leads, func(l *NewLead) bool { return listed[l.PhoneNumber] }, parley.LeadBlacklisted)
		imported += blacklisted
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return imported, blacklisted, nil
}

// listedAmong says which of the leads must not be called.
func (t *Tenant) listedAmong(ctx context.Context, leads []NewLead) (map[string]bool, error) {
	numbers := make([]string, len(leads))
	for i := range leads {
		numbers[i] = leads[i].PhoneNumber
	}
	return t.DoNotCall(ctx, numbers...)
}

// insertLeads adds the chosen leads with a status, in one statement: they travel as one
// JSON document, which both databases take apart faster than they read rows one by one.
// Counting keeps PostgreSQL at one index: for NOT EXISTS it would read all the campaign's
// leads to compare them with a few.
func (t *Tenant) insertLeads(ctx context.Context, campaign parley.ID, leads []NewLead, chosen func(*NewLead) bool, status parley.LeadStatus) (int, error) {
	rows := make([][3]string, 0, len(leads))
	for i := range leads {
		if chosen(&leads[i]) {
			rows = append(rows, [3]string{leads[i].PhoneNumber, leads[i].Variables, leads[i].Timezone})
		}
	}
	if len(rows) == 0 {
		return 0, nil
	}
	document, err := json.Marshal(rows)
	if err != nil {
		return 0, err
	}
	elements := "json_each(?) AS e"
	if t.db.postgres {
		elements = "json_array_elements(CAST(? AS JSON)) AS e (value)"
	}
	at := now().UnixMicro()
	result, err := t.exec(ctx, `INSERT INTO leads (user_id, campaign_id, phone_number, variables, status, timezone, duplicate, attempts, next_contact, due_at, wait_until, created_at, updated_at)
		SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), value->>0, value->>1, CAST(? AS TEXT), NULLIF(value->>2, ''), FALSE, 0, 0, 0, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM `+elements+`
		WHERE (SELECT COUNT(*) FROM leads l WHERE l.user_id = ? AND l.phone_number = value->>0 AND l.campaign_id = ?) = 0
		ON CONFLICT DO NOTHING`, t.user, campaign, string(status), at, at, at, string(document), t.user, campaign)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// EraseNumber forgets a number: leads that have it are deleted, it is taken out of the
// variables of others, and where it must not be called only its hash is kept.
func (t *Tenant) EraseNumber(ctx context.Context, number string) error {
	digits := strings.TrimPrefix(number, "+")
	return t.Tx(ctx, func(t *Tenant) error {
		if err := t.lockDoNotCall(ctx, "pg_advisory_xact_lock"); err != nil {
			return err
		}
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
			// A 0 in its place leaves JSON what it was, whether the number stood there as text or as a number.
			{"UPDATE lead_contacts SET variables = REPLACE(variables, ?, '0') WHERE user_id = ? AND variables LIKE ?", []any{digits, t.user, "%" + digits + "%"}},
			{"UPDATE leads SET variables = REPLACE(variables, ?, '0') WHERE user_id = ? AND variables LIKE ?", []any{digits, t.user, "%" + digits + "%"}},
			{"DELETE FROM leads WHERE user_id = ? AND phone_number = ?", []any{t.user, number}},
			{"UPDATE do_not_call SET phone_number = NULL, reason = '' WHERE user_id = ? AND hash = ?", []any{t.user, hash(number)}},
		} {
			if _, err := t.exec(ctx, statement.sql, statement.args...); err != nil {
				return err
			}
		}
		return nil
	})
}
