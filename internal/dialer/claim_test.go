package dialer_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Eight dialers that all believe it is their turn: never more calls than allowed, and
// never two for an attempt.
func TestClaimsUnderRaces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		const parallel, count = 5, 40
		c := s.campaign(parley.Input{"max_calls_in_parallel": parallel, "max_retries": 1, "retry_interval": 60})
		s.leads(c, 1, count)
		var wait sync.WaitGroup
		for range 8 {
			d := node(t, db)
			wait.Go(func() {
				for range 12 {
					_, carryOut, err := d.Planned(context.Background(), time.Now())
					if err == nil {
						err = carryOut()
					}
					if err == nil {
						err = dialAll(context.Background(), d, db.Tenant(s.user), c.ID, parallel)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wait.Wait()
		for len(s.round(unanswered)) > 0 || len(s.waiting()) > 0 {
		}
		twice, err := db.SQL().QueryContext(t.Context(), "SELECT lead_id FROM calls WHERE lead_id IS NOT NULL GROUP BY lead_id, lead_attempt, lead_contact HAVING COUNT(*) > 1")
		require.NoError(t, err)
		defer twice.Close()
		require.False(t, twice.Next(), "an attempt was called twice")
		require.NoError(t, twice.Err())
		require.Equal(t, count, s.state(c.ID).Progress.Rescheduled)
	})
}

// dialAll dials what waits and ends it, and fails if more is up than allowed.
func dialAll(ctx context.Context, d *dialer.Dialer, tenant *store.Tenant, campaign parley.ID, parallel int) error {
	up, err := d.DB.System().CampaignCalls(ctx, campaign)
	if err != nil {
		return err
	}
	if int(up) > parallel {
		return &parley.Error{Message: strconv.Itoa(int(up)) + " calls at once"}
	}
	calls, _, err := tenant.Calls(ctx, store.CallFilter{Status: string(parley.CallInitiated), Limit: 100})
	for i := range calls {
		reason, err := dialOn(ctx, d, calls[i].ID)
		if err != nil {
			return err
		}
		if reason == "" {
			if err := endOn(ctx, d, calls[i].ID, unanswered); err != nil {
				return err
			}
		}
	}
	return err
}

// What changes between a plan and its calls is seen by the claim: nobody is called.
func TestChangesBetweenPlanAndClaim(t *testing.T) {
	for name, change := range map[string]func(s *site, c *parley.Campaign, l *parley.Lead) error{
		"stop": func(s *site, c *parley.Campaign, _ *parley.Lead) error { s.stop(c.ID); return nil },
		"delete the campaign": func(s *site, c *parley.Campaign, _ *parley.Lead) error {
			return s.tenant.DeleteCampaign(s.t.Context(), c.ID)
		},
		"close the hours": func(s *site, c *parley.Campaign, _ *parley.Lead) error { return s.closeHours(c.ID) },
		"opt out": func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.tenant.AddDoNotCall(s.t.Context(), l.PhoneNumber, "api")
		},
		"delete the lead": func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.tenant.DeleteLead(s.t.Context(), l.ID)
		},
		"another number": func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.edit(l.ID, parley.Input{"phone_number": number(9)})
		},
		"completed by hand": func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.edit(l.ID, parley.Input{"status": "completed"})
		},
		"assistant off": func(s *site, c *parley.Campaign, _ *parley.Lead) error {
			a, err := s.tenant.Assistant(s.t.Context(), c.AssistantID)
			if err != nil {
				return err
			}
			a.Status = parley.Inactive
			return s.tenant.SaveAssistant(s.t.Context(), a, false)
		},
		"called by another campaign": func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			other := s.campaign(nil)
			storetest.Lead(s.t, s.tenant, other.ID, l.PhoneNumber)
			s.stop(l.CampaignID)
			_, carryOut, err := node(s.t, s.db).Planned(s.t.Context(), time.Now())
			require.NoError(s.t, err)
			s.start(l.CampaignID)
			if err := carryOut(); err != nil {
				return err
			}
			call := s.waiting()[0]
			require.Equal(s.t, other.ID, *call.CampaignID)
			return s.tenant.DeleteLead(s.t.Context(), *call.LeadID) // its call stays up
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				s := newSite(t, db)
				c := s.campaign(nil)
				lead := s.leads(c, 1, 1)[0]
				plan, carryOut, err := s.dialer.Planned(t.Context(), time.Now())
				require.NoError(t, err)
				require.Len(t, plan.Calls, 1)
				require.NoError(t, change(s, c, lead))
				before := len(s.waiting())
				require.NoError(t, carryOut())
				require.Len(t, s.waiting(), before)
			})
		})
	}
}

// closeHours makes a campaign call only on a day that is neither today nor tomorrow.
func (s *site) closeHours(id parley.ID) error {
	return s.tenant.Tx(s.t.Context(), func(t *store.Tenant) error {
		c, err := t.Campaign(s.t.Context(), id)
		if err != nil {
			return err
		}
		day := int(time.Now().UTC().Weekday()+6) % 7
		c.AllowedDays = []string{parley.Weekdays[(day+3)%7]}
		return t.SaveCampaign(s.t.Context(), c)
	})
}

func (s *site) edit(id parley.ID, in parley.Input) error {
	return s.tenant.Tx(s.t.Context(), func(t *store.Tenant) error {
		l, err := t.Lead(s.t.Context(), id)
		if err != nil {
			return err
		}
		if err := l.Update(in); err != nil {
			return err
		}
		return t.SaveLead(s.t.Context(), l)
	})
}

// What changes between a claim and its dialling fails the call and leaves the lead its
// attempt.
func TestChangesBetweenClaimAndDial(t *testing.T) {
	contacts := []any{map[string]any{"phone_number": number(5)}, map[string]any{"phone_number": number(6)}}
	for name, c := range map[string]struct {
		change func(s *site, c *parley.Campaign, l *parley.Lead) error
		reason parley.EndReason
		status parley.LeadStatus // "": there is no lead any more
	}{
		"stop": {func(s *site, c *parley.Campaign, _ *parley.Lead) error { s.stop(c.ID); return nil }, parley.EndCampaign, parley.LeadScheduled},
		"stop with hang-up": {func(s *site, c *parley.Campaign, _ *parley.Lead) error {
			s.stop(c.ID)
			return s.tenant.HangUpCampaign(s.t.Context(), c.ID)
		}, parley.EndHangup, parley.LeadScheduled},
		"delete the campaign": {func(s *site, c *parley.Campaign, _ *parley.Lead) error {
			return s.tenant.DeleteCampaign(s.t.Context(), c.ID)
		}, parley.EndCampaign, ""},
		"close the hours": {func(s *site, c *parley.Campaign, _ *parley.Lead) error { return s.closeHours(c.ID) }, parley.EndWindow, parley.LeadScheduled},
		"opt out": {func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.tenant.AddDoNotCall(s.t.Context(), l.PhoneNumber, "api")
		}, parley.EndDoNotCall, parley.LeadBlacklisted},
		"delete the lead": {func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.tenant.DeleteLead(s.t.Context(), l.ID)
		}, parley.EndLead, ""},
		"another number": {func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.edit(l.ID, parley.Input{"phone_number": number(9)})
		}, parley.EndLead, parley.LeadScheduled},
		"another number and contacts": {func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.edit(l.ID, parley.Input{"phone_number": number(9), "secondary_contacts": contacts})
		}, parley.EndLead, parley.LeadScheduled},
		"completed by hand": {func(s *site, _ *parley.Campaign, l *parley.Lead) error {
			return s.edit(l.ID, parley.Input{"status": "completed"})
		}, parley.EndLead, parley.LeadCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				s := newSite(t, db)
				campaign := s.campaign(nil)
				lead := s.leads(campaign, 1, 1)[0]
				s.tick()
				call := s.waiting()[0]
				require.NoError(t, c.change(s, campaign, lead))
				require.Equal(t, c.reason, s.dial(call.ID))
				if c.status == "" {
					return
				}
				after := s.lead(lead.ID)
				require.Equal(t, c.status, after.Status)
				if c.status == parley.LeadScheduled {
					require.Zero(t, after.Attempts, "the attempt is not used up")
					require.Zero(t, after.NextContact)
				}
			})
		})
	}
}

// A secondary contact's call that is not dialled after all leaves the round where it was;
// one whose lead was edited meanwhile is not stuck.
func TestAContactsCallIsNotDialled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_retries": 1, "retry_interval": 60})
		lead := storetest.Lead(t, s.tenant, c.ID, number(1), number(2), number(3))
		require.Len(t, s.round(unanswered), 1)
		s.tick()
		s.stop(c.ID)
		require.Equal(t, parley.EndCampaign, s.dial(s.waiting()[0].ID))
		after := s.lead(lead.ID)
		require.Equal(t, 1, after.NextContact)
		require.Equal(t, 1, after.Attempts)
		require.Equal(t, parley.LeadRescheduled, after.Secondary[0].Status)
		s.start(c.ID)
		s.tick()
		require.Equal(t, number(2), s.waiting()[0].CustomerNumber, "the same contact again")
		require.NoError(t, s.edit(lead.ID, parley.Input{"secondary_contacts": []any{map[string]any{"phone_number": number(7)}, map[string]any{"phone_number": number(8)}}}))
		require.Equal(t, parley.EndLead, s.dial(s.waiting()[0].ID))
		require.Equal(t, parley.LeadScheduled, s.lead(lead.ID).Status)
		s.tick()
		require.Empty(t, s.waiting(), "the edit ended the round, and the retry waits its time")
		s.forward(c)
		require.Equal(t, []string{number(1)}, s.round(talked))
	})
}

// A number that policy forbids uses its attempts up; it is not tried for ever. A call that
// its owner hung up before it was dialled counts too.
func TestRefusalsThatWouldRepeatAreCounted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_retries": 0})
		premium := storetest.Lead(t, s.tenant, c.ID, "+19005550100")
		hungUp := storetest.Lead(t, s.tenant, c.ID, number(1))
		s.tick()
		calls := s.waiting()
		require.Len(t, calls, 2)
		_, err := s.tenant.RequestHangup(t.Context(), calls[1].ID)
		require.NoError(t, err)
		require.Equal(t, parley.EndBlocked, s.dial(calls[0].ID))
		require.Equal(t, parley.EndHangup, s.dial(calls[1].ID))
		require.Equal(t, parley.LeadReachedMaxRetries, s.lead(premium.ID).Status)
		require.Equal(t, parley.LeadReachedMaxRetries, s.lead(hungUp.ID).Status)
		s.tick()
		require.Equal(t, parley.CampaignCompleted, s.state(c.ID).Status)
	})
}

// What a plan decided counts for nothing once a lead or its campaign was changed.
func TestLatePlansEndNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newSite(t, db)
		c := s.campaign(parley.Input{"max_retries": 0})
		worn := s.leads(c, 1, 1)[0]
		worn.Attempts = 1
		require.NoError(t, s.tenant.SaveLead(t.Context(), worn))
		plan, carryOut, err := s.dialer.Planned(t.Context(), time.Now())
		require.NoError(t, err)
		require.Len(t, plan.Done, 1)
		require.Len(t, plan.Complete, 1)
		require.NoError(t, s.edit(worn.ID, parley.Input{"variables": map[string]any{"a": json.Number("1")}}))
		require.NoError(t, carryOut())
		require.Equal(t, parley.LeadCreated, s.lead(worn.ID).Status)
		require.Equal(t, parley.CampaignInProgress, s.state(c.ID).Status, "it has a lead")
		s.tick()
		require.Equal(t, parley.LeadReachedMaxRetries, s.lead(worn.ID).Status)
		require.Equal(t, parley.CampaignCompleted, s.state(c.ID).Status)

		empty := s.campaign(nil)
		plan, carryOut, err = s.dialer.Planned(t.Context(), time.Now())
		require.NoError(t, err)
		require.Equal(t, []parley.ID{empty.ID}, plan.Complete)
		s.leads(empty, 2, 1)
		require.NoError(t, carryOut())
		require.Equal(t, parley.CampaignInProgress, s.state(empty.ID).Status, "a lead was added in the last moment")
	})
}
