package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/internal/jobs"
	"parley/internal/store"
)

type jobsCmd struct {
	List  jobsListCmd  `cmd:"" help:"Show the jobs that failed for good, the latest first."`
	Retry jobsRetryCmd `cmd:"" help:"Have a dead job tried once more."`
}

// withQueue opens the queue beside a running server, to look and to insert.
func (c *Config) withQueue(ctx context.Context, out console, do func(*jobs.Queue) error) error {
	return c.withDB(ctx, func(db *store.DB) error {
		q, err := jobs.New(db, c.logger(out.err), jobs.Work{})
		if err != nil {
			return err
		}
		return do(q)
	})
}

type jobsListCmd struct{}

func (jobsListCmd) Run(ctx context.Context, config *Config, c console) error {
	return config.withQueue(ctx, c, func(q *jobs.Queue) error {
		dead, err := q.Dead(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "KIND", "ROW", "ATTEMPTS", "SINCE", "ERROR"}}
		for _, j := range dead {
			why, _, _ := strings.Cut(j.Error, "\n")
			rows = append(rows, []string{fmt.Sprint(j.ID), j.Kind, fmt.Sprint(j.Row), fmt.Sprint(j.Attempts), j.Since.UTC().Format(time.DateTime), why})
		}
		return c.table(rows)
	})
}

type jobsRetryCmd struct {
	ID int64 `arg:"" help:"Of the job, as parley jobs list shows it."`
}

func (r jobsRetryCmd) Run(ctx context.Context, config *Config, c console) error {
	return config.withQueue(ctx, c, func(q *jobs.Queue) error {
		if err := q.Retry(ctx, r.ID); err != nil {
			return err
		}
		c.printf("Job %d is tried once more.\n", r.ID)
		return nil
	})
}
