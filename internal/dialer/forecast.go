package dialer

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
)

// mostForecast bounds the leads that a forecast looks at.
const mostForecast = 10_000

// Forecast is what a campaign would do if it ran now.
func (d *Dialer) Forecast(ctx context.Context, user, campaign parley.ID) (parley.Forecast, error) {
	c, err := d.DB.Tenant(user).CampaignAtWork(ctx, campaign)
	if err != nil {
		return parley.Forecast{}, err
	}
	now := time.Now().UTC()
	s, err := d.situation(ctx, now, []store.CampaignAtWork{*c})
	if err != nil {
		return parley.Forecast{}, err
	}
	// Not only those that are due: the others are what a forecast is asked for.
	work := &s.Campaigns[0]
	if work.Leads, err = d.DB.System().DueLeads(ctx, &c.Campaign, now.AddDate(100, 0, 0), mostForecast); err != nil {
		return parley.Forecast{}, err
	}
	if err := d.known(ctx, s, work); err != nil {
		return parley.Forecast{}, err
	}
	forecast := Preview(s, campaign)
	// Leads beyond those looked at wait behind them.
	if rest := c.Progress.Left() - c.Progress.Processing - len(work.Leads); rest > 0 {
		forecast.Later += rest
		forecast.Why["behind-others"] += rest
	}
	return forecast, nil
}
