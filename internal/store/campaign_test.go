package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestCampaignsRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		var lines []parley.ID
		for _, number := range []string{"+12025550180", "+12025550181"} {
			n := &parley.PhoneNumber{Number: number, CountryCode: "US", Type: parley.NormalNumber}
			require.NoError(t, tenant.CreatePhoneNumber(ctx, n))
			lines = append(lines, n.ID)
		}
		c := storetest.Campaign(t, tenant, "Spring")
		got, err := tenant.Campaign(ctx, c.ID)
		require.NoError(t, err)
		require.Equal(t, c, got)

		goal := "agreed"
		got.Name, got.GoalVariable, got.RetryOnGoalIncomplete, got.AllowedDays, got.PhoneNumberIDs = "Summer", &goal, true, []string{"monday"}, []parley.ID{lines[1], lines[0]}
		require.NoError(t, tenant.SaveCampaign(ctx, got))
		all, total, err := tenant.Campaigns(ctx, "", 10, 0)
		require.NoError(t, err)
		require.Equal(t, 1, total)
		require.Equal(t, []parley.Campaign{*got}, all, "lines keep their order")
		require.Equal(t, parley.Conflict, parley.ErrorCode(tenant.DeletePhoneNumber(ctx, lines[0])), "a line of a campaign is not deleted")

		got.Status = parley.CampaignInProgress
		require.NoError(t, tenant.SetCampaignStatus(ctx, got))
		running, _, err := tenant.Campaigns(ctx, parley.CampaignInProgress, 10, 0)
		require.NoError(t, err)
		require.Len(t, running, 1)
		_, total, err = tenant.Campaigns(ctx, parley.CampaignDraft, 10, 0)
		require.NoError(t, err)
		require.Zero(t, total)

		require.NoError(t, tenant.DeleteCampaign(ctx, c.ID))
		_, err = tenant.Campaign(ctx, c.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		require.Equal(t, parley.NotFound, parley.ErrorCode(tenant.DeleteCampaign(ctx, c.ID)))
		require.Equal(t, parley.NotFound, parley.ErrorCode(tenant.SaveCampaign(ctx, c)))
		require.NoError(t, tenant.DeletePhoneNumber(ctx, lines[0]))
	})
}

func TestLeadsRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		l := storetest.Lead(t, tenant, c.ID, "+12025550100", "+12025550101", "+12025550102")
		got, err := tenant.Lead(ctx, l.ID)
		require.NoError(t, err)
		l.CampaignName = "Spring"
		require.Equal(t, l, got)

		zone := "America/New_York"
		got.Timezone, got.Attempts, got.NextContact, got.DueAt = &zone, 2, 1, time.UnixMicro(1_700_000_000_000_000).UTC()
		got.Variables = parley.Object{"big": json.Number("123456789012345678901234567890")}
		got.Secondary = []parley.SecondaryContact{got.Secondary[1], {PhoneNumber: "+12025550103", Variables: parley.Object{"x": "y"}, Status: parley.LeadCreated}}
		second := got.Secondary[0].ID
		require.NoError(t, tenant.SaveLead(ctx, got))
		again, err := tenant.Lead(ctx, l.ID)
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.Equal(t, second, again.Secondary[0].ID, "a contact that stays keeps its id")

		require.NoError(t, tenant.DeleteLead(ctx, l.ID))
		_, err = tenant.Lead(ctx, l.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		require.Equal(t, parley.NotFound, parley.ErrorCode(tenant.DeleteLead(ctx, l.ID)))
	})
}

func TestLeadsNewestFirstByFilter(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		spring, summer := storetest.Campaign(t, tenant, "Spring"), storetest.Campaign(t, tenant, "Summer")
		for i := range 5 {
			storetest.Lead(t, tenant, spring.ID, fmt.Sprintf("+1202555010%d", i))
		}
		storetest.Lead(t, tenant, summer.ID, "+442079460100")
		ended := storetest.Lead(t, tenant, summer.ID, "+442079460101")
		ended.Status = parley.LeadCompleted
		require.NoError(t, tenant.SaveLead(ctx, ended))
		later := time.Now().Add(time.Hour)
		for _, c := range []struct {
			filter store.LeadFilter
			want   []string
		}{
			{store.LeadFilter{}, []string{"+442079460101", "+442079460100", "+12025550104", "+12025550103", "+12025550102", "+12025550101", "+12025550100"}},
			{store.LeadFilter{CampaignID: &summer.ID}, []string{"+442079460101", "+442079460100"}},
			{store.LeadFilter{Status: parley.LeadCompleted}, []string{"+442079460101"}},
			{store.LeadFilter{CampaignID: &spring.ID, Status: parley.LeadCompleted}, nil},
			{store.LeadFilter{PhoneNumber: "0101"}, []string{"+442079460101", "+12025550101"}},
			{store.LeadFilter{PhoneNumber: "+44"}, []string{"+442079460101", "+442079460100"}},
			{store.LeadFilter{PhoneNumber: "+4"}, []string{"+442079460101", "+442079460100"}},
			{store.LeadFilter{PhoneNumber: "+12025550109"}, nil},
			{store.LeadFilter{From: later}, nil},
			{store.LeadFilter{To: later, CampaignID: &summer.ID}, []string{"+442079460101", "+442079460100"}},
		} {
			page, total, err := tenant.Leads(ctx, c.filter, 3, 0)
			require.NoError(t, err)
			require.Equal(t, len(c.want), total, "%+v", c.filter)
			var got []string
			for _, l := range page {
				got = append(got, l.PhoneNumber)
			}
			require.Equal(t, c.want[:min(3, len(c.want))], got, "%+v", c.filter)
		}
		page, _, err := tenant.Leads(ctx, store.LeadFilter{}, 3, 6)
		require.NoError(t, err)
		require.Len(t, page, 1)
	})
}

func TestANumberIsInACampaignOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		add := func(again bool) error {
			l := &parley.Lead{CampaignID: c.ID, PhoneNumber: "+12025550100", Variables: parley.Object{}, Status: parley.LeadCreated, AllowDuplicate: again}
			return tenant.CreateLead(context.Background(), l)
		}
		require.Equal(t, 1, race(10, func() error { return add(false) }))
		require.NoError(t, add(true))
		require.Equal(t, parley.Invalid, parley.ErrorCode(add(false)))
		imported, _, err := tenant.ImportLeads(t.Context(), c.ID, []store.NewLead{{PhoneNumber: "+12025550100", Variables: "{}"}})
		require.NoError(t, err)
		require.Zero(t, imported)
		other := storetest.Lead(t, tenant, c.ID, "+12025550101")
		other.PhoneNumber = "+12025550100"
		require.Equal(t, parley.Invalid, parley.ErrorCode(tenant.SaveLead(t.Context(), other)))
		_, total, err := tenant.Leads(t.Context(), store.LeadFilter{}, 1, 0)
		require.NoError(t, err)
		require.Equal(t, 3, total)
	})
}

// The kept counts must say what counting would, whatever has happened to the leads.
func TestProgressFollowsEveryChange(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		campaigns := []*parley.Campaign{storetest.Campaign(t, tenant, "Spring"), storetest.Campaign(t, tenant, "Summer")}
		random := rand.New(rand.NewPCG(5, 6))
		number := func() string { return fmt.Sprintf("+120255%05d", random.IntN(40)) }
		for range 150 {
			c := campaigns[random.IntN(2)].ID
			all, _, err := tenant.Leads(ctx, store.LeadFilter{CampaignID: &c}, 1000, 0)
			require.NoError(t, err)
			switch random.IntN(6) {
			case 0, 1:
				storetestLead(t, tenant, c, number())
			case 2:
				_, _, err := tenant.ImportLeads(ctx, c, []store.NewLead{{PhoneNumber: number(), Variables: "{}"}, {PhoneNumber: number(), Variables: "{}"}})
				require.NoError(t, err)
			case 3, 4:
				if len(all) > 0 {
					l := all[random.IntN(len(all))]
					l.Status = parley.LeadStatuses[random.IntN(len(parley.LeadStatuses))]
					require.NoError(t, tenant.SaveLead(ctx, &l))
				}
			case 5:
				if len(all) > 0 && random.IntN(2) == 0 {
					require.NoError(t, tenant.DeleteLead(ctx, all[random.IntN(len(all))].ID))
				} else if random.IntN(4) == 0 {
					require.NoError(t, tenant.AddDoNotCall(ctx, number(), "api"))
				}
			}
		}
		for _, c := range campaigns {
			all, total, err := tenant.Leads(ctx, store.LeadFilter{CampaignID: &c.ID}, 1000, 0)
			require.NoError(t, err)
			var counted parley.Progress
			for _, l := range all {
				counted.Add(l.Status, 1)
			}
			got, err := tenant.Campaign(ctx, c.ID)
			require.NoError(t, err)
			require.Equal(t, counted, got.Progress)
			require.Equal(t, counted.Total, total)
			require.NotZero(t, total)
			for _, status := range parley.LeadStatuses {
				some, n, err := tenant.Leads(ctx, store.LeadFilter{CampaignID: &c.ID, Status: status}, 1000, 0)
				require.NoError(t, err)
				require.Len(t, some, n, status)
			}
		}
	})
}

// storetestLead adds a lead that may be there already.
func storetestLead(t *testing.T, tenant *store.Tenant, campaign parley.ID, number string) {
	t.Helper()
	err := tenant.CreateLead(t.Context(), &parley.Lead{CampaignID: campaign, PhoneNumber: number, Variables: parley.Object{}, Status: parley.LeadCreated})
	if parley.ErrorCode(err) != parley.Invalid {
		require.NoError(t, err)
	}
}

// A lead that is put back in the queue is called again from its first attempt on, and
// each attempt still once.
func TestALeadPutBackIsDialledAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		l := storetest.Lead(t, tenant, c.ID, "+12025550100")
		dial := func() error {
			call := &parley.Call{AssistantID: c.AssistantID, AssistantName: "Caller", CampaignID: &c.ID, LeadID: &l.ID, LeadAttempt: 1, Type: parley.Outbound,
				Status: parley.CallInitiated, CustomerNumber: l.PhoneNumber, Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
			require.NoError(t, tenant.CreateCall(ctx, call, ""))
			claimed, err := db.System().ClaimCall(ctx, call.ID, "node")
			require.True(t, claimed || err != nil)
			return err
		}
		require.NoError(t, dial())
		require.Error(t, dial(), "an attempt is dialled once")
		l.Attempts, l.Status = 1, parley.LeadCompleted
		require.NoError(t, tenant.SaveLead(ctx, l))
		require.Error(t, dial())
		require.NoError(t, l.SetByHand(parley.LeadCreated))
		require.NoError(t, tenant.SaveLead(ctx, l))
		require.NoError(t, dial())
		require.Error(t, dial())
	})
}
