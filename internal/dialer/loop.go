package dialer

import (
	"context"
	"errors"
	"log/slog"
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

	stop    context.CancelFunc
	stopped sync.WaitGroup
}

const (
	// lookEvery is how often the campaigns are looked at: a campaign that was started, or
	// a call that has ended, is followed so soon.
	lookEvery = 250 * time.Millisecond
	// leaseFor is how long a dialer that died keeps others from its work.
	leaseFor = 5 * time.Second
	// mostDue bounds the leads of a campaign that are looked at at once. More than can be
	// called are read, for some of them must wait and are put off.
	mostDue = 200
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

// Tick looks at the campaigns once and does what is to be done.
func (d *Dialer) Tick(ctx context.Context, at time.Time) error {
	work, err := d.DB.System().CampaignsAtWork(ctx, at)
	if err != nil || len(work) == 0 {
		return err
	}
	if mine, err := d.DB.System().Lease(ctx, "dialer", d.Queue.Node(), leaseFor); err != nil || !mine {
		return err
	}
	s, err := d.situation(ctx, at, work)
	if err != nil {
		return err
	}
	plan := Make(s)
	return errors.Join(d.place(ctx, &plan), d.putOff(ctx, &plan), d.finish(ctx, &plan), d.complete(ctx, s, &plan))
}

// situation reads everything that the plan depends on.
func (d *Dialer) situation(ctx context.Context, at time.Time, work []store.CampaignAtWork) (*Situation, error) {
	s := &Situation{Now: at, Caps: d.Caps, Recent: map[Callee][]time.Time{}, DoNotCall: map[Callee]bool{}}
	if s.Caps.PerAccount == 0 {
		s.Caps.PerAccount = d.Account.Parallel
	}
	if err := d.calls(ctx, s); err != nil {
		return nil, err
	}
	if err := d.trunks(ctx, s); err != nil {
		return nil, err
	}
	for i := range work {
		w := Work{Campaign: work[i].Campaign, Left: work[i].Progress.Left(), LastCall: work[i].LastCall}
		room := w.Campaign.MaxCallsInParallel - work[i].Live
		if room > 0 && w.Left > 0 {
			if err := d.load(ctx, s, &w); err != nil {
				return nil, err
			}
		}
		s.Campaigns = append(s.Campaigns, w)
	}
	return s, nil
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

func (d *Dialer) trunks(ctx context.Context, s *Situation) error {
	trunks, err := d.DB.System().Trunks(ctx)
	s.Trunks = []Trunk{{ID: anyTrunk, Simulated: !d.Carriers.Default}}
	for i := range trunks {
		t := &trunks[i]
		begun := 0
		if _, begun, err = d.DB.System().TrunkLoad(ctx, t.ID); err != nil {
			return err
		}
		s.Trunks = append(s.Trunks, Trunk{ID: t.ID, Channels: t.MaxChannels, PerSecond: t.CallsPerSecond, Started: begun})
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
	listed, err := system.Tenant(c.UserID).DoNotCall(ctx, numbers...)
	if err != nil {
		return err
	}
	for number := range listed {
		s.DoNotCall[Callee{c.UserID, number}] = true
	}
	recent, err := system.RecentAttempts(ctx, c.UserID, numbers, s.Now.Add(-s.Caps.NumberPeriod))
	for number, at := range recent {
		s.Recent[Callee{c.UserID, number}] = at
	}
	return err
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
func (d *Dialer) putOff(ctx context.Context, plan *Plan) error {
	type group struct {
		until  time.Time
		status parley.LeadStatus
	}
	groups := map[group][]parley.ID{}
	for _, w := range plan.Waits {
		if !w.Until.IsZero() && w.Why != TooFast {
			g := group{w.Until, w.Status}
			groups[g] = append(groups[g], w.LeadID)
		}
	}
	for g, leads := range groups {
		if err := d.DB.System().PutOff(ctx, leads, g.status, g.until); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the leads that will not be called any more.
func (d *Dialer) finish(ctx context.Context, plan *Plan) error {
	for _, done := range plan.Done {
		err := d.DB.System().Tx(ctx, func(s *store.System) error {
			owner, err := s.OwnerOfLead(ctx, done.LeadID)
			if err != nil {
				return err
			}
			lead, err := s.Tenant(owner).Lead(ctx, done.LeadID)
			if err != nil {
				return err
			}
			after := Conclude(*lead, done)
			return s.Tenant(owner).SaveProgress(ctx, &after)
		})
		if err != nil && parley.ErrorCode(err) != parley.NotFound {
			return err
		}
	}
	return nil
}

// complete ends the campaigns that have no lead left, if that is still so.
func (d *Dialer) complete(ctx context.Context, s *Situation, plan *Plan) error {
	for _, id := range plan.Complete {
		for i := range s.Campaigns {
			if s.Campaigns[i].Campaign.ID != id {
				continue
			}
			user := s.Campaigns[i].Campaign.UserID
			err := d.DB.Tenant(user).Tx(ctx, func(t *store.Tenant) error {
				c, err := t.Campaign(ctx, id)
				if err != nil || !c.Complete(c.Progress.Left()) {
					return err
				}
				return t.SetCampaignStatus(ctx, c)
			})
			if err != nil && parley.ErrorCode(err) != parley.NotFound {
				return err
			}
		}
	}
	return nil
}
