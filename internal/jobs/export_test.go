package jobs

import (
	"log/slog"
	"time"

	"parley/internal/store"
)

// Quick is New with a pace at which a test need not wait for minutes.
func Quick(db *store.DB, log *slog.Logger, work Work) (*Queue, error) {
	return newQueue(db, log, work, pace{beat: 300 * time.Millisecond, silence: 1500 * time.Millisecond, watch: 200 * time.Millisecond, retry: time.Millisecond})
}

// Attempts is how often a job is tried.
const Attempts = attempts
