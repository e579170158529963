package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/store/storetest"
)

// A statement that is sent again while its rows are being read gives both readers theirs;
// one that failed, or whose table has changed since, works as if it were new.
func TestStatementsAreKept(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	tx, err := db.SQL().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	const query = "SELECT id FROM voices ORDER BY id; \n"
	var read func(depth int) []int64
	read = func(depth int) (ids []int64) {
		rows, err := tx.QueryContext(t.Context(), query)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var id int64
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
			if depth > 0 && len(ids) == 2 {
				require.NotEmpty(t, read(depth-1))
			}
		}
		require.NoError(t, rows.Err())
		return ids
	}
	alone := read(0)
	require.Greater(t, len(alone), 2)
	require.Equal(t, alone, read(2))

	_, err = tx.Exec("INSERT INTO kept (a) VALUES (?)", 1)
	require.ErrorContains(t, err, "no such table")
	_, err = tx.Exec("CREATE TABLE kept (a INTEGER UNIQUE); CREATE TABLE other (b INTEGER)")
	require.NoError(t, err)
	for i := range 3 {
		_, err = tx.Exec("INSERT INTO kept (a) VALUES (?)", i)
		require.NoError(t, err)
		_, err = tx.Exec("INSERT INTO kept (a) VALUES (?)", i)
		require.ErrorContains(t, err, "UNIQUE")
	}
	_, err = tx.Exec("ALTER TABLE kept ADD COLUMN b INTEGER DEFAULT 7")
	require.NoError(t, err)
	var sum int64
	require.NoError(t, tx.QueryRow("SELECT SUM(a + b) FROM kept").Scan(&sum))
	require.EqualValues(t, 3+21, sum)
}
