package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"modernc.org/sqlite"
)

// keeping opens SQLite connections that keep their statements compiled, whoever sends
// them: parsing costs more than most look-ups, and the job queue sends each as text. pgx
// does the same by itself.
type keeping struct{ dsn string }

func (k keeping) Driver() driver.Driver { return &sqlite.Driver{} }

func (k keeping) Connect(context.Context) (driver.Conn, error) {
	opened, err := k.Driver().Open(k.dsn)
	if err != nil {
		return nil, err
	}
	conn, whole := opened.(sqliteConn)
	if !whole {
		return nil, fmt.Errorf("store: a connection of %T cannot do what this needs", opened)
	}
	return &keepingConn{sqliteConn: conn, kept: map[string]*kept{}}, nil
}

// sqliteConn is what the driver's connections can do and database/sql asks of them.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// keepingConn is used by one goroutine at a time, as every driver.Conn.
type keepingConn struct {
	sqliteConn
	kept map[string]*kept
}

type kept struct {
	statement interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	busy bool // its rows are still being read
}

// mostKept bounds the statements of a connection; those here and in the queue are about
// two hundred.
const mostKept = 500

// find is a statement that may be used now; nil if the text must be sent as it is.
func (c *keepingConn) find(ctx context.Context, query string) *kept {
	query = strings.TrimRight(query, " \t\n;") // what follows a statement makes it a script
	k := c.kept[query]
	if k == nil && len(c.kept) < mostKept {
		statement, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil
		}
		k = &kept{}
		var whole bool
		if k.statement, whole = statement.(interface {
			driver.Stmt
			driver.StmtExecContext
			driver.StmtQueryContext
		}); !whole {
			_ = statement.Close()
			return nil
		}
		c.kept[query] = k
	}
	if k == nil || k.busy {
		return nil
	}
	return k
}

// ExecContext runs a statement.
func (c *keepingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if k := c.find(ctx, query); k != nil {
		return k.statement.ExecContext(ctx, args)
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

// QueryContext runs a statement that yields rows.
func (c *keepingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	k := c.find(ctx, query)
	if k == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := k.statement.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	k.busy = true
	return &keptRows{rows, k}, nil
}

// Close gives the statements back, and the connection.
func (c *keepingConn) Close() error {
	for _, k := range c.kept {
		_ = k.statement.Close()
	}
	return c.sqliteConn.Close()
}

// keptRows frees its statement when it has been read.
type keptRows struct {
	driver.Rows
	of *kept
}

func (r *keptRows) Close() error {
	r.of.busy = false
	return r.Rows.Close()
}
