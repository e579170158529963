package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestDoNotCallIsEachUsersOwn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a, _ := storetest.User(t, db, "a@example.com")
		b, _ := storetest.User(t, db, "b@example.com")
		require.NoError(t, db.Tenant(a.ID).AddDoNotCall(ctx, "+12025550108", "spoken"))
		require.NoError(t, db.Tenant(a.ID).AddDoNotCall(ctx, "+12025550108", "again"))

		listed, err := db.Tenant(a.ID).DoNotCall(ctx, "+12025550101", "+12025550108", "+12025550109")
		require.NoError(t, err)
		require.Equal(t, map[string]bool{"+12025550108": true}, listed)
		listed, err = db.Tenant(b.ID).DoNotCall(ctx, "+12025550108")
		require.NoError(t, err)
		require.Empty(t, listed)

		page, total, err := db.Tenant(a.ID).DoNotCallList(ctx, "", 10, 0)
		require.NoError(t, err)
		require.Equal(t, 1, total)
		require.Equal(t, "spoken", page[0].Reason)
		require.Equal(t, parley.NotFound, parley.ErrorCode(db.Tenant(b.ID).RemoveDoNotCall(ctx, "+12025550108")))
		require.NoError(t, db.Tenant(a.ID).RemoveDoNotCall(ctx, "+12025550108"))
		listed, err = db.Tenant(a.ID).DoNotCall(ctx, "+12025550108")
		require.NoError(t, err)
		require.Empty(t, listed)
	})
}

// The key of the hashes is sealed: it is made once, whoever asks first, and outlives
// a change of the sealing keys.
func TestSuppressionOutlivesTheSealingKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, prepared *store.DB) {
		ctx := t.Context()
		path := t.TempDir() + "/secret.key"
		keys := mustKeys(t, path)
		db := reopen(t, prepared, keys)
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		won := race(8, func() error { return tenant.AddDoNotCall(t.Context(), "+12025550108", "api") })
		require.Equal(t, 8, won)
		require.NoError(t, keys.Rotate())
		resealed, err := db.System().Reseal(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, 1, resealed)
		listed, err := reopen(t, prepared, mustKeys(t, path)).Tenant(user.ID).DoNotCall(ctx, "+12025550108")
		require.NoError(t, err)
		require.True(t, listed["+12025550108"])
	})
}

func TestListingANumberEndsItsLeads(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		other, _ := storetest.User(t, db, "b@example.com")
		tenant := db.Tenant(user.ID)
		spring, summer := storetest.Campaign(t, tenant, "Spring"), storetest.Campaign(t, tenant, "Summer")
		theirs := storetest.Lead(t, db.Tenant(other.ID), storetest.Campaign(t, db.Tenant(other.ID), "Theirs").ID, "+12025550108")
		own := storetest.Lead(t, tenant, spring.ID, "+12025550108", "+12025550101")
		second := storetest.Lead(t, tenant, summer.ID, "+12025550102", "+12025550103", "+12025550108", "+12025550104")
		second.Status, second.Secondary[0].Status = parley.LeadProcessing, parley.LeadRescheduled
		require.NoError(t, tenant.SaveLead(ctx, second))
		bystander := storetest.Lead(t, tenant, summer.ID, "+12025550105")

		require.NoError(t, tenant.AddAllDoNotCall(ctx, []string{"+12025550107", "+12025550108", "+12025550109"}, "keyed"))

		status := func(tenant *store.Tenant, id parley.ID) (all []parley.LeadStatus) {
			l, err := tenant.Lead(ctx, id)
			require.NoError(t, err)
			all = append(all, l.Status)
			for _, c := range l.Secondary {
				all = append(all, c.Status)
			}
			return all
		}
		const created, blacklisted = parley.LeadCreated, parley.LeadBlacklisted
		require.Equal(t, []parley.LeadStatus{blacklisted, created}, status(tenant, own.ID))
		require.Equal(t, []parley.LeadStatus{blacklisted, blacklisted, blacklisted, created}, status(tenant, second.ID), "a contact ends the whole lead, and those waiting for a retry")
		require.Equal(t, []parley.LeadStatus{created}, status(tenant, bystander.ID))
		require.Equal(t, []parley.LeadStatus{created}, status(db.Tenant(other.ID), theirs.ID))
		late := storetest.Lead(t, tenant, spring.ID, "+12025550106", "+12025550109")
		require.Equal(t, []parley.LeadStatus{blacklisted, blacklisted}, status(tenant, late.ID))
	})
}

// Leads are added while their numbers are listed: whoever comes first, none is left that
// could be called.
func TestListingRacesWithNewLeads(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		numbers := make([]string, 30)
		var wait sync.WaitGroup
		for i := range numbers {
			numbers[i] = fmt.Sprintf("+120255501%02d", i)
			wait.Go(func() { assertNoError(t, tenant.AddDoNotCall(context.Background(), numbers[i], "api")) })
			wait.Go(func() {
				l := &parley.Lead{CampaignID: c.ID, PhoneNumber: numbers[i], Variables: parley.Object{}, Status: parley.LeadCreated}
				assertNoError(t, tenant.CreateLead(context.Background(), l))
			})
		}
		wait.Wait()
		got, err := tenant.Campaign(t.Context(), c.ID)
		require.NoError(t, err)
		require.Equal(t, parley.Progress{Total: 30, Blacklisted: 30}, got.Progress)
	})
}

// Edits, listings and imports that meet at the same leads wait for each other and never
// in a circle.
func TestChangesOfTheSameLeadsNeverDeadlock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		var leads []parley.ID
		for i := range 6 {
			leads = append(leads, storetest.Lead(t, tenant, c.ID, fmt.Sprintf("+1202555010%d", i), fmt.Sprintf("+1202555011%d", i)).ID)
		}
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				switch i % 4 {
				case 0:
					assertNoError(t, tenant.AddAllDoNotCall(context.Background(), []string{fmt.Sprintf("+1202555011%d", i%6), fmt.Sprintf("+1202555010%d", (i+3)%6)}, "api"))
				case 1:
					var batch []store.NewLead
					for n := range 200 { // some forwards, some backwards
						batch = append(batch, store.NewLead{PhoneNumber: fmt.Sprintf("+1202555%04d", max(n, i%8*199)-min(n, i%8*199)), Variables: "{}"})
					}
					_, _, err := tenant.ImportLeads(context.Background(), c.ID, batch)
					assertNoError(t, err)
				default:
					assertNoError(t, tenant.Tx(context.Background(), func(t *store.Tenant) error {
						l, err := t.Lead(context.Background(), leads[i%6])
						if err != nil {
							return err
						}
						l.Status = parley.LeadStatuses[i%len(parley.LeadStatuses)]
						return t.SaveLead(context.Background(), l)
					}))
				}
			})
		}
		wait.Wait()
	})
}

// An erased number is nowhere, and is still not called.
func TestPromiseG10ErasedNumberOfLeads(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		const number = "+12025550108"
		require.NoError(t, tenant.AddDoNotCall(ctx, number, "asked on "+number))
		own := storetest.Lead(t, tenant, c.ID, number, "+12025550101")
		second := storetest.Lead(t, tenant, c.ID, "+12025550102", number, "+12025550103")
		second.NextContact = 1
		second.Variables = parley.Object{"text": "call " + number, "digits": json.Number("12025550108"), "other": "kept"}
		second.Secondary[1].Variables = parley.Object{"referrer": number}
		require.NoError(t, tenant.SaveLead(ctx, second))

		_, err := tenant.EraseNumber(ctx, number, store.Recordings(t.TempDir()))
		require.NoError(t, err)

		_, err = tenant.Lead(ctx, own.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		left, err := tenant.Lead(ctx, second.ID)
		require.NoError(t, err)
		require.Equal(t, parley.Object{"text": "call +0", "digits": json.Number("0"), "other": "kept"}, left.Variables)
		require.Len(t, left.Secondary, 1)
		require.Equal(t, 2, left.NextContact, "the round under way is over")
		for _, column := range []string{"leads.phone_number", "leads.variables", "lead_contacts.phone_number", "lead_contacts.variables", "do_not_call.phone_number", "do_not_call.reason"} {
			table, _, _ := strings.Cut(column, ".")
			var hits int
			require.NoError(t, db.SQL().QueryRow("SELECT COUNT(*) FROM "+table+" WHERE "+column+" LIKE '%2025550108%'").Scan(&hits))
			require.Zero(t, hits, column)
		}
		listed, err := tenant.DoNotCall(ctx, number)
		require.NoError(t, err)
		require.True(t, listed[number])
		page, _, err := tenant.DoNotCallList(ctx, "", 10, 0)
		require.NoError(t, err)
		require.Nil(t, page[0].PhoneNumber)
		require.Equal(t, parley.LeadBlacklisted, storetest.Lead(t, tenant, c.ID, number).Status)
		require.NoError(t, tenant.RemoveDoNotCall(ctx, number))
	})
}

// What a crash leaves of a deleted campaign is invisible, and goes with the next purge.
func TestDeletedCampaignsLeaveNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		l := storetest.Lead(t, tenant, c.ID, "+12025550100", "+12025550101")
		_, err := db.SQL().Exec("UPDATE campaigns SET deleted_at = 1")
		require.NoError(t, err)

		_, err = tenant.Lead(ctx, l.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		page, total, err := tenant.Leads(ctx, store.LeadFilter{}, 10, 0)
		require.NoError(t, err)
		require.Empty(t, page)
		require.Zero(t, total)
		_, _, err = tenant.ImportLeads(ctx, c.ID, []store.NewLead{{PhoneNumber: "+12025550102", Variables: "{}"}})
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))

		require.NoError(t, db.System().PurgeCampaigns(ctx))
		for _, table := range []string{"campaigns", "leads", "lead_contacts", "campaign_progress"} {
			var left int
			require.NoError(t, db.SQL().QueryRow("SELECT COUNT(*) FROM "+table).Scan(&left))
			require.Zero(t, left, table)
		}
	})
}

// A lead is due when its time has come, in the order they became so; an edit of the
// campaign brings those that were put off back.
func TestDueLeadsComeInTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		var leads []*parley.Lead
		for i := range 5 {
			leads = append(leads, storetest.Lead(t, tenant, c.ID, fmt.Sprintf("+1202555010%d", i)))
		}
		now := time.Now()
		leads[0].DueAt, leads[0].Status = now.Add(time.Hour), parley.LeadRescheduled
		require.NoError(t, tenant.SaveLead(ctx, leads[0]))
		leads[1].DueAt, leads[1].Status = now.Add(-time.Hour), parley.LeadRescheduled
		require.NoError(t, tenant.SaveLead(ctx, leads[1]))
		leads[2].Status = parley.LeadCompleted
		require.NoError(t, tenant.SaveLead(ctx, leads[2]))
		_, err := db.SQL().Exec(fmt.Sprintf("UPDATE leads SET wait_until = %d WHERE id = %d", now.Add(24*time.Hour).UnixMicro(), leads[3].ID))
		require.NoError(t, err)

		walk := func(by time.Time) (ids []parley.ID) {
			due, err := db.System().DueLeads(ctx, c, by, 10)
			require.NoError(t, err)
			for _, l := range due {
				ids = append(ids, l.ID)
			}
			return ids
		}
		soon := now.Add(time.Minute)
		require.Equal(t, []parley.ID{leads[1].ID, leads[4].ID}, walk(soon))
		require.Equal(t, []parley.ID{leads[1].ID, leads[4].ID, leads[0].ID, leads[3].ID}, walk(now.Add(48*time.Hour)))
		require.NoError(t, tenant.SaveCampaign(ctx, c))
		require.Equal(t, []parley.ID{leads[1].ID, leads[3].ID, leads[4].ID}, walk(soon), "a retry keeps its time")
	})
}
