package egress

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

func failed(status int) Attempt {
	return Attempt{Status: status, Failure: &parley.Failure{Kind: parley.BadStatus}}
}

// TestPromiseW3TheScheduleIsAsDocumented, on a clock that is not the world's.
func TestPromiseW3TheScheduleIsAsDocumented(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		table := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
		// series tries until dead and gives the pauses between the tries.
		series := func(answer Attempt) (pauses []time.Duration) {
			for try := 1; ; try++ {
				last := time.Now()
				at, dead := Next(try, answer, last, random.Float64()*2-1)
				if dead {
					return pauses
				}
				time.Sleep(time.Until(at))
				pauses = append(pauses, time.Since(last))
			}
		}
		within := func(want, got time.Duration) {
			require.InDelta(t, want.Seconds(), got.Seconds(), want.Seconds()*0.2+0.001)
		}
		distinct := map[time.Duration]bool{}
		for range 200 {
			for _, status := range []int{0, 400, 404, 500, 503, 302} {
				pauses := series(failed(status))
				require.Len(t, pauses, 7, "one try and seven more; then it is dead")
				for i, pause := range pauses {
					within(table[i], pause)
				}
				distinct[pauses[0]] = true
			}
			for _, status := range []int{429, 502, 504} {
				pauses := series(failed(status))
				require.Len(t, pauses, 7)
				for i, pause := range pauses {
					within(table[min(i+1, 6)], pause)
				}
			}
			require.Empty(t, series(failed(410)), "gone is gone")
			asked := failed(503)
			asked.RetryAfter = 20 * time.Minute
			pauses := series(asked)
			require.Len(t, pauses, 7)
			for i, pause := range pauses {
				require.GreaterOrEqual(t, pause, asked.RetryAfter, "never before the receiver's own time")
				if table[i] < asked.RetryAfter {
					require.LessOrEqual(t, pause, 24*time.Minute)
				} else {
					within(table[i], pause)
				}
			}
		}
		require.Greater(t, len(distinct), 100, "what failed together does not come back together")
	})
}

func TestTheScheduleIsSane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_700_000_000, 0)
		a := failed(rapid.IntRange(0, 599).Draw(t, "status"))
		a.RetryAfter = time.Duration(rapid.Int64Range(0, int64(longestRetryAfter)).Draw(t, "retry after"))
		try := rapid.IntRange(-2, 20).Draw(t, "try")
		at, dead := Next(try, a, now, rapid.Float64().Draw(t, "jitter"))
		if dead {
			require.True(t, at.IsZero())
			require.True(t, try > 7 || a.Status == 410)
			return
		}
		require.True(t, at.After(now.Add(3*time.Second)))
		require.True(t, at.Before(now.Add(29*time.Hour)))
		require.False(t, at.Before(now.Add(a.RetryAfter)))
	})
}

// task is a message in the queue of the test's workers.
type task struct {
	receiver string
	due      time.Time // when its worker may take it
	created  time.Time
}

type queue []task

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(task)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// pool works off a queue as the job queue does: whoever is not admitted goes back into it.
type pool struct {
	mu        sync.Mutex
	queue     queue
	receivers *Receivers
	send      func(receiver string) Attempt
	took      map[string][]time.Duration // until delivered
	asked     int
}

func (p *pool) add(receiver string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	heap.Push(&p.queue, task{receiver, time.Now(), time.Now()})
}

func (p *pool) next() (task, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || p.queue[0].due.After(time.Now()) {
		return task{}, false
	}
	return heap.Pop(&p.queue).(task), true
}

func (p *pool) work(until time.Time) {
	for time.Now().Before(until) {
		job, ok := p.next()
		if !ok {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		done, wait := p.receivers.Admit(job.receiver)
		p.mu.Lock()
		p.asked++
		p.mu.Unlock()
		if done == nil {
			job.due = time.Now().Add(wait)
		} else {
			a := p.send(job.receiver)
			done(a)
			if a.Delivered() {
				p.mu.Lock()
				p.took[job.receiver] = append(p.took[job.receiver], time.Since(job.created))
				p.mu.Unlock()
				continue
			}
			job.due, _ = Next(1, a, time.Now(), 0)
		}
		p.mu.Lock()
		heap.Push(&p.queue, job)
		p.mu.Unlock()
	}
}

// TestPromiseW4OneBadReceiverHurtsOnlyItself: one of 21 receivers hangs for 15 s on each
// of 100 messages, all due at once and before the others'. Ten workers, virtual time.
func TestPromiseW4OneBadReceiverHurtsOnlyItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hanging, most := 0, 0
		var held time.Duration
		var mu sync.Mutex
		p := &pool{receivers: NewReceivers(), took: map[string][]time.Duration{}}
		p.send = func(receiver string) Attempt {
			if receiver != "bad" {
				time.Sleep(50 * time.Millisecond)
				return Attempt{Status: 200, Duration: 50 * time.Millisecond}
			}
			mu.Lock()
			hanging++
			most = max(most, hanging)
			mu.Unlock()
			time.Sleep(15 * time.Second)
			mu.Lock()
			hanging--
			held += 15 * time.Second
			mu.Unlock()
			return Attempt{Duration: 15 * time.Second, Failure: &parley.Failure{Kind: parley.TimedOut}}
		}
		for range 100 {
			p.add("bad")
		}
		const length = 10 * time.Minute
		end := time.Now().Add(length)
		var workers sync.WaitGroup
		for range 10 {
			workers.Go(func() { p.work(end) })
		}
		sent := 0
		for time.Until(end) > time.Minute {
			for i := range 20 {
				p.add("good " + strconv.Itoa(i))
				sent++
			}
			time.Sleep(2 * time.Second)
		}
		workers.Wait()
		var all []time.Duration
		for receiver, took := range p.took {
			require.NotEqual(t, "bad", receiver)
			all = append(all, took...)
		}
		require.Len(t, all, sent, "nothing is lost")
		slices.Sort(all)
		p95 := all[len(all)*95/100]
		require.LessOrEqual(t, all[len(all)-1], time.Second, "not even one is late")
		require.LessOrEqual(t, most, 2, "at most two of ten workers hang at a time")
		require.Less(t, held, length/2, "of ten workers it holds less than a half")
		t.Logf("p95 of %d to 20 good receivers: %s, worst %s; the bad one held %s of worker time in %s; %d asks", len(all), p95, all[len(all)-1], held, length, p.asked)
	})
}

// A receiver that fails now and then keeps its room; one that recovers gets it back.
func TestReceiversRecover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewReceivers()
		ok, hung, busy, broken := Attempt{Status: 200}, Attempt{Duration: 15 * time.Second, Failure: &parley.Failure{}}, failed(429), failed(500)
		admit := func() func(Attempt) {
			done, wait := r.Admit("x")
			require.NotNil(t, done, "must wait %s", wait)
			return done
		}
		// Room grows while it answers well, to a bound.
		var held []func(Attempt)
		for range mostRoom - firstRoom {
			held = append(held, admit())
			admit()(ok)
		}
		for range 10 {
			admit()(ok)
		}
		held = append(held, admit(), admit())
		require.Len(t, held, mostRoom)
		done, wait := r.Admit("x")
		require.Nil(t, done)
		require.Equal(t, leastWait, wait)
		time.Sleep(8 * time.Second)
		_, wait = r.Admit("x")
		require.Equal(t, 8*time.Second, wait, "the longer nothing moves, the seldomer it is asked")
		for _, done := range held {
			done(ok)
		}
		require.Empty(t, r.all, "what does well is forgotten")

		// Fast failures take room, not time; a single slow one is forgiven.
		for range 10 {
			admit()(broken)
		}
		admit()(hung)
		admit()(hung)
		_, wait = r.Admit("x")
		require.Equal(t, time.Second, wait)
		var pauses []time.Duration
		for range 10 {
			time.Sleep(wait)
			admit()(busy)
			_, wait = r.Admit("x")
			pauses = append(pauses, wait)
		}
		require.Equal(t, 2*time.Second, pauses[0])
		require.True(t, slices.IsSorted(pauses))
		require.Equal(t, longestPause, pauses[9])
		time.Sleep(wait)
		admit()(ok)
		admit()(ok)
		require.Empty(t, r.all)

		// Receivers that failed once and never came back do not pile up.
		for i := range 3 * manyReceivers {
			done, _ := r.Admit(strconv.Itoa(i))
			done(broken)
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, len(r.all), manyReceivers)
	})
}
