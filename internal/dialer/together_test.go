package dialer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// The account's limits and the trunk's hold for campaigns, whatever their own is.
func TestCapsOfAccountsAndTrunks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := newSite(t, db)
		s.dialer.Account = parley.CallCaps{Parallel: 4, PerSecond: 1000}
		c := s.campaign(parley.Input{"max_calls_in_parallel": 50})
		s.leads(c, 1, 20)
		s.tick()
		require.Len(t, s.waiting(), 4)
		s.tick()
		require.Len(t, s.waiting(), 4)
		s.stop(c.ID)

		s.dialer.Account = parley.CallCaps{PerSecond: 1}
		other := s.campaign(parley.Input{"max_calls_in_parallel": 50})
		s.leads(other, 30, 3)
		s.tick()
		require.Len(t, s.waiting(), 4, "one was begun within this second")
		s.stop(other.ID)

		s.dialer.Account, s.dialer.Caps.CalleeHours = parley.CallCaps{}, false
		trunk := &parley.Trunk{Address: "127.0.0.1:5999", Transport: "udp", CallingFormat: "+e164", AllowedInbound: []string{}, MaxChannels: 3, CallsPerSecond: 2}
		require.NoError(t, s.tenant.CreateTrunk(ctx, trunk))
		line := &parley.PhoneNumber{Number: "+12025559999", CountryCode: "US", Type: "SIP", TrunkID: &trunk.ID}
		require.NoError(t, s.tenant.CreatePhoneNumber(ctx, line))
		trunked := s.state(s.campaign(parley.Input{"max_calls_in_parallel": 50}).ID)
		trunked.PhoneNumberIDs = []parley.ID{line.ID}
		require.NoError(t, s.tenant.SaveCampaign(ctx, trunked))
		s.leads(trunked, 40, 9)
		s.tick()
		placed := slices.DeleteFunc(s.waiting(), func(k parley.Call) bool { return *k.CampaignID != trunked.ID })
		require.Len(t, placed, 2, "calls begun within a second")
		require.Equal(t, trunk.ID, *placed[0].TrunkID)
		require.Equal(t, parley.CarrierTrunk, placed[0].Carrier)
		require.Equal(t, "+12025559999", placed[0].AssistantNumber)
		s.tick()
		s.tick()
		placed = slices.DeleteFunc(s.waiting(), func(k parley.Call) bool { return *k.CampaignID != trunked.ID })
		require.Len(t, placed, 3, "channels of the trunk")
	})
}

// Campaigns have as many calls up at once as the nodes take together, whichever of them
// plans; a node that stops is not reckoned with.
func TestTheRoomIsThatOfAllNodes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_calls_in_parallel": 50})
		s.leads(c, 1, 20)
		require.NoError(t, db.System().Join(t.Context(), "one", 3))
		require.NoError(t, db.System().Join(t.Context(), "two", 2))
		s.tick()
		require.Len(t, s.waiting(), 5)
		require.NoError(t, db.System().Join(t.Context(), "two", 0))
		require.NoError(t, db.System().Join(t.Context(), "three", 4))
		s.tick()
		require.Len(t, s.waiting(), 7)
	})
}

// A campaign of ten leads is served beside one of many thousands, of the same account or
// another's: its calls begin within the first seconds.
func TestPromiseQ5SmallCampaignsAreNotStarved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		big := newSite(t, db)
		big.dialer.Caps.Calls = 20
		other, _ := storetest.User(t, db, "b@example.com")
		small := &site{t: t, db: db, dialer: big.dialer, tenant: db.Tenant(other.ID), user: other.ID}
		crowd := big.campaign(parley.Input{"max_calls_in_parallel": 100})
		for from := 0; from < 10_000; from += 5000 {
			leads := make([]store.NewLead, 5000)
			for i := range leads {
				leads[i] = store.NewLead{PhoneNumber: fmt.Sprintf("+1303%07d", 2_000_000+from+i), Variables: "{}"}
			}
			_, _, err := big.tenant.ImportLeads(ctx, crowd.ID, leads)
			require.NoError(t, err)
		}
		big.tick()
		require.Len(t, big.waiting(), 20, "the crowd has everything")
		sibling, theirs := big.campaign(parley.Input{"max_calls_in_parallel": 100}), small.campaign(parley.Input{"max_calls_in_parallel": 100})
		big.leads(sibling, 1, 10)
		small.leads(theirs, 1, 10)

		// A tick is a quarter of a second, and a quarter of the calls end in each.
		served := map[parley.ID][]int{}
		for tick := range 40 {
			for i, c := range append(big.waiting(), small.waiting()...) {
				if i < 5 {
					require.Empty(t, big.dial(c.ID))
					big.end(c.ID, talked)
				}
			}
			big.tick()
			for _, id := range []parley.ID{sibling.ID, theirs.ID} {
				p := (map[parley.ID]*site{sibling.ID: big, theirs.ID: small})[id].state(id).Progress
				for begun := len(served[id]); begun < p.Completed+p.Processing; begun++ {
					served[id] = append(served[id], tick)
				}
			}
		}
		for name, id := range map[string]parley.ID{"of the same account": sibling.ID, "of another": theirs.ID} {
			require.Len(t, served[id], 10, name)
			t.Logf("the small campaign %s: calls began in ticks %v", name, served[id])
			require.LessOrEqual(t, served[id][9], 8, "p95 within two seconds, "+name)
		}
	})
}

// Claims, outcomes, stops, opt-outs, imports and edits at once, on one account and several
// campaigns: no deadlock surfaces, and no lead is left in a call that is over.
func TestEverythingAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		rounds := promise.Figure(20, 400)
		var campaigns []*parley.Campaign
		for i := range 3 {
			c := s.campaign(parley.Input{"max_calls_in_parallel": 10, "max_retries": 1, "retry_interval": 60, "mark_complete_when_no_leads": false})
			campaigns = append(campaigns, c)
			s.leads(c, 100*i, 30)
		}
		var operations atomic.Int64
		ctx := context.Background()
		var wait sync.WaitGroup
		worker := func(step func(r *rand.Rand, c *parley.Campaign, round int) error) {
			wait.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(operations.Add(1))))
				for round := range rounds {
					if err := step(r, campaigns[r.IntN(len(campaigns))], round); err != nil && parley.ErrorCode(err) == "" {
						t.Errorf("round %d: %v", round, err)
						return
					}
					operations.Add(1)
				}
			})
		}
		for range 3 {
			d := node(t, db)
			worker(func(*rand.Rand, *parley.Campaign, int) error { return tickAndDial(ctx, d, s.user, &operations) })
		}
		worker(func(_ *rand.Rand, c *parley.Campaign, _ int) error { return s.toggle(ctx, c.ID) })
		worker(func(r *rand.Rand, _ *parley.Campaign, _ int) error {
			return s.tenant.AddAllDoNotCall(ctx, []string{number(r.IntN(300)), number(r.IntN(300)), number(r.IntN(300))}, "api")
		})
		worker(func(_ *rand.Rand, c *parley.Campaign, round int) error {
			leads := make([]store.NewLead, 20)
			for i := range leads {
				leads[i] = store.NewLead{PhoneNumber: number(400 + 20*round + i), Variables: "{}"}
			}
			_, _, err := s.tenant.ImportLeads(ctx, c.ID, leads)
			return err
		})
		worker(func(r *rand.Rand, c *parley.Campaign, _ int) error {
			return s.disturb(ctx, c.ID, parley.ID(1+r.IntN(90)))
		})
		wait.Wait()
		if db.Postgres() {
			var deadlocks int
			require.NoError(t, db.SQL().QueryRowContext(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks))
			t.Logf("%d deadlocks were resolved", deadlocks)
		}
		t.Logf("%d operations", operations.Load())

		for _, c := range campaigns {
			if s.state(c.ID).Status != parley.CampaignInProgress {
				s.start(c.ID)
			}
		}
		for _, c := range s.waiting() { // of a campaign that was stopped with its calls
			if s.dial(c.ID) == "" {
				s.end(c.ID, talked)
			}
		}
		for len(s.round(talked)) > 0 {
		}
		var stuck int
		require.NoError(t, db.SQL().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leads l WHERE status = 'processing'").Scan(&stuck))
		require.Zero(t, stuck)
	})
}

// tickAndDial plans, carries out, dials what waits and ends it in one way or another.
func tickAndDial(ctx context.Context, d *dialer.Dialer, user parley.ID, operations *atomic.Int64) error {
	_, carryOut, err := d.Planned(ctx, time.Now())
	if err != nil {
		return err
	}
	if err := carryOut(); err != nil {
		return err
	}
	calls, _, err := d.DB.Tenant(user).Calls(ctx, store.CallFilter{Status: string(parley.CallInitiated), Limit: 5})
	if err != nil {
		return err
	}
	ways := []func(*parley.Call){unanswered, busy, talked, machine, optedOut, broken}
	for i := range calls {
		operations.Add(1)
		reason, err := dialOn(ctx, d, calls[i].ID)
		if err != nil {
			return fmt.Errorf("dial: %w", err)
		}
		if reason != "" {
			continue
		}
		if err := endOn(ctx, d, calls[i].ID, ways[int(calls[i].ID)%len(ways)]); err != nil && !errors.Is(err, store.ErrFenced) {
			return fmt.Errorf("end: %w", err)
		}
	}
	return nil
}

// toggle stops a campaign with its calls, or starts it.
func (s *site) toggle(ctx context.Context, id parley.ID) error {
	return s.tenant.Tx(ctx, func(t *store.Tenant) error {
		c, err := t.Campaign(ctx, id)
		if err != nil {
			return err
		}
		if err := c.Stop(); err != nil {
			if err := c.Start(parley.Readiness{Assistant: true, Line: true, Lead: true}); err != nil {
				return err
			}
		} else if err := t.HangUpCampaign(ctx, id); err != nil {
			return err
		}
		return t.SetCampaignStatus(ctx, c)
	})
}

// disturb edits a campaign, and a lead of whichever campaign.
func (s *site) disturb(ctx context.Context, campaign, lead parley.ID) error {
	err := s.tenant.Tx(ctx, func(t *store.Tenant) error {
		c, err := t.Campaign(ctx, campaign)
		if err != nil {
			return err
		}
		return t.SaveCampaign(ctx, c)
	})
	if err != nil {
		return err
	}
	return s.tenant.Tx(ctx, func(t *store.Tenant) error {
		l, err := t.Lead(ctx, lead)
		if err != nil {
			return err
		}
		return t.SaveLead(ctx, l)
	})
}
