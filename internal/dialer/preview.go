package dialer

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
)

// Preview is the forecast for one campaign of a situation, running or not. It is the
// plan itself that is asked, so it says what would happen.
func Preview(s *Situation, campaign parley.ID) parley.Forecast {
	f := parley.Forecast{Why: map[string]int{}}
	foresee(s, campaign, &f)
	return f
}

// foresee adds what a campaign's leads of a situation would meet to a forecast.
func foresee(s *Situation, campaign parley.ID, f *parley.Forecast) Plan {
	alone := *s
	alone.Campaigns = nil
	for _, work := range s.Campaigns {
		if work.Campaign.ID == campaign {
			work.Campaign.Status = parley.CampaignInProgress
			alone.Campaigns = []Work{work}
		}
	}
	plan := Make(&alone)
	f.Now += len(plan.Calls)
	f.Never += len(plan.Done)
	for _, d := range plan.Done {
		f.Why[string(d.Why)]++
	}
	for _, w := range plan.Waits {
		f.Why[string(w.Why)]++
		if w.Why == NoHours || w.Why == NoLine {
			f.Never++
			continue
		}
		f.Later++
		if !w.Until.IsZero() && (f.First == nil || w.Until.Before(*f.First)) {
			f.First = &w.Until
		}
	}
	return plan
}

// Survey is the situation around a campaign: all but its leads and who must not be called.
type Survey func(context.Context, *store.Tenant, *parley.Campaign) (*Situation, error)

// previewBatch is how many leads a preview holds at a time.
const previewBatch = 5000

// PreviewStored is the forecast for a campaign with all of its leads that are kept. It
// asks the plan about some at a time: those it would call take the room of the ones after.
func PreviewStored(ctx context.Context, db *store.DB, survey Survey, user, campaign parley.ID) (parley.Forecast, error) {
	f := parley.Forecast{Why: map[string]int{}}
	tenant := db.Tenant(user)
	c, err := tenant.Campaign(ctx, campaign)
	if err != nil {
		return f, err
	}
	s, err := survey(ctx, tenant, c)
	if err != nil {
		return f, err
	}
	var at store.Place
	for {
		var leads []parley.Lead
		if leads, at, err = tenant.WaitingLeads(ctx, c.ID, s.Now.AddDate(100, 0, 0), at, previewBatch); err != nil || len(leads) == 0 {
			return f, err
		}
		if s.DoNotCall, err = listed(ctx, tenant, user, leads); err != nil {
			return f, err
		}
		s.Campaigns[0].Leads = leads
		for _, call := range foresee(s, c.ID, &f).Calls {
			s.Calls = append(s.Calls, InFlight{UserID: user, CampaignID: c.ID, TrunkID: call.Line.TrunkID, Number: call.Number})
			s.Caps.Started++
			for i := range s.Trunks {
				if s.Trunks[i].ID == call.Line.TrunkID {
					s.Trunks[i].Started++
				}
			}
		}
	}
}

// listed are the leads' numbers that must not be called.
func listed(ctx context.Context, tenant *store.Tenant, user parley.ID, leads []parley.Lead) (map[Callee]bool, error) {
	var numbers []string
	for i := range leads {
		for contact := range leads[i].Contacts() {
			numbers = append(numbers, leads[i].Number(contact))
		}
	}
	found, err := tenant.DoNotCall(ctx, numbers...)
	all := make(map[Callee]bool, len(found))
	for number := range found {
		all[Callee{user, number}] = true
	}
	return all, err
}

// Sandbox is the survey of an installation that has nothing but the simulated carrier.
func Sandbox(ctx context.Context, _ *store.Tenant, c *parley.Campaign) (*Situation, error) {
	return &Situation{Now: time.Now(), Caps: DefaultCaps(), Trunks: []Trunk{{Simulated: true}}, Campaigns: []Work{{Campaign: *c, Left: c.Progress.Left(), Lines: []Line{{}}}}}, ctx.Err()
}
