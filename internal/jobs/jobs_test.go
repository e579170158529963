package jobs_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley/internal/jobs"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

var quiet = slog.New(slog.DiscardHandler)

func newQueue(t *testing.T, db *store.DB) *jobs.Queue {
	t.Helper()
	q, err := jobs.New(db, quiet, jobs.Work{})
	require.NoError(t, err)
	return q
}

func TestQueueStartsAndStops(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		q := newQueue(t, db)
		require.NoError(t, q.Start(t.Context()))
		require.NoError(t, q.Check(t.Context()))
		require.NoError(t, q.Stop(t.Context()))
		require.ErrorContains(t, q.Check(t.Context()), "has stopped")
	})
}

func TestStoppingLeavesNothingRunning(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	db, err := store.Open(t.Context(), storetest.SQLite(t))
	require.NoError(t, err)
	q := newQueue(t, db)
	require.NoError(t, q.Start(t.Context()))
	require.NoError(t, q.Stop(t.Context()))
	require.NoError(t, db.Close())
	goleak.VerifyNone(t, ignore)
}

// A job that is due and that nobody takes makes the queue unready; one that has
// just become due does not.
func TestOverdueJobsAreNoticed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		q := newQueue(t, db) // never started
		insert := func(due time.Time) {
			statement, at := `INSERT INTO river_job (kind, args, max_attempts, metadata, queue, state, scheduled_at) VALUES ('nobodys', '{}', 1, '{}', 'nowhere', 'available', ?)`, any(due.UTC().Format("2006-01-02 15:04:05.000"))
			if db.Postgres() {
				statement, at = `INSERT INTO river_job (kind, args, max_attempts, metadata, queue, state, scheduled_at) VALUES ('nobodys', '{}', 1, '{}', 'nowhere', 'available', $1)`, due
			}
			_, err := db.SQL().Exec(statement, at)
			require.NoError(t, err)
		}
		insert(time.Now())
		require.NoError(t, q.Check(t.Context()))
		insert(time.Now().Add(-2 * time.Minute))
		require.ErrorContains(t, q.Check(t.Context()), "1 jobs have waited")
	})
}

func TestTidying(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		require.NoError(t, db.System().Tidy(t.Context()))
	})
}

// The jobs of a dead node wait again; those of others stay where they are.
func TestTheJobsOfADeadNodeReturn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user := furnish(t, db)
		q := newQueue(t, db)
		for i, by := range []string{"dead", "alive"} {
			_, err := makeCall(t.Context(), db, q, user.ID)
			require.NoError(t, err)
			statement := fmt.Sprintf(`UPDATE river_job SET state = 'running', attempted_by = '["first", "%s"]' WHERE id = %d`, by, i+1)
			if db.Postgres() {
				statement = fmt.Sprintf(`UPDATE river_job SET state = 'running', attempted_by = '{first,%s}' WHERE id = %d`, by, i+1)
			}
			_, err = db.SQL().Exec(statement)
			require.NoError(t, err)
		}
		require.NoError(t, db.System().Bury(t.Context(), "dead", time.Hour, nil))
		require.NoError(t, db.System().Bury(t.Context(), "first", time.Hour, nil))
		var states []string
		for id := range 2 {
			var state string
			require.NoError(t, db.SQL().QueryRow(fmt.Sprintf("SELECT state FROM river_job WHERE id = %d", id+1)).Scan(&state))
			states = append(states, state)
		}
		require.Equal(t, []string{"available", "running"}, states)
	})
}
