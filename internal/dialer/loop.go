package dialer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/jobs"
	"parley/internal/store"
)

// Dialer applies the plan: it reads the situation, and turns what the plan decides into
// rows and jobs. One node at a time does so for all; that it is one saves work, and is
// not what keeps the limits: each call is claimed in a transaction that asks again.
type Dialer struct {
	DB       *store.DB
	Queue    *jobs.Queue
	Log      *slog.Logger
	Caps     Caps
	Account  parley.CallCaps
	Carriers parley.Carriers

	leased  time.Time // when the lease was last renewed
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

const (
	// lookEvery is how often the campaigns are looked at: a campaign that was started, or
	// a call that has ended, is followed so soon.
	lookEvery = 250 * time.Millisecond
	// leaseFor is how long a dialer that died keeps others from its work.
	leaseFor = 5 * time.Second
	// renewEvery is how often it says that it lives: each time costs a write.
	renewEvery = leaseFor / 5
	// mostDue bounds the leads of a campaign that one look takes in. More than can be
	// called are read, for some of them must wait and are put off.
	mostDue = 200
	// mostAsked bounds the numbers that are asked about at once: a statement takes so many.
	mostAsked = 1000
	// inCallWait is how long a lead waits whose number is in another call: it must not stand
	// in the way of those behind it.
	inCallWait = 5 * time.Second
	// breakerCalls is how many calls in a row must fail by the carrier's fault before a
	// campaign is stopped.
	breakerCalls = 10
)

// Start begins to dial.
func (d *Dialer) Start() {
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.stopped.Go(func() { d.run(ctx) })
}

// Stop ends it; calls that were claimed are on their way.
func (d *Dialer) Stop() {
	if d.stop != nil {
		d.stop()
		d.stopped.Wait()
	}
}

func (d *Dialer) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.Tick(ctx, time.Now().UTC()); err != nil && ctx.Err() == nil {
			d.Log.Error("the campaigns could not be served", "error", err)
		}
	}
}

// Tick looks at the campaigns once and does what is to be done, if it is this node's turn.
func (d *Dialer) Tick(ctx context.Context, at time.Time) error {
	if err := d.trip(ctx); err != nil {
		return err
	}
	work, err := d.DB.System().CampaignsAtWork(ctx, at)
	if err != nil || len(work) == 0 {
		return err
	}
	if mine, err := d.lease(ctx); err != nil || !mine {
		return err
	}
	return d.serve(ctx, at, work)
}

// trip stops the campaigns whose calls only fail by the carrier's fault: every further one
// would cost a lead an attempt for nothing. A call's own end does not do it, for it would
// meet with who claims the campaign's leads.
func (d *Dialer) trip(ctx context.Context) error {
	tripped, err := d.DB.System().TripCampaigns(ctx, breakerCalls, fmt.Sprintf("The last %d calls failed by the carrier's fault. Check the trunk, then start the campaign again.", breakerCalls))
	for _, id := range tripped {
		d.Log.Warn("a campaign is stopped: its calls fail by the carrier's fault", "campaign", id)
	}
	return err
}

// lease says whether the campaigns are this node's to serve.
func (d *Dialer) lease(ctx context.Context) (bool, error) {
	began := time.Now()
	if began.Sub(d.leased) < renewEvery {
		return true, nil
	}
	mine, err := d.DB.System().Lease(ctx, "dialer", d.Queue.Node(), leaseFor)
	if mine && err == nil {
		d.leased = began
	}
	return mine, err
}

// serve plans for the campaigns and carries the plan out.
func (d *Dialer) serve(ctx context.Context, at time.Time, work []store.CampaignAtWork) error {
	s, err := d.situation(ctx, at, work)
	if err != nil {
		return err
	}
	plan := Make(s)
	return d.carryOut(ctx, s, &plan)
}

// carryOut does what a plan for a situation says, as far as that still holds.
func (d *Dialer) carryOut(ctx context.Context, s *Situation, plan *Plan) error {
	seen := view(s)
	return errors.Join(d.place(ctx, plan), d.putOff(ctx, s.Now, seen, plan), d.finish(ctx, seen, plan), d.complete(ctx, seen, plan))
}

// sight is what a plan saw: a decision about a campaign or a lead that has changed since is
// left to the next plan.
type sight struct {
	campaigns map[parley.ID]*parley.Campaign
	leads     map[parley.ID]*parley.Lead
}

func view(s *Situation) sight {
	seen := sight{map[parley.ID]*parley.Campaign{}, map[parley.ID]*parley.Lead{}}
	for i := range s.Campaigns {
		w := &s.Campaigns[i]
		seen.campaigns[w.Campaign.ID] = &w.Campaign
		for j := range w.Leads {
			seen.leads[w.Leads[j].ID] = &w.Leads[j]
		}
	}
	return seen
}

// situation reads everything that the plan depends on.
func (d *Dialer) situation(ctx context.Context, at time.Time, work []store.CampaignAtWork) (*Situation, error) {
	s := &Situation{Now: at, Caps: d.Caps, Recent: map[Callee][]time.Time{}, DoNotCall: map[Callee]bool{}}
	if s.Caps.PerAccount == 0 {
		s.Caps.PerAccount = d.Account.Parallel
	}
	if s.Caps.Calls == 0 {
		room, err := d.DB.System().Room(ctx)
		if err != nil {
			return nil, err
		}
		s.Caps.Calls = room
	}
	if err := d.calls(ctx, s); err != nil {
		return nil, err
	}
	for i := range work {
		w := Work{Campaign: work[i].Campaign, Left: work[i].Progress.Left(), LastCall: work[i].LastCall}
		if work[i].Live < w.Campaign.MaxCallsInParallel && w.Left > 0 && work[i].Staffed {
			if err := d.load(ctx, s, &w); err != nil {
				return nil, err
			}
		}
		s.Campaigns = append(s.Campaigns, w)
	}
	return s, d.trunks(ctx, s)
}

// calls reads what is up.
func (d *Dialer) calls(ctx context.Context, s *Situation) error {
	calls, err := d.DB.System().LiveCalls(ctx)
	for i := range calls {
		c := &calls[i]
		flight := InFlight{UserID: c.UserID, Number: c.CustomerNumber, Inbound: c.Type == parley.Inbound}
		if c.CampaignID != nil {
			flight.CampaignID = *c.CampaignID
		}
		if c.TrunkID != nil {
			flight.TrunkID = *c.TrunkID
		}
		s.Calls = append(s.Calls, flight)
	}
	return err
}

// anyTrunk stands for the operator's trunk and the simulated carrier, whose limits
// are their own.
const anyTrunk parley.ID = 0

// trunks reads the limits of those that the campaigns' lines are on.
func (d *Dialer) trunks(ctx context.Context, s *Situation) error {
	s.Trunks = []Trunk{{ID: anyTrunk, Simulated: !d.Carriers.Default}}
	var used []parley.ID
	for i := range s.Campaigns {
		for _, line := range s.Campaigns[i].Lines {
			if line.TrunkID != anyTrunk && !slices.Contains(used, line.TrunkID) {
				used = append(used, line.TrunkID)
			}
		}
	}
	limits, begun, err := d.DB.System().TrunkLimits(ctx, used)
	for i := range limits {
		t := &limits[i]
		s.Trunks = append(s.Trunks, Trunk{ID: t.ID, Channels: t.MaxChannels, PerSecond: t.CallsPerSecond, Started: begun[i]})
	}
	return err
}

// load reads a campaign's lines and due leads, and what is known of their numbers.
func (d *Dialer) load(ctx context.Context, s *Situation, w *Work) (err error) {
	system, c := d.DB.System(), &w.Campaign
	if w.Lines, err = d.lines(ctx, system, c); err != nil {
		return err
	}
	if w.Leads, err = system.DueLeads(ctx, c, s.Now, mostDue); err != nil {
		return err
	}
	return d.known(ctx, s, w)
}

// known reads what is known of the numbers of a campaign's leads.
func (d *Dialer) known(ctx context.Context, s *Situation, w *Work) error {
	system, c := d.DB.System(), &w.Campaign
	var numbers []string
	for i := range w.Leads {
		for contact := range w.Leads[i].Contacts() {
			numbers = append(numbers, w.Leads[i].Number(contact))
		}
	}
	for some := range slices.Chunk(numbers, mostAsked) {
		listed, err := system.Tenant(c.UserID).DoNotCall(ctx, some...)
		if err != nil {
			return err
		}
		for number := range listed {
			s.DoNotCall[Callee{c.UserID, number}] = true
		}
		recent, err := system.RecentAttempts(ctx, c.UserID, some, s.Now.Add(-s.Caps.NumberPeriod))
		if err != nil {
			return err
		}
		for number, at := range recent {
			s.Recent[Callee{c.UserID, number}] = at
		}
	}
	return nil
}

// lines are what a campaign may call from. An assistant without a number calls by the
// operator's trunk or the simulated carrier.
func (d *Dialer) lines(ctx context.Context, s *store.System, c *parley.Campaign) ([]Line, error) {
	numbers, err := s.LinesOf(ctx, c)
	if err != nil {
		return nil, err
	}
	lines := []Line{}
	for _, n := range numbers {
		line := Line{PhoneNumberID: n.ID}
		if n.TrunkID != nil {
			line.TrunkID = *n.TrunkID
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		lines = append(lines, Line{})
	}
	return lines, nil
}

// CanDial says whether a campaign has a line that leads anywhere.
func (d *Dialer) CanDial(ctx context.Context, t *store.Tenant, c *parley.Campaign, _ *parley.Assistant) (bool, error) {
	numbers, err := t.System().LinesOf(ctx, c)
	if err != nil {
		return false, err
	}
	for _, n := range numbers {
		if n.TrunkID != nil {
			return true, nil
		}
	}
	if d.Carriers.Default {
		return true, nil
	}
	others, err := t.HasTrunk(ctx)
	return d.Carriers.Simulated && !others, err
}

// putOff has leads wait for a time; those that wait for room stay due.
func (d *Dialer) putOff(ctx context.Context, at time.Time, seen sight, plan *Plan) error {
	type group struct {
		campaign parley.ID
		until    time.Time
		status   parley.LeadStatus
	}
	groups := map[group][]parley.Lead{}
	for _, w := range plan.Waits {
		if w.Why == NumberInCall {
			w.Until = at.Add(inCallWait)
		}
		if !w.Until.IsZero() && w.Why != TooFast {
			g := group{w.CampaignID, w.Until, w.Status}
			groups[g] = append(groups[g], *seen.leads[w.LeadID])
		}
	}
	for g, leads := range groups {
		c := seen.campaigns[g.campaign]
		if err := d.DB.Tenant(c.UserID).PutOff(ctx, c, leads, g.status, g.until); goneIsFine(err) != nil {
			return err
		}
	}
	return nil
}

// goneIsFine: what was deleted meanwhile needs no more.
func goneIsFine(err error) error {
	if parley.ErrorCode(err) == parley.NotFound {
		return nil
	}
	return err
}

// finish ends the leads that will not be called any more.
func (d *Dialer) finish(ctx context.Context, seen sight, plan *Plan) error {
	for _, done := range plan.Done {
		campaign, lead := seen.campaigns[done.CampaignID], seen.leads[done.LeadID]
		err := d.DB.Tenant(campaign.UserID).Tx(ctx, func(t *store.Tenant) error {
			c, err := t.CampaignToUse(ctx, campaign.ID)
			if err != nil || !c.UpdatedAt.Equal(campaign.UpdatedAt) {
				return err
			}
			l, err := t.Lead(ctx, done.LeadID)
			if err != nil || !l.UpdatedAt.Equal(lead.UpdatedAt) {
				return err
			}
			after := Conclude(*l, done)
			return t.SaveProgress(ctx, &after)
		})
		if goneIsFine(err) != nil {
			return err
		}
	}
	return nil
}

// complete ends the campaigns that have no lead left, if that is still so.
func (d *Dialer) complete(ctx context.Context, seen sight, plan *Plan) error {
	for _, id := range plan.Complete {
		err := d.DB.Tenant(seen.campaigns[id].UserID).Tx(ctx, func(t *store.Tenant) error {
			c, err := t.Campaign(ctx, id)
			if err != nil {
				return err
			}
			// Asked once the campaign is locked: a lead may have been added before that.
			left, err := t.LeadsLeft(ctx, id)
			if err != nil || !c.Complete(int(left)) {
				return err
			}
			return t.SetCampaignStatus(ctx, c)
		})
		if goneIsFine(err) != nil {
			return err
		}
	}
	return nil
}
