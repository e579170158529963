package dialer

import (
	"cmp"
	"slices"
	"time"

	"parley"
)

// Make is the plan for a situation. It does not change what it is given.
func Make(s *Situation) Plan {
	p := &planner{Situation: s, atlas: newAtlas(), inCall: map[Callee]bool{}, left: map[parley.ID]int{}}
	p.gates = newGates(s)
	for i := range s.Calls {
		p.inCall[Callee{s.Calls[i].UserID, s.Calls[i].Number}] = true
	}
	queues := make([]queue, 0, len(s.Campaigns))
	for i := range s.Campaigns {
		queues = append(queues, p.sort(&s.Campaigns[i]))
	}
	p.share(queues)
	p.complete()
	return p.out
}

// planner is a plan in the making.
type planner struct {
	*Situation
	*atlas
	gates  *gates
	inCall map[Callee]bool
	left   map[parley.ID]int // leads not done, by campaign
	out    Plan
}

// queue is a campaign and its leads that could be called now, if there were room.
type queue struct {
	work  *Work
	ready []candidate
}

// candidate is a lead with the contact it would be called at.
type candidate struct {
	lead    *parley.Lead
	contact int
	attempt int
	number  string
}

// sort puts each of a campaign's leads where it belongs: done, waiting or ready.
func (p *planner) sort(work *Work) queue {
	q := queue{work: work, ready: make([]candidate, 0, len(work.Leads))}
	c := &work.Campaign
	p.left[c.ID] = work.Left
	window := c.WindowIn(p.zone(c.Timezone))
	for i := range work.Leads {
		lead := &work.Leads[i]
		if !lead.Status.Waiting() {
			continue // called now, or done: neither is this plan's business
		}
		if c.Status != parley.CampaignInProgress {
			p.wait(lead, time.Time{}, NotRunning)
			continue
		}
		if p.blocked(lead, 0) {
			p.done(lead, parley.LeadBlacklisted, DoNotCall)
			continue
		}
		next, due, ok := p.turn(c, lead)
		if !ok {
			p.done(lead, parley.LeadReachedMaxRetries, MaxRetries)
			continue
		}
		if len(work.Lines) == 0 {
			p.wait(lead, time.Time{}, NoLine)
			continue
		}
		if until, why, ready := p.ready(work, window, &next, due); !ready {
			p.wait(lead, until, why)
			continue
		}
		q.ready = append(q.ready, next)
	}
	slices.SortFunc(q.ready, inTurn)
	return q
}

// inTurn orders a campaign's leads: rounds under way first, so that they end, then
// whoever has been due longest.
func inTurn(a, b candidate) int {
	return cmp.Or(
		-cmp.Compare(min(a.contact, 1), min(b.contact, 1)),
		dueSince(a.lead).Compare(dueSince(b.lead)),
		cmp.Compare(a.lead.ID, b.lead.ID),
	)
}

func dueSince(lead *parley.Lead) time.Time {
	if lead.DueAt.IsZero() {
		return lead.CreatedAt
	}
	return lead.DueAt
}

func (p *planner) blocked(lead *parley.Lead, contact int) bool {
	return p.DoNotCall[Callee{lead.UserID, lead.Number(contact)}]
}

// turn is whom a lead's next call goes to and from when: the next contact of the
// round that is under way or, where nobody is left in it, the first of a new round
// a retry interval later. False: all attempts are used up.
func (p *planner) turn(c *parley.Campaign, lead *parley.Lead) (_ candidate, due time.Time, ok bool) {
	if lead.NextContact > 0 && lead.Attempts <= c.MaxAttempts() {
		for contact := lead.NextContact; contact < lead.Contacts(); contact++ {
			if !p.blocked(lead, contact) {
				return candidate{lead, contact, lead.Attempts, lead.Number(contact)}, lead.DueAt, true
			}
		}
	}
	if lead.Attempts >= c.MaxAttempts() {
		return candidate{}, time.Time{}, false
	}
	due = lead.DueAt
	if lead.NextContact > 0 {
		due = due.Add(c.RetryAfter())
	}
	return candidate{lead, 0, lead.Attempts + 1, lead.PhoneNumber}, due, true
}

// lookAgain is when a lead without any hour is looked at again: a clock change may
// give it some.
const lookAgain = 24 * time.Hour

// ready says whether a lead may be called now but for the room; if not, why, and from
// when it might be. Pushing the time past one rule can run it into another, so they
// are asked in turn until all agree.
func (p *planner) ready(work *Work, window parley.Window, next *candidate, due time.Time) (until time.Time, why Why, ok bool) {
	hours := p.hours(window, next.lead, next.number, p.sleeps(work) && !parley.Fictional(next.number))
	until = p.Now
	if due.After(until) {
		until, why = due, RetryWait
	}
	for {
		open, possible := hours.Next(until)
		if !possible {
			return p.Now.Add(lookAgain), NoHours, false
		}
		free := p.numberFree(next, open)
		if why == "" {
			why = p.closed(window, open, free)
		}
		if free.Equal(until) {
			return until, why, why == ""
		}
		until = free
	}
}

// sleeps says whether a campaign's callees have hours of their own: unless every one
// of its lines leads to the simulated carrier.
func (p *planner) sleeps(work *Work) bool {
	isReal := func(l Line) bool { return !p.gates.simulated[l.TrunkID] }
	return p.Caps.CalleeHours && slices.ContainsFunc(work.Lines, isReal)
}

// closed names the rule that keeps a lead from being called now.
func (p *planner) closed(window parley.Window, open, free time.Time) Why {
	switch {
	case !window.Open(p.Now):
		return CampaignHours
	case open.After(p.Now):
		return CalleeHours
	case free.After(p.Now):
		return NumberLimit
	default:
		return ""
	}
}

// numberFree is from when, not before at, a number may be tried again: of the last
// NumberAttempts tries the first must be a NumberPeriod ago.
func (p *planner) numberFree(next *candidate, at time.Time) time.Time {
	limit := p.Caps.NumberAttempts
	if limit <= 0 {
		return at
	}
	tries := p.Recent[Callee{next.lead.UserID, next.number}]
	if len(tries) < limit {
		return at
	}
	tries = slices.SortedFunc(slices.Values(tries), time.Time.Compare)
	if free := tries[len(tries)-limit].Add(p.Caps.NumberPeriod); free.After(at) {
		return free
	}
	return at
}

func (p *planner) wait(lead *parley.Lead, until time.Time, why Why) {
	status := parley.LeadScheduled
	switch {
	case why == NotRunning, lead.Status == parley.LeadRescheduled:
		status = lead.Status
	case why == RetryWait:
		status = parley.LeadRescheduled
	}
	p.out.Waits = append(p.out.Waits, Wait{LeadID: lead.ID, CampaignID: lead.CampaignID, Status: status, Until: until, Why: why})
	p.wake(until)
}

// wake makes the plan due again at an instant.
func (p *planner) wake(at time.Time) {
	if !at.IsZero() && (p.out.Next.IsZero() || at.Before(p.out.Next)) {
		p.out.Next = at
	}
}

func (p *planner) done(lead *parley.Lead, status parley.LeadStatus, why Why) {
	p.out.Done = append(p.out.Done, Done{LeadID: lead.ID, CampaignID: lead.CampaignID, Status: status, Why: why})
	p.left[lead.CampaignID]--
}

// complete names the campaigns that have no lead left. A call that is up has its lead
// with it, so such a campaign has none.
func (p *planner) complete() {
	for i := range p.Campaigns {
		c := p.Campaigns[i].Campaign
		if c.Complete(p.left[c.ID]) {
			p.out.Complete = append(p.out.Complete, c.ID)
		}
	}
}
