package dialer

import (
	"context"
	"time"
)

// Planned makes a plan that is carried out later: what happens in between is up to the test.
func (d *Dialer) Planned(ctx context.Context, at time.Time) (plan Plan, carryOut func() error, err error) {
	work, err := d.DB.System().CampaignsAtWork(ctx, at)
	if err != nil {
		return plan, nil, err
	}
	s, err := d.situation(ctx, at, work)
	if err != nil {
		return plan, nil, err
	}
	plan = Make(s)
	return plan, func() error { return d.carryOut(ctx, s, &plan) }, nil
}

// BreakerCalls is how many failures in a row stop a campaign.
const BreakerCalls = breakerCalls
