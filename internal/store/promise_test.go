package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Several servers meet an empty database: each step is applied once, and all of
// them find the schema complete when they return.
func TestPromiseQ8MigrationsAreSafe(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(t *testing.T) store.Options{
		"sqlite": func(t *testing.T) store.Options { return store.Options{Dir: t.TempDir()} },
		"postgres": func(t *testing.T) store.Options {
			return store.Options{URL: storetest.EmptyPostgres(t), Dir: t.TempDir()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			var mu sync.Mutex
			applied := map[string]int{}
			var wait sync.WaitGroup
			for range 4 {
				wait.Go(func() {
					db, err := store.Open(context.Background(), o)
					if !assertNoError(t, err) {
						return
					}
					defer db.Close()
					assertNoError(t, db.Migrate(context.Background(), func(m store.Migration) {
						mu.Lock()
						defer mu.Unlock()
						applied[m.Name]++
					}))
					steps, err := db.Migrations(context.Background())
					assertNoError(t, err)
					for _, s := range steps {
						if !s.Applied {
							t.Errorf("%s was not applied when Migrate returned", s.Name)
						}
					}
				})
			}
			wait.Wait()
			require.NotEmpty(t, applied)
			for name, times := range applied {
				require.Equal(t, 1, times, name)
			}
			db := storetest.Open(t, o)
			require.NoError(t, db.Migrate(t.Context(), func(m store.Migration) { t.Errorf("%s was applied again", m.Name) }))
		})
	}
}

func assertNoError(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// A key is changed while the data stays readable, and nothing is left under the old key.
func TestPromiseL1KeysRotate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, prepared *store.DB) {
		path := filepath.Join(t.TempDir(), "secret.key")
		keys, err := store.KeyFile(path)
		require.NoError(t, err)
		stat, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), stat.Mode().Perm())
		db := reopen(t, prepared, keys)
		serving := reopen(t, prepared, mustKeys(t, path)) // another process with the same file
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		rows := promise.Figure(300, 10_000)
		require.NoError(t, tenant.Tx(t.Context(), func(tx *store.Tenant) error {
			for i := range rows {
				tool := &parley.Tool{Name: "t", Method: "GET", Headers: []parley.Header{{Name: "K", Value: fmt.Sprint("secret ", i)}}, Schema: []parley.Param{}}
				if err := tx.CreateTool(t.Context(), tool, 0); err != nil {
					return err
				}
			}
			return tx.CreateTrunk(t.Context(), &parley.Trunk{Address: "a.example", Password: "hush"})
		}))

		require.NoError(t, keys.Rotate())
		start := time.Now()
		done, err := db.System().Reseal(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, rows+1, done)
		if took := time.Since(start); promise.Full() {
			require.Less(t, took, 10*time.Second)
		}
		done, err = db.System().Reseal(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, done, "nothing is left under the old key")

		tools, err := serving.Tenant(user.ID).Tools(t.Context())
		require.NoError(t, err, "a server that was running follows the change")
		require.Equal(t, fmt.Sprint("secret ", rows-1), tools[0].Headers[0].Value)
		require.NoError(t, serving.Tenant(user.ID).SaveTool(t.Context(), &tools[0]))
		done, err = db.System().Reseal(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, done, "and seals with the new key")

		newest, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Fields(string(newest))
		require.Len(t, lines, 2)
		alone, err := store.ParseKeys(lines[0])
		require.NoError(t, err)
		require.NoError(t, reopen(t, prepared, alone).System().CheckSeals(t.Context()), "the new key alone opens everything")
		old, err := store.ParseKeys(lines[1])
		require.NoError(t, err)
		require.ErrorContains(t, reopen(t, prepared, old).System().CheckSeals(t.Context()), "another secret key")
	})
}

func mustKeys(t *testing.T, path string) *store.Keys {
	t.Helper()
	keys, err := store.KeyFile(path)
	require.NoError(t, err)
	return keys
}

// reopen opens the database of another handle with other keys.
func reopen(t *testing.T, db *store.DB, keys *store.Keys) *store.DB {
	t.Helper()
	o := db.Options()
	o.Keys = keys
	return storetest.Open(t, o)
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "short", "bm90IDMyIGJ5dGVz", "!!!!"} {
		_, err := store.ParseKeys(wrong)
		require.ErrorContains(t, err, "base64 of 32 bytes", wrong)
	}
	keys, err := store.ParseKeys(store.NewKey())
	require.NoError(t, err)
	require.ErrorContains(t, keys.Rotate(), "PARLEY_SECRET_KEY")
	path := filepath.Join(t.TempDir(), "k")
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	_, err = store.KeyFile(path)
	require.ErrorContains(t, err, path)
}

// Every list and look-up of a user's walks an index: none reads all users' rows.
func TestPromiseA7NoListReadsWholeTables(t *testing.T) {
	t.Parallel()
	o := storetest.SQLite(t)
	db := storetest.Open(t, o)
	for _, query := range []string{
		"SELECT id FROM assistants WHERE user_id = 1 AND deleted_at IS NULL ORDER BY id DESC LIMIT 10 OFFSET 0",
		"SELECT id FROM assistants WHERE user_id = 1 AND deleted_at IS NULL AND type = 'inbound' AND status = 'active' ORDER BY id DESC LIMIT 10 OFFSET 0",
		"SELECT SUM(n) FROM assistant_counts WHERE user_id = 1",
		"SELECT id FROM tools WHERE user_id = 1 ORDER BY id DESC",
		"SELECT COUNT(*) FROM tools WHERE user_id = 1",
		"SELECT id FROM phone_numbers WHERE user_id = 1 ORDER BY id",
		"SELECT id FROM sip_trunks WHERE user_id = 1 ORDER BY id",
		"SELECT user_id FROM tokens WHERE hash = x'00' AND revoked_at IS NULL",
		"SELECT tool_id FROM assistant_tools WHERE assistant_id IN (1, 2)",
		"SELECT id FROM campaigns WHERE user_id = 1 AND deleted_at IS NULL ORDER BY id DESC LIMIT 10",
		"SELECT id FROM campaigns WHERE status = 'in-progress' AND deleted_at IS NULL",
		"SELECT id FROM campaigns WHERE deleted_at IS NOT NULL",
		"SELECT l.id FROM leads l JOIN campaigns c ON c.id = l.campaign_id WHERE l.user_id = 1 AND c.deleted_at IS NULL ORDER BY l.id DESC LIMIT 10",
		"SELECT l.id FROM leads l JOIN campaigns c ON c.id = l.campaign_id WHERE l.user_id = 1 AND c.deleted_at IS NULL AND l.campaign_id = 1 AND l.status = 'completed' ORDER BY l.id DESC LIMIT 10",
		"SELECT l.id FROM leads l JOIN campaigns c ON c.id = l.campaign_id WHERE l.user_id = 1 AND c.deleted_at IS NULL AND l.campaign_id = 1 AND l.status IN ('created', 'scheduled', 'rescheduled') AND l.wait_until <= 5 ORDER BY l.wait_until, l.id LIMIT 10",
		"SELECT id FROM leads WHERE user_id = 1 AND phone_number IN ('+1', '+2')",
		"SELECT lead_id FROM lead_contacts WHERE user_id = 1 AND phone_number IN ('+1', '+2')",
		"SELECT id FROM lead_contacts WHERE lead_id IN (1, 2) ORDER BY lead_id, position",
		"SELECT id FROM do_not_call WHERE user_id = 1 AND hash IN (x'00', x'01')",
		"SELECT id FROM do_not_call WHERE user_id = 1 ORDER BY id DESC LIMIT 10",
		"SELECT SUM(n) FROM call_counts WHERE user_id = 1 AND day >= 0 AND day < 9",
		"SELECT id FROM call_events WHERE call_id IN (1, 2) AND event <> 'x' ORDER BY call_id, id",
		"SELECT id FROM calls WHERE node = 'x' AND hangup_at IS NOT NULL",
		"SELECT COUNT(*) FROM calls WHERE user_id = 1 AND status IN ('initiated', 'ringing', 'in-progress')",
	} {
		plan := explain(t, db.SQL(), query)
		if strings.Contains(query, "FROM campaigns WHERE status") || strings.Contains(query, "deleted_at IS NOT NULL") {
			require.Contains(t, plan, "INDEX campaigns_", "%s\n%s", query, plan) // an index of nothing else
			continue
		}
		require.NotContains(t, plan, "SCAN ", "%s\n%s", query, plan)
		if strings.Contains(query, "leads") {
			require.NotContains(t, plan, "TEMP B-TREE", "a long list is not sorted: %s\n%s", query, plan)
		}
	}
	// Lists of calls come out of their index in order: nothing is sorted, however long they are.
	for filter, index := range map[string]string{
		"":                             "calls_user ",
		"c.type = 'inbound'":           "calls_user_type ",
		"c.status = 'busy'":            "calls_user_status ",
		"c.client_phone_number = '+1'": "calls_user_number ",
		"c.assistant_id = 2":           "calls_user_assistant ",
		"c.campaign_id = 2":            "calls_user_campaign ",
		"c.created_at >= 1":            "calls_user ",
	} {
		if filter != "" {
			filter = " AND " + filter
		}
		plan := explain(t, db.SQL(), "SELECT c.transcript FROM calls c WHERE c.user_id = 1"+filter+" ORDER BY c.created_at DESC, c.id DESC LIMIT 15")
		require.Contains(t, plan, "USING INDEX "+index, filter)
		require.NotContains(t, plan, "TEMP B-TREE", filter)
		plan = explain(t, db.SQL(), "SELECT COUNT(*) FROM calls c WHERE c.user_id = 1"+filter)
		require.Contains(t, plan, "USING COVERING INDEX", filter)
	}
}

func explain(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query("EXPLAIN QUERY PLAN " + query)
	require.NoError(t, err)
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		b.WriteString(detail + "\n")
	}
	require.NoError(t, rows.Err())
	return b.String()
}

// Every test of the store runs on both databases, but for those that are about one
// of them or about none.
func TestPromiseQ7BothDatabasesMeanTheSame(t *testing.T) {
	t.Parallel()
	onePurpose := map[string]bool{
		"TestOpeningAndClosingLeavesNothingRunning": true, // SQLite's own pools
		"TestPromiseA7NoListReadsWholeTables":       true, // SQLite's planner
		"TestStatementsAreKept":                     true, // SQLite's driver
		"TestKeysThatCannotBeUsed":                  true, // no database
		"TestSignaturesAcrossRotation":              true, // no database
		"TestRecordingsAreSalvaged":                 true, // no database
		"TestPromiseQ8MigrationsAreSafe":            true, // both, from empty ones
		"TestPromiseQ7BothDatabasesMeanTheSame":     true,
	}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	both := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" || onePurpose[f.Name.Name] {
				continue
			}
			body := string(source[f.Body.Pos()-1 : f.Body.End()-1])
			require.Contains(t, body, "storetest.Each(", "%s runs on one database only", f.Name.Name)
			both++
		}
	}
	require.GreaterOrEqual(t, both, 10)
}
