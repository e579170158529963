package jobs_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/jobs"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// writesUnderKills has processes make calls with their jobs and kills them at random
// points; it returns the calls that were acknowledged.
func writesUnderKills(t *testing.T, db *store.DB, kills, writes int) (acknowledged []parley.ID) {
	t.Helper()
	furnish(t, db)
	for left := kills; left > 0 || len(acknowledged) < writes; left-- {
		p := starts(t, db, "write")
		aim := rand.IntN(2 * writes / kills)
		if left == 1 {
			aim = max(aim, writes-len(acknowledged)) // the last one writes what is left
		}
		if aim == 0 {
			p.killSoon(rand.N(300 * time.Millisecond))
		}
		acknowledged = append(acknowledged, p.ids(func(n int) {
			if n == aim {
				p.killSoon(rand.N(3 * time.Millisecond))
			}
		})...)
	}
	return acknowledged
}

// A call and the job that places it are committed together, or neither is.
func TestPromiseQ1StateAndJobCommitTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		acknowledged := writesUnderKills(t, db, promise.Figure(4, 200), promise.Figure(60, 10_000))
		calls, queued := ids(t, db.SQL(), "SELECT id FROM calls ORDER BY id"), ids(t, db.SQL(), jobRows(db))
		require.GreaterOrEqual(t, len(calls), len(acknowledged))
		require.Equal(t, calls, queued, "every row has one job, every job one row")
	})
}

// jobRows are the rows that there are dial jobs for.
func jobRows(db *store.DB) string {
	if db.Postgres() {
		return "SELECT CAST(args->>'row' AS BIGINT) FROM river_job WHERE kind = 'dial' ORDER BY 1"
	}
	return "SELECT json_extract(args, '$.row') FROM river_job WHERE kind = 'dial' ORDER BY 1"
}

func ids(t *testing.T, db *sql.DB, query string) (all []parley.ID) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id parley.ID
		require.NoError(t, rows.Scan(&id))
		all = append(all, id)
	}
	require.NoError(t, rows.Err())
	return all
}

// What was acknowledged is there after the process was killed.
func TestPromiseQ9AcknowledgedWritesSurvive(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		acknowledged := writesUnderKills(t, db, promise.Figure(3, 50), promise.Figure(60, 10_000))
		there := ids(t, db.SQL(), "SELECT id FROM calls ORDER BY id")
		for _, id := range acknowledged {
			_, found := slices.BinarySearch(there, id)
			require.True(t, found, "call %d was acknowledged and is lost", id)
		}
		if db.Postgres() {
			return
		}
		var sound string
		require.NoError(t, db.SQL().QueryRow("PRAGMA integrity_check").Scan(&sound))
		require.Equal(t, "ok", sound)
		var synchronous int
		require.NoError(t, db.SQL().QueryRow("PRAGMA synchronous").Scan(&synchronous))
		require.Equal(t, 2, synchronous, "FULL: a loss of power is survived too")
	})
}

// Three processes work; they are killed and started again. Every job's effect comes
// exactly once, and few jobs are run more than once.
func TestPromiseQ2EffectsComeOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const workers = 3 * 20 // of all processes
		n, kills := promise.Figure(300, 10_000), promise.Figure(3, 20)
		user := furnish(t, db)
		_, err := db.SQL().Exec("CREATE TABLE executions (call_id BIGINT NOT NULL)")
		require.NoError(t, err)
		q, err := open(db, jobs.Work{}) // only inserts
		require.NoError(t, err)
		finishJobs(t, db, q, user.ID, n)

		working := []*process{starts(t, db, "work"), starts(t, db, "work"), starts(t, db, "work")}
		for _, p := range working {
			p.hears("working")
		}
		for killed := range kills {
			await(t, db, "completed", int64(n*(killed+1)/(kills+2)))
			working[killed%3].kill()
			working[killed%3] = starts(t, db, "work")
		}
		await(t, db, "completed", int64(n))

		load, err := db.Tenant(user.ID).Load(t.Context(), time.Now())
		require.NoError(t, err)
		require.Equal(t, parley.Money(n), load.Spent, "each effect once")
		require.Equal(t, int64(n), number(t, db, "SELECT COUNT(DISTINCT call_id) FROM executions"))
		extra := number(t, db, "SELECT COUNT(*) FROM executions") - int64(n)
		if promise.Full() { // the lease of a quick run is so short that a busy machine looks dead
			require.LessOrEqual(t, extra, int64(kills*workers))
		}
		t.Logf("%d jobs, %d kills: %d were run more than once", n, kills, extra)
	})
}

// finishJobs makes calls that have ended, each with the job that follows.
func finishJobs(t *testing.T, db *store.DB, q *jobs.Queue, user parley.ID, n int) {
	t.Helper()
	for made := 0; made < n; {
		require.NoError(t, db.Tenant(user).Tx(t.Context(), func(tx *store.Tenant) error {
			for range min(500, n-made) {
				call := &parley.Call{AssistantID: 1, AssistantName: "a", Type: parley.Outbound, Status: parley.CallEnded, CustomerNumber: "+12025550100", Carrier: parley.CarrierSimulated}
				if err := errors.Join(tx.CreateCall(t.Context(), call, ""), q.Finish(t.Context(), tx.System(), call.ID)); err != nil {
					return err
				}
				made++
			}
			return nil
		}))
	}
}

// await waits until so many calls have a status; other processes can only be polled.
func await(t *testing.T, db *store.DB, status string, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return number(t, db, "SELECT COUNT(*) FROM calls WHERE status = '"+status+"'") >= n
	}, 5*time.Minute, 20*time.Millisecond)
}

func number(t *testing.T, db *store.DB, query string) (n int64) {
	t.Helper()
	require.NoError(t, db.ReadSQL().QueryRow(query).Scan(&n))
	return n
}

// The job of a process that was killed runs elsewhere within 20 seconds; in a quick run
// the lease is a tenth of that.
func TestPromiseQ3CrashedWorkReturns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user := furnish(t, db)
		ran := make(chan parley.ID, 1)
		q, err := open(db, jobs.Work{Dial: func(_ context.Context, id parley.ID) error {
			ran <- id
			return nil
		}})
		require.NoError(t, err)
		id, err := makeCall(t.Context(), db, q, user.ID)
		require.NoError(t, err)
		p := starts(t, db, "hold")
		p.hears("held")
		require.NoError(t, q.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, q.Stop(context.Background())) })
		p.kill()
		died := time.Now()
		limit := time.Duration(promise.Figure(10, 20)) * time.Second // a busy machine may be slow to look; the quick lease is 1.5 s
		select {
		case again := <-ran:
			require.Equal(t, id, again)
			t.Logf("ran again %s after the kill", time.Since(died).Round(time.Millisecond))
		case <-time.After(limit):
			t.Fatalf("the job did not run again within %s", limit)
		}
	})
}

// A node that lives takes nothing from itself, and one that was taken for dead is told.
func TestANodeThatWasTakenForDeadBeginsAnew(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		lost := make(chan struct{}, 1)
		q, err := jobs.Quick(db, quiet, jobs.Work{Lost: func() { lost <- struct{}{} }})
		require.NoError(t, err)
		require.NoError(t, q.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, q.Stop(context.Background())) })
		require.NoError(t, db.System().Leave(t.Context(), q.Node()))
		<-lost
		require.Eventually(t, func() bool { return number(t, db, "SELECT COUNT(*) FROM nodes") == 1 }, 10*time.Second, 10*time.Millisecond, "it has joined again")
	})
}

// One account has thousands of calls waiting; another's few are placed at once.
func TestPromiseQ5ABigTenantDoesNotStarveASmallOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		big := furnish(t, db)
		small, _ := storetest.User(t, db, "small@example.com")
		var mu sync.Mutex
		begun, waited := map[parley.ID]time.Time{}, []time.Duration{}
		done := make(chan struct{})
		const few = 10
		q, err := open(db, jobs.Work{Dial: func(ctx context.Context, id parley.ID) error {
			mu.Lock()
			if at, mine := begun[id]; mine {
				waited = append(waited, time.Since(at))
				if len(waited) == few {
					close(done)
				}
			}
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // the others wait for three seconds at least
			_, err := db.System().ClaimCall(ctx, id, "node")
			return err
		}})
		require.NoError(t, err)
		for range promise.Figure(6, 100) {
			require.NoError(t, db.Tenant(big.ID).Tx(t.Context(), func(tx *store.Tenant) error { return dialMany(t.Context(), tx, q, 100) }))
		}
		require.NoError(t, q.Start(t.Context()))
		t.Cleanup(func() {
			stopped, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = q.Stop(stopped)
		})
		for range few {
			mu.Lock() // before a worker can see it
			id, err := makeCall(t.Context(), db, q, small.ID)
			begun[id] = time.Now()
			mu.Unlock()
			require.NoError(t, err)
		}
		<-done
		slices.Sort(waited)
		t.Logf("the longest wait: %s", waited[few-1])
		require.LessOrEqual(t, waited[few-1], 2*time.Second)
		require.Positive(t, number(t, db, "SELECT COUNT(*) FROM calls WHERE dialed_at IS NULL"), "the big account still waits")
	})
}

func dialMany(ctx context.Context, tx *store.Tenant, q *jobs.Queue, n int) error {
	for range n {
		call := &parley.Call{AssistantID: 1, AssistantName: "a", Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: "+12025550100", Carrier: parley.CarrierSimulated}
		if err := errors.Join(tx.CreateCall(ctx, call, ""), q.Dial(ctx, tx.System(), call.ID)); err != nil {
			return err
		}
	}
	return nil
}

// A job that panics is tried as often as any, is then dead, listed and can be tried once
// more; the others do not notice.
func TestPromiseQ6APoisonJobIsContained(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user := furnish(t, db)
		var poison, tries, died atomic.Int64
		latest := promise.Figure(10*time.Second, time.Second) // a busy machine is late
		var cured atomic.Bool
		ran := make(chan parley.ID, 100)
		q, err := jobs.Quick(db, quiet, jobs.Work{Dial: func(_ context.Context, id parley.ID) error {
			if id == poison.Load() && !cured.Load() {
				tries.Add(1)
				panic("poison")
			}
			ran <- id
			return nil
		}, DialDied: func(_ context.Context, id parley.ID) error {
			died.Store(id)
			return nil
		}})
		require.NoError(t, err)
		id, err := makeCall(t.Context(), db, q, user.ID)
		require.NoError(t, err)
		poison.Store(id)
		require.NoError(t, q.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, q.Stop(context.Background())) })
		for range 20 {
			other, err := makeCall(t.Context(), db, q, user.ID)
			require.NoError(t, err)
			start := time.Now()
			require.Equal(t, other, <-ran)
			require.Less(t, time.Since(start), latest, "another job was late")
		}
		var dead []jobs.Dead
		require.Eventually(t, func() bool {
			dead, err = q.Dead(t.Context())
			return err == nil && len(dead) > 0
		}, time.Minute, 20*time.Millisecond)
		require.EqualValues(t, jobs.Attempts, tries.Load())
		require.Equal(t, id, died.Load(), "what it was about is let go")
		require.Len(t, dead, 1)
		require.Equal(t, "dial", dead[0].Kind)
		require.Equal(t, id, dead[0].Row)
		require.Equal(t, jobs.Attempts, dead[0].Attempts)
		require.Contains(t, dead[0].Error, "poison")
		require.WithinDuration(t, time.Now(), dead[0].Since, time.Minute)

		require.Equal(t, parley.NotFound, parley.ErrorCode(q.Retry(t.Context(), 987654)))
		cured.Store(true)
		require.NoError(t, q.Retry(t.Context(), dead[0].ID))
		require.Equal(t, id, <-ran)
		require.Eventually(t, func() bool { return parley.ErrorCode(q.Retry(t.Context(), dead[0].ID)) == parley.Conflict }, 10*time.Second, 20*time.Millisecond, "it is not dead any more")
		dead, err = q.Dead(t.Context())
		require.NoError(t, err)
		require.Empty(t, dead)
	})
}

// A job that asks to be put off is, and that is no failure.
func TestLaterIsNoFailure(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user := furnish(t, db)
		ran := make(chan struct{}, 100)
		q, err := jobs.Quick(db, quiet, jobs.Work{Dial: func(context.Context, parley.ID) error {
			ran <- struct{}{}
			return jobs.Later(time.Millisecond)
		}})
		require.NoError(t, err)
		_, err = makeCall(t.Context(), db, q, user.ID)
		require.NoError(t, err)
		require.NoError(t, q.Start(t.Context()))
		for range jobs.Attempts + 3 {
			<-ran
		}
		require.NoError(t, q.Stop(t.Context()))
		require.EqualValues(t, 1, number(t, db, "SELECT COUNT(*) FROM river_job WHERE kind = 'dial' AND state IN ('available', 'scheduled')"))
	})
}

// How many jobs a second are worked on with a backlog, and how soon a job is picked up
// without one.
func TestPromiseQ4EnoughSpeed(t *testing.T) {
	if !promise.Full() {
		t.Skip("measures for a minute; make promises runs it")
	}
	for name, o := range map[string]func(testing.TB) store.Options{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) { // not in parallel: one is measured at a time
			db := storetest.Open(t, o(t))
			rate := throughput(t, db, 60*time.Second)
			p99 := pickUp(t, db, 10*time.Second)
			t.Logf("%s: %.0f jobs a second; picked up within %s (p99)", name, rate, p99)
			floor := map[string]float64{"sqlite": 500, "postgres": 1000}[name]
			if raceDetector {
				floor /= 4 // its own cost; the figure is for the product as it is built
			}
			require.GreaterOrEqual(t, rate, floor)
			require.LessOrEqual(t, p99, 1200*time.Millisecond)
		})
	}
}

func BenchmarkJobs(b *testing.B) {
	for name, o := range map[string]func(testing.TB) store.Options{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			db := storetest.Open(b, o(b))
			b.ReportMetric(throughput(b, db, 5*time.Second), "jobs/s")
			b.ReportMetric(float64(pickUp(b, db, 2*time.Second).Milliseconds()), "ms-pick-up-p99")
		})
	}
}

// throughput is how many jobs a second are inserted and done, with a backlog all the time.
func throughput(t testing.TB, db *store.DB, length time.Duration) float64 {
	t.Helper()
	var done atomic.Int64
	q, err := jobs.New(db, quiet, jobs.Work{Finish: func(context.Context, parley.ID) error {
		done.Add(1)
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, q.Start(t.Context()))
	start, inserted := time.Now(), int64(0)
	for time.Since(start) < length {
		require.NoError(t, db.System().Tx(t.Context(), func(s *store.System) error {
			for range 50 {
				inserted++
				if err := q.Finish(t.Context(), s, inserted); err != nil {
					return err
				}
			}
			return nil
		}))
		for inserted-done.Load() > 500 {
			time.Sleep(time.Millisecond) // the queue is what is measured, not the backlog
		}
	}
	rate := float64(done.Load()) / time.Since(start).Seconds()
	require.NoError(t, q.Stop(context.Background()))
	return rate
}

// pickUp is how soon, in 99 of 100 cases, a job begins after its transaction committed.
func pickUp(t testing.TB, db *store.DB, length time.Duration) time.Duration {
	t.Helper()
	begun := make(chan time.Time, 1)
	q, err := jobs.New(db, quiet, jobs.Work{Finish: func(context.Context, parley.ID) error {
		begun <- time.Now()
		return nil
	}})
	require.NoError(t, err)
	_, err = db.SQL().Exec("DELETE FROM river_job")
	require.NoError(t, err)
	require.NoError(t, q.Start(t.Context()))
	var waits []time.Duration
	for start := time.Now(); time.Since(start) < length; {
		require.NoError(t, db.System().Tx(t.Context(), func(s *store.System) error { return q.Finish(t.Context(), s, 1) }))
		committed := time.Now()
		waits = append(waits, (<-begun).Sub(committed))
	}
	require.NoError(t, q.Stop(context.Background()))
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}

// The more an account has under way, the further its next call stands back.
func TestRanksAreFourAndGrow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user := furnish(t, db)
		q := newQueue(t, db)
		dialled := []int{1, 10, 11, 100, 101, 1000, 1001}
		require.NoError(t, db.Tenant(user.ID).Tx(t.Context(), func(tx *store.Tenant) error {
			for n := range 1001 {
				call := &parley.Call{AssistantID: 1, AssistantName: "a", Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: "+12025550100", Carrier: parley.CarrierSimulated}
				if err := tx.CreateCall(t.Context(), call, ""); err != nil {
					return err
				}
				if !slices.Contains(dialled, n+1) {
					continue
				}
				if err := q.Dial(t.Context(), tx.System(), call.ID); err != nil {
					return err
				}
			}
			return nil
		}))
		require.Equal(t, []int64{1, 1, 2, 2, 3, 3, 4}, ids(t, db.SQL(), "SELECT priority FROM river_job WHERE kind = 'dial' ORDER BY id"))
	})
}
