package store

import (
	"context"
	"time"
)

// OverdueJobs counts the jobs that were due before a time and still wait.
func (s *System) OverdueJobs(ctx context.Context, before time.Time) (int64, error) {
	due := any(before.UTC())
	if !s.db.postgres {
		due = before.UTC().Format("2006-01-02 15:04:05.000") // as River writes times in SQLite
	}
	return s.number(ctx, "SELECT COUNT(*) FROM river_job WHERE state = 'available' AND scheduled_at < ?", due)
}

// Tidy lets the database refresh what it knows of its tables. PostgreSQL does so by itself.
func (s *System) Tidy(ctx context.Context) error {
	if s.db.postgres {
		return nil
	}
	if _, err := s.exec(ctx, "PRAGMA optimize"); err != nil {
		return err
	}
	_, err := s.exec(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return err
}
