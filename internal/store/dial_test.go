package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// number is one in Washington.
func number(n int) string { return fmt.Sprintf("+1202%07d", 5560000+n) }

// runningCampaign has a campaign in progress.
func runningCampaign(t *testing.T, tenant *store.Tenant, name string) *parley.Campaign {
	t.Helper()
	c := storetest.Campaign(t, tenant, name)
	c.Status = parley.CampaignInProgress
	require.NoError(t, tenant.SetCampaignStatus(t.Context(), c))
	return c
}

// What a tick asks is answered by the index of what is due: the others are never read.
func TestDueLeadsAreFoundByTheirIndex(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := runningCampaign(t, tenant, "Spring")
		leads := make([]store.NewLead, 20_000)
		for i := range leads {
			leads[i] = store.NewLead{PhoneNumber: number(i), Variables: "{}"}
		}
		for some := range slices.Chunk(leads, 5000) {
			_, _, err := tenant.ImportLeads(ctx, c.ID, some)
			require.NoError(t, err)
		}
		_, err := db.SQL().Exec(db.Rebind("UPDATE leads SET wait_until = ? WHERE id % 1000 <> 0"), time.Now().Add(time.Hour).UnixMicro())
		require.NoError(t, err)
		_, err = db.SQL().Exec("ANALYZE")
		require.NoError(t, err)

		at := time.Now()
		due, err := db.System().DueLeads(ctx, c, at, 200)
		require.NoError(t, err)
		require.Len(t, due, 20)
		work, err := db.System().CampaignsAtWork(ctx, at)
		require.NoError(t, err)
		require.Len(t, work, 1)
		require.True(t, work[0].Staffed)

		for statement, args := range map[string][]any{store.DueLeadsSQL: {c.ID, at.UnixMicro(), 200}, store.AllAtWorkSQL: {at.UnixMicro()}} {
			plan := explained(t, db, statement, args...)
			require.Contains(t, plan, "leads_due", plan)
			require.NotRegexp(t, `Seq Scan on leads|SCAN l\b`, plan)
		}
	})
}

func explained(t *testing.T, db *store.DB, statement string, args ...any) string {
	t.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if db.Postgres() {
		explain = "EXPLAIN "
	}
	rows, err := db.ReadSQL().Query(db.Rebind(explain+statement), args...)
	require.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	var plan []string
	for rows.Next() {
		line, values := "", make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		values[len(values)-1] = &line
		require.NoError(t, rows.Scan(values...))
		plan = append(plan, line)
	}
	require.NoError(t, rows.Err())
	return strings.Join(plan, "\n")
}

// A lead that was put off is due again at its time, and at once after an edit.
func TestLeadsThatWerePutOffComeBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := runningCampaign(t, tenant, "Spring")
		storetest.Lead(t, tenant, c.ID, number(1))
		at, until := time.Now(), time.Now().Add(time.Hour)
		due := func(at time.Time) []parley.Lead {
			t.Helper()
			c, err := tenant.Campaign(ctx, c.ID)
			require.NoError(t, err)
			leads, err := db.System().DueLeads(ctx, c, at, 10)
			require.NoError(t, err)
			return leads
		}
		putOff := func(status parley.LeadStatus) {
			t.Helper()
			seen, err := tenant.Campaign(ctx, c.ID)
			require.NoError(t, err)
			leads := due(until)
			require.Len(t, leads, 1)
			require.NoError(t, tenant.PutOff(ctx, seen, leads, status, until))
			require.Empty(t, due(at))
			require.Empty(t, due(until.Add(-time.Microsecond)))
			require.Len(t, due(until), 1)
			require.Equal(t, status, due(until)[0].Status)
		}
		putOff(parley.LeadScheduled)
		lead, err := tenant.Lead(ctx, due(until)[0].ID)
		require.NoError(t, err)
		require.NoError(t, tenant.SaveLead(ctx, lead))
		require.Len(t, due(at), 1, "the lead was edited")

		putOff(parley.LeadScheduled)
		fresh, err := tenant.Campaign(ctx, c.ID)
		require.NoError(t, err)
		require.NoError(t, tenant.SaveCampaign(ctx, fresh))
		require.Len(t, due(at), 1, "the campaign was edited")

		// Decisions of a plan that has been overtaken by an edit count for nothing.
		seen, err := tenant.Campaign(ctx, c.ID)
		require.NoError(t, err)
		leads := due(at)
		require.NoError(t, tenant.SaveLead(ctx, lead))
		require.NoError(t, tenant.PutOff(ctx, seen, leads, parley.LeadScheduled, until))
		require.Len(t, due(at), 1)
		require.NoError(t, tenant.SaveCampaign(ctx, seen))
		stale := *seen
		stale.UpdatedAt = stale.UpdatedAt.Add(-time.Microsecond)
		require.NoError(t, tenant.PutOff(ctx, &stale, due(at), parley.LeadScheduled, until))
		require.Len(t, due(at), 1)
	})
}

func TestALeaseIsOneNodesAtATime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		lease := func(node string, lasts time.Duration) bool {
			t.Helper()
			mine, err := db.System().Lease(ctx, "dialer", node, lasts)
			require.NoError(t, err)
			return mine
		}
		won := race(8, func() error {
			if mine, err := db.System().Lease(ctx, "other task", time.Now().String(), time.Minute); err != nil || !mine {
				return errors.Join(err, errors.New("not mine"))
			}
			return nil
		})
		require.Equal(t, 1, won)
		require.True(t, lease("a", time.Minute))
		require.False(t, lease("b", time.Minute))
		require.True(t, lease("a", -time.Microsecond), "whoever has it may have it again, here until it was over")
		require.True(t, lease("b", time.Minute), "and then another takes it over")
		require.False(t, lease("a", time.Minute))
	})
}

// Two transactions that wait for each other both succeed: PostgreSQL ends one of them, and
// it is begun anew.
func TestDeadlocksAreTriedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		a, b := storetest.Campaign(t, tenant, "A"), storetest.Campaign(t, tenant, "B")
		var both, wait sync.WaitGroup
		both.Add(2)
		begun := 0
		var counting sync.Mutex
		cross := func(first, second parley.ID, meet func()) {
			err := tenant.Tx(context.Background(), func(t *store.Tenant) error {
				counting.Lock()
				begun++
				counting.Unlock()
				if _, err := t.Campaign(context.Background(), first); err != nil {
					return err
				}
				meet()
				_, err := t.Campaign(context.Background(), second)
				return err
			})
			assertNoError(t, err)
		}
		meet := func() func() {
			return sync.OnceFunc(func() {
				both.Done()
				if db.Postgres() { // SQLite lets one in at a time
					both.Wait()
				}
			})
		}
		wait.Go(func() { cross(a.ID, b.ID, meet()) })
		wait.Go(func() { cross(b.ID, a.ID, meet()) })
		wait.Wait()
		if db.Postgres() {
			require.GreaterOrEqual(t, begun, 3)
		} else {
			require.Equal(t, 2, begun)
		}
	})
}

// What is no deadlock is not tried again.
func TestOtherErrorsAreNotTriedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for code, times := range map[string]int{"40P01": 8, "40001": 8, "23505": 1} {
			tried := 0
			err := db.System().Tx(t.Context(), func(*store.System) error {
				tried++
				return &pgconn.PgError{Code: code}
			})
			require.Error(t, err)
			require.Equal(t, times, tried, code)
		}
	})
}
