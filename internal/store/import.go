package store

import (
	"context"
	"encoding/json"

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
