// Package store holds everything Parley keeps, in SQLite or PostgreSQL, and the
// only SQL there is. A Tenant sees one user's rows and no others: every statement
// of its methods carries the owner. System is for the operator's commands and the
// server's own work. The package must not know HTTP, SIP or conversations.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley"
)

// DB is an open database of either kind. The SQL is one: placeholders are ? and
// are rewritten for PostgreSQL, times are integers and documents are text.
type DB struct {
	write, read *sql.DB // the same pool on PostgreSQL
	options     Options
	postgres    bool
	keys        *Keys
	batch       batch
}

// Options says which database to open.
type Options struct {
	URL  string // postgres://...; empty for SQLite in Dir
	Dir  string // the data folder
	Keys *Keys
}

// FileName is the SQLite database's name in the data folder.
const FileName = "parley.db"

// Open opens a database without touching its schema.
func Open(ctx context.Context, o Options) (*DB, error) {
	db := &DB{options: o, postgres: o.URL != "", keys: o.Keys}
	open := db.openSQLite
	if db.postgres {
		open = db.openPostgres
	}
	if err := open(o); err != nil {
		return nil, err
	}
	if err := db.write.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	return db, nil
}

// openSQLite makes one connection that writes and several that only read: SQLite
// has one writer at a time anyway, and a queue in front of it beats its busy errors.
func (db *DB) openSQLite(o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	// synchronous=FULL: an acknowledged write survives a loss of power too.
	const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=temp_store(memory)"
	path := "file:" + (&url.URL{Path: filepath.Join(o.Dir, FileName)}).EscapedPath() + pragmas
	db.write = sql.OpenDB(keeping{path + "&_txlock=immediate"})
	db.write.SetMaxOpenConns(1)
	db.read = sql.OpenDB(keeping{path + "&_pragma=query_only(1)"})
	readers := max(4, runtime.NumCPU())
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	return nil
}

func (db *DB) openPostgres(o Options) error {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		// pgx's own error repeats the URL's password in some forms.
		return errors.New("PARLEY_DB is not a PostgreSQL address; it looks like postgres://user:password@host:5432/name")
	}
	db.write = stdlib.OpenDB(*config)
	db.write.SetMaxOpenConns(20)
	db.write.SetMaxIdleConns(20)
	db.read = db.write
	return nil
}

// Close waits for running statements and closes the database.
func (db *DB) Close() error {
	err := db.write.Close()
	if db.read != db.write {
		err = errors.Join(err, db.read.Close())
	}
	return err
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.read.PingContext(ctx)
}

// Options is how the database was opened.
func (db *DB) Options() Options { return db.options }

// Keys are what seals and signs.
func (db *DB) Keys() *Keys { return db.keys }

// Postgres says which of the two databases this is.
func (db *DB) Postgres() bool { return db.postgres }

// SQL is the pool that writes, for the job queue, which keeps its own tables.
func (db *DB) SQL() *sql.DB { return db.write }

// ReadSQL is the pool that reads, for the bench, whose yardstick must run on the
// same settings.
func (db *DB) ReadSQL() *sql.DB { return db.read }

// Tenant is a user's view: their rows and nobody else's.
func (db *DB) Tenant(user parley.ID) *Tenant {
	return &Tenant{session: session{db: db}, user: user}
}

// System is the operator's and the server's view, across users.
func (db *DB) System() *System { return &System{session: session{db: db}} }

// Tenant is one user's view of the database.
type Tenant struct {
	session
	user parley.ID
}

// Tx runs fn in a transaction, which commits if fn returns nil.
func (t *Tenant) Tx(ctx context.Context, fn func(*Tenant) error) error {
	return t.transact(ctx, func(s session) error { return fn(&Tenant{session: s, user: t.user}) })
}

// System is the view across users.
type System struct{ session }

// Tx runs fn in a transaction, which commits if fn returns nil.
func (s *System) Tx(ctx context.Context, fn func(*System) error) error {
	return s.transact(ctx, func(inner session) error { return fn(&System{inner}) })
}

// session runs statements, in a transaction or outside one.
type session struct {
	db *DB
	tx *sql.Tx
}

// mostTries bounds how often a transaction is begun anew.
const mostTries = 8

// transact runs fn in a transaction. Where PostgreSQL ended it because it and another
// waited for each other, it is begun anew: fn must not rely on what it did before.
func (s session) transact(ctx context.Context, fn func(session) error) error {
	if s.tx != nil {
		return fn(s)
	}
	for try := 1; ; try++ {
		again, err := s.attempt(ctx, fn)
		if !again || try == mostTries {
			return err
		}
		stepBack(try)
	}
}

// attempt runs a transaction once and says whether it is worth another try.
func (s session) attempt(ctx context.Context, fn func(session) error) (again bool, err error) {
	tx, err := s.db.write.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	if err := fn(session{db: s.db, tx: tx}); err != nil {
		return sacrificed(err), err
	}
	if err := tx.Commit(); err != nil {
		return false, err
	}
	return false, nil
}

// stepBack lets the other one pass, lest the two meet again.
func stepBack(try int) { time.Sleep(rand.N(time.Duration(try) * 10 * time.Millisecond)) }

// sacrificed reports whether PostgreSQL ended a transaction for another's sake: a deadlock,
// or an order in which both could not be.
func sacrificed(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40P01" || e.Code == "40001")
}

func (s session) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	query = s.db.rebind(query)
	if s.tx != nil {
		return s.tx.ExecContext(ctx, query, args...)
	}
	for try := 1; ; try++ { // a statement by itself is a transaction too
		result, err := s.db.write.ExecContext(ctx, query, args...)
		if !sacrificed(err) || try == mostTries {
			return result, err
		}
		stepBack(try)
	}
}

// insert runs an INSERT ... RETURNING id.
func (s session) insert(ctx context.Context, query string, args ...any) (id parley.ID, err error) {
	query = s.db.rebind(query)
	if s.tx != nil {
		err = s.tx.QueryRowContext(ctx, query, args...).Scan(&id)
	} else {
		err = s.db.write.QueryRowContext(ctx, query, args...).Scan(&id)
	}
	return id, err
}

func (s session) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s.tx != nil {
		return s.tx.QueryContext(ctx, s.db.rebind(query), args...)
	}
	return s.db.read.QueryContext(ctx, s.db.rebind(query), args...)
}

// rebind turns ? into $1, $2, ... for PostgreSQL. No statement here has a ? inside a literal.
func (db *DB) rebind(query string) string {
	if !db.postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// forUpdate locks the rows that a transaction read before changing them. SQLite's
// one writer needs no such lock.
func (s session) forUpdate() string {
	if s.tx != nil && s.db.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// forShare keeps rows that a transaction refers to from being deleted before it ends.
func (s session) forShare() string {
	if s.tx != nil && s.db.postgres {
		return " FOR SHARE"
	}
	return ""
}

// scanner reads one row; *sql.Rows is one.
type scanner interface{ Scan(to ...any) error }

// list reads every row of a query.
func list[T any](ctx context.Context, s session, scan func(scanner, *T) error, query string, args ...any) ([]T, error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		var empty T
		all = append(all, empty)
		if err := scan(rows, &all[len(all)-1]); err != nil {
			return nil, err
		}
	}
	return all, rows.Err()
}

// one reads the only row of a query; what names the thing that is missing without it.
func one[T any](ctx context.Context, s session, what string, scan func(scanner, *T) error, query string, args ...any) (*T, error) {
	all, err := list(ctx, s, scan, query, args...)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, parley.ErrNotFound(what)
	}
	return &all[0], nil
}

// number reads a query's only value.
func (s session) number(ctx context.Context, query string, args ...any) (int64, error) {
	n, err := one(ctx, s, "Number", func(row scanner, n *int64) error { return row.Scan(n) }, query, args...)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

// affected turns a change of no row into a not-found error.
func affected(result sql.Result, err error, what string) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return parley.ErrNotFound(what)
}

// now is the present as the database keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// micros reads and writes times as microseconds since 1970.
type micros struct{ to *time.Time }

func (m micros) Scan(v any) error {
	us, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time column holds %T", v)
	}
	*m.to = time.UnixMicro(us).UTC()
	return nil
}

// nullMicros is micros for a time that may be missing.
type nullMicros struct{ to **time.Time }

func (m nullMicros) Scan(v any) error {
	if v == nil {
		*m.to = nil
		return nil
	}
	*m.to = new(time.Time)
	return micros{*m.to}.Scan(v)
}

// unique reports whether err is the violation of a unique index.
func unique(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23505"
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// placeholders is "?, ?, ?" for n values.
func placeholders(n int) string {
	return strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
}

func scanID(row scanner, id *parley.ID) error { return row.Scan(id) }
