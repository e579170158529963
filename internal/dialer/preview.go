package dialer

import "parley"

// Preview is the forecast for one campaign of a situation, running or not. It is the
// plan itself that is asked, so it says what would happen.
func Preview(s *Situation, campaign parley.ID) parley.Forecast {
	alone := *s
	alone.Campaigns = nil
	for _, work := range s.Campaigns {
		if work.Campaign.ID == campaign {
			work.Campaign.Status = parley.CampaignInProgress
			alone.Campaigns = []Work{work}
		}
	}
	plan := Make(&alone)
	f := parley.Forecast{Now: len(plan.Calls), Never: len(plan.Done), Why: map[string]int{}}
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
	return f
}
