package dialer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
	"parley/internal/dialer"
)

// drawSituation is a handful of accounts with campaigns and calls of all sizes.
func drawSituation(r *rapid.T) *dialer.Situation {
	s := situation()
	few := rapid.IntRange(0, 6)
	for id := range rapid.IntRange(1, 3).Draw(r, "trunks") {
		s.Trunks = append(s.Trunks, dialer.Trunk{
			ID: parley.ID(id + 2), Channels: few.Draw(r, "channels"), PerSecond: few.Draw(r, "per second"), Reserve: few.Draw(r, "reserve"), Started: few.Draw(r, "started"),
		})
	}
	s.Trunks[0].Channels = rapid.IntRange(1, 20).Draw(r, "channels")
	s.Caps.Calls, s.Caps.Reserve, s.Caps.PerSecond = rapid.IntRange(0, 30).Draw(r, "calls"), few.Draw(r, "reserve"), rapid.IntRange(0, 20).Draw(r, "per second")
	s.Caps.PerAccount = rapid.IntRange(0, 10).Draw(r, "per account")
	trunk := rapid.Custom(func(r *rapid.T) parley.ID { return s.Trunks[rapid.IntRange(0, len(s.Trunks)-1).Draw(r, "trunk")].ID })
	first := 0
	for id := range rapid.IntRange(1, 6).Draw(r, "campaigns") {
		count := rapid.IntRange(0, 40).Draw(r, "leads")
		w := work(parley.ID(id+1), parley.ID(rapid.IntRange(1, 3).Draw(r, "user")), first, count)
		w.Campaign.MaxCallsInParallel = rapid.IntRange(1, 8).Draw(r, "parallel")
		w.Lines = nil
		for range rapid.IntRange(0, 3).Draw(r, "lines") {
			w.Lines = append(w.Lines, dialer.Line{TrunkID: trunk.Draw(r, "line")})
		}
		w.LastCall = noon.Add(-time.Duration(rapid.IntRange(0, 5).Draw(r, "last call")) * time.Second)
		s.Campaigns = append(s.Campaigns, w)
		first += count - min(count, rapid.IntRange(0, 2).Draw(r, "shared numbers"))
	}
	for range rapid.IntRange(0, 10).Draw(r, "in flight") {
		w := &s.Campaigns[rapid.IntRange(0, len(s.Campaigns)-1).Draw(r, "of")]
		call := dialer.InFlight{UserID: w.Campaign.UserID, TrunkID: trunk.Draw(r, "on"), Number: number(rapid.IntRange(0, 100).Draw(r, "to")), Inbound: rapid.Bool().Draw(r, "inbound")}
		if !call.Inbound {
			call.CampaignID = w.Campaign.ID
		}
		s.Calls = append(s.Calls, call)
	}
	return s
}

// after is the calls that are up when a plan has been carried out.
func after(s *dialer.Situation, p dialer.Plan) []dialer.InFlight {
	up := slices.Clone(s.Calls)
	for _, c := range p.Calls {
		up = append(up, dialer.InFlight{UserID: c.UserID, CampaignID: c.CampaignID, TrunkID: c.Line.TrunkID, Number: c.Number})
	}
	return up
}

func count(calls []dialer.InFlight, is func(dialer.InFlight) bool) (n int) {
	for _, c := range calls {
		if is(c) {
			n++
		}
	}
	return n
}

func TestNoCapIsEverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawSituation(r)
		p := dialer.Make(s)
		up := after(s, p)
		outbound := func(is func(dialer.InFlight) bool) func(dialer.InFlight) bool {
			return func(c dialer.InFlight) bool { return !c.Inbound && is(c) }
		}
		anything := func(dialer.InFlight) bool { return true }
		within := func(limit, reserve int, is func(dialer.InFlight) bool, what string) {
			was, now := count(s.Calls, outbound(is)), count(up, outbound(is))
			if limit > 0 && now > was {
				require.LessOrEqual(r, now, limit-reserve, what+" leaves the reserve")
				require.LessOrEqual(r, count(up, is), limit, what)
			}
		}
		within(s.Caps.Calls, s.Caps.Reserve, anything, "installation")
		if s.Caps.PerSecond > 0 {
			require.LessOrEqual(r, len(p.Calls), s.Caps.PerSecond)
		}
		for _, trunk := range s.Trunks {
			on := func(c dialer.InFlight) bool { return c.TrunkID == trunk.ID }
			within(trunk.Channels, trunk.Reserve, on, "trunk")
			if started := count(up, on) - count(s.Calls, on); trunk.PerSecond > 0 && started > 0 {
				require.LessOrEqual(r, trunk.Started+started, trunk.PerSecond, "calls per second")
			}
		}
		for _, w := range s.Campaigns {
			of := func(c dialer.InFlight) bool { return c.CampaignID == w.Campaign.ID }
			if count(up, of) > count(s.Calls, of) {
				require.LessOrEqual(r, count(up, of), w.Campaign.MaxCallsInParallel, "campaign")
			}
			by := func(c dialer.InFlight) bool { return c.UserID == w.Campaign.UserID }
			if s.Caps.PerAccount > 0 && count(up, by) > count(s.Calls, by) {
				require.LessOrEqual(r, count(up, by), s.Caps.PerAccount, "account")
			}
		}
	})
}

func TestEveryLeadIsAccountedForOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawSituation(r)
		p := dialer.Make(s)
		met, numbers := map[parley.ID]map[parley.ID]int{}, map[dialer.Callee]bool{}
		note := func(campaign, lead parley.ID) {
			if met[campaign] == nil {
				met[campaign] = map[parley.ID]int{}
			}
			met[campaign][lead]++
		}
		for _, c := range s.Calls {
			numbers[dialer.Callee{UserID: c.UserID, Number: c.Number}] = true
		}
		for _, c := range p.Calls {
			note(c.CampaignID, c.LeadID)
			callee := dialer.Callee{UserID: c.UserID, Number: c.Number}
			require.False(r, numbers[callee], "two calls to one number at once")
			numbers[callee] = true
		}
		for _, w := range p.Waits {
			note(w.CampaignID, w.LeadID)
			require.NotEmpty(r, w.Why)
			require.True(r, w.Until.IsZero() || w.Until.After(s.Now))
		}
		for _, d := range p.Done {
			note(d.CampaignID, d.LeadID)
		}
		for _, w := range s.Campaigns {
			require.Len(r, met[w.Campaign.ID], len(w.Leads))
			for i := range w.Leads {
				require.Equal(r, 1, met[w.Campaign.ID][w.Leads[i].ID])
			}
		}
		require.Equal(r, p, dialer.Make(s), "the same situation gives the same plan")
	})
}

// TestNoRoomIsLeftUnused holds the plan to the other side: who waits for room has none.
func TestNoRoomIsLeftUnused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawSituation(r)
		p := dialer.Make(s)
		s.Calls = after(s, p)
		s.Caps.Started += len(p.Calls)
		for i := range s.Trunks {
			for _, c := range p.Calls {
				if c.Line.TrunkID == s.Trunks[i].ID {
					s.Trunks[i].Started++
				}
			}
		}
		for i := range s.Campaigns {
			w := &s.Campaigns[i]
			w.Leads = slices.DeleteFunc(slices.Clone(w.Leads), func(l parley.Lead) bool {
				return slices.ContainsFunc(p.Calls, func(c dialer.Call) bool { return c.LeadID == l.ID && c.CampaignID == w.Campaign.ID })
			})
		}
		require.Empty(r, dialer.Make(s).Calls, "somebody waited though there was room")
	})
}

func TestABigCampaignDoesNotStarveASmallOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		room := rapid.IntRange(1, 12).Draw(r, "room")
		sameAccount := rapid.Bool().Draw(r, "same account")
		small := rapid.IntRange(1, 20).Draw(r, "small")
		other := parley.ID(2)
		if sameAccount {
			other = 1
		}
		s := situation(work(1, 1, 0, 1000), work(2, other, 1000, small))
		s.Caps.Calls = room
		s.Campaigns[0].LastCall, s.Campaigns[1].LastCall = noon.Add(-time.Second), noon.Add(-time.Minute)
		calls := map[parley.ID]int{}
		for _, c := range dialer.Make(s).Calls {
			calls[c.CampaignID]++
		}
		require.Equal(r, room, calls[1]+calls[2])
		require.GreaterOrEqual(r, calls[2], min(small, room/2))
	})
}

// TestEverybodyGetsATurnWhenCallsAreShort lets one call a second be begun, each over
// before the next: nobody ever has a call up, and only who waited longest decides.
func TestEverybodyGetsATurnWhenCallsAreShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := situation()
		s.Caps.PerSecond = 1
		campaigns := rapid.IntRange(2, 8).Draw(r, "campaigns")
		users := map[parley.ID]int{}
		for id := range campaigns {
			w := work(parley.ID(id+1), parley.ID(rapid.IntRange(1, 4).Draw(r, "user")), id*100, 100)
			users[w.Campaign.UserID]++
			s.Campaigns = append(s.Campaigns, w)
		}
		turns := map[parley.ID]int{}
		rounds := 8 * len(users)
		for range rounds {
			calls := dialer.Make(s).Calls
			require.Len(r, calls, 1)
			w := &s.Campaigns[calls[0].CampaignID-1]
			turns[w.Campaign.UserID]++
			w.LastCall = s.Now
			w.Leads = slices.DeleteFunc(w.Leads, func(l parley.Lead) bool { return l.ID == calls[0].LeadID })
			s.Now = s.Now.Add(time.Second)
		}
		for user := range users {
			require.Equal(r, 8, turns[user], "accounts take turns")
		}
		for i := range s.Campaigns {
			w := &s.Campaigns[i]
			require.InDelta(r, 8/users[w.Campaign.UserID], 100-len(w.Leads), 1, "and campaigns within an account")
		}
	})
}
