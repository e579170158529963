package store

import (
	"context"
	"time"

	"parley"
)

// Lease gives a task to one node for a while; whoever has it may have it again. False:
// another has it.
func (s *System) Lease(ctx context.Context, task, node string, lasts time.Duration) (bool, error) {
	result, err := s.exec(ctx, `INSERT INTO leases (task, node, until) VALUES (?, ?, `+s.clock()+` + ?)
		ON CONFLICT (task) DO UPDATE SET node = excluded.node, until = excluded.until WHERE leases.node = excluded.node OR leases.until < `+s.clock(),
		task, node, lasts.Microseconds())
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// LeadOf is the lead of a call and its campaign, as far as there are any. The lead is
// locked in a transaction; the campaign is not: whoever claims leads holds it, and waits
// for them.
func (s *System) LeadOf(ctx context.Context, c *parley.Call) (lead *parley.Lead, campaign *parley.Campaign, err error) {
	t := s.Tenant(c.UserID)
	if c.LeadID != nil {
		if lead, err = t.Lead(ctx, *c.LeadID); err != nil && parley.ErrorCode(err) != parley.NotFound {
			return nil, nil, err
		}
	}
	if c.CampaignID != nil {
		if campaign, err = t.campaign(ctx, *c.CampaignID, ""); err != nil && parley.ErrorCode(err) != parley.NotFound {
			return nil, nil, err
		}
	}
	return lead, campaign, nil
}

// CampaignAtWork is a running campaign with what the dialer needs to know of it.
type CampaignAtWork struct {
	parley.Campaign
	Live     int       // calls that are up or wait to be placed
	LastCall time.Time // when it last began one; zero: never
}

// CampaignsAtWork are the running campaigns that have something to do now: a lead that is
// due, or none left at all. Their number, not that of all leads, is what this costs.
func (s *System) CampaignsAtWork(ctx context.Context, at time.Time) ([]CampaignAtWork, error) {
	const up = "(SELECT COUNT(*) FROM calls k WHERE k.campaign_id = c.id AND k.status IN ('initiated', 'ringing', 'in-progress'))"
	return list(ctx, s.session, func(row scanner, w *CampaignAtWork) error {
		var last int64
		if err := scanCampaign(scanMore{row, []any{&w.Live, &last}}, &w.Campaign); err != nil {
			return err
		}
		if last > 0 {
			w.LastCall = time.UnixMicro(last).UTC()
		}
		return nil
	}, "SELECT "+campaignColumns+", "+up+`, COALESCE((SELECT MAX(k.created_at) FROM calls k WHERE k.user_id = c.user_id AND k.campaign_id = c.id), 0)
		FROM campaigns c JOIN campaign_progress p ON p.campaign_id = c.id
		WHERE c.status = 'in-progress' AND c.deleted_at IS NULL AND (p.created + p.scheduled + p.processing + p.rescheduled = 0
			OR EXISTS (SELECT 1 FROM leads l WHERE l.campaign_id = c.id AND l.`+waiting+` AND l.wait_until <= ?)) ORDER BY c.id`, at.UnixMicro())
}

// scanMore reads further columns behind those that a scan function knows.
type scanMore struct {
	scanner
	more []any
}

func (s scanMore) Scan(to ...any) error { return s.scanner.Scan(append(to, s.more...)...) }

// LinesOf are the numbers that a campaign calls from: its own or, without any, its
// assistant's.
func (s *System) LinesOf(ctx context.Context, c *parley.Campaign) ([]parley.PhoneNumber, error) {
	own, err := list(ctx, s.session, scanNumber, "SELECT "+numberColumns+" FROM phone_numbers n JOIN campaign_numbers k ON k.phone_number_id = n.id WHERE k.campaign_id = ? ORDER BY k.position", c.ID)
	if err != nil || len(own) > 0 {
		return own, err
	}
	return list(ctx, s.session, scanNumber, "SELECT "+numberColumns+" FROM phone_numbers n JOIN assistants a ON a.phone_number_id = n.id WHERE a.id = ?", c.AssistantID)
}

// DueLeads are the leads of a campaign that are due, those that have waited longest first.
func (s *System) DueLeads(ctx context.Context, c *parley.Campaign, at time.Time, limit int) ([]parley.Lead, error) {
	leads, err := list(ctx, s.session, scanLead, "SELECT "+leadColumns+` FROM leads l JOIN campaigns c ON c.id = l.campaign_id
		WHERE l.campaign_id = ? AND l.`+waiting+` AND l.wait_until <= ? ORDER BY l.wait_until, l.id LIMIT ?`, c.ID, at.UnixMicro(), limit)
	if err != nil {
		return nil, err
	}
	pointers := make([]*parley.Lead, len(leads))
	for i := range leads {
		pointers[i] = &leads[i]
	}
	return leads, s.Tenant(c.UserID).loadContacts(ctx, pointers)
}

// LiveCalls are all calls that are up or wait to be placed, as far as room is counted by them.
func (s *System) LiveCalls(ctx context.Context) ([]parley.Call, error) {
	return list(ctx, s.session, func(row scanner, c *parley.Call) error {
		return row.Scan(&c.ID, &c.UserID, &c.CampaignID, &c.TrunkID, &c.CustomerNumber, &c.Type, micros{&c.CreatedAt})
	}, "SELECT id, user_id, campaign_id, sip_trunk_id, client_phone_number, type, created_at FROM calls WHERE "+live)
}

// RecentAttempts are when a user's numbers were called since a time, by number.
func (s *System) RecentAttempts(ctx context.Context, user parley.ID, numbers []string, since time.Time) (map[string][]time.Time, error) {
	attempts := map[string][]time.Time{}
	if len(numbers) == 0 {
		return attempts, nil
	}
	type attempt struct {
		number string
		at     time.Time
	}
	args := padded(numbers)
	found, err := list(ctx, s.session, func(row scanner, a *attempt) error { return row.Scan(&a.number, micros{&a.at}) },
		"SELECT client_phone_number, created_at FROM calls WHERE user_id = ? AND client_phone_number IN ("+placeholders(len(args))+`) AND created_at > ?
			AND type = 'outbound' AND (dialed_at IS NOT NULL OR `+live+")", append(append([]any{user}, args...), since.UnixMicro())...)
	for _, a := range found {
		attempts[a.number] = append(attempts[a.number], a.at)
	}
	return attempts, err
}

// PutOff writes until when leads wait, and what they are meanwhile. One that is no longer
// waiting is left alone.
func (s *System) PutOff(ctx context.Context, leads []parley.ID, status parley.LeadStatus, until time.Time) error {
	if len(leads) == 0 {
		return nil
	}
	args := padded(leads)
	_, err := s.exec(ctx, "UPDATE leads SET wait_until = ?, status = ?, updated_at = CASE WHEN status = ? THEN updated_at ELSE ? END WHERE id IN ("+placeholders(len(args))+") AND "+waiting,
		append([]any{until.UnixMicro(), status, status, now().UnixMicro()}, args...)...)
	return err
}

// SaveProgress writes how far a lead has come: its status, its round, and those of its contacts.
func (t *Tenant) SaveProgress(ctx context.Context, l *parley.Lead) error {
	l.UpdatedAt = now()
	for _, c := range l.Secondary {
		if _, err := t.exec(ctx, "UPDATE lead_contacts SET status = ?, updated_at = ? WHERE lead_id = ? AND id = ? AND status <> ?", c.Status, l.UpdatedAt.UnixMicro(), l.ID, c.ID, c.Status); err != nil {
			return err
		}
	}
	result, err := t.exec(ctx, "UPDATE leads SET status = ?, attempts = ?, next_contact = ?, due_at = ?, wait_until = ?, updated_at = ? WHERE user_id = ? AND id = ?",
		l.Status, l.Attempts, l.NextContact, zeroMicros(l.DueAt), dueSince(l), l.UpdatedAt.UnixMicro(), t.user, l.ID)
	return affected(result, err, "Lead")
}

// CampaignCalls counts the calls of a campaign that are up or wait to be placed.
func (s *System) CampaignCalls(ctx context.Context, campaign parley.ID) (int64, error) {
	return s.number(ctx, "SELECT COUNT(*) FROM calls WHERE campaign_id = ? AND "+live, campaign)
}

// CarrierFailures counts how many of a campaign's last calls failed by the carrier's fault or
// for want of its consent, and how many there were.
func (s *System) CarrierFailures(ctx context.Context, c *parley.Campaign, last int) (failures, ended int, err error) {
	reasons := []parley.EndReason{}
	for _, reason := range parley.EndReasons() {
		if reason.Fault() == parley.FaultCarrier || reason == parley.EndUnauthorized || reason == parley.EndRejected {
			reasons = append(reasons, reason)
		}
	}
	args := []any{}
	for _, reason := range reasons {
		args = append(args, reason)
	}
	type counts struct{ failures, ended int }
	found, err := one(ctx, s.session, "Count", func(row scanner, n *counts) error { return row.Scan(&n.failures, &n.ended) },
		"SELECT COALESCE(SUM(CASE WHEN status = 'failed' AND end_reason IN ("+placeholders(len(reasons))+") THEN 1 ELSE 0 END), 0), COUNT(*) FROM "+
			"(SELECT status, end_reason FROM calls WHERE user_id = ? AND campaign_id = ? AND ended_at > ? AND dialed_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?) AS latest",
		append(args, c.UserID, c.ID, c.UpdatedAt.UnixMicro(), last)...)
	if err != nil {
		return 0, 0, err
	}
	return found.failures, found.ended, nil
}

// HangUpCampaign asks for the end of all calls of a campaign.
func (t *Tenant) HangUpCampaign(ctx context.Context, campaign parley.ID) error {
	_, err := t.exec(ctx, "UPDATE calls SET hangup_at = COALESCE(hangup_at, ?) WHERE user_id = ? AND campaign_id = ? AND "+live, now().UnixMicro(), t.user, campaign)
	return err
}

// OwnerOfLead is whose lead it is.
func (s *System) OwnerOfLead(ctx context.Context, lead parley.ID) (parley.ID, error) {
	owner, err := one(ctx, s.session, "Lead", scanID, "SELECT user_id FROM leads WHERE id = ?", lead)
	if err != nil {
		return 0, err
	}
	return *owner, nil
}

// TripCampaign stops a running campaign and says why.
func (s *System) TripCampaign(ctx context.Context, campaign parley.ID, reason string) error {
	_, err := s.exec(ctx, "UPDATE campaigns SET status = ?, stop_reason = ?, updated_at = ? WHERE id = ? AND status = ?",
		parley.CampaignStopped, reason, now().UnixMicro(), campaign, parley.CampaignInProgress)
	return err
}
