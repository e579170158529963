package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/egress"
	"parley/internal/jobs"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// withHooks is a service whose webhooks are delivered; failed tries are repeated ten
// times a second.
func withHooks(t *testing.T, db *store.DB) (*service, *egress.Notifier) {
	t.Helper()
	allowed, err := egress.ParseAllowed([]string{"127.0.0.1"})
	require.NoError(t, err)
	client := egress.New(egress.Config{Allowed: allowed})
	t.Cleanup(client.Close)
	n := &egress.Notifier{DB: db, Client: client, Log: slog.New(slog.DiscardHandler), Recording: func(*parley.Call) *string { return nil }}
	n.Schedule = func(try int, _ egress.Attempt, now time.Time) (time.Time, bool) {
		return now.Add(100 * time.Millisecond), try >= 3
	}
	queue, err := jobs.New(db, slog.New(slog.DiscardHandler), jobs.Work{Deliver: n.Deliver})
	require.NoError(t, err)
	n.Start(queue)
	require.NoError(t, queue.Start(t.Context()))
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.NoError(t, queue.Stop(stopping))
	})
	return newService(t, db, func(c *api.Config) { c.Queue = queue }), n
}

// owner is the service's user's view.
func (s *service) owner() *store.Tenant {
	s.t.Helper()
	user, err := s.db.System().Authenticate(s.t.Context(), s.token)
	require.NoError(s.t, err)
	return s.db.Tenant(user.ID)
}

// ends has a call of an assistant end, as it is told to the assistant's webhooks.
func ends(t testing.TB, n *egress.Notifier, tenant *store.Tenant, a *parley.Assistant, direction parley.Direction) error {
	t.Helper()
	c := &parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: direction, Status: parley.CallInitiated, Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
	return tenant.Tx(context.Background(), func(t *store.Tenant) error {
		if err := t.CreateCall(context.Background(), c, ""); err != nil {
			return err
		}
		c.Status = parley.CallCompleted
		now, err := t.System().AssistantOf(context.Background(), c)
		if err != nil {
			return err
		}
		return n.Concluded(context.Background(), t.System(), c, now)
	})
}

func (s *service) eventually(path, part string) {
	s.t.Helper()
	got := ""
	require.Eventually(s.t, func() bool { got = s.want(200, "GET", path, "").body; return strings.Contains(got, part) }, time.Minute, 20*time.Millisecond, "%s never had %s: %s", path, part, &got)
}

func TestPromiseA5DeliveryContract(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var mu sync.Mutex
		status, ids := http.StatusServiceUnavailable, []string{}
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, r.Header.Get("Webhook-Id"))
			w.WriteHeader(status)
			fmt.Fprint(w, "noted")
		}))
		t.Cleanup(receiver.Close)
		s, n := withHooks(t, db)
		s.want(201, "POST", "/user/assistant", anAssistant(`"is_webhook_active":true,"webhook_url":"`+receiver.URL+`/hook"`))
		tenant := s.owner()
		a, err := tenant.Assistant(t.Context(), 1)
		require.NoError(t, err)
		s.play([]step{
			{"GET", "/user/webhooks/deliveries", "", 200, "", []string{`"data":[]`, `"total":0`}, nil},
			{"GET", "/user/webhooks/deliveries/1", "", 404, `{"message":"Delivery not found"}`, nil, nil},
			{"POST", "/user/webhooks/deliveries/1/replay", "", 404, `{"message":"Delivery not found"}`, nil, nil},
		})
		require.NoError(t, ends(t, n, tenant, a, parley.Outbound))
		s.eventually("/user/webhooks/deliveries/1", `"status":"dead"`)
		const invalid = `{"message":"Validation failed","errors":{`
		s.play([]step{
			{"GET", "/user/webhooks/deliveries/1", "", 200, "", []string{
				`{"id":1,"webhook_id":"msg_`, `","event":"call.completed","kind":"post_call","call_id":1,"assistant_id":1,"url":"` + receiver.URL + `/hook","status":"dead","attempts":3,` +
					`"response_status":503,"response_body":"noted","error":"answered with status 503","next_attempt_at":null,"created_at":"20`, `"delivered_at":null}`}, []string{"user_id", `"body"`}},
			{"GET", "/user/webhooks/deliveries", "", 200, "", []string{`"data":[{"id":1,`, `"total":1`, `"per_page":15`}, nil},
			{"GET", "/user/webhooks/deliveries?status=dead&call_id=1&assistant_id=1", "", 200, "", []string{`"total":1`}, nil},
			{"GET", "/user/webhooks/deliveries?status=delivered", "", 200, "", []string{`"data":[]`, `"total":0`}, nil},
			{"GET", "/user/webhooks/deliveries?call_id=2", "", 200, "", []string{`"data":[]`}, nil},
			{"GET", "/user/webhooks/deliveries?assistant_id=2", "", 200, "", []string{`"data":[]`}, nil},
			{"GET", "/user/webhooks/deliveries?per_page=1&page=2", "", 200, "", []string{`"data":[]`, `"current_page":2`, `"per_page":1`}, nil},
			{"GET", "/user/webhooks/deliveries?status=lost", "", 422, "", []string{invalid + `"status":["The selected status is invalid.`}, nil},
			{"GET", "/user/webhooks/deliveries?call_id=x", "", 422, "", []string{invalid + `"call_id":[`}, nil},
			{"GET", "/user/webhooks/deliveries?per_page=0", "", 422, "", []string{invalid + `"per_page":["The per page must be between 1 and 100."]`}, nil},
			{"DELETE", "/user/webhooks/deliveries/1", "", 405, "", []string{"Allowed: GET"}, nil},
			// Off: nothing to replay to.
			{"POST", "/user/assistants/disable-webhook", `{"assistant_id":1}`, 200, "", nil, nil},
			{"POST", "/user/webhooks/deliveries/1/replay", "", 422, `{"message":"The webhook is switched off. Enable it first."}`, nil, nil},
			{"POST", "/user/assistants/enable-webhook", `{"assistant_id":1,"webhook_url":"` + receiver.URL + `/moved"}`, 200, "", nil, nil},
		})
		mu.Lock()
		status = http.StatusAccepted
		mu.Unlock()
		s.play([]step{{"POST", "/user/webhooks/deliveries/1/replay", "", 200, "", []string{
			`{"message":"Delivery is being replayed","data":{"id":1,"webhook_id":"msg_`, receiver.URL + `/moved","status":"pending","attempts":0,`}, nil}})
		s.eventually("/user/webhooks/deliveries/1", `/moved","status":"delivered","attempts":1,"response_status":202,"response_body":"noted","error":null,"next_attempt_at":null,`)
		mu.Lock()
		require.Len(t, ids, 4)
		for _, id := range ids {
			require.Equal(t, ids[0], id, "the same id on every try")
		}
		mu.Unlock()
		require.Contains(t, s.want(200, "GET", "/user/calls/1", "").body, `"webhook_response":{"status":202,"body":"noted","delivered_at":"20`)
	})
}

// Somebody else's deliveries are as unknown as those that do not exist.
func TestPromiseA1DeliveriesOfOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		victim, n := withHooks(t, db)
		victim.want(201, "POST", "/user/assistant", anAssistant(`"is_webhook_active":true,"webhook_url":"http://127.0.0.1:1/hook"`))
		tenant := victim.owner()
		a, err := tenant.Assistant(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, ends(t, n, tenant, a, parley.Outbound))
		victim.want(200, "DELETE", "/user/assistant/1", "")
		victim.eventually("/user/webhooks/deliveries/1", `"status":"`)
		require.Eventually(t, func() bool {
			d, err := tenant.Delivery(t.Context(), 1)
			return err == nil && d.Status.Over()
		}, time.Minute, 20*time.Millisecond)
		before := victim.want(200, "GET", "/user/webhooks/deliveries", "").body
		attacker := victim.as("attacker@example.com")
		for _, route := range []struct{ method, path string }{{"GET", "/user/webhooks/deliveries/%d"}, {"POST", "/user/webhooks/deliveries/%d/replay"}} {
			theirs := attacker.want(404, route.method, fmt.Sprintf(route.path, 1), "")
			require.Equal(t, attacker.want(404, route.method, fmt.Sprintf(route.path, 987654321), "").body, theirs.body)
		}
		for _, filter := range []string{"", "?call_id=1", "?assistant_id=1", "?status=dead", "?status=cancelled"} {
			found := attacker.want(200, "GET", "/user/webhooks/deliveries"+filter, "").object(t)
			require.Empty(t, found["data"])
			require.Zero(t, found["total"])
		}
		require.Equal(t, before, victim.want(200, "GET", "/user/webhooks/deliveries", "").body)
	})
}

func TestPromiseA5WebhookSecretContract(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db, func(c *api.Config) { c.NewSecret = egress.NewSecret })
		first := s.want(200, "GET", "/user/webhooks/secret", "")
		require.Regexp(t, `^\{"created_at":"20[^"]+Z","previous_secret":null,"previous_secret_expires_at":null,"secret":"whsec_[A-Za-z0-9+/]{43}="\}$`, first.body)
		require.Equal(t, first.body, s.want(200, "GET", "/user/webhooks/secret", "").body)
		rotated := s.want(200, "POST", "/user/webhooks/secret", "")
		require.Contains(t, rotated.body, `{"message":"Webhook secret rotated successfully","data":{`)
		data := rotated.data(t)
		require.Equal(t, first.object(t)["secret"], data["previous_secret"])
		require.NotEqual(t, data["secret"], data["previous_secret"])
		expires, err := time.Parse(time.RFC3339Nano, data["previous_secret_expires_at"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(24*time.Hour), expires, time.Minute)
		require.Equal(t, data, s.want(200, "GET", "/user/webhooks/secret", "").object(t))
		require.NotContains(t, s.log.String(), "whsec_")
		other := s.as("other@example.com").want(200, "GET", "/user/webhooks/secret", "").body
		require.NotContains(t, other, data["secret"])
		require.NotContains(t, other, data["previous_secret"])
	})
}

// ways are how a webhook is switched off.
var ways = []struct {
	method, path, body string
	kind               parley.DeliveryKind
}{
	{"POST", "/user/assistants/disable-webhook", `{"assistant_id":%d}`, parley.PostCallWebhook},
	{"PUT", "/user/assistant/%d", `{"is_webhook_active":false}`, parley.PostCallWebhook},
	{"PATCH", "/user/assistant/%d", `{"webhook_url":null}`, parley.PostCallWebhook},
	{"DELETE", "/user/assistant/%d", ``, parley.PostCallWebhook},
	{"POST", "/user/assistants/disable-inbound-webhook", `{"assistant_id":%d}`, parley.InboundWebhook},
	{"PUT", "/user/assistant/%d", `{"inbound_webhook_url":null}`, parley.InboundWebhook},
	{"DELETE", "/user/assistant/%d", ``, parley.InboundWebhook},
}

// TestPromiseW5OffMeansOff: webhooks are switched off while calls end and failed tries
// are repeated; once the request is answered, nothing starts any more.
func TestPromiseW5OffMeansOff(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var mu sync.Mutex
		last := map[string]time.Time{} // of an assistant's messages
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := time.Now()
			mu.Lock()
			last[r.URL.Path] = now
			mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusInternalServerError) // so that there are tries to come
		}))
		t.Cleanup(receiver.Close)
		s, n := withHooks(t, db)
		n.Schedule = func(try int, _ egress.Attempt, now time.Time) (time.Time, bool) {
			return now.Add(10 * time.Millisecond), try >= 100
		}
		tenant := s.owner()
		races := promise.Figure(50, 500)
		off := make([]time.Time, races)
		paths := make([]string, races)
		assistants := make([]*parley.Assistant, races)
		for i := range races {
			way := ways[i%len(ways)]
			paths[i] = "/" + strconv.Itoa(i)
			a := storetest.Assistant("Front desk")
			direction := parley.Outbound
			if way.kind == parley.InboundWebhook {
				direction, a.Type = parley.Inbound, parley.Inbound
				a.EnableInboundWebhook(receiver.URL + paths[i])
			} else {
				a.EnableWebhook(receiver.URL + paths[i])
			}
			require.NoError(t, tenant.CreateAssistant(t.Context(), a))
			assistants[i] = a
			var wait sync.WaitGroup
			for call := range 3 {
				wait.Go(func() {
					// From before the request to after its answer.
					time.Sleep(time.Duration(i*call%7) * 10 * time.Millisecond)
					if err := ends(t, n, tenant, a, direction); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Duration(i%11) * 8 * time.Millisecond)
			path, body := way.path, way.body
			if strings.Contains(path, "%d") {
				path = fmt.Sprintf(path, a.ID)
			} else {
				body = fmt.Sprintf(body, a.ID)
			}
			s.want(200, way.method, path, body)
			off[i] = time.Now()
			wait.Wait()
		}
		// Nothing is left that could still be sent.
		require.Eventually(t, func() bool {
			for _, status := range []string{"pending", "sending"} {
				if _, open, err := tenant.Deliveries(t.Context(), store.DeliveryFilter{Status: status}, 1, 0); err != nil || open > 0 {
					return false
				}
			}
			return true
		}, time.Minute, 20*time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		reached := 0
		for i, path := range paths {
			if at, came := last[path]; came {
				reached++
				require.Falsef(t, at.After(off[i]), "race %d (%s %s): a message came %s after the answer", i, ways[i%len(ways)].method, ways[i%len(ways)].path, at.Sub(off[i]))
			}
		}
		_, cancelled, err := tenant.Deliveries(t.Context(), store.DeliveryFilter{Status: "cancelled"}, 1, 0)
		require.NoError(t, err)
		t.Logf("%d races, %d of them with messages before the end, %d cancelled", races, reached, cancelled)
		require.Positive(t, reached, "there was something to race against")
		require.Positive(t, cancelled)
	})
}
