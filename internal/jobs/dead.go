package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"parley"
)

// Dead is a job that failed as often as it is tried. It waits for an operator, a week at
// most.
type Dead struct {
	ID       int64
	Kind     string
	Row      parley.ID
	Attempts int
	Since    time.Time
	Error    string // the last one
}

// maxDead is how many dead jobs are listed: behind so many there is one cause.
const maxDead = 1000

// Dead are the jobs that failed for good, the latest first.
func (q *Queue) Dead(ctx context.Context) ([]Dead, error) {
	found, err := q.client.JobList(ctx, river.NewJobListParams().States(rivertype.JobStateDiscarded).OrderBy(river.JobListOrderByFinalizedAt, river.SortOrderDesc).First(maxDead))
	if err != nil {
		return nil, err
	}
	dead := make([]Dead, len(found.Jobs))
	for i, j := range found.Jobs {
		var args job[tidying]
		if err := json.Unmarshal(j.EncodedArgs, &args); err != nil {
			return nil, err
		}
		dead[i] = Dead{ID: j.ID, Kind: j.Kind, Row: args.Row, Attempts: j.Attempt}
		if j.FinalizedAt != nil {
			dead[i].Since = *j.FinalizedAt
		}
		if n := len(j.Errors); n > 0 {
			dead[i].Error = j.Errors[n-1].Error
		}
	}
	return dead, nil
}

// Retry has a dead job tried once more, at once.
func (q *Queue) Retry(ctx context.Context, id int64) error {
	j, err := q.client.JobGet(ctx, id)
	if errors.Is(err, river.ErrNotFound) {
		return parley.ErrNotFound("Job")
	}
	if err != nil {
		return err
	}
	if j.State != rivertype.JobStateDiscarded {
		return &parley.Error{Code: parley.Conflict, Message: fmt.Sprintf("Job %d is not dead, it is %s.", id, j.State)}
	}
	_, err = q.client.JobRetry(ctx, id)
	return err
}

// HandleError notes that a job failed.
func (q *Queue) HandleError(_ context.Context, j *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	return q.failed(j, "error", err)
}

// HandlePanic notes that a job panicked. It counts as any other failure.
func (q *Queue) HandlePanic(_ context.Context, j *rivertype.JobRow, panicked any, trace string) *river.ErrorHandlerResult {
	return q.failed(j, "panic", panicked, "stack", trace)
}

// failed speaks up when a job is dead; until then River says what happens.
func (q *Queue) failed(j *rivertype.JobRow, why ...any) *river.ErrorHandlerResult {
	if j.Attempt >= j.MaxAttempts {
		q.log.Error("a job is dead: parley jobs retry tries it once more", append([]any{"job", j.ID, "kind", j.Kind}, why...)...)
	}
	return nil
}
