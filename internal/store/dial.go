package store

import (
	"context"
	"slices"
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

// CampaignOf is the campaign of a call, which is not locked. Without one it is a not-found
// error.
func (s *System) CampaignOf(ctx context.Context, c *parley.Call) (*parley.Campaign, error) {
	if c.CampaignID == nil {
		return nil, parley.ErrNotFound("Campaign")
	}
	return s.Tenant(c.UserID).campaign(ctx, *c.CampaignID, "")
}

// LeadOf is the lead of a call and its campaign, as far as there are any. The lead is
// locked in a transaction.
func (s *System) LeadOf(ctx context.Context, c *parley.Call) (lead *parley.Lead, campaign *parley.Campaign, err error) {
	if campaign, err = s.CampaignOf(ctx, c); err != nil && parley.ErrorCode(err) != parley.NotFound {
		return nil, nil, err
	}
	if c.LeadID == nil {
		return nil, campaign, nil
	}
	if lead, err = s.Tenant(c.UserID).Lead(ctx, *c.LeadID); err != nil && parley.ErrorCode(err) != parley.NotFound {
		return nil, nil, err
	}
	return lead, campaign, nil
}

// CampaignAtWork is a running campaign with what the dialer needs to know of it.
type CampaignAtWork struct {
	parley.Campaign
	Staffed  bool      // its assistant can call
	Live     int       // calls that are up or wait to be placed
	LastCall time.Time // when it last began one; zero: never
}

const campaignsAtWork = "SELECT " + campaignColumns + `,
		EXISTS (SELECT 1 FROM assistants a WHERE a.id = c.assistant_id AND a.status = 'active' AND a.deleted_at IS NULL),
		(SELECT COUNT(*) FROM calls k WHERE k.campaign_id = c.id AND k.` + live + `),
		COALESCE((SELECT MAX(k.created_at) FROM calls k WHERE k.user_id = c.user_id AND k.campaign_id = c.id), 0)
	FROM campaigns c JOIN campaign_progress p ON p.campaign_id = c.id WHERE c.deleted_at IS NULL`

const allAtWork = campaignsAtWork + ` AND c.status = 'in-progress'
	AND (c.mark_complete AND p.created + p.scheduled + p.processing + p.rescheduled = 0
		OR EXISTS (SELECT 1 FROM leads l WHERE l.campaign_id = c.id AND l.` + waiting + ` AND l.wait_until <= ?)) ORDER BY c.id`

func scanAtWork(row scanner, w *CampaignAtWork) error {
	var last int64
	if err := scanCampaign(scanMore{row, []any{&w.Staffed, &w.Live, &last}}, &w.Campaign); err != nil {
		return err
	}
	if last > 0 {
		w.LastCall = time.UnixMicro(last).UTC()
	}
	return nil
}

// CampaignsAtWork are the running campaigns that have something to do now: a lead that is
// due, or to end for want of any. Their number, not that of all leads, is what this costs.
func (s *System) CampaignsAtWork(ctx context.Context, at time.Time) ([]CampaignAtWork, error) {
	return list(ctx, s.session, scanAtWork, allAtWork, at.UnixMicro())
}

// CampaignAtWork is one of the user's campaigns as the dialer sees it, running or not.
func (t *Tenant) CampaignAtWork(ctx context.Context, id parley.ID) (*CampaignAtWork, error) {
	return one(ctx, t.session, "Campaign", scanAtWork, campaignsAtWork+" AND c.user_id = ? AND c.id = ?", t.user, id)
}

// LeadsLeft is how many leads of a campaign are not done. Who holds the campaign locked
// knows that none is being added.
func (t *Tenant) LeadsLeft(ctx context.Context, campaign parley.ID) (int64, error) {
	return t.number(ctx, "SELECT created + scheduled + processing + rescheduled FROM campaign_progress WHERE campaign_id = ?", campaign)
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

const dueLeads = "SELECT " + leadColumns + ` FROM leads l JOIN campaigns c ON c.id = l.campaign_id
	WHERE l.campaign_id = ? AND l.` + waiting + ` AND l.wait_until <= ? ORDER BY l.wait_until, l.id LIMIT ?`

// DueLeads are the leads of a campaign that are due, those that have waited longest first.
func (s *System) DueLeads(ctx context.Context, c *parley.Campaign, at time.Time, limit int) ([]parley.Lead, error) {
	leads, err := list(ctx, s.session, scanLead, dueLeads, c.ID, at.UnixMicro(), limit)
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

// NumberLoad is how many calls to a number a user has up or about to be placed, and how
// many were made or are to be made to it since a time. Inside a transaction that has asked
// for the user's load it holds until the end.
func (t *Tenant) NumberLoad(ctx context.Context, number string, since time.Time) (up, made int, err error) {
	type load struct{ up, made int }
	found, err := one(ctx, t.session, "Load", func(row scanner, l *load) error { return row.Scan(&l.up, &l.made) }, `SELECT
		(SELECT COUNT(*) FROM calls WHERE user_id = ? AND client_phone_number = ? AND `+live+`),
		(SELECT COUNT(*) FROM calls WHERE user_id = ? AND client_phone_number = ? AND created_at > ? AND type = 'outbound' AND (dialed_at IS NOT NULL OR `+live+`))`,
		t.user, number, t.user, number, since.UnixMicro())
	if err != nil {
		return 0, 0, err
	}
	return found.up, found.made, nil
}

// TrunkLimits are the limits of trunks, by id, and how many calls each began within the
// last second.
func (s *System) TrunkLimits(ctx context.Context, trunks []parley.ID) (limits []parley.Trunk, begun []int, err error) {
	if len(trunks) == 0 {
		return nil, nil, nil
	}
	args := padded(trunks)
	limits, err = list(ctx, s.session, func(row scanner, t *parley.Trunk) error {
		begun = append(begun, 0)
		return row.Scan(&t.ID, &t.MaxChannels, &t.CallsPerSecond, &begun[len(begun)-1])
	}, "SELECT t.id, t.max_channels, t.calls_per_second, (SELECT COUNT(*) FROM calls k WHERE k.user_id = t.user_id AND k.sip_trunk_id = t.id AND k.dialed_at > ? AND k."+live+
		") FROM sip_trunks t WHERE t.id IN ("+placeholders(len(args))+")", append([]any{now().Add(-time.Second).UnixMicro()}, args...)...)
	return limits, begun, err
}

// PutOff writes until when leads of a campaign wait, and what they are meanwhile: those
// that are as the plan saw them, if the campaign is. One that was edited since is left to
// the next plan, for the edit may have made it callable.
func (t *Tenant) PutOff(ctx context.Context, seen *parley.Campaign, leads []parley.Lead, status parley.LeadStatus, until time.Time) error {
	return t.Tx(ctx, func(t *Tenant) error {
		c, err := t.CampaignToUse(ctx, seen.ID)
		if err != nil || !c.UpdatedAt.Equal(seen.UpdatedAt) {
			return err
		}
		ids, err := t.unchanged(ctx, leads)
		if err != nil || len(ids) == 0 {
			return err
		}
		args := padded(ids)
		_, err = t.exec(ctx, "UPDATE leads SET wait_until = ?, status = ?, updated_at = CASE WHEN status = ? THEN updated_at ELSE ? END WHERE id IN ("+placeholders(len(args))+")",
			append([]any{until.UnixMicro(), status, status, now().UnixMicro()}, args...)...)
		return err
	})
}

// unchanged are the leads that wait as they were read, locked until the transaction's end.
func (t *Tenant) unchanged(ctx context.Context, leads []parley.Lead) ([]parley.ID, error) {
	if err := t.lockDoNotCall(ctx, "pg_advisory_xact_lock_shared"); err != nil {
		return nil, err
	}
	ids, seen := make([]parley.ID, len(leads)), make(map[parley.ID]time.Time, len(leads))
	for i := range leads {
		ids[i], seen[leads[i].ID] = leads[i].ID, leads[i].UpdatedAt
	}
	type version struct {
		id parley.ID
		at time.Time
	}
	args := padded(ids)
	// In the order of their ids: two that put leads off do not wait for each other.
	found, err := list(ctx, t.session, func(row scanner, v *version) error { return row.Scan(&v.id, micros{&v.at}) },
		"SELECT id, updated_at FROM leads WHERE id IN ("+placeholders(len(args))+") AND "+waiting+" ORDER BY id"+t.forUpdate(), args...)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v version) bool { return !v.at.Equal(seen[v.id]) })
	same := make([]parley.ID, len(found))
	for i, v := range found {
		same[i] = v.id
	}
	return same, nil
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

// TripCampaigns stops the running campaigns of which the last calls, so many, all failed by
// the carrier's fault or for want of its consent since they were started or changed; and
// says why.
func (s *System) TripCampaigns(ctx context.Context, last int, reason string) (tripped []parley.ID, err error) {
	args := []any{last}
	for _, r := range parley.EndReasons() {
		if r.Fault() == parley.FaultCarrier || r == parley.EndUnauthorized || r == parley.EndRejected {
			args = append(args, r)
		}
	}
	failing, err := list(ctx, s.session, scanID, `SELECT c.id FROM campaigns c WHERE c.status = 'in-progress' AND c.deleted_at IS NULL AND (SELECT COUNT(*) FROM
			(SELECT k.status, k.end_reason FROM calls k WHERE k.user_id = c.user_id AND k.campaign_id = c.id AND k.created_at > c.updated_at AND k.ended_at IS NOT NULL AND k.dialed_at IS NOT NULL
				ORDER BY k.created_at DESC, k.id DESC LIMIT ?) AS latest
			WHERE status = 'failed' AND end_reason IN (`+placeholders(len(args)-1)+")) >= ?", append(args, last)...)
	for _, id := range failing {
		result, err := s.exec(ctx, "UPDATE campaigns SET status = ?, stop_reason = ?, updated_at = ? WHERE id = ? AND status = ?", parley.CampaignStopped, reason, now().UnixMicro(), id, parley.CampaignInProgress)
		if err != nil {
			return tripped, err
		}
		if n, err := result.RowsAffected(); err == nil && n > 0 {
			tripped = append(tripped, id)
		}
	}
	return tripped, err
}

// leavingFor is how long a call that was claimed may take to leave: an INVITE follows within
// milliseconds, and the carrier's first answer soon after.
const leavingFor = time.Second

// Leaving counts the calls of a campaign that were claimed an instant ago and may not have
// left yet.
func (t *Tenant) Leaving(ctx context.Context, campaign parley.ID) (int64, error) {
	return t.number(ctx, "SELECT COUNT(*) FROM calls WHERE user_id = ? AND campaign_id = ? AND status = 'initiated' AND dialed_at > ?", t.user, campaign, now().Add(-leavingFor).UnixMicro())
}

// HangUpCampaign asks for the end of all calls of a campaign.
func (t *Tenant) HangUpCampaign(ctx context.Context, campaign parley.ID) error {
	_, err := t.exec(ctx, "UPDATE calls SET hangup_at = COALESCE(hangup_at, ?) WHERE user_id = ? AND campaign_id = ? AND "+live, now().UnixMicro(), t.user, campaign)
	return err
}
