package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// desk is a user with an assistant, and what calls are made with.
type desk struct {
	t         testing.TB
	db        *store.DB
	tenant    *store.Tenant
	user      parley.ID
	assistant parley.ID
}

func newDesk(t testing.TB, db *store.DB, email string) *desk {
	t.Helper()
	user, _ := storetest.User(t, db, email)
	a := storetest.Assistant("Front desk")
	require.NoError(t, db.Tenant(user.ID).CreateAssistant(t.Context(), a))
	return &desk{t: t, db: db, tenant: db.Tenant(user.ID), user: user.ID, assistant: a.ID}
}

// call makes a call, changed before it is stored; node holds it.
func (d *desk) call(node string, change ...func(*parley.Call)) *parley.Call {
	d.t.Helper()
	c := &parley.Call{AssistantID: d.assistant, AssistantName: "Front desk", Type: parley.Outbound, Status: parley.CallInitiated, AssistantNumber: "+12025550180",
		CustomerNumber: "+12025550100", Carrier: parley.CarrierSimulated, Variables: parley.Object{"name": "Ada"}}
	for _, ch := range change {
		ch(c)
	}
	require.NoError(d.t, d.tenant.CreateCall(d.t.Context(), c, node))
	return c
}

// at moves a call to the time it is to have been made at: it is counted there as a new one is.
func (d *desk) at(c *parley.Call, when time.Time) {
	d.t.Helper()
	for _, statement := range []string{
		"DELETE FROM call_events WHERE call_id = %[1]d",
		"CREATE TABLE moved AS SELECT * FROM calls WHERE id = %[1]d",
		"UPDATE moved SET created_at = %[2]d",
		"DELETE FROM calls WHERE id = %[1]d",
		"INSERT INTO calls SELECT * FROM moved",
		"DROP TABLE moved",
		`INSERT INTO call_events (call_id, at, event, detail) VALUES (%[1]d, %[2]d, 'status', '{}')`,
	} {
		_, err := d.db.SQL().Exec(fmt.Sprintf(statement+" -- %[1]d %[2]d", c.ID, when.UnixMicro()))
		require.NoError(d.t, err)
	}
}

func (d *desk) get(id parley.ID) *parley.Call {
	d.t.Helper()
	c, err := d.tenant.Call(d.t.Context(), id)
	require.NoError(d.t, err)
	return c
}

func TestCallsRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d := newDesk(t, db, "a@example.com")
		campaign, name, lead := parley.ID(7), "Spring", parley.ID(70)
		c := d.call("", func(c *parley.Call) {
			c.CampaignID, c.CampaignName, c.LeadID, c.LeadContact, c.LeadAttempt = &campaign, &name, &lead, 1, 2
			c.Variables = parley.Object{"nested": map[string]any{"list": []any{"x", true, nil}}}
		})
		require.Equal(t, c.Variables, d.get(c.ID).Variables)
		made := d.get(c.ID)
		require.Equal(t, "status", made.Timeline[0].Event)
		require.Equal(t, parley.Object{"status": "initiated"}, made.Timeline[0].Detail)
		made.Timeline[0].ID, c.Timeline[0].ID = 0, 0
		require.Equal(t, c, made)

		claimed, err := db.System().ClaimCall(ctx, c.ID, "node")
		require.NoError(t, err)
		require.True(t, claimed)
		require.NoError(t, db.System().Advance(ctx, "node", []store.Step{
			status(c.ID, parley.CallRinging), status(c.ID, parley.CallInProgress),
			{Event: parley.CallEvent{CallID: c.ID, At: time.Now(), Event: parley.EventTurn, Detail: parley.Object{"text": "Hello.", "sender": "bot", "ended_ms": 900}}},
			{Event: parley.CallEvent{CallID: c.ID, At: time.Now(), Event: parley.EventTool, Detail: parley.Object{"tool": "x"}}},
		}))
		up := d.get(c.ID)
		require.Equal(t, parley.CallInProgress, up.Status)
		require.NotNil(t, up.AnsweredAt)
		require.NotNil(t, up.DialedAt)
		require.Equal(t, []string{"status", "status", "status", "tool"}, kinds(up.Timeline), "turns are not steps of the timeline")
		turns, err := db.System().TurnsOf(ctx, c.ID)
		require.NoError(t, err)
		require.Equal(t, []parley.Turn{{Text: "Hello.", Sender: "bot", EndedMS: 900}}, turns)
		events, err := d.tenant.CallEvents(ctx, c.ID, 0)
		require.NoError(t, err)
		require.Equal(t, []string{"status", "status", "status", "transcript", "tool"}, kinds(events))
		later, err := d.tenant.CallEvents(ctx, c.ID, events[2].ID)
		require.NoError(t, err)
		require.Equal(t, events[3:], later)

		end(up)
		up.Turns, up.Costs, up.Quality = turns, parley.Costs{Carrier: 20, Model: 3}, &parley.Quality{PacketsSent: 10, JitterMS: 1.5}
		up.Variables, up.TotalCost, up.CarrierCost, up.Duration, up.Recording, up.OptedOut = parley.Object{"a": "b"}, 23, 20, 9, "0000/1.wav", true
		failure := "it said no"
		up.Failure = &failure
		require.NoError(t, db.System().EndCall(ctx, "node", up))
		ended := d.get(c.ID)
		require.Equal(t, parley.Object{"status": "ended_by_customer", "end_reason": "customer_hung_up"}, ended.Timeline[4].Detail)
		ended.Timeline, up.Timeline = nil, nil
		require.Equal(t, up, ended)

		ended.Evaluation, ended.TotalCost = parley.Object{"status": true, "summary": nil}, 30
		first, err := db.System().CompleteCall(ctx, ended)
		require.NoError(t, err)
		require.True(t, first)
		done := d.get(c.ID)
		require.Equal(t, parley.CallCompleted, done.Status)
		require.Equal(t, parley.Object{"status": true, "summary": nil}, done.Evaluation)
		require.EqualValues(t, 30, done.TotalCost)
	})
}

func status(call parley.ID, s parley.CallStatus) store.Step {
	return store.Step{Status: s, Event: parley.CallEvent{CallID: call, At: time.Now().UTC().Truncate(time.Microsecond), Event: parley.EventStatus, Detail: parley.Object{"status": string(s)}}}
}

func kinds(events []parley.CallEvent) (all []string) {
	for _, e := range events {
		all = append(all, e.Event)
	}
	return all
}

// end is what a node writes of a call whose customer hung up.
func end(c *parley.Call) {
	reason, by, over := parley.EndHungUp, "customer", time.Now().UTC().Truncate(time.Microsecond)
	c.Status, c.EndReason, c.EndedBy, c.EndedAt, c.AnsweredBy = parley.CallEndedByCustomer, &reason, &by, &over, "human"
}

// Every filter alone, and all pairs of them, choose what a plain loop over all calls chooses.
func TestCallFilters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, other := newDesk(t, db, "a@example.com"), newDesk(t, db, "b@example.com")
		other.call("")
		second := storetest.Assistant("Second")
		require.NoError(t, d.tenant.CreateAssistant(t.Context(), second))
		campaign := parley.ID(3)
		midnight := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
		times := []time.Time{midnight.Add(-time.Microsecond), midnight, midnight.Add(24*time.Hour - time.Microsecond), midnight.Add(24 * time.Hour), midnight.Add(24 * time.Hour)}
		var all []parley.Call
		for i := range 40 {
			c := d.call("", func(c *parley.Call) {
				c.Status = parley.CallStatuses[i%len(parley.CallStatuses)]
				c.Type = []parley.Direction{parley.Inbound, parley.Outbound, parley.WebCall}[i%3]
				c.CustomerNumber = fmt.Sprintf("+1202555010%d", i%4)
				if i%5 == 0 {
					c.AssistantID = second.ID
				}
				if i%4 == 0 {
					c.CampaignID = &campaign
				}
			})
			d.at(c, times[i%len(times)])
			all = append(all, *d.get(c.ID))
		}
		slices.SortFunc(all, func(a, b parley.Call) int {
			if n := b.CreatedAt.Compare(a.CreatedAt); n != 0 {
				return n
			}
			return int(b.ID - a.ID)
		})
		type filter struct {
			set  func(*store.CallFilter)
			fits func(*parley.Call) bool
		}
		filters := []filter{
			{func(*store.CallFilter) {}, func(*parley.Call) bool { return true }},
			{func(f *store.CallFilter) { f.Status = "busy" }, func(c *parley.Call) bool { return c.Status == parley.CallBusy }},
			{func(f *store.CallFilter) { f.Type = "inbound" }, func(c *parley.Call) bool { return c.Type == parley.Inbound }},
			{func(f *store.CallFilter) { f.PhoneNumber = "+12025550102" }, func(c *parley.Call) bool { return c.CustomerNumber == "+12025550102" }},
			{func(f *store.CallFilter) { f.AssistantID = &second.ID }, func(c *parley.Call) bool { return c.AssistantID == second.ID }},
			{func(f *store.CallFilter) { f.CampaignID = &campaign }, func(c *parley.Call) bool { return c.CampaignID != nil }},
			{func(f *store.CallFilter) { f.From = midnight }, func(c *parley.Call) bool { return !c.CreatedAt.Before(midnight) }},
			{func(f *store.CallFilter) { f.To = midnight.AddDate(0, 0, 1) }, func(c *parley.Call) bool { return c.CreatedAt.Before(midnight.AddDate(0, 0, 1)) }},
		}
		for i, one := range filters {
			for j, two := range filters {
				f := store.CallFilter{Limit: 100}
				one.set(&f)
				two.set(&f)
				want := []parley.ID{}
				for k := range all {
					if one.fits(&all[k]) && two.fits(&all[k]) {
						want = append(want, all[k].ID)
					}
				}
				found, total, err := d.tenant.Calls(t.Context(), f)
				require.NoError(t, err)
				got := []parley.ID{}
				for _, c := range found {
					got = append(got, c.ID)
					require.Len(t, c.Timeline, 1)
				}
				require.Equal(t, want, got, "filters %d and %d", i, j)
				require.Equal(t, len(want), total, "filters %d and %d", i, j)
			}
		}
		// Pages.
		var paged []parley.ID
		for offset := 0; offset < 45; offset += 7 {
			page, total, err := d.tenant.Calls(t.Context(), store.CallFilter{Limit: 7, Offset: offset})
			require.NoError(t, err)
			require.Equal(t, 40, total)
			for _, c := range page {
				paged = append(paged, c.ID)
			}
		}
		require.Len(t, paged, 40)
		for i := range all {
			require.Equal(t, all[i].ID, paged[i])
		}
		// The counts follow what is removed.
		gone := 0
		for _, c := range all {
			if c.Status.Final() && !c.CreatedAt.Before(midnight) {
				require.NoError(t, d.tenant.DeleteCall(t.Context(), c.ID, store.Recordings(t.TempDir())))
				gone++
			}
		}
		_, total, err := d.tenant.Calls(t.Context(), store.CallFilter{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, 40-gone, total)
		_, total, err = other.tenant.Calls(t.Context(), store.CallFilter{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, 1, total)
		// And what has come to an end.
		for status, from := range map[parley.CallStatus]parley.CallStatus{parley.CallBusy: parley.CallInitiated, parley.CallCompleted: parley.CallEnded} {
			c := other.call("", func(c *parley.Call) { c.Status = from })
			before := total
			if status == parley.CallBusy {
				c.Status = status
				require.NoError(t, db.System().EndCall(t.Context(), "", c))
			} else {
				_, err = db.System().CompleteCall(t.Context(), c)
				require.NoError(t, err)
			}
			_, after, err := other.tenant.Calls(t.Context(), store.CallFilter{Limit: 1, Status: string(status)})
			require.NoError(t, err)
			require.Equal(t, 1, after)
			_, total, err = other.tenant.Calls(t.Context(), store.CallFilter{Limit: 1})
			require.NoError(t, err)
			require.Equal(t, before+1, total)
		}
	})
}

func TestIdempotencyKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d, other := newDesk(t, db, "a@example.com"), newDesk(t, db, "b@example.com")
		keep := func(tenant *store.Tenant, request, answer string) (first string, err error) {
			err = tenant.Tx(ctx, func(t *store.Tenant) error {
				if first, err = t.Remembered(ctx, "key", []byte(request)); err != nil || first != "" {
					return err
				}
				return t.Remember(ctx, "key", answer)
			})
			return first, err
		}
		first, err := keep(d.tenant, "request", "answer")
		require.NoError(t, err)
		require.Empty(t, first)
		first, err = keep(d.tenant, "request", "another answer")
		require.NoError(t, err)
		require.Equal(t, "answer", first)
		_, err = keep(d.tenant, "another request", "answer")
		require.Equal(t, parley.Reused, parley.ErrorCode(err))
		first, err = keep(other.tenant, "another request", "theirs")
		require.NoError(t, err)
		require.Empty(t, first, "a key is its user's")

		// What failed takes no key.
		broken := errors.New("broken")
		require.ErrorIs(t, d.tenant.Tx(ctx, func(t *store.Tenant) error {
			_, err := t.Remembered(ctx, "second", []byte("request"))
			return errors.Join(err, broken)
		}), broken)
		require.NoError(t, d.tenant.Tx(ctx, func(tx *store.Tenant) error {
			first, err := tx.Remembered(ctx, "second", []byte("other"))
			require.Empty(t, first)
			return err
		}))

		// A day later the key is free, whether or not somebody has tidied up.
		age := func(by time.Duration) {
			_, err = db.SQL().Exec(fmt.Sprintf("UPDATE idempotency_keys SET created_at = created_at - %d", by.Microseconds()))
			require.NoError(t, err)
		}
		age(24*time.Hour - time.Minute)
		require.NoError(t, db.System().Tidy(ctx))
		first, err = keep(d.tenant, "request", "x")
		require.NoError(t, err)
		require.Equal(t, "answer", first)
		age(2 * time.Minute)
		first, err = keep(d.tenant, "another request", "new")
		require.NoError(t, err)
		require.Empty(t, first)
		age(25 * time.Hour)
		require.NoError(t, db.System().Tidy(ctx))
		var left int
		require.NoError(t, db.SQL().QueryRow("SELECT COUNT(*) FROM idempotency_keys").Scan(&left))
		require.Zero(t, left)
	})
}

func TestACallIsDeletedWithItsRecording(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d, other := newDesk(t, db, "a@example.com"), newDesk(t, db, "b@example.com")
		recordings := store.Recordings(t.TempDir())
		c := d.call("node")
		file, err := recordings.Create(c.ID)
		require.NoError(t, err)
		_, err = file.WriteString("sound")
		require.NoError(t, err)
		require.NoError(t, file.Close())
		path := filepath.Join(string(recordings), store.RecordingName(c.ID))
		require.FileExists(t, path)

		require.Equal(t, parley.Conflict, parley.ErrorCode(d.tenant.DeleteCall(ctx, c.ID, recordings)), "it is still up")
		end(c)
		c.Recording = store.RecordingName(c.ID)
		require.NoError(t, db.System().EndCall(ctx, "node", c))
		require.Equal(t, parley.Conflict, parley.ErrorCode(d.tenant.DeleteCall(ctx, c.ID, recordings)), "it is not completed")
		_, err = db.System().CompleteCall(ctx, c)
		require.NoError(t, err)
		require.Equal(t, parley.NotFound, parley.ErrorCode(other.tenant.DeleteCall(ctx, c.ID, recordings)))
		require.FileExists(t, path)
		require.NoError(t, d.tenant.DeleteCall(ctx, c.ID, recordings))
		require.NoFileExists(t, path)
		_, err = d.tenant.Call(ctx, c.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		var events int
		require.NoError(t, db.SQL().QueryRow("SELECT COUNT(*) FROM call_events").Scan(&events))
		require.Zero(t, events)
	})
}

// A node dies while it records: the file has a header of nothing and sound behind it.
func TestRecordingsAreSalvaged(t *testing.T) {
	t.Parallel()
	recordings := store.Recordings(t.TempDir())
	require.Empty(t, recordings.Salvage(1), "there is none")
	file, err := recordings.Create(1)
	require.NoError(t, err)
	r, err := audio.NewRecorder(file, audio.Rate8k)
	require.NoError(t, err)
	for i := range 200 {
		require.NoError(t, r.Customer(time.Duration(i)*20*time.Millisecond, make([]int16, 160)))
	}
	require.NoError(t, file.Close()) // and never finished
	require.Equal(t, "0000/1.wav", recordings.Salvage(1))
	empty, err := recordings.Create(2)
	require.NoError(t, err)
	require.NoError(t, empty.Close())
	require.Empty(t, recordings.Salvage(2))
	require.NoError(t, recordings.Delete(""))
	require.NoError(t, recordings.Delete("0000/7.wav"), "what is gone is gone")
}

// A signature is good for its purpose and message alone, and outlives a change of keys.
func TestSignaturesAcrossRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	keys, err := store.KeyFile(path)
	require.NoError(t, err)
	old, err := keys.Sign("recording link", "1 99")
	require.NoError(t, err)
	require.NoError(t, keys.Rotate())
	fresh, err := keys.Sign("recording link", "1 99")
	require.NoError(t, err)
	require.NotEqual(t, old, fresh)
	for _, k := range []*store.Keys{keys, mustKeys(t, path)} {
		require.True(t, k.Verify("recording link", "1 99", old))
		require.True(t, k.Verify("recording link", "1 99", fresh))
		require.False(t, k.Verify("another purpose", "1 99", fresh))
		require.False(t, k.Verify("recording link", "1 98", fresh))
		require.False(t, k.Verify("recording link", "1 99", ""))
		for i := range fresh {
			flipped := []byte(fresh)
			flipped[i] ^= 1
			require.False(t, k.Verify("recording link", "1 99", string(flipped)), "byte %d", i)
		}
	}
	newest, err := os.ReadFile(path)
	require.NoError(t, err)
	alone, err := store.ParseKeys(string(newest[:44]))
	require.NoError(t, err)
	require.False(t, alone.Verify("recording link", "1 99", old), "an old key that was removed signs for nothing")
}
