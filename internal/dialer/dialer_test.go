package dialer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
)

// noon is a Monday.
var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func campaign(id, user parley.ID) parley.Campaign {
	return parley.Campaign{
		ID: id, UserID: user, Status: parley.CampaignInProgress, Timezone: "UTC", MaxCallsInParallel: 100, MarkComplete: true,
		HoursStart: "00:00:00", HoursEnd: "23:59:59", AllowedDays: parley.Weekdays, MaxRetries: 2, RetryInterval: 3600, RetryOnVoicemail: true,
	}
}

// number is one in Washington, and none of those that only the simulated carrier has.
func number(n int) string { return fmt.Sprintf("+1202556%04d", n) }

func leads(c *parley.Campaign, first, count int) (all []parley.Lead) {
	for i := range count {
		all = append(all, parley.Lead{
			ID: parley.ID(first + i), UserID: c.UserID, CampaignID: c.ID, PhoneNumber: number(first + i),
			Status: parley.LeadCreated, CreatedAt: noon.Add(time.Duration(i-count) * time.Second),
		})
	}
	return all
}

func work(id, user parley.ID, first, count int) dialer.Work {
	c := campaign(id, user)
	return dialer.Work{Campaign: c, Leads: leads(&c, first, count), Left: count, Lines: []dialer.Line{{TrunkID: 1}}}
}

func situation(works ...dialer.Work) *dialer.Situation {
	return &dialer.Situation{
		Now: noon, Campaigns: works, Trunks: []dialer.Trunk{{ID: 1}},
		Caps: dialer.Caps{NumberAttempts: 3, NumberPeriod: 24 * time.Hour}, Recent: map[dialer.Callee][]time.Time{}, DoNotCall: map[dialer.Callee]bool{},
	}
}

// why is the reason that each waiting lead is given.
func why(p dialer.Plan) map[parley.ID]dialer.Why {
	reasons := map[parley.ID]dialer.Why{}
	for _, w := range p.Waits {
		reasons[w.LeadID] = w.Why
	}
	return reasons
}

func TestPlanCallsWhoIsDue(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 2))
	s.Campaigns[0].Leads[1].Secondary = []parley.SecondaryContact{{PhoneNumber: number(9)}}
	s.Campaigns[0].Leads[1].NextContact, s.Campaigns[0].Leads[1].Attempts, s.Campaigns[0].Leads[1].DueAt = 1, 1, noon
	p := dialer.Make(s)
	require.Equal(t, []dialer.Call{
		{LeadID: 2, CampaignID: 1, UserID: 1, Contact: 1, Attempt: 1, Number: number(9), Line: dialer.Line{TrunkID: 1}},
		{LeadID: 1, CampaignID: 1, UserID: 1, Contact: 0, Attempt: 1, Number: number(1), Line: dialer.Line{TrunkID: 1}},
	}, p.Calls, "a round under way goes first")
	require.Empty(t, p.Waits)
	require.Empty(t, p.Complete)
	require.Zero(t, p.Next)
}

func TestPlanSaysWhyNot(t *testing.T) {
	t.Parallel()
	berlin, honolulu, nowhere := "Europe/Berlin", "Pacific/Honolulu", "Mars/Olympus"
	for name, c := range map[string]struct {
		set    func(*dialer.Situation, *parley.Lead)
		why    dialer.Why
		until  time.Time
		status parley.LeadStatus
	}{
		"stopped": {func(s *dialer.Situation, _ *parley.Lead) { s.Campaigns[0].Campaign.Status = parley.CampaignStopped }, dialer.NotRunning, time.Time{}, parley.LeadCreated},
		"retry": {func(_ *dialer.Situation, l *parley.Lead) {
			l.Attempts, l.Status, l.DueAt = 1, parley.LeadRescheduled, noon.Add(time.Minute)
		}, dialer.RetryWait, noon.Add(time.Minute), parley.LeadRescheduled},
		"campaign hours": {func(s *dialer.Situation, _ *parley.Lead) { s.Campaigns[0].Campaign.HoursStart = "13:00" }, dialer.CampaignHours, noon.Add(time.Hour), parley.LeadScheduled},
		"callee hours":   {func(s *dialer.Situation, l *parley.Lead) { s.Caps.CalleeHours, l.Timezone = true, &honolulu }, dialer.CalleeHours, noon.Add(6 * time.Hour), parley.LeadScheduled},
		"retry, then the hours": {func(s *dialer.Situation, l *parley.Lead) {
			l.Attempts, l.DueAt, l.Timezone, s.Caps.CalleeHours = 1, noon.Add(9*time.Hour), &berlin, true
		}, dialer.RetryWait, noon.Add(19 * time.Hour), parley.LeadRescheduled},
		"unknown zone": {func(s *dialer.Situation, l *parley.Lead) { s.Caps.CalleeHours, l.Timezone = true, &nowhere }, dialer.NoHours, noon.Add(24 * time.Hour), parley.LeadScheduled},
		"broken zone":  {func(s *dialer.Situation, _ *parley.Lead) { s.Campaigns[0].Campaign.Timezone = "" }, dialer.NoHours, noon.Add(24 * time.Hour), parley.LeadScheduled},
		"number limit": {func(s *dialer.Situation, l *parley.Lead) {
			s.Recent[dialer.Callee{UserID: 1, Number: l.PhoneNumber}] = []time.Time{noon.Add(-time.Hour), noon.Add(-20 * time.Hour), noon.Add(-2 * time.Hour)}
		}, dialer.NumberLimit, noon.Add(4 * time.Hour), parley.LeadScheduled},
		"number in call": {func(s *dialer.Situation, l *parley.Lead) {
			s.Calls = []dialer.InFlight{{UserID: 1, Number: l.PhoneNumber, TrunkID: 1}}
		}, dialer.NumberInCall, time.Time{}, parley.LeadScheduled},
		"no line":       {func(s *dialer.Situation, _ *parley.Lead) { s.Campaigns[0].Lines = nil }, dialer.NoLine, time.Time{}, parley.LeadScheduled},
		"unknown trunk": {func(s *dialer.Situation, _ *parley.Lead) { s.Trunks = nil }, dialer.NoLine, time.Time{}, parley.LeadScheduled},
		"campaign full": {func(s *dialer.Situation, _ *parley.Lead) {
			s.Campaigns[0].Campaign.MaxCallsInParallel = 1
			s.Calls = []dialer.InFlight{{UserID: 1, CampaignID: 1}}
		}, dialer.CampaignFull, time.Time{}, parley.LeadScheduled},
		"account full": {func(s *dialer.Situation, _ *parley.Lead) {
			s.Caps.PerAccount = 1
			s.Calls = []dialer.InFlight{{UserID: 1}}
		}, dialer.AccountFull, time.Time{}, parley.LeadScheduled},
		"own account cap": {func(s *dialer.Situation, _ *parley.Lead) {
			s.Caps.Accounts = map[parley.ID]int{1: 2}
			s.Calls = make([]dialer.InFlight, 2)
			s.Calls[0].UserID, s.Calls[1].UserID = 1, 1
		}, dialer.AccountFull, time.Time{}, parley.LeadScheduled},
		"trunk full": {func(s *dialer.Situation, _ *parley.Lead) {
			s.Trunks[0].Channels = 1
			s.Calls = []dialer.InFlight{{TrunkID: 1, Inbound: true}}
		}, dialer.TrunkFull, time.Time{}, parley.LeadScheduled},
		"trunk reserve": {func(s *dialer.Situation, _ *parley.Lead) { s.Trunks[0].Channels, s.Trunks[0].Reserve = 2, 2 }, dialer.TrunkFull, time.Time{}, parley.LeadScheduled},
		"trunk rate":    {func(s *dialer.Situation, _ *parley.Lead) { s.Trunks[0].PerSecond, s.Trunks[0].Started = 1, 1 }, dialer.TooFast, noon.Add(time.Second), parley.LeadScheduled},
		"full":          {func(s *dialer.Situation, _ *parley.Lead) { s.Caps.Calls, s.Caps.Reserve = 5, 5 }, dialer.Full, time.Time{}, parley.LeadScheduled},
		"rate":          {func(s *dialer.Situation, _ *parley.Lead) { s.Caps.PerSecond, s.Caps.Started = 3, 3 }, dialer.TooFast, noon.Add(time.Second), parley.LeadScheduled},
	} {
		s := situation(work(1, 1, 1, 1))
		c.set(s, &s.Campaigns[0].Leads[0])
		p := dialer.Make(s)
		require.Empty(t, p.Calls, name)
		require.Equal(t, []dialer.Wait{{LeadID: 1, CampaignID: 1, Status: c.status, Until: c.until, Why: c.why}}, p.Waits, name)
		require.Equal(t, c.until, p.Next, name)
	}
}

func TestPlanEndsWhatIsOver(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 2), work(2, 1, 3, 1))
	s.DoNotCall[dialer.Callee{UserID: 1, Number: number(1)}] = true
	s.DoNotCall[dialer.Callee{UserID: 2, Number: number(3)}] = true // another account's list
	s.Campaigns[0].Leads[1].Attempts, s.Campaigns[0].Leads[1].Status = 3, parley.LeadRescheduled
	p := dialer.Make(s)
	require.Equal(t, []dialer.Done{
		{LeadID: 1, CampaignID: 1, Status: parley.LeadBlacklisted, Why: dialer.DoNotCall},
		{LeadID: 2, CampaignID: 1, Status: parley.LeadReachedMaxRetries, Why: dialer.MaxRetries},
	}, p.Done)
	require.Equal(t, []parley.ID{1}, p.Complete)
	require.Len(t, p.Calls, 1)
	s.Campaigns[0].Left++ // one is being called
	require.Empty(t, dialer.Make(s).Complete)
	s.Campaigns[0].Left--
	s.Campaigns[0].Campaign.MarkComplete = false
	require.Empty(t, dialer.Make(s).Complete)
	require.Equal(t, parley.LeadBlacklisted, dialer.Conclude(s.Campaigns[0].Leads[0], p.Done[0]).Status)
	finished := parley.Lead{Status: parley.LeadCompleted}
	require.Equal(t, finished, dialer.Conclude(finished, p.Done[1]))
}

func TestPlanSkipsContactsThatMayNotBeCalled(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 1))
	l := &s.Campaigns[0].Leads[0]
	l.Secondary = []parley.SecondaryContact{{PhoneNumber: number(7)}, {PhoneNumber: number(8)}}
	l.Attempts, l.NextContact, l.DueAt, l.Status = 1, 1, noon.Add(-time.Minute), parley.LeadScheduled
	s.DoNotCall[dialer.Callee{UserID: 1, Number: number(7)}] = true
	require.Equal(t, number(8), dialer.Make(s).Calls[0].Number)
	s.DoNotCall[dialer.Callee{UserID: 1, Number: number(8)}] = true
	p := dialer.Make(s)
	require.Equal(t, []dialer.Wait{{LeadID: 1, CampaignID: 1, Status: parley.LeadRescheduled, Until: noon.Add(59 * time.Minute), Why: dialer.RetryWait}}, p.Waits, "the round is over")
	s.Now = noon.Add(59 * time.Minute)
	p = dialer.Make(s)
	require.Equal(t, 2, p.Calls[0].Attempt)
	require.Equal(t, 0, p.Calls[0].Contact)
	claimed, ok := dialer.Claim(*l, p.Calls[0])
	require.True(t, ok)
	require.Equal(t, 2, claimed.Attempts)
	_, ok = dialer.Claim(claimed, p.Calls[0])
	require.False(t, ok, "an attempt is claimed once")
}

func TestOneNumberIsCalledOnceAtATime(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 1), work(2, 1, 2, 1), work(3, 2, 3, 1))
	for i := range s.Campaigns {
		s.Campaigns[i].Leads[0].PhoneNumber = number(1)
	}
	p := dialer.Make(s)
	require.Len(t, p.Calls, 2, "once for each account")
	require.Equal(t, map[parley.ID]dialer.Why{2: dialer.NumberInCall}, why(p))
}

func TestLinesAreUsedInTurnAndFullOnesPassedOver(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 0, 4))
	s.Campaigns[0].Lines = []dialer.Line{{PhoneNumberID: 1, TrunkID: 1}, {PhoneNumberID: 2, TrunkID: 2}}
	s.Trunks = []dialer.Trunk{{ID: 1, Channels: 10}, {ID: 2, Channels: 10}}
	used := map[parley.ID]int{}
	for _, call := range dialer.Make(s).Calls {
		used[call.Line.PhoneNumberID]++
	}
	require.Equal(t, map[parley.ID]int{1: 2, 2: 2}, used)
	s.Trunks[1].Channels = 1
	used = map[parley.ID]int{}
	for _, call := range dialer.Make(s).Calls {
		used[call.Line.PhoneNumberID]++
	}
	require.Equal(t, map[parley.ID]int{1: 3, 2: 1}, used)
}

func TestPreviewIsThePlan(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 6), work(2, 1, 10, 5))
	s.Campaigns[0].Campaign.Status = parley.CampaignDraft
	s.Campaigns[0].Campaign.MaxCallsInParallel = 2
	s.DoNotCall[dialer.Callee{UserID: 1, Number: number(1)}] = true
	nowhere := "Mars/Olympus"
	s.Campaigns[0].Leads[1].Timezone, s.Caps.CalleeHours = &nowhere, true
	s.Now = noon.Add(3 * time.Hour)
	s.Campaigns[0].Leads[2].Attempts, s.Campaigns[0].Leads[2].DueAt = 1, s.Now.Add(time.Minute)
	first := s.Now.Add(time.Minute)
	require.Equal(t, parley.Forecast{
		Now: 2, Later: 2, Never: 2, First: &first,
		Why: map[string]int{string(dialer.DoNotCall): 1, string(dialer.NoHours): 1, string(dialer.RetryWait): 1, string(dialer.CampaignFull): 1},
	}, dialer.Preview(s, 1))
	require.Equal(t, parley.CampaignDraft, s.Campaigns[0].Campaign.Status, "the situation is not changed")
	require.Equal(t, parley.Forecast{Why: map[string]int{}}, dialer.Preview(s, 99))
}

func TestZonesOfNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"America/New_York"}, dialer.ZonesOf("+12025550100"))
	require.Equal(t, []string{"Europe/Berlin"}, dialer.ZonesOf("+4915112345678"))
	require.Empty(t, dialer.ZonesOf("+870771234567"), "a satellite is nowhere")
	require.Empty(t, dialer.ZonesOf("nonsense"))
	tollFree := dialer.ZonesOf("+18005550100")
	require.Greater(t, len(tollFree), 10)
	for _, name := range tollFree {
		require.NotNil(t, parley.LoadZone(name), name)
	}
}

func TestSimulatedCalleesDoNotSleep(t *testing.T) {
	t.Parallel()
	s := situation(work(1, 1, 1, 1))
	s.Now, s.Caps.CalleeHours = noon.Add(-6*time.Hour), true // 01:00 in Washington
	require.Equal(t, dialer.CalleeHours, why(dialer.Make(s))[1])
	s.Trunks[0].Simulated = true
	require.Len(t, dialer.Make(s).Calls, 1)
	s.Trunks = append(s.Trunks, dialer.Trunk{ID: 2})
	s.Campaigns[0].Lines = append(s.Campaigns[0].Lines, dialer.Line{TrunkID: 2})
	require.Empty(t, dialer.Make(s).Calls, "a real line among them")
	s.Campaigns[0].Leads[0].PhoneNumber = "+870771234567"
	require.Len(t, dialer.Make(s).Calls, 1, "nobody knows where: the campaign's clock alone decides")
}

func TestRecheckBeforeTheCallLeaves(t *testing.T) {
	t.Parallel()
	c := campaign(1, 1)
	l := leads(&c, 1, 1)[0]
	call := dialer.Call{LeadID: 1, Number: l.PhoneNumber, Attempt: 1}
	ask := func(at time.Time, blocked bool) dialer.Why { return dialer.Recheck(at, &c, &l, call, true, blocked) }
	require.Equal(t, dialer.CalleeHours, ask(noon, false), "07:00 in Washington")
	require.Empty(t, ask(noon.Add(time.Hour), false))
	require.Equal(t, dialer.DoNotCall, ask(noon.Add(time.Hour), true))
	c.HoursEnd = "13:00:00"
	require.Equal(t, dialer.CampaignHours, ask(noon.Add(time.Hour), false))
	c.Status = parley.CampaignStopped
	require.Equal(t, dialer.NotRunning, ask(noon, false))
}

func BenchmarkPlan(b *testing.B) {
	for _, campaigns := range []int{1, 20} {
		b.Run(fmt.Sprintf("1000 leads of %d campaigns", campaigns), func(b *testing.B) {
			works := []dialer.Work{}
			for i := range campaigns {
				works = append(works, work(parley.ID(i+1), parley.ID(i/2+1), i*1000/campaigns, 1000/campaigns))
			}
			s := situation(works...)
			s.Now, s.Caps = noon.Add(3*time.Hour), dialer.DefaultCaps()
			b.ReportAllocs()
			for b.Loop() {
				if p := dialer.Make(s); len(p.Calls) == 0 {
					b.Fatal("nobody is called")
				}
			}
		})
	}
}
