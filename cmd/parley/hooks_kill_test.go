package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/jobs"
	"parley/internal/promise"
	"parley/internal/store"
)

// ledger is a receiver that counts every message by its id.
type ledger struct {
	mu       sync.Mutex
	came     map[string]int
	calls    map[string]float64 // whose end an id tells of
	answered int
	holding  chan struct{} // while it is open, requests wait for its end
	held     int
}

func (l *ledger) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var message struct{ ID float64 }
	if json.Unmarshal(body, &message) != nil {
		return // cut off in the middle
	}
	l.mu.Lock()
	id := r.Header.Get("Webhook-Id")
	l.came[id]++
	l.calls[id] = message.ID
	holding := l.holding
	l.held++
	l.mu.Unlock()
	if holding != nil {
		<-holding
	}
	l.mu.Lock()
	l.answered++
	l.mu.Unlock()
}

func (l *ledger) read(of func() int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return of()
}

// TestPromiseW2KillsLoseNothing: servers die between any two steps of a delivery, from
// the end of the conversation to the written answer. Every call is told of by one
// message; what was written down as delivered is never sent again.
func TestPromiseW2KillsLoseNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		l := &ledger{came: map[string]int{}, calls: map[string]float64{}}
		receiver := httptest.NewServer(l)
		t.Cleanup(receiver.Close)
		env = append(env, "PARLEY_ALLOW_PRIVATE=127.0.0.1", "PARLEY_TOKEN=chosen-chosen-chosen-chosen-chosen-")
		n := serves(t, env)
		n.token = "chosen-chosen-chosen-chosen-chosen-"
		n.want(201, "POST", "/api/user/assistant", fmt.Sprintf(`{"assistant_name":"Front desk","voice_id":1,"language":"English","llm_model":"sandbox","calls_direction":"make","engine_type":"pipeline",
			"timezone":"UTC","initial_message":"Hello.","system_prompt":"Be kind.","is_webhook_active":true,"webhook_url":%q}`, receiver.URL))
		w := watch(t, env)
		deliveries := func(status string) func() int {
			return func() int { return w.count("SELECT COUNT(*) FROM webhook_deliveries WHERE status " + status) }
		}
		steps := []struct {
			name string
			at   func() int // grows when the step is made
		}{
			{"the conversation is over", func() int { return w.count("SELECT COUNT(*) FROM calls") }},
			{"the call is completed", deliveries("IS NOT NULL")},
			{"the try is written down", deliveries("<> 'pending'")},
			{"the receiver has the message", func() int { return l.read(func() int { return l.held }) }},
			{"the receiver has answered", func() int { return l.read(func() int { return l.answered }) }},
			{"the answer is written down", deliveries("= 'delivered'")},
		}
		const perKill = 12
		kills := len(steps) * promise.Figure(1, 15)
		done := map[string]int{} // how often what was delivered had come by then
		for kill := range kills {
			step := steps[kill%len(steps)]
			release := func() {}
			if step.name == "the receiver has the message" {
				release = l.hold()
			}
			before := step.at()
			w.endCalls(perKill)
			require.Eventually(t, func() bool { return step.at() > before }, time.Minute, time.Millisecond, step.name)
			time.Sleep(time.Duration(kill/len(steps)%8) * 5 * time.Millisecond) // another place between the two
			require.NoError(t, n.command.Process.Kill())
			<-n.exited
			release()
			for _, id := range w.delivered() {
				if _, known := done[id]; !known {
					done[id] = l.read(func() int { return l.came[id] })
				}
			}
			n = serves(t, env)
		}
		calls := perKill * kills
		require.Eventually(t, func() bool { return len(w.delivered()) == calls }, 3*time.Minute, 50*time.Millisecond, "not everything was delivered")
		n.stops()

		l.mu.Lock()
		defer l.mu.Unlock()
		require.Len(t, l.came, calls, "one message for each call")
		told := map[float64]bool{}
		for _, call := range l.calls {
			told[call] = true
		}
		require.Len(t, told, calls, "and no call has two")
		twice := 0
		for id, times := range l.came {
			require.LessOrEqual(t, times, 1+kills)
			if times > 1 {
				twice++
			}
			if was, before := done[id]; before {
				require.Equal(t, was, times, "%s was sent again after it was written down as delivered", id)
			}
		}
		t.Logf("%d kills, %d calls, %d messages came more than once", kills, calls, twice)
		require.Zero(t, w.count("SELECT COUNT(*) FROM webhook_deliveries WHERE status <> 'delivered'"))
	})
}

// hold has requests wait until they are released; who asked has died by then.
func (l *ledger) hold() (release func()) {
	holding := make(chan struct{})
	l.mu.Lock()
	l.holding = holding
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		l.holding = nil
		l.mu.Unlock()
		close(holding)
	}
}

// watcher looks at a server's database from outside, and gives it work.
type watcher struct {
	t     *testing.T
	db    *store.DB
	queue *jobs.Queue
	user  parley.ID
}

func watch(t *testing.T, env []string) *watcher {
	t.Helper()
	var o store.Options
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case "PARLEY_DATA":
			o.Dir = value
		case "PARLEY_DB":
			o.URL = value
		}
	}
	var err error
	o.Keys, err = store.KeyFile(filepath.Join(o.Dir, "secret.key"))
	require.NoError(t, err)
	w := &watcher{t: t}
	w.db, err = store.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.db.Close()) })
	w.queue, err = jobs.New(w.db, slog.New(slog.DiscardHandler), jobs.Work{}) // it only takes jobs
	require.NoError(t, err)
	user, err := w.db.System().UserByEmail(t.Context(), store.FirstUser.Email)
	require.NoError(t, err)
	w.user = user.ID
	return w
}

func (w *watcher) count(query string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.db.ReadSQL().QueryRow(query).Scan(&n))
	return n
}

// delivered are the ids of all messages that were.
func (w *watcher) delivered() (ids []string) {
	w.t.Helper()
	all, _, err := w.db.Tenant(w.user).Deliveries(w.t.Context(), store.DeliveryFilter{Status: "delivered"}, 100_000, 0)
	require.NoError(w.t, err)
	for _, d := range all {
		ids = append(ids, d.MessageID)
	}
	return ids
}

// endCalls leaves calls as a conversation leaves them: ended, and with the job to finish them.
func (w *watcher) endCalls(n int) {
	w.t.Helper()
	require.NoError(w.t, w.db.Tenant(w.user).Tx(w.t.Context(), func(t *store.Tenant) error {
		for range n {
			c := &parley.Call{AssistantID: 1, AssistantName: "Front desk", Type: parley.Outbound, Status: parley.CallEndedByCustomer, Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
			if err := t.CreateCall(w.t.Context(), c, ""); err != nil {
				return err
			}
			if err := w.queue.Finish(w.t.Context(), t.System(), c.ID); err != nil {
				return err
			}
		}
		return nil
	}))
}
