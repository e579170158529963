package egress

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestPromiseW2NothingIsLost: of what comes to a receiver 30 % fails, 10 % hangs and 10 %
// is cut off; every message arrives, and is the same message on each try.
func TestPromiseW2NothingIsLost(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, func(n *Notifier) { n.Client.deliver = 200 * time.Millisecond })
		var mu sync.Mutex
		bodies, tries, taken := map[string]string{}, map[string]int{}, map[string]int{}
		random := rand.New(rand.NewPCG(3, 4))
		fails := func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			id := r.Header.Get("Webhook-Id")
			mu.Lock()
			if before, again := bodies[id]; again && before != string(body) {
				t.Errorf("%s came with two bodies", id)
			}
			bodies[id] = string(body)
			tries[id]++
			fate := random.IntN(10)
			if fate >= 5 {
				taken[id]++
			}
			mu.Unlock()
			switch {
			case fate < 3:
				w.WriteHeader(http.StatusInternalServerError)
			case fate < 4:
				hangs(w, r)
			case fate < 5:
				panic(http.ErrAbortHandler) // the connection is reset
			}
		}
		var assistants []*parley.Assistant // one receiver alone would be spared, and take its time
		for range 10 {
			assistants = append(assistants, o.assistant(serve(t, fails)))
		}
		events := promise.Figure(100, 1000)
		for i := range events {
			a := assistants[i%len(assistants)]
			o.ends(o.call(a), a)
		}
		all := o.deliveries()
		require.Len(t, all, events)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, taken, events, "as many distinct ids as events")
		sum := 0
		for _, d := range all {
			require.Equal(t, parley.DeliveryDelivered, d.Status, d.Error)
			require.Equal(t, d.Body, bodies[d.MessageID])
			require.GreaterOrEqual(t, d.Attempts, 1)
			require.LessOrEqual(t, tries[d.MessageID], d.Attempts, "every try is counted")
			// A 200 that was not heard in time is tried again: at least once.
			require.GreaterOrEqual(t, taken[d.MessageID], 1)
			sum += tries[d.MessageID]
		}
		t.Logf("%d events, %d tries", events, sum)
		require.Greater(t, sum, events+events/4, "the receiver did fail")
	})
}

// TestPromiseW4AReceiverThatHangs, end to end: one of 21 hangs on everything; what the
// others get is not late.
func TestPromiseW4AReceiverThatHangs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db)
		var holding, most atomic.Int64
		bad := o.assistant(serve(t, func(w http.ResponseWriter, r *http.Request) {
			now := holding.Add(1)
			for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
			}
			hangs(w, r)
			holding.Add(-1)
		}))
		var mu sync.Mutex
		arrived := map[string]time.Time{}
		var good []*parley.Assistant
		for range 20 {
			good = append(good, o.assistant(serve(t, func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				arrived[r.Header.Get("Webhook-Id")] = time.Now()
			})))
		}
		// round tells each good receiver once and gives the time until all have it.
		round := func() (took []time.Duration) {
			var calls []*parley.Call
			for _, a := range good {
				calls = append(calls, o.call(a))
			}
			began := map[parley.ID]time.Time{}
			for i, c := range calls {
				o.ends(c, good[i])
				began[c.ID] = time.Now()
			}
			for _, c := range calls {
				var d parley.Delivery
				require.Eventually(t, func() bool {
					all, _, err := o.tenant.Deliveries(t.Context(), store.DeliveryFilter{CallID: &c.ID}, 1, 0)
					d = all[0]
					return err == nil && d.Status == parley.DeliveryDelivered
				}, time.Minute, 10*time.Millisecond)
				mu.Lock()
				took = append(took, max(0, arrived[d.MessageID].Sub(began[c.ID])))
				mu.Unlock()
			}
			return took
		}
		var before, beside []time.Duration
		for range 3 {
			before = append(before, round()...)
		}
		for range 100 {
			o.ends(o.call(bad), bad)
		}
		require.Eventually(t, func() bool { return holding.Load() > 0 }, time.Minute, 10*time.Millisecond)
		for range 5 {
			beside = append(beside, round()...)
		}
		alone, p95 := at(before, 95), at(beside, 95)
		t.Logf("p95 %s, without the bad receiver %s; it held %d at most", p95, alone, most.Load())
		// A machine that is late without it is late with it.
		require.LessOrEqual(t, p95, max(time.Second, 3*alone))
		require.LessOrEqual(t, most.Load(), int64(firstRoom))
		all, dead, err := o.tenant.Deliveries(t.Context(), store.DeliveryFilter{Status: "delivered", AssistantID: &bad.ID}, 1, 0)
		require.NoError(t, err)
		require.Empty(t, all)
		require.Zero(t, dead)
	})
}

func at(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[len(all)*percent/100]
}

// TestPromiseW3DeadAndReplayed: after the last try a message is dead; one that is gone is
// dead at once; a webhook that is switched off is left alone.
func TestPromiseW3DeadAndReplayed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, func(n *Notifier) { n.Schedule = quickly(3) })
		box := newPostbox(t)
		a := o.assistant(box.url)
		one := func() parley.Delivery {
			c := o.call(a)
			o.ends(c, a)
			for _, d := range o.deliveries() {
				if d.CallID == c.ID {
					return d
				}
			}
			t.Fatal("it was not told")
			return parley.Delivery{}
		}
		box.answers(503, "later")
		d := one()
		require.Equal(t, parley.DeliveryDead, d.Status)
		require.Equal(t, 3, d.Attempts)
		require.Equal(t, 503, *d.ResponseStatus)
		require.Equal(t, "later", *d.ResponseBody)
		require.Equal(t, "answered with status 503", *d.Error)
		require.Nil(t, d.DeliveredAt)
		require.Len(t, box.all(), 3)
		for _, got := range box.all() {
			require.Equal(t, d.MessageID, got.header.Get("Webhook-Id"))
		}
		c, err := o.tenant.Call(t.Context(), d.CallID)
		require.NoError(t, err)
		require.Nil(t, c.WebhookResponse, "a failure is no answer")

		box.answers(410, "")
		d = one()
		require.Equal(t, parley.DeliveryDead, d.Status)
		require.Equal(t, 1, d.Attempts)

		// Begun anew it starts with the first try, with the same id, to the new address.
		box.answers(200, "thanks")
		require.NoError(t, o.tenant.Tx(t.Context(), func(tx *store.Tenant) error {
			now := time.Now().UTC()
			d.Status, d.Attempts, d.NextAt = parley.DeliveryPending, 0, &now
			if err := tx.System().SaveDelivery(t.Context(), &d); err != nil {
				return err
			}
			return o.queue.Deliver(t.Context(), tx.System(), d.ID, now)
		}))
		a.EnableWebhook(box.url + "/moved")
		require.NoError(t, o.tenant.SaveAssistant(t.Context(), a, false))
		again := d
		for _, x := range o.deliveries() {
			if x.ID == d.ID {
				again = x
			}
		}
		require.Equal(t, parley.DeliveryDelivered, again.Status)
		require.Equal(t, 1, again.Attempts)
		got := box.all()
		require.Equal(t, d.MessageID, got[len(got)-1].header.Get("Webhook-Id"))
		c, err = o.tenant.Call(t.Context(), d.CallID)
		require.NoError(t, err)
		require.Equal(t, "thanks", c.WebhookResponse.Body)

		// What was switched off before its time is cancelled, and costs its receiver nothing.
		sent := len(box.all())
		a.DisableWebhook()
		require.NoError(t, o.tenant.SaveAssistant(t.Context(), a, false))
		on := *a
		on.EnableWebhook(box.url) // as the call's end had read it
		c = o.call(a)
		o.ends(c, &on)
		all := o.deliveries()
		require.Equal(t, parley.DeliveryCancelled, all[0].Status)
		require.Len(t, box.all(), sent)
		require.Eventually(t, func() bool {
			o.receivers.mu.Lock()
			defer o.receivers.mu.Unlock()
			return len(o.receivers.all) == 0
		}, time.Minute, 10*time.Millisecond, "a receiver that was not tried is as good as new")
	})
}

// TestPromiseW4HopelessWebhooksAreSwitchedOff: after days of nothing but failures, not
// after sporadic ones.
func TestPromiseW4HopelessWebhooksAreSwitchedOff(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, func(n *Notifier) { n.Schedule = quickly(1) })
		box := newPostbox(t)
		a := o.assistant(box.url, func(a *parley.Assistant) { a.EnableInboundWebhook(box.url + "/inbound") })
		tell := func() { o.ends(o.call(a), a); o.deliveries() }
		// ago makes everything that was told older.
		ago := func(d time.Duration) {
			_, err := db.SQL().Exec(fmt.Sprintf("UPDATE webhook_deliveries SET created_at = created_at - %d, delivered_at = delivered_at - %d", d.Microseconds(), d.Microseconds()))
			require.NoError(t, err)
		}
		active := func() bool {
			now, err := o.tenant.Assistant(t.Context(), a.ID)
			require.NoError(t, err)
			require.NotNil(t, now.InboundWebhookURL, "the other webhook stays")
			require.Equal(t, box.url, strings.TrimSuffix(*now.WebhookURL, "/"), "its address is kept")
			return now.IsWebhookActive
		}
		box.answers(500, "")
		tell()
		ago(4 * 24 * time.Hour)
		tell()
		require.True(t, active(), "four days are not enough")
		box.answers(200, "")
		tell()
		ago(3 * 24 * time.Hour)
		box.answers(500, "")
		tell()
		require.True(t, active(), "it has worked in between")
		ago(4 * 24 * time.Hour)
		tell()
		require.True(t, active())
		ago(25 * time.Hour)
		tell()
		require.False(t, active(), "five days of failures only")
		sent := len(box.all())
		fresh, err := o.tenant.Assistant(t.Context(), a.ID)
		require.NoError(t, err)
		o.ends(o.call(fresh), fresh)
		o.deliveries()
		require.Len(t, box.all(), sent)

		// The inbound webhook's address is its switch.
		in := func() {
			o.ends(o.call(fresh, func(c *parley.Call) { c.Type = parley.Inbound }), fresh)
			o.deliveries()
		}
		in()
		ago(6 * 24 * time.Hour)
		in()
		fresh, err = o.tenant.Assistant(t.Context(), a.ID)
		require.NoError(t, err)
		require.Nil(t, fresh.InboundWebhookURL)
	})
}
