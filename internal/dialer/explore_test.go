package dialer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
	"parley/internal/promise"
)

// The explorer walks every state that a small campaign can get into: two leads, one
// with a secondary contact that is the other's own number, calling from 09:00 to
// 12:00 with a retry after an hour. Time goes by in hours.
const (
	exploredLeads    = 2
	exploredContacts = 2
	exploredHour     = time.Hour
)

// exploredStart is 10:00 of a Monday.
var exploredStart = time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)

// exploredNumbers are those of each lead's contacts: lead 1 has one contact only.
var exploredNumbers = [exploredLeads][exploredContacts]int{{0, 1}, {1, -1}}

// state is all there is to know, comparable, so that a state is met once.
type state struct {
	hour       int16 // since exploredStart
	status     parley.CampaignStatus
	maxRetries int8
	leads      [exploredLeads]leadState
	blocked    [2]bool // by number
	edits      int8    // left to be made
}

type leadState struct {
	status   parley.LeadStatus
	contact  parley.LeadStatus // of the secondary contact
	attempts int8
	next     int8
	due      int16 // hour; never: notDue
	planned  step  // by a plan, not yet dialled
	flying   step  // a call that is up

	// What really happened, counted by the explorer and not by the dialer.
	dials   [exploredContacts]int8
	lastEnd int16 // when its last call ended; never: notDue
}

// step is a contact's turn in a round; the zero one is none.
type step struct{ attempt, contact int8 }

const notDue int16 = -1000

func (s *state) now() time.Time { return exploredStart.Add(time.Duration(s.hour) * exploredHour) }

func (s *state) campaign() parley.Campaign {
	c := campaign(1, 1)
	c.Status, c.MaxRetries = s.status, int(s.maxRetries)
	c.HoursStart, c.HoursEnd = "09:00:00", "12:00:00"
	return c
}

func (s *state) lead(i int) parley.Lead {
	from := &s.leads[i]
	l := parley.Lead{
		ID: parley.ID(i + 1), UserID: 1, CampaignID: 1, PhoneNumber: number(exploredNumbers[i][0]), Status: from.status,
		Attempts: int(from.attempts), NextContact: int(from.next),
	}
	if from.due != notDue {
		l.DueAt = exploredStart.Add(time.Duration(from.due) * exploredHour)
	}
	if second := exploredNumbers[i][1]; second >= 0 {
		l.Secondary = []parley.SecondaryContact{{PhoneNumber: number(second), Status: from.contact}}
	}
	return l
}

func (s *state) keep(i int, l parley.Lead) {
	to := &s.leads[i]
	to.status, to.attempts, to.next, to.due = l.Status, int8(l.Attempts), int8(l.NextContact), notDue
	if !l.DueAt.IsZero() {
		to.due = int16(l.DueAt.Sub(exploredStart) / exploredHour)
	}
	if len(l.Secondary) > 0 {
		to.contact = l.Secondary[0].Status
	}
}

func (s *state) situation() *dialer.Situation {
	sit := &dialer.Situation{Now: s.now(), Trunks: []dialer.Trunk{{ID: 1}}, DoNotCall: map[dialer.Callee]bool{}}
	for n, blocked := range s.blocked {
		sit.DoNotCall[dialer.Callee{UserID: 1, Number: number(n)}] = blocked
	}
	work := dialer.Work{Campaign: s.campaign(), Lines: []dialer.Line{{TrunkID: 1}}}
	for i := range s.leads {
		l := s.lead(i)
		work.Leads = append(work.Leads, l)
		if !l.Status.Final() {
			work.Left++
		}
		if up := s.leads[i].flying; up.attempt > 0 {
			sit.Calls = append(sit.Calls, dialer.InFlight{UserID: 1, CampaignID: 1, TrunkID: 1, Number: l.Number(int(up.contact))})
		}
	}
	sit.Campaigns = []dialer.Work{work}
	return sit
}

// plan asks for a plan, and keeps it for later: what happens before it is carried out
// is what the explorer is about.
func (s state) plan() (state, dialer.Plan) {
	p := dialer.Make(s.situation())
	for i := range s.leads {
		s.leads[i].planned = step{}
	}
	for _, w := range p.Waits {
		s.leads[w.LeadID-1].status = w.Status
	}
	for _, d := range p.Done {
		i := int(d.LeadID - 1)
		s.keep(i, dialer.Conclude(s.lead(i), d))
	}
	for _, c := range p.Calls {
		s.leads[c.LeadID-1].planned = step{int8(c.Attempt), int8(c.Contact)}
	}
	if len(p.Complete) > 0 {
		s.status = parley.CampaignCompleted
	}
	return s, p
}

// dial carries a planned call out, if it still may be.
func (s state) dial(i int) (state, error) {
	planned := s.leads[i].planned
	s.leads[i].planned = step{}
	n := exploredNumbers[i][planned.contact]
	call := dialer.Call{LeadID: parley.ID(i + 1), CampaignID: 1, UserID: 1, Contact: int(planned.contact), Attempt: int(planned.attempt), Number: number(n)}
	c, l := s.campaign(), s.lead(i)
	claimed, ok := dialer.Claim(l, call)
	if !ok || dialer.Recheck(s.now(), &c, &l, call, false, s.blocked[n]) != "" {
		return s, nil
	}
	if err := s.judge(i, planned); err != nil {
		return s, err
	}
	s.keep(i, claimed)
	s.leads[i].flying = planned
	s.leads[i].dials[planned.contact]++
	return s, nil
}

// judge says what is wrong with a call that is about to leave, from what really happened.
func (s *state) judge(i int, next step) error {
	l := &s.leads[i]
	clock := s.now().Format("15:04")
	switch {
	case s.status != parley.CampaignInProgress:
		return fmt.Errorf("lead %d is called by a campaign that is %s", i, s.status)
	case clock < "09:00" || clock >= "12:00":
		return fmt.Errorf("lead %d is called at %s", i, clock)
	case s.blocked[exploredNumbers[i][next.contact]]:
		return fmt.Errorf("lead %d is called after an opt-out", i)
	case l.dials[next.contact] > s.maxRetries:
		return fmt.Errorf("lead %d is called once too often", i)
	case l.flying.attempt > 0:
		return fmt.Errorf("lead %d is called twice at once", i)
	case next.contact == 0 && l.lastEnd != notDue && s.hour-l.lastEnd < 1:
		return fmt.Errorf("lead %d is retried too early", i)
	}
	return nil
}

// end ends a call that is up.
func (s state) end(i int, how dialer.Result) state {
	c, l := s.campaign(), s.lead(i)
	how.Contact, how.At = int(s.leads[i].flying.contact), s.now()
	how.Number = l.Number(how.Contact)
	if how.OptOut {
		s.blocked[exploredNumbers[i][how.Contact]] = true
	}
	s.keep(i, dialer.Outcome(&c, l, how))
	s.leads[i].flying, s.leads[i].lastEnd = step{}, s.hour
	return s
}

// ends are the ways a call can end; a crash is one.
var ends = []dialer.Result{
	{Status: parley.CallNoAnswer},
	{Status: parley.CallCompleted},
	{Status: parley.CallCompleted, Voicemail: true},
	{Status: parley.CallCompleted, OptOut: true},
	{Status: parley.CallRinging, Indeterminate: true},
}

// successors are the states that one event leads to.
func (s state) successors() (next []state, err error) {
	planned, _ := s.plan()
	next = append(next, planned)
	for i := range s.leads {
		if s.leads[i].planned.attempt > 0 {
			dialled, err := s.dial(i)
			if err != nil {
				return nil, err
			}
			next = append(next, dialled)
		}
		if s.leads[i].flying.attempt > 0 {
			for _, how := range ends {
				next = append(next, s.end(i, how))
			}
		}
	}
	return append(next, s.edited()...), nil
}

// later is an hour on, and from the evening at once the next morning.
func (s state) later() state {
	if s.hour++; s.now().Hour() == 13 {
		s.hour += 20
	}
	return s
}

// edited are the states that the campaign's owner, a callee or the clock make.
func (s state) edited() (next []state) {
	next = append(next, s.later())
	if s.edits == 0 {
		return next
	}
	s.edits--
	c := s.campaign()
	if c.Stop() == nil || c.Start(parley.Readiness{Assistant: true, Line: true, Lead: true}) == nil {
		switched := s
		switched.status = c.Status
		next = append(next, switched)
	}
	for retries := range int8(3) {
		edited := s
		edited.maxRetries = retries
		next = append(next, edited)
	}
	for n := range s.blocked {
		asked := s
		asked.blocked[n] = true
		next = append(next, asked)
	}
	return next
}

// finishes says whether a state, left to itself, comes to an end: started if it does
// not run, each call unanswered, each plan carried out, time going by.
func (s state) finishes(known map[state]bool) error {
	var path []state
	for range 200 {
		if known[s] {
			break
		}
		path = append(path, s)
		c := s.campaign()
		if c.Start(parley.Readiness{Assistant: true, Line: true, Lead: true}) == nil {
			s.status = c.Status
		}
		for i := range s.leads {
			if s.leads[i].flying.attempt > 0 {
				s = s.end(i, ends[0])
			}
		}
		next, p := s.plan()
		s = next
		if s.status == parley.CampaignCompleted {
			break
		}
		for i := range s.leads {
			var err error
			if s.leads[i].planned.attempt > 0 {
				if s, err = s.dial(i); err != nil {
					return err
				}
			}
		}
		if len(p.Calls) == 0 {
			if p.Next.IsZero() {
				return fmt.Errorf("nothing more happens, yet it is not over: %+v", s)
			}
			s.hour = int16(p.Next.Sub(exploredStart) / exploredHour)
		}
		if len(path) == 200 {
			return fmt.Errorf("it goes on for ever: %+v", s)
		}
	}
	for _, at := range path {
		known[at] = true
	}
	return nil
}

func TestEveryStateOfASmallCampaign(t *testing.T) {
	t.Parallel()
	hours, edits := int16(24), int8(1) // into the next morning
	if promise.Full() {
		edits = 2
	}
	fresh := leadState{status: parley.LeadCreated, contact: parley.LeadCreated, due: notDue, lastEnd: notDue}
	first := state{status: parley.CampaignInProgress, maxRetries: 1, leads: [exploredLeads]leadState{fresh, fresh}, edits: edits}
	seen, finished := map[state]bool{first: true}, map[state]bool{}
	transitions := 0
	for todo := []state{first}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		require.NoError(t, s.finishes(finished))
		next, err := s.successors()
		require.NoError(t, err, "%+v", s)
		for _, n := range next {
			transitions++
			if n.hour <= hours && !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	t.Logf("%d states, %d transitions, %d more on the way to an end", len(seen), transitions, len(finished)-len(seen))
}
