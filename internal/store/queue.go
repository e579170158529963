package store

import (
	"context"
	"database/sql"
	"time"

	"parley"
)

// SQLTx is the transaction under way, for the job queue, whose jobs commit with the rows
// they are about; nil outside one.
func (s session) SQLTx() *sql.Tx { return s.tx }

// returnJobs puts the jobs that a dead node was working on back in the queue.
func (s *System) returnJobs(ctx context.Context, node string) error {
	last, at := "json_extract(attempted_by, '$[#-1]')", any(now().Format("2006-01-02 15:04:05.000")) // as River writes times in SQLite
	if s.db.postgres {
		last, at = "attempted_by[array_upper(attempted_by, 1)]", any(now())
	}
	_, err := s.exec(ctx, "UPDATE river_job SET state = 'available', scheduled_at = ? WHERE state = 'running' AND "+last+" = ?", at, node)
	return err
}

// UnderWay is how many calls the owner of a call has under way, that one included;
// where it is more than a thousand it is not counted further.
func (s *System) UnderWay(ctx context.Context, call parley.ID) (int64, error) {
	return s.number(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM calls WHERE user_id = (SELECT user_id FROM calls WHERE id = ?) AND "+live+" LIMIT 1001) AS found", call)
}

// OverdueJobs counts the jobs that were due before a time and still wait.
func (s *System) OverdueJobs(ctx context.Context, before time.Time) (int64, error) {
	due := any(before.UTC())
	if !s.db.postgres {
		due = before.UTC().Format("2006-01-02 15:04:05.000") // as River writes times in SQLite
	}
	return s.number(ctx, "SELECT COUNT(*) FROM river_job WHERE state = 'available' AND scheduled_at < ?", due)
}

// Tidy forgets what is out of date and lets the database refresh what it knows of its
// tables, which PostgreSQL does by itself.
func (s *System) Tidy(ctx context.Context) error {
	if err := s.ForgetKeys(ctx); err != nil {
		return err
	}
	if err := s.PurgeCampaigns(ctx); err != nil {
		return err
	}
	if s.db.postgres {
		return nil
	}
	if _, err := s.exec(ctx, "PRAGMA optimize"); err != nil {
		return err
	}
	_, err := s.exec(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return err
}
