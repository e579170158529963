package store

import (
	"context"
	"database/sql"
	"sync"
)

// statements keeps SQLite's statements compiled: parsing costs more than most
// look-ups. pgx does the same by itself.
type statements struct {
	byText sync.Map // of *sql.Stmt
	wanted sync.Map // texts that a transaction asked for in vain
}

// prepare compiles a statement for a pool, once.
func (s *statements) prepare(ctx context.Context, pool *sql.DB, query string) (*sql.Stmt, error) {
	if statement, ok := s.byText.Load(query); ok {
		return statement.(*sql.Stmt), nil
	}
	statement, err := pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if other, loaded := s.byText.LoadOrStore(query, statement); loaded {
		statement.Close()
		return other.(*sql.Stmt), nil
	}
	return statement, nil
}

// find is a compiled statement or nil; then it is compiled when next the pool is
// free. A transaction cannot wait for that: it holds the one connection that writes.
func (s *statements) find(query string) *sql.Stmt {
	if statement, ok := s.byText.Load(query); ok {
		return statement.(*sql.Stmt)
	}
	s.wanted.Store(query, nil)
	return nil
}

// prepareWanted compiles what find did not find. What cannot be compiled now is
// asked for again.
func (s *statements) prepareWanted(ctx context.Context, pool *sql.DB) {
	s.wanted.Range(func(query, _ any) bool {
		s.wanted.Delete(query)
		_, err := s.prepare(ctx, pool, query.(string))
		return err == nil
	})
}

func (s *statements) close() {
	s.byText.Range(func(_, statement any) bool {
		statement.(*sql.Stmt).Close()
		return true
	})
}
