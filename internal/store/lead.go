package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley"
)

const (
	leadColumns = `l.id, l.user_id, l.campaign_id, c.name, l.phone_number, l.variables, l.status, l.timezone, l.duplicate, l.attempts, l.next_contact, l.due_at, l.created_at, l.updated_at`
	leadsOfUser = " FROM leads l JOIN campaigns c ON c.id = l.campaign_id WHERE l.user_id = ? AND c.deleted_at IS NULL"

	// waiting is the condition of leads_due: a lead that may still be called and is not
	// being called now.
	waiting = "status IN ('created', 'scheduled', 'rescheduled')"
)

// CreateLead adds a lead to a campaign of the user's. One with a number that must not
// be called is there, and is not called.
func (t *Tenant) CreateLead(ctx context.Context, l *parley.Lead) error {
	l.UserID, l.CreatedAt = t.user, now()
	l.UpdatedAt = l.CreatedAt
	return t.Tx(ctx, func(t *Tenant) error {
		if err := t.settleLead(ctx, l); err != nil {
			return err
		}
		variables, err := json.Marshal(l.Variables)
		if err != nil {
			return err
		}
		l.ID, err = t.insert(ctx, `INSERT INTO leads (user_id, campaign_id, phone_number, variables, status, timezone, duplicate, attempts, next_contact, due_at, wait_until, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			t.user, l.CampaignID, l.PhoneNumber, string(variables), l.Status, l.Timezone, l.AllowDuplicate, l.Attempts, l.NextContact, zeroMicros(l.DueAt), dueSince(l), l.CreatedAt.UnixMicro(), l.UpdatedAt.UnixMicro())
		if err != nil {
			return duplicateLead(err)
		}
		return t.saveContacts(ctx, l)
	})
}

// SaveLead writes a changed lead back, for the dialer to look at anew.
func (t *Tenant) SaveLead(ctx context.Context, l *parley.Lead) error {
	l.UpdatedAt = now()
	return t.Tx(ctx, func(t *Tenant) error {
		if err := t.settleLead(ctx, l); err != nil {
			return err
		}
		variables, err := json.Marshal(l.Variables)
		if err != nil {
			return err
		}
		result, err := t.exec(ctx, `UPDATE leads SET phone_number = ?, variables = ?, status = ?, timezone = ?, duplicate = ?, attempts = ?, next_contact = ?, due_at = ?, wait_until = ?, updated_at = ?
			WHERE user_id = ? AND id = ?`,
			l.PhoneNumber, string(variables), l.Status, l.Timezone, l.AllowDuplicate, l.Attempts, l.NextContact, zeroMicros(l.DueAt), dueSince(l), l.UpdatedAt.UnixMicro(), t.user, l.ID)
		if err := affected(result, duplicateLead(err), "Lead"); err != nil {
			return err
		}
		if l.Attempts == 0 {
			// Put back in the queue its attempts are counted anew. Each is dialled once, so the
			// earlier ones give their numbers up.
			if _, err := t.exec(ctx, "UPDATE calls SET lead_attempt = -id WHERE user_id = ? AND lead_id = ? AND lead_attempt > 0", t.user, l.ID); err != nil {
				return err
			}
		}
		return t.saveContacts(ctx, l)
	})
}

// settleLead ends a lead whose number must not be called, and refuses one that the
// campaign has already.
func (t *Tenant) settleLead(ctx context.Context, l *parley.Lead) error {
	numbers := make([]string, l.Contacts())
	for i := range numbers {
		numbers[i] = l.Number(i)
	}
	listed, err := t.DoNotCall(ctx, numbers...)
	if err != nil {
		return err
	}
	l.Suppress(listed)
	if l.AllowDuplicate {
		return nil
	}
	// A lead that keeps its number keeps its place, whoever was added beside it.
	others, err := t.number(ctx, `SELECT COUNT(*) FROM leads WHERE user_id = ? AND phone_number = ? AND campaign_id = ?
		AND NOT EXISTS (SELECT 1 FROM leads own WHERE own.id = ? AND own.phone_number = ?)`, t.user, l.PhoneNumber, l.CampaignID, l.ID, l.PhoneNumber)
	if err == nil && others > 0 {
		return refuseDuplicate()
	}
	return err
}

func refuseDuplicate() error {
	var errs parley.FieldErrors
	errs.Add("phone_number", parley.DuplicateLead)
	return &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: errs}
}

// duplicateLead explains that another request added the number first.
func duplicateLead(err error) error {
	if unique(err) {
		return refuseDuplicate()
	}
	return err
}

// dueSince is since when a lead is due, or from when: the order the dialer takes leads in.
func dueSince(l *parley.Lead) int64 {
	if l.DueAt.IsZero() {
		return l.CreatedAt.UnixMicro()
	}
	return l.DueAt.UnixMicro()
}

// zeroMicros is a time whose zero is 0.
func zeroMicros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// saveContacts writes a lead's secondary contacts. Those that it had before keep their ids.
func (t *Tenant) saveContacts(ctx context.Context, l *parley.Lead) error {
	kept := []any{l.ID, 0} // 0 is no contact's, and an empty list no SQL
	for _, c := range l.Secondary {
		kept = append(kept, c.ID)
	}
	if _, err := t.exec(ctx, "DELETE FROM lead_contacts WHERE lead_id = ? AND id NOT IN ("+placeholders(len(kept)-1)+")", kept...); err != nil {
		return err
	}
	for i := range l.Secondary {
		if err := t.saveContact(ctx, l, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tenant) saveContact(ctx context.Context, l *parley.Lead, position int) error {
	c := &l.Secondary[position]
	variables, err := json.Marshal(c.Variables)
	if err != nil {
		return err
	}
	c.UpdatedAt = l.UpdatedAt
	if c.ID != 0 {
		_, err = t.exec(ctx, "UPDATE lead_contacts SET position = ?, variables = ?, status = ?, updated_at = ? WHERE lead_id = ? AND id = ?",
			position, string(variables), c.Status, c.UpdatedAt.UnixMicro(), l.ID, c.ID)
		return err
	}
	c.CreatedAt = c.UpdatedAt
	c.ID, err = t.insert(ctx, "INSERT INTO lead_contacts (user_id, lead_id, position, phone_number, variables, status, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
		t.user, l.ID, position, c.PhoneNumber, string(variables), c.Status, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro())
	return err
}

// Lead is one lead with its contacts; inside a transaction it is locked until the end.
func (t *Tenant) Lead(ctx context.Context, id parley.ID) (*parley.Lead, error) {
	lock := ""
	if t.tx != nil && t.db.postgres {
		// In the order of those who list a number: the list first, then the leads.
		if err := t.lockDoNotCall(ctx, "pg_advisory_xact_lock_shared"); err != nil {
			return nil, err
		}
		lock = " FOR UPDATE OF l"
	}
	found, err := one(ctx, t.session, "Lead", scanLead, "SELECT "+leadColumns+leadsOfUser+" AND l.id = ?"+lock, t.user, id)
	if err != nil {
		return nil, err
	}
	return found, t.loadContacts(ctx, []*parley.Lead{found})
}

// LeadFilter narrows a list of leads; empty fields do not.
type LeadFilter struct {
	CampaignID  *parley.ID
	Status      parley.LeadStatus
	PhoneNumber string // a part of it
	From, To    time.Time
}

// where is the filter as SQL. The status is written out, so that the planner can see
// which of the partial indexes serves.
func (f *LeadFilter) where() (clause string, args []any) {
	if f.CampaignID != nil {
		clause, args = clause+" AND l.campaign_id = ?", append(args, *f.CampaignID)
	}
	if slices.Contains(parley.LeadStatuses, f.Status) {
		clause += " AND l.status = '" + string(f.Status) + "'"
	}
	switch {
	case strings.HasPrefix(f.PhoneNumber, "+"): // only the beginning of a number has a plus
		clause, args = clause+" AND l.phone_number >= ? AND l.phone_number < ?", append(args, f.PhoneNumber, f.PhoneNumber+":") // ':' follows '9'
	case f.PhoneNumber != "":
		clause, args = clause+" AND l.phone_number LIKE ?", append(args, "%"+f.PhoneNumber+"%")
	}
	if !f.From.IsZero() {
		clause, args = clause+" AND l.created_at >= ?", append(args, f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		clause, args = clause+" AND l.created_at < ?", append(args, f.To.UnixMicro())
	}
	return clause, args
}

// Leads is a part of the user's leads, newest first, and how many there are in all.
func (t *Tenant) Leads(ctx context.Context, f LeadFilter, limit, offset int) ([]parley.Lead, int, error) {
	total, err := t.countLeads(ctx, &f)
	if err != nil {
		return nil, 0, err
	}
	clause, args := f.where()
	args = append([]any{t.user}, args...)
	page, err := list(ctx, t.session, scanLead,
		"SELECT "+leadColumns+leadsOfUser+clause+" ORDER BY l.id DESC LIMIT CAST(? AS BIGINT) OFFSET CAST(? AS BIGINT)", append(args, limit, offset)...)
	if err != nil {
		return nil, 0, err
	}
	pointers := make([]*parley.Lead, len(page))
	for i := range page {
		pointers[i] = &page[i]
	}
	return page, int(total), t.loadContacts(ctx, pointers)
}

// progressOf are the kept counts, by status.
var progressOf = map[parley.LeadStatus]string{
	parley.LeadCreated: "p.created", parley.LeadScheduled: "p.scheduled", parley.LeadProcessing: "p.processing", parley.LeadCompleted: "p.completed",
	parley.LeadRescheduled: "p.rescheduled", parley.LeadReachedMaxRetries: "p.reached_max_retries", parley.LeadBlacklisted: "p.blacklisted",
	"": "p.created + p.scheduled + p.processing + p.completed + p.rescheduled + p.reached_max_retries + p.blacklisted",
}

// countLeads counts the rows only where the kept counts do not say.
func (t *Tenant) countLeads(ctx context.Context, f *LeadFilter) (int64, error) {
	if f.PhoneNumber != "" || !f.From.IsZero() || !f.To.IsZero() {
		clause, args := f.where()
		return t.number(ctx, "SELECT COUNT(*)"+leadsOfUser+clause, append([]any{t.user}, args...)...)
	}
	clause, args := "", []any{t.user}
	if f.CampaignID != nil {
		clause, args = " AND c.id = ?", append(args, *f.CampaignID)
	}
	return t.number(ctx, "SELECT CAST(COALESCE(SUM("+progressOf[f.Status]+"), 0) AS BIGINT)"+campaignsOfUser+clause, args...)
}

// loadContacts gives leads their secondary contacts, in their order.
func (t *Tenant) loadContacts(ctx context.Context, leads []*parley.Lead) error {
	if len(leads) == 0 {
		return nil
	}
	ids, byID := make([]parley.ID, len(leads)), make(map[parley.ID]*parley.Lead, len(leads))
	for i, l := range leads {
		ids[i], byID[l.ID] = l.ID, l
	}
	type contact struct {
		of parley.ID
		parley.SecondaryContact
	}
	args := padded(ids)
	contacts, err := list(ctx, t.session, func(row scanner, c *contact) error {
		var variables []byte
		if err := row.Scan(&c.of, &c.ID, &c.PhoneNumber, &variables, &c.Status, micros{&c.CreatedAt}, micros{&c.UpdatedAt}); err != nil {
			return err
		}
		return json.Unmarshal(variables, &c.Variables)
	}, "SELECT lead_id, id, phone_number, variables, status, created_at, updated_at FROM lead_contacts WHERE lead_id IN ("+placeholders(len(args))+") ORDER BY lead_id, position", args...)
	for i := range contacts {
		l := byID[contacts[i].of]
		l.Secondary = append(l.Secondary, contacts[i].SecondaryContact)
	}
	return err
}

// DeleteLead removes a lead with all that is kept of it.
func (t *Tenant) DeleteLead(ctx context.Context, id parley.ID) error {
	return t.Tx(ctx, func(t *Tenant) error {
		if _, err := t.Lead(ctx, id); err != nil {
			return err
		}
		result, err := t.exec(ctx, "DELETE FROM leads WHERE user_id = ? AND id = ?", t.user, id)
		return affected(result, err, "Lead")
	})
}

func scanLead(row scanner, l *parley.Lead) error {
	var variables []byte
	var due int64
	err := row.Scan(&l.ID, &l.UserID, &l.CampaignID, &l.CampaignName, &l.PhoneNumber, &variables, &l.Status, &l.Timezone, &l.AllowDuplicate, &l.Attempts, &l.NextContact,
		&due, micros{&l.CreatedAt}, micros{&l.UpdatedAt})
	if err != nil {
		return err
	}
	if due > 0 {
		l.DueAt = time.UnixMicro(due).UTC()
	}
	return json.Unmarshal(variables, &l.Variables)
}
