package store

import (
	"context"

	"parley"
)

// LeadOf is the lead of a call and its campaign, as far as there are any.
func (s *System) LeadOf(ctx context.Context, c *parley.Call) (*parley.Lead, *parley.Campaign, error) {
	t := s.Tenant(c.UserID)
	var lead *parley.Lead
	var campaign *parley.Campaign
	var err error
	if c.LeadID != nil {
		if lead, err = t.Lead(ctx, *c.LeadID); err != nil && parley.ErrorCode(err) != parley.NotFound {
			return nil, nil, err
		}
	}
	if c.CampaignID != nil {
		if campaign, err = t.CampaignToUse(ctx, *c.CampaignID); err != nil && parley.ErrorCode(err) != parley.NotFound {
			return nil, nil, err
		}
	}
	return lead, campaign, nil
}
