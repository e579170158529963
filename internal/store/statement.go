package store

import (
	"context"
	"database/sql"
	"sync"
)

// statements keeps SQLite's statements compiled: parsing costs more than most
// look-ups. pgx does the same by itself.
type statements struct {
	mu       sync.RWMutex
	compiled map[string]*sql.Stmt // by their text
	wanted   map[string]bool      // texts that a transaction asked for in vain
}

func newStatements() *statements {
	return &statements{compiled: map[string]*sql.Stmt{}, wanted: map[string]bool{}}
}

// prepare compiles a statement for a pool, once.
func (s *statements) prepare(ctx context.Context, pool *sql.DB, query string) (*sql.Stmt, error) {
	s.mu.RLock()
	statement := s.compiled[query]
	s.mu.RUnlock()
	if statement != nil {
		return statement, nil
	}
	statement, err := pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.compiled[query]; other != nil {
		statement.Close()
		return other, nil
	}
	s.compiled[query] = statement
	delete(s.wanted, query)
	return statement, nil
}

// find is a compiled statement or nil; then it is compiled when next the pool is
// free. A transaction cannot wait for that: it holds the one connection that writes.
func (s *statements) find(query string) *sql.Stmt {
	s.mu.RLock()
	statement := s.compiled[query]
	s.mu.RUnlock()
	if statement == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wanted[query] = true
	}
	return statement
}

// prepareWanted compiles what find did not find. What cannot be compiled now stays
// wanted: the statement runs uncompiled until it can.
func (s *statements) prepareWanted(ctx context.Context, pool *sql.DB) {
	for _, query := range s.missing() {
		if _, err := s.prepare(ctx, pool, query); err != nil {
			return
		}
	}
}

func (s *statements) missing() (queries []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for query := range s.wanted {
		queries = append(queries, query)
	}
	return queries
}

func (s *statements) close() {
	for _, statement := range s.compiled {
		statement.Close()
	}
}
