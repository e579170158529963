package dialer

import (
	"time"

	"parley"
)

// Forecast is what a campaign would do if it ran now.
type Forecast struct {
	Now   int // called at once
	Later int // called when what holds them is over
	Never int // not called, unless something is changed
	Why   map[Why]int
	First time.Time // of those later; zero: as soon as there is room
}

// Preview is the forecast for one campaign of a situation, running or not. It is the
// plan itself that is asked, so it says what would happen.
func Preview(s *Situation, campaign parley.ID) Forecast {
	alone := *s
	alone.Campaigns = nil
	for _, work := range s.Campaigns {
		if work.Campaign.ID == campaign {
			work.Campaign.Status = parley.CampaignInProgress
			alone.Campaigns = []Work{work}
		}
	}
	plan := Make(&alone)
	f := Forecast{Now: len(plan.Calls), Never: len(plan.Done), Why: map[Why]int{}}
	for _, d := range plan.Done {
		f.Why[d.Why]++
	}
	for _, w := range plan.Waits {
		f.Why[w.Why]++
		if w.Why == NoHours || w.Why == NoLine {
			f.Never++
			continue
		}
		f.Later++
		if !w.Until.IsZero() && (f.First.IsZero() || w.Until.Before(f.First)) {
			f.First = w.Until
		}
	}
	return f
}
