package store

import (
	"context"

	"parley"
)

// sealedColumns is every column that holds sealed values.
var sealedColumns = []struct{ table, column string }{
	{"tools", "headers"},
	{"sip_trunks", "sip_password"},
	{"secrets", "secret"},
	{"webhook_secrets", "secret"},
}

// resealBatch keeps each transaction of Reseal short beside a running server.
const resealBatch = 500

type sealedRow struct {
	id     parley.ID
	sealed []byte
}

// Reseal rewrites everything that a retired key sealed with the current one and
// tells progress after each batch. It can be stopped and run again at any time.
func (s *System) Reseal(ctx context.Context, progress func(done int)) (done int, err error) {
	for _, c := range sealedColumns {
		for after := parley.ID(0); ; {
			var batch []sealedRow
			err := s.Tx(ctx, func(s *System) (err error) {
				if batch, err = s.sealedBatch(ctx, c.table, c.column, after); err != nil {
					return err
				}
				changed, err := s.resealBatch(ctx, c.table, c.column, batch)
				done += changed
				return err
			})
			if err != nil {
				return done, err
			}
			if len(batch) == 0 {
				break
			}
			after = batch[len(batch)-1].id
			if progress != nil {
				progress(done)
			}
		}
	}
	return done, nil
}

func (s *System) sealedBatch(ctx context.Context, table, column string, after parley.ID) ([]sealedRow, error) {
	return list(ctx, s.session, func(row scanner, r *sealedRow) error { return row.Scan(&r.id, &r.sealed) },
		"SELECT id, "+column+" FROM "+table+" WHERE id > ? ORDER BY id LIMIT ?"+s.forUpdate(), after, resealBatch)
}

func (s *System) resealBatch(ctx context.Context, table, column string, batch []sealedRow) (changed int, err error) {
	where := table + "." + column
	for _, row := range batch {
		secret, retired, err := s.db.keys.open(row.sealed, where)
		if err != nil {
			return changed, err
		}
		if !retired {
			continue
		}
		sealed, err := s.db.keys.seal(secret, where)
		if err != nil {
			return changed, err
		}
		if _, err := s.exec(ctx, "UPDATE "+table+" SET "+column+" = ? WHERE id = ?", sealed, row.id); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// CheckSeals opens one sealed value of each column: it fails when the configured
// key is not the one the data was sealed with.
func (s *System) CheckSeals(ctx context.Context) error {
	for _, c := range sealedColumns {
		batch, err := s.sealedBatch(ctx, c.table, c.column, 0)
		if err != nil {
			return err
		}
		for _, row := range batch {
			if _, _, err := s.db.keys.open(row.sealed, c.table+"."+c.column); err != nil {
				return err
			}
		}
	}
	return nil
}
