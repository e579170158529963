package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// counted makes secrets that can be told apart.
func counted() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint("whsec_", n)
	}
}

func TestWebhookSecretsAreMadeOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		other, _ := storetest.User(t, db, "b@example.com")
		fresh := counted()
		var mu sync.Mutex
		seen := map[string]int{}
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				live, err := db.Tenant(user.ID).WebhookSecrets(t.Context(), fresh)
				if !assertNoError(t, err) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for _, s := range live {
					seen[s.Secret]++
				}
			})
		}
		wait.Wait()
		require.Len(t, seen, 1, "all who race get the same one")
		theirs, err := db.Tenant(other.ID).WebhookSecrets(t.Context(), fresh)
		require.NoError(t, err)
		require.NotContains(t, seen, theirs[0].Secret)
	})
}

// TestPromiseW1SecretsOverlap: for a day the old secret signs beside the new one.
func TestPromiseW1SecretsOverlap(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		other, _ := storetest.User(t, db, "b@example.com")
		tenant, fresh := db.Tenant(user.ID), counted()
		live := func() (names []string) {
			all, err := tenant.WebhookSecrets(t.Context(), fresh)
			require.NoError(t, err)
			require.Nil(t, all[0].ExpiresAt)
			for i, s := range all {
				names = append(names, s.Secret)
				if i > 0 {
					require.WithinDuration(t, time.Now().Add(24*time.Hour), *s.ExpiresAt, time.Minute)
				}
			}
			return names
		}
		_, err := db.Tenant(other.ID).WebhookSecrets(t.Context(), fresh)
		require.NoError(t, err)
		require.Equal(t, []string{"whsec_2"}, live())
		require.NoError(t, tenant.RotateWebhookSecret(t.Context(), "whsec_second"))
		require.Equal(t, []string{"whsec_second", "whsec_2"}, live())
		require.NoError(t, tenant.RotateWebhookSecret(t.Context(), "whsec_third"))
		require.Equal(t, []string{"whsec_third", "whsec_second"}, live(), "never more than two")
		_, err = db.SQL().Exec("UPDATE webhook_secrets SET expires_at = expires_at - 86400000000")
		require.NoError(t, err)
		require.Equal(t, []string{"whsec_third"}, live(), "after a day the old one is over")

		var wait sync.WaitGroup
		for i := range 10 {
			wait.Go(func() {
				assertNoError(t, tenant.RotateWebhookSecret(context.Background(), fmt.Sprint("whsec_race", i)))
			})
		}
		wait.Wait()
		require.Len(t, live(), 2, "rotations that race leave one current and one old secret")
		theirs, err := db.Tenant(other.ID).WebhookSecrets(t.Context(), fresh)
		require.NoError(t, err)
		require.Equal(t, "whsec_1", theirs[0].Secret)
	})
}

func TestPromiseL1WebhookSecretsAreSealed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, prepared *store.DB) {
		keys, err := store.KeyFile(filepath.Join(t.TempDir(), "secret.key"))
		require.NoError(t, err)
		db := reopen(t, prepared, keys)
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		_, err = tenant.WebhookSecrets(t.Context(), func() string { return "whsec_canary" })
		require.NoError(t, err)
		require.NoError(t, tenant.RotateWebhookSecret(t.Context(), "whsec_canary_two"))
		stored := func() (all [][]byte) {
			rows, err := db.SQL().Query("SELECT secret FROM webhook_secrets ORDER BY id")
			require.NoError(t, err)
			defer rows.Close()
			for rows.Next() {
				var raw []byte
				require.NoError(t, rows.Scan(&raw))
				require.False(t, bytes.Contains(raw, []byte("canary")))
				all = append(all, raw)
			}
			require.NoError(t, rows.Err())
			return all
		}
		before := stored()
		require.Len(t, before, 2)
		require.NoError(t, keys.Rotate())
		done, err := db.System().Reseal(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, 2, done)
		require.NotEqual(t, before, stored())
		live, err := tenant.WebhookSecrets(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "whsec_canary_two", live[0].Secret)
		require.Equal(t, "whsec_canary", live[1].Secret)
	})
}

// told adds a delivery of a call of an assistant.
func told(t *testing.T, db *store.DB, a *parley.Assistant, kind parley.DeliveryKind) *parley.Delivery {
	t.Helper()
	c := &parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.Outbound, Status: parley.CallInitiated, Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
	require.NoError(t, db.Tenant(a.UserID).CreateCall(t.Context(), c, ""))
	d := &parley.Delivery{UserID: a.UserID, CallID: c.ID, AssistantID: a.ID, Kind: kind, Event: parley.EventCompleted, URL: "https://x.example", Body: `{"a":1}`}
	require.NoError(t, db.System().AddDelivery(t.Context(), d))
	return d
}

func anAssistantOf(t *testing.T, db *store.DB, email string) *parley.Assistant {
	t.Helper()
	user, _ := storetest.User(t, db, email)
	a := storetest.Assistant("Front desk")
	a.EnableWebhook("https://x.example")
	require.NoError(t, db.Tenant(user.ID).CreateAssistant(t.Context(), a))
	return a
}

func TestDeliveriesRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		mine, theirs := anAssistantOf(t, db, "a@example.com"), anAssistantOf(t, db, "b@example.com")
		tenant := db.Tenant(mine.UserID)
		second := storetest.Assistant("Back office")
		require.NoError(t, tenant.CreateAssistant(ctx, second))
		foreign := told(t, db, theirs, parley.PostCallWebhook)
		var all []*parley.Delivery
		for i := range 6 {
			a := mine
			if i%2 == 1 {
				a = second
			}
			all = append(all, told(t, db, a, parley.PostCallWebhook))
		}
		require.NotEqual(t, all[0].MessageID, all[1].MessageID)
		status, body, failure, at := 503, "later", "answered with status 503", time.Date(2026, 1, 31, 12, 0, 0, 1000, time.UTC)
		d := all[5]
		d.Status, d.Attempts, d.ResponseStatus, d.ResponseBody, d.Error, d.NextAt, d.DeliveredAt, d.URL = parley.DeliveryDead, 8, &status, &body, &failure, &at, &at, "https://y.example"
		require.NoError(t, db.System().SaveDelivery(ctx, d))
		got, err := tenant.Delivery(ctx, d.ID)
		require.NoError(t, err)
		require.Equal(t, d, got)
		got, err = db.System().Delivery(ctx, d.ID)
		require.NoError(t, err)
		require.Equal(t, d, got)

		ids := func(f store.DeliveryFilter, limit, offset, total int) (ids []parley.ID) {
			page, n, err := tenant.Deliveries(ctx, f, limit, offset)
			require.NoError(t, err)
			require.Equal(t, total, n)
			for _, d := range page {
				ids = append(ids, d.ID)
			}
			return ids
		}
		require.Equal(t, []parley.ID{all[5].ID, all[4].ID}, ids(store.DeliveryFilter{}, 2, 0, 6), "the newest first")
		require.Equal(t, []parley.ID{all[1].ID, all[0].ID}, ids(store.DeliveryFilter{}, 10, 4, 6))
		require.Equal(t, []parley.ID{all[5].ID}, ids(store.DeliveryFilter{Status: "dead"}, 10, 0, 1))
		require.Equal(t, []parley.ID{all[4].ID, all[2].ID, all[0].ID}, ids(store.DeliveryFilter{AssistantID: &mine.ID}, 10, 0, 3))
		require.Equal(t, []parley.ID{all[3].ID}, ids(store.DeliveryFilter{CallID: &all[3].CallID}, 10, 0, 1))
		require.Empty(t, ids(store.DeliveryFilter{Status: "dead", AssistantID: &mine.ID}, 10, 0, 0))

		// Nobody else's.
		_, err = tenant.Delivery(ctx, foreign.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		require.Empty(t, ids(store.DeliveryFilter{CallID: &foreign.CallID}, 10, 0, 0))
		require.Empty(t, ids(store.DeliveryFilter{AssistantID: &theirs.ID}, 10, 0, 0))
		foreign.Status = parley.DeliverySending
		require.NoError(t, db.System().SaveDelivery(ctx, foreign))
		n, err := tenant.Sending(ctx, theirs.ID, parley.PostCallWebhook)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = db.Tenant(theirs.UserID).Sending(ctx, theirs.ID, parley.PostCallWebhook)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		n, err = db.Tenant(theirs.UserID).Sending(ctx, theirs.ID, parley.InboundWebhook)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Equal(t, parley.NotFound, parley.ErrorCode(db.System().SaveDelivery(ctx, &parley.Delivery{ID: 4711})))

		// A call that is deleted takes its deliveries with it.
		_, err = db.SQL().Exec(fmt.Sprintf("UPDATE calls SET status = 'completed' WHERE id = %d", all[3].CallID))
		require.NoError(t, err)
		require.NoError(t, tenant.DeleteCall(ctx, all[3].CallID, store.Recordings(t.TempDir())))
		_, err = tenant.Delivery(ctx, all[3].ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
	})
}

// Many small transactions at once: each happens once and whole, and one that fails or
// panics harms no other.
func TestBatchesOfMany(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := anAssistantOf(t, db, "a@example.com")
		var all []*parley.Delivery
		for range 8 {
			all = append(all, told(t, db, a, parley.PostCallWebhook))
		}
		refused := errors.New("refused")
		const workers, each = 40, 10
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				for i := range each {
					id := all[(w+i)%len(all)].ID
					fails := w%8 == 7
					err := db.System().Batch(t.Context(), func(tx *store.System) error {
						d, err := tx.Delivery(t.Context(), id)
						if err != nil {
							return err
						}
						d.Attempts++
						if err := tx.SaveDelivery(t.Context(), d); err != nil {
							return err
						}
						switch {
						case fails && i%2 == 0:
							panic("in a part")
						case fails:
							return refused
						}
						return nil
					})
					if fails != (err != nil) {
						t.Errorf("worker %d got %v", w, err)
					}
				}
			})
		}
		wait.Wait()
		sum := 0
		for _, d := range all {
			now, err := db.System().Delivery(t.Context(), d.ID)
			require.NoError(t, err)
			sum += now.Attempts
		}
		require.Equal(t, workers*each*7/8, sum, "no update is lost, and none of those that failed is kept")
		// Inside a transaction it is a part of it.
		err := db.System().Tx(t.Context(), func(tx *store.System) error {
			err := tx.Batch(t.Context(), func(tx *store.System) error {
				d := *all[0]
				d.Attempts = 1000
				return tx.SaveDelivery(t.Context(), &d)
			})
			require.NoError(t, err)
			return refused
		})
		require.ErrorIs(t, err, refused)
		now, err := db.System().Delivery(t.Context(), all[0].ID)
		require.NoError(t, err)
		require.NotEqual(t, 1000, now.Attempts)
	})
}

// A worker that is told to stop while others work for it gets its answer all the same.
func TestABatchOfSomebodyWhoLeaves(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := anAssistantOf(t, db, "a@example.com")
		d := told(t, db, a, parley.PostCallWebhook)
		gone, leave := context.WithCancel(t.Context())
		leave()
		err := db.System().Batch(gone, func(tx *store.System) error {
			d.Attempts = 7
			return tx.SaveDelivery(context.WithoutCancel(gone), d)
		})
		now, readErr := db.System().Delivery(t.Context(), d.ID)
		require.NoError(t, readErr)
		require.Equal(t, err == nil, now.Attempts == 7, "what it says is what happened")
	})
}

func TestWebhooksThatOnlyFail(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, system := t.Context(), db.System()
		a, other := anAssistantOf(t, db, "a@example.com"), anAssistantOf(t, db, "b@example.com")
		day := func(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }
		add := func(a *parley.Assistant, kind parley.DeliveryKind, status parley.DeliveryStatus, made time.Time) {
			d := told(t, db, a, kind)
			d.Status = status
			if status == parley.DeliveryDelivered {
				d.DeliveredAt = &made
			}
			require.NoError(t, system.SaveDelivery(ctx, d))
			_, err := db.SQL().Exec(fmt.Sprintf("UPDATE webhook_deliveries SET created_at = %d WHERE id = %d", made.UnixMicro(), d.ID))
			require.NoError(t, err)
		}
		since := func(kind parley.DeliveryKind) time.Time {
			at, err := system.FailingSince(ctx, a.ID, kind)
			require.NoError(t, err)
			return at
		}
		require.WithinDuration(t, time.Now(), since(parley.PostCallWebhook), time.Minute, "nothing was told yet")
		add(a, parley.PostCallWebhook, parley.DeliveryDead, day(3))
		add(a, parley.PostCallWebhook, parley.DeliveryPending, day(4))
		add(other, parley.PostCallWebhook, parley.DeliveryDead, day(1))
		add(a, parley.InboundWebhook, parley.DeliveryDead, day(2))
		add(a, parley.PostCallWebhook, parley.DeliveryCancelled, day(1))
		require.Equal(t, day(3), since(parley.PostCallWebhook))
		require.Equal(t, day(2), since(parley.InboundWebhook))
		add(a, parley.PostCallWebhook, parley.DeliveryDelivered, day(5))
		require.WithinDuration(t, time.Now(), since(parley.PostCallWebhook), time.Minute)
		add(a, parley.PostCallWebhook, parley.DeliveryDead, day(6))
		require.Equal(t, day(6), since(parley.PostCallWebhook))

		a.EnableInboundWebhook("https://x.example/in")
		require.NoError(t, db.Tenant(a.UserID).SaveAssistant(ctx, a, false))
		wants := func(kind parley.DeliveryKind) string {
			address, err := system.WantsWebhook(ctx, a.ID, kind)
			require.NoError(t, err)
			return address
		}
		require.NoError(t, system.SwitchOff(ctx, a.ID, parley.PostCallWebhook))
		require.Empty(t, wants(parley.PostCallWebhook))
		require.Equal(t, "https://x.example/in", wants(parley.InboundWebhook))
		kept, err := db.Tenant(a.UserID).Assistant(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, "https://x.example", *kept.WebhookURL, "the address is kept")
		require.NoError(t, system.SwitchOff(ctx, a.ID, parley.InboundWebhook))
		require.Empty(t, wants(parley.InboundWebhook))
		theirs, err := system.WantsWebhook(ctx, other.ID, parley.PostCallWebhook)
		require.NoError(t, err)
		require.NotEmpty(t, theirs)
		require.NoError(t, db.Tenant(other.UserID).DeleteAssistant(ctx, other.ID))
		theirs, err = system.WantsWebhook(ctx, other.ID, parley.PostCallWebhook)
		require.NoError(t, err)
		require.Empty(t, theirs, "a deleted assistant wants nothing")
		require.Equal(t, parley.NotFound, parley.ErrorCode(system.SwitchOff(ctx, 4711, parley.PostCallWebhook)))
	})
}
