package dialer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestACampaignRunsToItsEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_retries": 1, "retry_interval": 60})
		leads := s.leads(c, 1, 2)
		require.Equal(t, []string{number(1), number(2)}, s.round(unanswered))
		retried := s.lead(leads[0].ID)
		require.Equal(t, parley.LeadRescheduled, retried.Status)
		require.InDelta(t, 60, time.Until(retried.DueAt).Seconds(), 5)
		require.Empty(t, s.round(unanswered), "the retry waits its time")

		late := s.leads(c, 3, 1)
		require.Equal(t, []string{number(3)}, s.round(talked), "a lead that is added is called")
		require.Equal(t, parley.LeadCompleted, s.lead(late[0].ID).Status)

		s.forward(c)
		require.Len(t, s.round(busy), 2)
		require.Equal(t, parley.LeadReachedMaxRetries, s.lead(leads[1].ID).Status)
		require.Equal(t, parley.CampaignInProgress, s.state(c.ID).Status)
		s.tick()
		require.Equal(t, parley.CampaignCompleted, s.state(c.ID).Status)

		s.leads(c, 4, 1)
		require.Empty(t, s.round(talked), "a completed campaign calls nobody")
		s.start(c.ID)
		require.Equal(t, []string{number(4)}, s.round(talked))
		s.tick()
		require.Equal(t, parley.CampaignCompleted, s.state(c.ID).Status)
	})
}

// A campaign that is to wait for leads waits, and costs nothing meanwhile.
func TestACampaignWaitsForLeads(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"mark_complete_when_no_leads": false})
		s.tick()
		require.Equal(t, parley.CampaignInProgress, s.state(c.ID).Status)
		work, err := db.System().CampaignsAtWork(t.Context(), time.Now())
		require.NoError(t, err)
		require.Empty(t, work)
		s.leads(c, 1, 1)
		require.Len(t, s.round(talked), 1)
	})
}

func TestSecondaryContactsAreTriedInOrder(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_retries": 1, "retry_interval": 60})
		lead := storetest.Lead(t, s.tenant, c.ID, number(1), number(2), number(3))
		for n := 1; n <= 3; n++ {
			require.Equal(t, []string{number(n)}, s.round(unanswered))
		}
		require.Empty(t, s.round(unanswered), "the round is over")
		require.Equal(t, 1, s.lead(lead.ID).Attempts)
		s.forward(c)
		require.Equal(t, []string{number(1)}, s.round(unanswered))
		require.Equal(t, []string{number(2)}, s.round(talked))
		after := s.lead(lead.ID)
		require.Equal(t, parley.LeadCompleted, after.Status)
		require.Equal(t, 2, after.Attempts)
		require.Equal(t, parley.LeadCompleted, after.Secondary[0].Status)
		calls, _, err := s.tenant.Calls(t.Context(), store.CallFilter{Limit: 10})
		require.NoError(t, err)
		require.Len(t, calls, 5)
	})
}

func TestVoicemailAndGoals(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		agreed := func(value any) func(*parley.Call) {
			return func(c *parley.Call) {
				talked(c)
				c.Evaluation = parley.Object{"agreed": value}
			}
		}
		for i, c := range []struct {
			settings parley.Input
			how      func(*parley.Call)
			becomes  parley.LeadStatus
		}{
			{parley.Input{"retry_on_voicemail": true}, machine, parley.LeadRescheduled},
			{parley.Input{"retry_on_voicemail": false}, machine, parley.LeadCompleted},
			{parley.Input{"retry_on_goal_incomplete": true, "goal_completion_variable": "agreed"}, agreed(false), parley.LeadRescheduled},
			{parley.Input{"retry_on_goal_incomplete": true, "goal_completion_variable": "agreed"}, agreed(true), parley.LeadCompleted},
			{parley.Input{"retry_on_goal_incomplete": false}, agreed(false), parley.LeadCompleted},
		} {
			campaign := s.campaign(c.settings)
			lead := s.leads(campaign, i, 1)[0]
			require.Len(t, s.round(c.how), 1)
			require.Equal(t, c.becomes, s.lead(lead.ID).Status, "case %d", i)
			s.stop(campaign.ID)
		}
	})
}

// An opt-out ends the number's leads in all campaigns of the account, for good.
func TestAnOptOutEndsTheLeadsOfAllCampaigns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		spring, summer := s.campaign(nil), s.campaign(nil)
		own := s.leads(spring, 1, 1)[0]
		require.Len(t, s.round(optedOut), 1)
		other := s.leads(summer, 1, 1)[0]
		require.Equal(t, parley.LeadBlacklisted, s.lead(own.ID).Status)
		require.Equal(t, parley.LeadBlacklisted, s.lead(other.ID).Status)
		require.Empty(t, s.round(talked))
	})
}

// Ten failures in a row that are the carrier's stop a campaign with its reason; a start
// clears it, and nine are not enough.
func TestTheCircuitBreaker(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_calls_in_parallel": 1})
		s.leads(c, 1, 60)
		for range 9 {
			require.Len(t, s.round(broken), 1)
		}
		require.Len(t, s.round(busy), 1, "somebody could be reached: the count begins anew")
		for range 9 {
			require.Len(t, s.round(broken), 1)
		}
		require.Equal(t, parley.CampaignInProgress, s.state(c.ID).Status)
		require.Len(t, s.round(broken), 1)
		s.tick()
		tripped := s.state(c.ID)
		require.Equal(t, parley.CampaignStopped, tripped.Status)
		require.Contains(t, *tripped.StopReason, "The last 10 calls failed by the carrier's fault.")
		require.Empty(t, s.round(broken))

		s.start(c.ID)
		require.Nil(t, s.state(c.ID).StopReason)
		for range 9 {
			require.Len(t, s.round(broken), 1)
		}
		require.Equal(t, parley.CampaignInProgress, s.state(c.ID).Status, "failures of before do not count")
	})
}

// What a forecast says is what a start then does.
func TestTheForecastComesTrue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_calls_in_parallel": 3, "max_retries": 0})
		s.stop(c.ID)
		s.leads(c, 1, 8)
		worn := storetest.Lead(t, s.tenant, c.ID, number(20), number(21), number(22), number(23), number(24), number(25))
		worn.Attempts = 1
		require.NoError(t, s.tenant.SaveLead(t.Context(), worn))
		forecast, err := s.dialer.Forecast(t.Context(), s.user, c.ID)
		require.NoError(t, err)
		require.Equal(t, parley.Forecast{Now: 3, Later: 5, Never: 1, Why: map[string]int{"campaign-full": 5, "max-retries": 1}}, forecast)
		require.Empty(t, s.waiting(), "asking changes nothing")
		s.start(c.ID)
		s.tick()
		require.Len(t, s.waiting(), forecast.Now)
		require.Equal(t, forecast.Never, s.state(c.ID).Progress.ReachedMaxRetries)
		for _, call := range s.waiting() {
			require.Empty(t, s.dial(call.ID))
			s.end(call.ID, talked)
		}

		a, err := s.tenant.Assistant(t.Context(), c.AssistantID)
		require.NoError(t, err)
		a.Status = parley.Inactive
		require.NoError(t, s.tenant.SaveAssistant(t.Context(), a, false))
		forecast, err = s.dialer.Forecast(t.Context(), s.user, c.ID)
		require.NoError(t, err)
		require.Zero(t, forecast.Now)
		require.Equal(t, 5, forecast.Never)
		require.Equal(t, map[string]int{"no-line": 5}, forecast.Why)
	})
}

// A forecast of a long list with many numbers is still one.
func TestAForecastOfManyNumbers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(nil)
		s.stop(c.ID)
		leads := make([]store.NewLead, 4500)
		for i := range leads {
			leads[i] = store.NewLead{PhoneNumber: number(i), Variables: "{}"}
		}
		_, _, err := s.tenant.ImportLeads(t.Context(), c.ID, leads)
		require.NoError(t, err)
		_, err = db.SQL().ExecContext(t.Context(), `INSERT INTO lead_contacts (user_id, lead_id, position, phone_number, variables, status, created_at, updated_at)
			SELECT l.user_id, l.id, p.id, l.phone_number || CAST(p.id AS TEXT), '{}', 'created', 0, 0 FROM leads l, (SELECT 0 AS id UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9 UNION SELECT 10 UNION SELECT 11 UNION SELECT 12 UNION SELECT 13 UNION SELECT 14) p`)
		require.NoError(t, err)
		forecast, err := s.dialer.Forecast(t.Context(), s.user, c.ID)
		require.NoError(t, err)
		require.Equal(t, 3, forecast.Now)
		require.Equal(t, 4497, forecast.Later)
	})
}
