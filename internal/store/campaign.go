package store

import (
	"context"
	"encoding/json"

	"parley"
)

const campaignColumns = `c.id, c.user_id, c.name, c.status, c.assistant_id, c.timezone, c.max_calls_in_parallel, c.mark_complete, c.hours_start, c.hours_end, c.allowed_days,
	c.max_retries, c.retry_interval, c.retry_on_voicemail, c.retry_on_goal_incomplete, c.goal_variable, c.stop_reason, c.created_at, c.updated_at,
	p.created + p.scheduled, p.processing, p.completed, p.rescheduled, p.reached_max_retries, p.blacklisted`

const campaignsOfUser = " FROM campaigns c JOIN campaign_progress p ON p.campaign_id = c.id WHERE c.user_id = ? AND c.deleted_at IS NULL"

// CreateCampaign adds a campaign.
func (t *Tenant) CreateCampaign(ctx context.Context, c *parley.Campaign) error {
	days, err := json.Marshal(c.AllowedDays)
	if err != nil {
		return err
	}
	c.UserID, c.CreatedAt = t.user, now()
	c.UpdatedAt = c.CreatedAt
	return t.Tx(ctx, func(t *Tenant) error {
		c.ID, err = t.insert(ctx, `INSERT INTO campaigns (user_id, name, status, assistant_id, timezone, max_calls_in_parallel, mark_complete, hours_start, hours_end, allowed_days,
			max_retries, retry_interval, retry_on_voicemail, retry_on_goal_incomplete, goal_variable, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			t.user, c.Name, c.Status, c.AssistantID, c.Timezone, c.MaxCallsInParallel, c.MarkComplete, c.HoursStart, c.HoursEnd, string(days),
			c.MaxRetries, c.RetryInterval, c.RetryOnVoicemail, c.RetryOnGoalIncomplete, c.GoalVariable, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro())
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, "INSERT INTO campaign_progress (campaign_id) VALUES (?)", c.ID); err != nil {
			return err
		}
		return t.giveLines(ctx, c)
	})
}

// SaveCampaign writes a changed campaign back. Leads that the dialer put off are
// looked at anew: the change may have opened the campaign's hours.
func (t *Tenant) SaveCampaign(ctx context.Context, c *parley.Campaign) error {
	days, err := json.Marshal(c.AllowedDays)
	if err != nil {
		return err
	}
	c.UpdatedAt = now()
	return t.Tx(ctx, func(t *Tenant) error {
		result, err := t.exec(ctx, `UPDATE campaigns SET name = ?, status = ?, assistant_id = ?, timezone = ?, max_calls_in_parallel = ?, mark_complete = ?, hours_start = ?, hours_end = ?, allowed_days = ?,
			max_retries = ?, retry_interval = ?, retry_on_voicemail = ?, retry_on_goal_incomplete = ?, goal_variable = ?, updated_at = ?
			WHERE user_id = ? AND id = ? AND deleted_at IS NULL`,
			c.Name, c.Status, c.AssistantID, c.Timezone, c.MaxCallsInParallel, c.MarkComplete, c.HoursStart, c.HoursEnd, string(days),
			c.MaxRetries, c.RetryInterval, c.RetryOnVoicemail, c.RetryOnGoalIncomplete, c.GoalVariable, c.UpdatedAt.UnixMicro(), t.user, c.ID)
		if err := affected(result, err, "Campaign"); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "DELETE FROM campaign_numbers WHERE campaign_id = ?", c.ID); err != nil {
			return err
		}
		if err := t.giveLines(ctx, c); err != nil {
			return err
		}
		_, err = t.exec(ctx, "UPDATE leads SET wait_until = CASE WHEN due_at > 0 THEN due_at ELSE created_at END WHERE campaign_id = ? AND "+waiting+" AND wait_until > ? AND wait_until > due_at",
			c.ID, c.UpdatedAt.UnixMicro())
		return err
	})
}

// SetCampaignStatus starts, stops or completes a campaign.
func (t *Tenant) SetCampaignStatus(ctx context.Context, c *parley.Campaign) error {
	c.UpdatedAt = now()
	result, err := t.exec(ctx, "UPDATE campaigns SET status = ?, stop_reason = ?, updated_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL", c.Status, c.StopReason, c.UpdatedAt.UnixMicro(), t.user, c.ID)
	return affected(result, err, "Campaign")
}

func (t *Tenant) giveLines(ctx context.Context, c *parley.Campaign) error {
	for i, id := range c.PhoneNumberIDs {
		if _, err := t.exec(ctx, "INSERT INTO campaign_numbers (campaign_id, phone_number_id, position) VALUES (?, ?, ?)", c.ID, id, i); err != nil {
			return err
		}
	}
	return nil
}

// Campaign is one campaign; inside a transaction it is locked until the end.
func (t *Tenant) Campaign(ctx context.Context, id parley.ID) (*parley.Campaign, error) {
	return t.campaign(ctx, id, t.lockCampaign(" FOR NO KEY UPDATE OF c"))
}

// CampaignToUse is a campaign that a transaction refers to: it is not deleted, and does
// not change, before its end.
func (t *Tenant) CampaignToUse(ctx context.Context, id parley.ID) (*parley.Campaign, error) {
	return t.campaign(ctx, id, t.lockCampaign(" FOR SHARE OF c"))
}

// lockCampaign locks no counts: whoever changes a lead waits for those. Nor does it keep
// leads from referring to the campaign: who adds or changes one would wait.
func (t *Tenant) lockCampaign(lock string) string {
	if t.tx == nil || !t.db.postgres {
		return ""
	}
	return lock
}

func (t *Tenant) campaign(ctx context.Context, id parley.ID, lock string) (*parley.Campaign, error) {
	c, err := one(ctx, t.session, "Campaign", scanCampaign, "SELECT "+campaignColumns+campaignsOfUser+" AND c.id = ?"+lock, t.user, id)
	if err != nil {
		return nil, err
	}
	c.PhoneNumberIDs, err = list(ctx, t.session, scanID, "SELECT phone_number_id FROM campaign_numbers WHERE campaign_id = ? ORDER BY position", id)
	return c, err
}

// Campaigns are the user's newest campaigns and how many there are. A status narrows them.
func (t *Tenant) Campaigns(ctx context.Context, status parley.CampaignStatus, limit, offset int) ([]parley.Campaign, int, error) {
	clause, args := "", []any{t.user}
	if status != "" {
		clause, args = " AND c.status = ?", append(args, string(status))
	}
	total, err := t.number(ctx, "SELECT COUNT(*) FROM campaigns c WHERE c.user_id = ? AND c.deleted_at IS NULL"+clause, args...)
	if err != nil {
		return nil, 0, err
	}
	page, err := list(ctx, t.session, scanCampaign,
		"SELECT "+campaignColumns+campaignsOfUser+clause+" ORDER BY c.id DESC LIMIT CAST(? AS BIGINT) OFFSET CAST(? AS BIGINT)", append(args, limit, offset)...)
	if err != nil {
		return nil, 0, err
	}
	return page, int(total), t.loadLines(ctx, page)
}

// loadLines gives campaigns the lines they call from, in their order.
func (t *Tenant) loadLines(ctx context.Context, campaigns []parley.Campaign) error {
	if len(campaigns) == 0 {
		return nil
	}
	ids, byID := make([]parley.ID, len(campaigns)), make(map[parley.ID]*parley.Campaign, len(campaigns))
	for i := range campaigns {
		ids[i], byID[campaigns[i].ID] = campaigns[i].ID, &campaigns[i]
		campaigns[i].PhoneNumberIDs = []parley.ID{}
	}
	type line struct{ campaign, number parley.ID }
	args := padded(ids)
	lines, err := list(ctx, t.session, func(row scanner, l *line) error { return row.Scan(&l.campaign, &l.number) },
		"SELECT campaign_id, phone_number_id FROM campaign_numbers WHERE campaign_id IN ("+placeholders(len(args))+") ORDER BY campaign_id, position", args...)
	for _, l := range lines {
		byID[l.campaign].PhoneNumberIDs = append(byID[l.campaign].PhoneNumberIDs, l.number)
	}
	return err
}

func scanCampaign(row scanner, c *parley.Campaign) error {
	var days []byte
	p := &c.Progress
	err := row.Scan(&c.ID, &c.UserID, &c.Name, &c.Status, &c.AssistantID, &c.Timezone, &c.MaxCallsInParallel, &c.MarkComplete, &c.HoursStart, &c.HoursEnd, &days,
		&c.MaxRetries, &c.RetryInterval, &c.RetryOnVoicemail, &c.RetryOnGoalIncomplete, &c.GoalVariable, &c.StopReason, micros{&c.CreatedAt}, micros{&c.UpdatedAt},
		&p.Created, &p.Processing, &p.Completed, &p.Rescheduled, &p.ReachedMaxRetries, &p.Blacklisted)
	if err != nil {
		return err
	}
	p.Total = p.Created + p.Processing + p.Completed + p.Rescheduled + p.ReachedMaxRetries + p.Blacklisted
	return json.Unmarshal(days, &c.AllowedDays)
}

// DeleteCampaign hides a campaign at once, which ends its calling, and then deletes its
// leads, some at a time, so that a long list holds nobody else up. What a crash
// leaves behind, System.PurgeCampaigns deletes.
func (t *Tenant) DeleteCampaign(ctx context.Context, id parley.ID) error {
	at := now().UnixMicro()
	result, err := t.exec(ctx, "UPDATE campaigns SET deleted_at = ?, updated_at = ?, status = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL", at, at, parley.CampaignStopped, t.user, id)
	if err := affected(result, err, "Campaign"); err != nil {
		return err
	}
	return t.db.System().purgeCampaign(ctx, id)
}

// PurgeCampaigns deletes what is left of deleted campaigns.
func (s *System) PurgeCampaigns(ctx context.Context) error {
	ids, err := list(ctx, s.session, scanID, "SELECT id FROM campaigns WHERE deleted_at IS NOT NULL")
	for _, id := range ids {
		if err := s.purgeCampaign(ctx, id); err != nil {
			return err
		}
	}
	return err
}

// purgeBatch keeps each transaction of a purge short beside a running server.
const purgeBatch = 5000

func (s *System) purgeCampaign(ctx context.Context, id parley.ID) error {
	for {
		result, err := s.exec(ctx, "DELETE FROM leads WHERE id IN (SELECT id FROM leads WHERE campaign_id = ? ORDER BY id LIMIT ?)", id, purgeBatch)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n < purgeBatch {
			if err == nil {
				_, err = s.exec(ctx, "DELETE FROM campaigns WHERE id = ?", id)
			}
			return err
		}
	}
}
