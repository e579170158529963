// Package jobs is the work that outlives a request: River queues on the same
// database as the rows the work is about, so that a state and its job commit
// together. It wires job kinds to those who do them, and sees to it that the work of
// a node that died is done by another; it must not do any of it.
package jobs

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"parley"
	"parley/internal/store"
)

// Do does one job: the work about a row. Later puts it off; any other error has it
// tried again.
type Do func(ctx context.Context, row parley.ID) error

// Work is who does the jobs of each kind. A node takes no jobs of a kind that it has
// nobody for; the others do.
type Work struct {
	Dial    Do // place a call
	Finish  Do // what follows a conversation: evaluation, costs, notification
	Deliver Do // one attempt of a webhook delivery

	// DialDied and FinishDied are told of a call whose job failed for good, so that it does
	// not stay under way for ever.
	DialDied, FinishDied Do

	// Calls is how many this node holds at once.
	Calls int

	// Tidy does what else is to be tidied every hour; nil: nothing.
	Tidy func(context.Context) error

	// Conclude ends a call whose node has died, in the transaction that takes it from it.
	Conclude func(context.Context, *store.System, *parley.Call) error
	// Lost is told that this node was taken for dead: what it held is not its own any more.
	Lost func()
}

// Later is the error of a job that is to be tried again after a while. It does not count
// as a failure.
func Later(after time.Duration) error { return river.JobSnooze(after) }

// Queue takes jobs and works on them. Both databases insert through the same *sql.Tx.
type Queue struct {
	client *river.Client[*sql.Tx]
	db     *store.DB
	work   Work
	log    *slog.Logger
	node   string
	room   atomic.Int64 // calls that the node takes at once
	pace   pace
	beats  sync.WaitGroup
	stop   context.CancelFunc
}

// pace is how soon what went wrong is noticed and tried again.
type pace struct {
	beat    time.Duration // how often a node says that it lives
	silence time.Duration // how long a node may say nothing before it is dead
	watch   time.Duration // how often every node looks for dead ones
	retry   time.Duration // before the second attempt of a job; each further one waits twice as long
}

// usual has what a dead node held taken over within 20 seconds.
var usual = pace{beat: 5 * time.Second, silence: 15 * time.Second, watch: time.Second, retry: time.Second}

const (
	// tidyEvery is how often the database is tidied.
	tidyEvery = time.Hour
	// dialEvery is how often a node looks for calls to place: one is placed so soon after
	// it was asked for, also when another process asked.
	dialEvery = 100 * time.Millisecond
	// pollEvery is how often it looks for other jobs. A look costs SQLite a millisecond,
	// most of it to compile the query.
	pollEvery = 250 * time.Millisecond
	// cooldown is how soon a queue that was found full is looked at again.
	cooldown = 10 * time.Millisecond
	// jobLimit bounds a job. All jobs are short; the longest asks a slow model twice.
	jobLimit = 3 * time.Minute
	// attempts is how often a job is tried before it is dead.
	attempts = 10
)

// The queues. A kind has its own, so that one which is slow holds up no other.
const (
	dialQueue    = "dial"
	finishQueue  = "finish"
	deliverQueue = "deliver"
)

// New makes a queue; nothing runs before Start.
func New(db *store.DB, log *slog.Logger, work Work) (*Queue, error) {
	return newQueue(db, log, work, usual)
}

func newQueue(db *store.DB, log *slog.Logger, work Work, p pace) (*Queue, error) {
	q := &Queue{db: db, work: work, log: log, node: nodeID(), pace: p}
	q.room.Store(int64(work.Calls))
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker[tidying]{do: q.tidy})
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2, FetchPollInterval: 5 * time.Second}}
	add(workers, queues, worker[dialling]{do: work.Dial}, dialQueue, 20)
	add(workers, queues, worker[finishing]{do: work.Finish}, finishQueue, 20)
	add(workers, queues, worker[delivering]{do: work.Deliver}, deliverQueue, 100)
	if dial, ok := queues[dialQueue]; ok {
		dial.FetchPollInterval = dialEvery
		queues[dialQueue] = dial
	}
	config := &river.Config{
		ID: q.node, Logger: log.WithGroup("jobs"), Queues: queues, Workers: workers,
		SkipUnknownJobCheck: true, // another node may have who this one has not
		PollOnly:            true, FetchPollInterval: pollEvery, FetchCooldown: cooldown,
		JobTimeout: jobLimit, RescueStuckJobsAfter: 2 * jobLimit, RetryPolicy: backoff{p.retry}, ErrorHandler: q,
		PeriodicJobs: []*river.PeriodicJob{
			river.NewPeriodicJob(river.PeriodicInterval(tidyEvery), func() (river.JobArgs, *river.InsertOpts) { return job[tidying]{}, nil }, nil),
		},
	}
	var err error
	if db.Postgres() {
		q.client, err = river.NewClient(riverdatabasesql.New(db.SQL()), config)
	} else {
		q.client, err = river.NewClient(riversqlite.New(db.SQL()), config)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make the job queue: %w", err)
	}
	return q, nil
}

// tidy is the hourly work of one node for all.
func (q *Queue) tidy(ctx context.Context, _ parley.ID) error {
	if err := q.db.System().Tidy(ctx); err != nil || q.work.Tidy == nil {
		return err
	}
	return q.work.Tidy(ctx)
}

// nodeID names this process among all that ever used the database.
func nodeID() string {
	host, _ := os.Hostname()
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails on a supported system
	return host + "-" + hex.EncodeToString(random)
}

// add has a worker take jobs, if it has anybody to do them.
func add[K kind](workers *river.Workers, queues map[string]river.QueueConfig, w worker[K], queue string, atOnce int) {
	if w.do == nil {
		return
	}
	river.AddWorker(workers, &w)
	queues[queue] = river.QueueConfig{MaxWorkers: atOnce}
}

// Node is this process's name in the database.
func (q *Queue) Node() string { return q.node }

// Start begins to work on jobs.
func (q *Queue) Start(ctx context.Context) error {
	if err := q.join(ctx); err != nil {
		return err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	// Apart: whoever waits for what a dead node has locked must not seem dead himself.
	q.beats.Go(func() { every(beating, q.pace.beat, q.live) })
	q.beats.Go(func() { every(beating, q.pace.watch, q.Bury) })
	return q.client.Start(ctx)
}

// Retire says that this node takes no more calls, so that nobody plans any for it.
func (q *Queue) Retire(ctx context.Context) error {
	q.room.Store(0)
	return q.join(ctx)
}

// Stop lets running jobs finish until ctx ends, then cancels them; it returns when
// everything has stopped.
func (q *Queue) Stop(ctx context.Context) error {
	err := q.client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = q.client.StopAndCancel(context.WithoutCancel(ctx))
	}
	if q.stop == nil {
		return err
	}
	q.stop()
	q.beats.Wait()
	return errors.Join(err, q.db.System().Leave(context.WithoutCancel(ctx), q.node))
}

// late is how long a due job may wait before the queue counts as stuck.
const late = time.Minute

// Check fails when the queue's tables do not answer, when it has stopped, or when
// due jobs are not being picked up.
func (q *Queue) Check(ctx context.Context) error {
	select {
	case <-q.client.Stopped():
		return errors.New("the job queue has stopped")
	default:
	}
	overdue, err := q.db.System().OverdueJobs(ctx, time.Now().Add(-late))
	if err != nil {
		return err
	}
	if overdue > 0 {
		return fmt.Errorf("%d jobs have waited for more than %s", overdue, late)
	}
	return nil
}

// Dial has a call placed, once the transaction commits. The row comes before its job.
func (q *Queue) Dial(ctx context.Context, tx *store.System, call parley.ID) error {
	underWay, err := tx.UnderWay(ctx, call)
	if err != nil {
		return err
	}
	return insert(ctx, q, tx, job[dialling]{Row: call}, river.InsertOpts{Queue: dialQueue, Priority: rank(underWay), MaxAttempts: attempts})
}

// rank is the priority of a job of an account that has so much under way, from 1 to 4:
// the more it has, the longer its next job stands back, so that an account with a few
// never waits behind one with thousands.
func rank(underWay int64) int {
	switch {
	case underWay <= 10:
		return 1
	case underWay <= 100:
		return 2
	case underWay <= 1000:
		return 3
	default:
		return 4
	}
}

// Finish has the work after a conversation done, once the transaction commits.
func (q *Queue) Finish(ctx context.Context, tx *store.System, call parley.ID) error {
	return insert(ctx, q, tx, job[finishing]{Row: call}, river.InsertOpts{Queue: finishQueue, MaxAttempts: attempts})
}

// Deliver has a webhook delivery attempted at a time, once the transaction commits.
func (q *Queue) Deliver(ctx context.Context, tx *store.System, delivery parley.ID, at time.Time) error {
	// What a receiver answers is no failure of the job. What is, a database that is away,
	// say, must not lose a message, however long it lasts.
	o := river.InsertOpts{Queue: deliverQueue, MaxAttempts: math.MaxInt16}
	if at.After(time.Now()) { // what has a time waits for River's scheduler, which looks every few seconds
		o.ScheduledAt = at
	}
	return insert(ctx, q, tx, job[delivering]{Row: delivery}, o)
}

func insert[K kind](ctx context.Context, q *Queue, tx *store.System, j job[K], o river.InsertOpts) error {
	_, err := q.client.InsertTx(ctx, tx.SQLTx(), j, &o)
	return err
}

// kind names a kind of job.
type kind interface{ kind() string }

type (
	tidying    struct{}
	dialling   struct{}
	finishing  struct{}
	delivering struct{}
)

func (tidying) kind() string    { return "tidy" }
func (dialling) kind() string   { return "dial" }
func (finishing) kind() string  { return "finish" }
func (delivering) kind() string { return "deliver" }

// job is what the queue keeps: everything else is in the row.
type job[K kind] struct {
	Row parley.ID `json:"row"`
}

func (job[K]) Kind() string {
	var k K
	return k.kind()
}

type worker[K kind] struct {
	river.WorkerDefaults[job[K]]
	do Do
}

func (w *worker[K]) Work(ctx context.Context, j *river.Job[job[K]]) error {
	return w.do(ctx, j.Args.Row)
}

// backoff tries a failed job again after 1, 2, 4, ... times as long as the first time, a
// minute at most.
type backoff struct{ first time.Duration }

func (b backoff) NextRetry(j *rivertype.JobRow) time.Time {
	wait := b.first << min(j.Attempt-1, 6)
	return time.Now().Add(min(wait, time.Minute))
}
