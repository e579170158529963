// Package jobs is the work that outlives a request: River queues on the same
// database as the rows the work is about, so that a state and its job commit
// together. It wires job kinds to those who do them; it must not do any of it.
package jobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"parley/internal/store"
)

// Queue takes jobs and works on them. Both databases insert through the same *sql.Tx.
type Queue struct {
	client *river.Client[*sql.Tx]
	db     *store.DB
}

// tidyEvery is how often the database is tidied.
const tidyEvery = time.Hour

// New makes a queue; nothing runs before Start.
func New(db *store.DB, log *slog.Logger) (*Queue, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &tidyWorker{db: db})
	config := &river.Config{
		Logger:  log.WithGroup("jobs"),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers: workers,
		PeriodicJobs: []*river.PeriodicJob{
			river.NewPeriodicJob(river.PeriodicInterval(tidyEvery), func() (river.JobArgs, *river.InsertOpts) { return tidy{}, nil }, nil),
		},
	}
	var client *river.Client[*sql.Tx]
	var err error
	if db.Postgres() {
		client, err = river.NewClient(riverdatabasesql.New(db.SQL()), config)
	} else {
		client, err = river.NewClient(riversqlite.New(db.SQL()), config)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make the job queue: %w", err)
	}
	return &Queue{client: client, db: db}, nil
}

// Start begins to work on jobs.
func (q *Queue) Start(ctx context.Context) error { return q.client.Start(ctx) }

// Stop lets running jobs finish until ctx ends, then cancels them; it returns when
// everything has stopped.
func (q *Queue) Stop(ctx context.Context) error {
	err := q.client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return q.client.StopAndCancel(context.WithoutCancel(ctx))
	}
	return err
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

// tidy keeps the database quick.
type tidy struct{}

func (tidy) Kind() string { return "tidy" }

type tidyWorker struct {
	river.WorkerDefaults[tidy]
	db *store.DB
}

func (w *tidyWorker) Work(ctx context.Context, _ *river.Job[tidy]) error {
	return w.db.System().Tidy(ctx)
}
