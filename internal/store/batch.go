package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// batch runs the small transactions of many workers as one: SQLite has one writer and
// syncs the disk at every commit, so a hundred workers that each wait for their own
// would do a few hundred a second together.
type batch struct {
	mu      sync.Mutex
	waiting []*share
	running bool
}

// share is one worker's part of a transaction.
type share struct {
	fn   func(*System) error
	done chan error
}

// run keeps a worker's panic its own: it must not stop the one who works for all.
func (p *share) run(tx *System) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("store: a part of a batch panicked: %v", v)
		}
	}()
	return p.fn(tx)
}

// mostShares bounds a transaction, so that none waits long behind it.
const mostShares = 200

// Batch runs fn in a transaction that it may share with others. It must be short and
// change only rows of its own; it may run twice.
func (s *System) Batch(ctx context.Context, fn func(*System) error) error {
	mine := &share{fn: fn, done: make(chan error, 1)}
	if s.tx != nil || s.db.postgres { // PostgreSQL commits many at once by itself
		return s.Tx(ctx, mine.run)
	}
	b := &s.db.batch
	b.mu.Lock()
	b.waiting = append(b.waiting, mine)
	lead := !b.running
	b.running = true
	b.mu.Unlock()
	if lead {
		s.runBatches(context.WithoutCancel(ctx), b)
	}
	return <-mine.done
}

// runBatches works until nobody waits: the first worker does it for those who came
// while it was at it.
func (s *System) runBatches(ctx context.Context, b *batch) {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), mostShares)
		shares := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		if n == 0 {
			b.running = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		s.runShares(ctx, shares)
	}
}

var errShare = errors.New("store: a part of a batch failed")

// runShares runs parts in one transaction or, if one of them fails, each in its own: one
// worker's failure is no other's.
func (s *System) runShares(ctx context.Context, shares []*share) {
	err := s.Tx(ctx, func(tx *System) error {
		for _, part := range shares {
			if part.run(tx) != nil {
				return errShare
			}
		}
		return nil
	})
	for _, part := range shares {
		if err != nil {
			part.done <- s.Tx(ctx, part.run)
		} else {
			part.done <- nil
		}
	}
}
