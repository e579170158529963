package store_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// finishedCall is a call with everything that can be kept of one.
func finishedCall(t *testing.T, db *store.DB, user parley.ID, assistant parley.ID, recordings store.Recordings, number, about string) *parley.Call {
	t.Helper()
	ctx := t.Context()
	c := &parley.Call{AssistantID: assistant, Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: number, Carrier: parley.CarrierSimulated, Variables: parley.Object{"about": about}}
	require.NoError(t, db.Tenant(user).CreateCall(ctx, c, ""))
	file, err := recordings.Create(c.ID)
	require.NoError(t, err)
	_, err = file.WriteString("sound of " + about)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	reason, at := parley.EndHungUp, time.Now().UTC()
	c.Status, c.EndReason, c.EndedAt, c.Recording = parley.CallEndedByCustomer, &reason, &at, store.RecordingName(c.ID)
	c.Transcript, c.Turns = "Customer: I am "+about, []parley.Turn{{Text: "I am " + about, Sender: "customer"}}
	require.NoError(t, db.System().EndCall(ctx, "", c))
	require.NoError(t, db.System().AddEvent(ctx, parley.CallEvent{CallID: c.ID, At: at, Event: parley.EventTurn, Detail: parley.Object{"text": about}}))
	c.Evaluation = parley.Object{"who": about}
	_, err = db.System().CompleteCall(ctx, c)
	require.NoError(t, err)
	require.NoError(t, db.System().AddDelivery(ctx, &parley.Delivery{UserID: user, CallID: c.ID, AssistantID: assistant, Kind: parley.PostCallWebhook, Event: "call.completed", URL: "https://x.example", Body: `{"a":"` + about + `"}`}))
	return c
}

// holds says where a text stands: in any column of any table and, of SQLite, in its files.
func holds(t *testing.T, db *store.DB, text string) (where []string) {
	t.Helper()
	names := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if db.Postgres() {
		names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
	}
	for _, table := range column(t, db, names) {
		columns := "SELECT name FROM pragma_table_info('" + table + "')"
		if db.Postgres() {
			columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '" + table + "'"
		}
		for _, name := range column(t, db, columns) {
			var hits int
			require.NoError(t, db.SQL().QueryRow(`SELECT COUNT(*) FROM "`+table+`" WHERE CAST("`+name+`" AS TEXT) LIKE '%`+text+`%'`).Scan(&hits))
			if hits > 0 {
				where = append(where, table+"."+name)
			}
		}
	}
	if !db.Postgres() {
		where = append(where, filesWith(t, db.Options().Dir, text)...)
	}
	return where
}

func column(t *testing.T, db *store.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.SQL().Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		all = append(all, name)
	}
	require.NoError(t, rows.Err())
	return all
}

// filesWith are the files below a folder that hold a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// An erased number is in no column, in no file and in no recording; other people's calls
// stay, and it is still not called.
func TestPromiseG10ErasedNumberIsNowhere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant, recordings := db.Tenant(user.ID), store.Recordings(t.TempDir())
		a := storetest.Assistant("Caller")
		require.NoError(t, tenant.CreateAssistant(ctx, a))
		const number, digits = "+12025550108", "12025550108"
		for range 20 {
			finishedCall(t, db, user.ID, a.ID, recordings, number, number)
		}
		others := finishedCall(t, db, user.ID, a.ID, recordings, "+12025550100", "friend of "+number)
		require.NoError(t, recordings.Delete(others.Recording)) // a sound cannot be searched
		_, err := tenant.Remembered(ctx, "key", []byte("request"))
		require.NoError(t, err)
		require.NoError(t, tenant.Remember(ctx, "key", `{"customer":"`+number+`"}`))
		require.NoError(t, tenant.AddDoNotCall(ctx, number, "asked"))
		require.NotEmpty(t, holds(t, db, digits))

		live := &parley.Call{AssistantID: a.ID, Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: number, Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
		require.NoError(t, tenant.CreateCall(ctx, live, ""))
		_, err = tenant.EraseNumber(ctx, number, recordings)
		require.Equal(t, parley.Conflict, parley.ErrorCode(err), "not while it is in a call")
		reason := parley.EndDoNotCall
		live.Status, live.EndReason = parley.CallFailed, &reason
		require.NoError(t, db.System().EndCall(ctx, "", live))

		erased, err := tenant.EraseNumber(ctx, number, recordings)
		require.NoError(t, err)
		require.Equal(t, 21, erased)
		require.NoError(t, db.System().Vacuum(ctx))
		require.Empty(t, holds(t, db, digits))
		require.Empty(t, filesWith(t, string(recordings), digits))
		kept, err := tenant.Call(ctx, others.ID)
		require.NoError(t, err)
		require.Equal(t, "Customer: I am friend of +0", kept.Transcript)
		listed, err := tenant.DoNotCall(ctx, number)
		require.NoError(t, err)
		require.True(t, listed[number])
	})
}

// A sweep removes every call that is old enough, with its recording and all that belongs to
// it, and no other.
func TestPromiseG10Retention(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		due := promise.Figure(1200, 10_000)
		user, _ := storetest.User(t, db, "a@example.com")
		tenant, recordings := db.Tenant(user.ID), store.Recordings(t.TempDir())
		a := storetest.Assistant("Caller")
		require.NoError(t, tenant.CreateAssistant(ctx, a))
		old := finishedCall(t, db, user.ID, a.ID, recordings, "+12025550101", "old")
		young := finishedCall(t, db, user.ID, a.ID, recordings, "+12025550102", "young")
		live := &parley.Call{AssistantID: a.ID, Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: "+12025550103", Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
		require.NoError(t, tenant.CreateCall(ctx, live, ""))
		const days = 90
		ago := func(d time.Duration) int64 { return time.Now().AddDate(0, 0, -days).Add(-d).UnixMicro() }
		exec := func(statement string) {
			_, err := db.SQL().Exec(statement)
			require.NoError(t, err)
		}
		exec(fmt.Sprintf("UPDATE calls SET created_at = %d WHERE id IN (%d, %d)", ago(time.Minute), old.ID, live.ID))
		exec(fmt.Sprintf("UPDATE calls SET created_at = %d WHERE id = %d", ago(-time.Minute), young.ID))
		columns := "user_id, assistant_id, assistant_name, type, status, assistant_phone_number, client_phone_number, carrier, variables, input_variables, created_at, updated_at"
		exec(fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) INSERT INTO calls (%s) SELECT %s FROM numbers, calls WHERE id = %d", due, columns, columns, old.ID))

		removed, err := db.System().Expire(ctx, time.Now().AddDate(0, 0, -days), recordings)
		require.NoError(t, err)
		require.Equal(t, due, removed)
		_, total, err := tenant.Calls(ctx, store.CallFilter{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, 2, total, "one that is too young, and one that is not over")
		for _, table := range []string{"call_events", "webhook_deliveries"} {
			require.Len(t, column(t, db, fmt.Sprintf("SELECT call_id FROM %s WHERE call_id = %d", table, young.ID)), map[string]int{"call_events": 4, "webhook_deliveries": 1}[table])
			require.Empty(t, column(t, db, fmt.Sprintf("SELECT call_id FROM %s WHERE call_id NOT IN (%d, %d)", table, young.ID, live.ID)))
		}
		files := filesWith(t, string(recordings), "sound")
		require.Len(t, files, 1)
		require.True(t, strings.HasSuffix(files[0], store.RecordingName(young.ID)))
	})
}
