package dialer_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
	"parley/internal/promise"
)

// world is a dialer's surroundings in virtual time: it keeps what a database would,
// carries plans out, and ends calls at random.
type world struct {
	r         *rand.Rand
	now       time.Time
	campaigns []parley.Campaign
	leads     []parley.Lead
	wake      []time.Time // when each lead is to be looked at again
	flying    []flight
	lastCall  map[parley.ID]time.Time
	recent    map[dialer.Callee][]time.Time
	blocked   map[dialer.Callee]time.Time
	caps      dialer.Caps
	log       []placed
	plans     int
}

type flight struct {
	call dialer.Call
	lead int
	ends time.Time
}

// placed is a call as the log keeps it, for the judgement afterwards.
type placed struct {
	call     dialer.Call
	at, ends time.Time
}

// land ends the calls that are over by now.
func (w *world) land() {
	w.flying = slices.DeleteFunc(w.flying, func(f flight) bool {
		if f.ends.After(w.now) {
			return false
		}
		lead := w.leads[f.lead]
		result := w.chance(f)
		if result.OptOut {
			w.blocked[dialer.Callee{UserID: lead.UserID, Number: f.call.Number}] = w.now
		}
		w.leads[f.lead] = dialer.Outcome(&w.campaigns[lead.CampaignID], lead, result)
		w.wake[f.lead] = w.now
		return true
	})
}

// chance is how a call ends: mostly badly, so that there is something to retry.
func (w *world) chance(f flight) dialer.Result {
	r := dialer.Result{Contact: f.call.Contact, Number: f.call.Number, At: f.ends}
	switch n := w.r.IntN(100); {
	case n < 25:
		r.Status = parley.CallBusy
	case n < 55:
		r.Status = parley.CallNoAnswer
	case n < 65:
		r.Status = parley.CallFailed
	case n < 70:
		r.Status, r.Indeterminate = parley.CallRinging, true
	case n < 82:
		r.Status, r.Voicemail = parley.CallCompleted, true
	case n < 84:
		r.Status, r.OptOut = parley.CallCompleted, true
	default:
		r.Status, r.Evaluation = parley.CallCompleted, parley.Object{"booked": w.r.IntN(2) == 0}
	}
	return r
}

// situation is what the dialer sees now: the leads that are due, and no others.
func (w *world) situation() *dialer.Situation {
	s := &dialer.Situation{Now: w.now, Caps: w.caps, Recent: w.recent, Trunks: []dialer.Trunk{{ID: 1}}, DoNotCall: map[dialer.Callee]bool{}}
	for callee := range w.blocked {
		s.DoNotCall[callee] = true
	}
	for _, f := range w.flying {
		s.Calls = append(s.Calls, dialer.InFlight{UserID: f.call.UserID, CampaignID: f.call.CampaignID, TrunkID: 1, Number: f.call.Number})
	}
	for i := range w.campaigns {
		s.Campaigns = append(s.Campaigns, dialer.Work{Campaign: w.campaigns[i], LastCall: w.lastCall[w.campaigns[i].ID], Lines: []dialer.Line{{TrunkID: 1}}})
	}
	for i := range w.leads {
		l := &w.leads[i]
		if l.Status.Final() {
			continue
		}
		work := &s.Campaigns[l.CampaignID]
		work.Left++
		if l.Status.Waiting() && !w.wake[i].After(w.now) {
			work.Leads = append(work.Leads, *l)
		}
	}
	return s
}

// tick ends what is over, plans, carries the plan out, and says when to come back.
func (w *world) tick(t *testing.T) (next time.Time) {
	t.Helper()
	w.land()
	p := dialer.Make(w.situation())
	w.plans++
	for _, wait := range p.Waits {
		w.wake[wait.LeadID] = wait.Until
		w.leads[wait.LeadID].Status = wait.Status
	}
	for _, d := range p.Done {
		w.leads[d.LeadID] = dialer.Conclude(w.leads[d.LeadID], d)
	}
	for _, call := range p.Calls {
		claimed, ok := dialer.Claim(w.leads[call.LeadID], call)
		require.True(t, ok)
		w.leads[call.LeadID] = claimed
		ends := w.now.Add(time.Duration(1+w.r.IntN(16)) * 15 * time.Second)
		w.flying = append(w.flying, flight{call: call, lead: int(call.LeadID), ends: ends})
		callee := dialer.Callee{UserID: call.UserID, Number: call.Number}
		w.recent[callee] = append(w.recent[callee], w.now)
		w.lastCall[call.CampaignID] = w.now
		w.log = append(w.log, placed{call: call, at: w.now, ends: ends})
	}
	for _, id := range p.Complete {
		require.True(t, w.campaigns[id].Complete(0))
	}
	for _, f := range w.flying {
		if next.IsZero() || f.ends.Before(next) {
			next = f.ends
		}
	}
	for i := range w.leads {
		if w.leads[i].Status.Waiting() && w.wake[i].After(w.now) && (next.IsZero() || w.wake[i].Before(next)) {
			next = w.wake[i]
		}
	}
	return next
}

func newWorld(count int) *world {
	w := &world{
		r: rand.New(rand.NewPCG(7, uint64(count))), now: time.Date(2026, 10, 12, 6, 0, 0, 0, time.UTC), caps: dialer.DefaultCaps(),
		lastCall: map[parley.ID]time.Time{}, recent: map[dialer.Callee][]time.Time{}, blocked: map[dialer.Callee]time.Time{}, wake: make([]time.Time, count),
	}
	goal := "booked"
	for i := range 10 {
		c := campaign(parley.ID(i), parley.ID(1+i%3))
		c.Timezone = []string{"America/New_York", "Europe/Berlin", "America/Los_Angeles"}[i%3]
		c.HoursStart, c.HoursEnd = "09:00:00", []string{"12:30:00", "20:00:00", "23:59:59"}[w.r.IntN(3)]
		if c.Timezone == "Europe/Berlin" {
			c.HoursEnd = "20:00:00" // Berlin's morning is Washington's night
		}
		c.AllowedDays = parley.Weekdays[:5+w.r.IntN(3)]
		c.MaxRetries, c.RetryInterval = i%5, []int{60, 600, 3600, 7200, 86400}[w.r.IntN(5)]
		c.RetryOnVoicemail, c.RetryOnGoalIncomplete, c.GoalVariable = i%2 == 0, i%4 == 0, &goal
		w.campaigns = append(w.campaigns, c)
	}
	for i := range count {
		c := &w.campaigns[w.r.IntN(len(w.campaigns))]
		l := leads(c, i, 1)[0]
		l.PhoneNumber = number(w.r.IntN(count)) // some numbers are leads of several campaigns
		for n := range w.r.IntN(3) {
			l.Secondary = append(l.Secondary, parley.SecondaryContact{PhoneNumber: number(5000 + w.r.IntN(2000) + n), Status: parley.LeadCreated})
		}
		w.leads = append(w.leads, l)
	}
	return w
}

func TestPromiseG2RetriesExactlyAsSet(t *testing.T) {
	t.Parallel()
	count := promise.Figure(1_000, 10_000)
	w := newWorld(count)
	end := w.now.AddDate(0, 0, 30)
	for next := w.now; !next.IsZero() && next.Before(end); next = w.tick(t) {
		w.now = next
	}
	w.judgeLeads(t)
	w.judgeNumbers(t)
	w.judgeHours(t)
	statuses := map[parley.LeadStatus]int{}
	for i := range w.leads {
		statuses[w.leads[i].Status]++
	}
	t.Logf("%d leads, %d calls, %d plans; %v", count, len(w.log), w.plans, statuses)
	require.Zero(t, statuses[parley.LeadProcessing]+statuses[parley.LeadCreated]+statuses[parley.LeadScheduled]+statuses[parley.LeadRescheduled], "somebody is stuck")
	for i := range w.campaigns {
		require.Equal(t, parley.CampaignCompleted, w.campaigns[i].Status)
	}
}

// judgeLeads reads the log: rounds in number and distance as set, contacts in order.
func (w *world) judgeLeads(t *testing.T) {
	t.Helper()
	byLead := map[parley.ID][]placed{}
	for _, p := range w.log {
		byLead[p.call.LeadID] = append(byLead[p.call.LeadID], p)
	}
	for id, calls := range byLead {
		c := w.campaigns[w.leads[id].CampaignID]
		rounds := 0
		for i, p := range calls {
			if p.call.Contact == 0 {
				rounds++
			}
			require.Equal(t, rounds, p.call.Attempt)
			if i == 0 {
				require.Zero(t, p.call.Contact)
				continue
			}
			before := calls[i-1]
			require.False(t, p.at.Before(before.ends), "two calls to one lead at once")
			if p.call.Contact > 0 {
				require.Greater(t, p.call.Contact, before.call.Contact, "out of order")
			} else if gap := p.at.Sub(before.ends); gap < c.RetryAfter() {
				t.Fatalf("lead %d was retried after %s, not %s", id, gap, c.RetryAfter())
			}
		}
		require.LessOrEqual(t, rounds, 1+c.MaxRetries)
	}
}

// judgeNumbers reads the log: three calls to a number in any 24 hours, and none after an opt-out.
func (w *world) judgeNumbers(t *testing.T) {
	t.Helper()
	starts := map[dialer.Callee][]time.Time{}
	for _, p := range w.log {
		callee := dialer.Callee{UserID: p.call.UserID, Number: p.call.Number}
		if optedOut, ok := w.blocked[callee]; ok {
			require.True(t, p.at.Before(optedOut), "called after an opt-out")
		}
		starts[callee] = append(starts[callee], p.at)
		if all := starts[callee]; len(all) > 3 {
			require.GreaterOrEqual(t, p.at.Sub(all[len(all)-4]), 24*time.Hour)
		}
	}
}

// judgeHours reads the clocks of the log: the campaign's, and Washington's for the numbers.
func (w *world) judgeHours(t *testing.T) {
	t.Helper()
	washington, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	for _, p := range w.log {
		c := w.campaigns[p.call.CampaignID]
		zone, err := time.LoadLocation(c.Timezone)
		require.NoError(t, err)
		face, there := p.at.In(zone).Format("15:04:05"), p.at.In(washington).Format("15:04:05")
		require.True(t, face >= c.HoursStart && (face < c.HoursEnd || c.HoursEnd == "23:59:59"), "%s is outside %s to %s", face, c.HoursStart, c.HoursEnd)
		require.True(t, there >= "08:00:00" && there < "21:00:00", "%s at the callee", there)
		day := int(p.at.In(zone).Weekday()+6) % 7
		require.Contains(t, c.AllowedDays, parley.Weekdays[day])
	}
}

func TestARetryComesAtTheVeryInstant(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 1))
	l := &s.Campaigns[0].Leads[0]
	for attempt := 1; attempt <= 3; attempt++ {
		call := dialer.Make(s).Calls[0]
		require.Equal(t, attempt, call.Attempt)
		*l, _ = dialer.Claim(*l, call)
		ended := s.Now.Add(17*time.Second + 123*time.Millisecond)
		*l = dialer.Outcome(&s.Campaigns[0].Campaign, *l, dialer.Result{Number: call.Number, Status: parley.CallBusy, At: ended})
		s.Now = ended.Add(time.Hour - time.Nanosecond)
		p := dialer.Make(s)
		require.Empty(t, p.Calls)
		s.Now = ended.Add(time.Hour)
		if attempt < 3 {
			require.Equal(t, s.Now, p.Next)
		}
	}
	require.Equal(t, parley.LeadReachedMaxRetries, l.Status)
}
