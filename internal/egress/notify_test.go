package egress

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/jobs"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// office is a notifier at work on a database, and a user whose calls it tells of.
type office struct {
	*Notifier
	t      *testing.T
	user   parley.ID
	tenant *store.Tenant
}

// newOffice tries failed messages again at once, ten times a second, unless changed.
func newOffice(t *testing.T, db *store.DB, change ...func(*Notifier)) *office {
	t.Helper()
	n := &Notifier{DB: db, Client: home(t), Log: slog.New(slog.DiscardHandler), Recording: func(*parley.Call) *string { return nil }, Schedule: quickly(50)}
	for _, c := range change {
		c(n)
	}
	queue, err := jobs.New(db, slog.New(slog.DiscardHandler), jobs.Work{Deliver: n.Deliver})
	require.NoError(t, err)
	n.Start(queue)
	require.NoError(t, queue.Start(t.Context()))
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.Background(), time.Second) // what hangs is cancelled then
		defer cancel()
		require.NoError(t, queue.Stop(stopping))
	})
	user, _ := storetest.User(t, db, "a@example.com")
	return &office{n, t, user.ID, db.Tenant(user.ID)}
}

// quickly is a schedule of this many tries, a tenth of a second apart.
func quickly(tries int) func(int, Attempt, time.Time) (time.Time, bool) {
	return func(try int, a Attempt, now time.Time) (time.Time, bool) {
		return now.Add(100 * time.Millisecond), try >= tries || a.Status == http.StatusGone
	}
}

// assistant is one that tells an address of its calls.
func (o *office) assistant(address string, change ...func(*parley.Assistant)) *parley.Assistant {
	o.t.Helper()
	a := storetest.Assistant("Front desk")
	a.EnableWebhook(address)
	for _, c := range change {
		c(a)
	}
	require.NoError(o.t, o.tenant.CreateAssistant(o.t.Context(), a))
	return a
}

// call is a stored call that has completed.
func (o *office) call(a *parley.Assistant, change ...func(*parley.Call)) *parley.Call {
	o.t.Helper()
	c := &parley.Call{
		AssistantID: a.ID, AssistantName: a.Name, Type: parley.Outbound, Status: parley.CallInitiated, AssistantNumber: "+12025550180", CustomerNumber: "+12025550100",
		Carrier: parley.CarrierSimulated, Variables: parley.Object{},
	}
	for _, f := range change {
		f(c)
	}
	require.NoError(o.t, o.tenant.CreateCall(o.t.Context(), c, ""))
	if c.Status == parley.CallInitiated {
		c.Status = parley.CallCompleted
	}
	return c
}

// ends has the end of a call told.
func (o *office) ends(c *parley.Call, a *parley.Assistant) {
	o.t.Helper()
	require.NoError(o.t, o.DB.System().Tx(o.t.Context(), func(tx *store.System) error { return o.Concluded(o.t.Context(), tx, c, a) }))
}

// deliveries are all of the user's, once none is under way any more.
func (o *office) deliveries() []parley.Delivery {
	o.t.Helper()
	var all []parley.Delivery
	require.Eventually(o.t, func() bool {
		var err error
		all, _, err = o.tenant.Deliveries(o.t.Context(), store.DeliveryFilter{}, 10_000, 0)
		for _, d := range all {
			if !d.Status.Over() {
				return false
			}
		}
		return err == nil
	}, 5*time.Minute, 20*time.Millisecond)
	return all
}

// settled is the user's only delivery, once it is over.
func (o *office) settled() parley.Delivery {
	o.t.Helper()
	all := o.deliveries()
	require.Len(o.t, all, 1)
	return all[0]
}

// postbox is a receiver that answers as it is told and keeps what came.
type postbox struct {
	mu     sync.Mutex
	got    []received
	url    string
	answer http.HandlerFunc // nil: 200 with a small document
}

func newPostbox(t *testing.T) *postbox {
	t.Helper()
	p := &postbox{}
	p.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.got = append(p.got, received{r.Method, r.RequestURI, string(body), r.Header})
		answer := p.answer
		p.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"ok": true}`)
	})
	return p
}

func (p *postbox) answers(status int, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (p *postbox) all() []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]received{}, p.got...)
}

// The message of a call that is over, to the letter.
func TestTheMessageOfACall(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		link := "http://parley.example/recordings/1.wav"
		o := newOffice(t, db, func(n *Notifier) {
			n.Recording = func(c *parley.Call) *string {
				if c.Recording == "" {
					return nil
				}
				return &link
			}
		})
		box := newPostbox(t)
		a := o.assistant(box.url + "/hook")
		campaign := storetest.Campaign(t, o.tenant, "Spring")
		lead := storetest.Lead(t, o.tenant, campaign.ID, "+12025550100")
		c := o.call(a, func(c *parley.Call) {
			c.CampaignID, c.CampaignName, c.LeadID, c.LeadAttempt, c.Variables = &campaign.ID, &campaign.Name, &lead.ID, 1, parley.Object{"name": "Ada"}
		})
		over, by, reason := time.Date(2026, 1, 31, 12, 30, 0, 123456000, time.UTC), "customer", parley.EndReason("customer_ended")
		c.EndedAt, c.EndedBy, c.EndReason, c.AnsweredBy, c.Duration, c.Recording = &over, &by, &reason, "human", 42, "1.wav"
		c.Evaluation, c.Variables = parley.Object{"status": true, "summary": "Größe ✓"}, parley.Object{"name": "Ada", "day": "Monday"}
		c.Turns = []parley.Turn{{Text: "Hello.", Sender: "bot", Timestamp: "2026-01-31T12:29:00.000000Z", StartedMS: 10, EndedMS: 900}}
		c.Transcript, c.CarrierCost, c.TotalCost = "AI: Hello.", parley.NewMoney(0.5), parley.NewMoney(0.75)
		o.ends(c, a)

		d := o.settled()
		require.Equal(t, parley.DeliveryDelivered, d.Status)
		require.Equal(t, parley.PostCallWebhook, d.Kind)
		require.Equal(t, 1, d.Attempts)
		require.Equal(t, 200, *d.ResponseStatus)
		require.JSONEq(t, `{"ok": true}`, *d.ResponseBody)
		require.Nil(t, d.Error)
		require.Nil(t, d.NextAt)
		got := box.all()
		require.Len(t, got, 1)
		require.Equal(t, d.Body, got[0].body)
		require.Equal(t, "/hook", got[0].uri)
		require.Equal(t, d.MessageID, got[0].header.Get("Webhook-Id"))
		secrets, err := o.tenant.WebhookSecrets(t.Context(), NewSecret)
		require.NoError(t, err)
		require.NoError(t, verify(t, secrets[0].Secret, got[0].header, []byte(got[0].body)))

		var message map[string]any
		require.NoError(t, json.Unmarshal([]byte(got[0].body), &message))
		sent, err := time.Parse("2006-01-02T15:04:05.000000Z", message["timestamp"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), sent, time.Minute)
		require.Equal(t, "+12025550100", message["lead"].(map[string]any)["phone_number"])
		require.Equal(t, map[string]any{"id": float64(campaign.ID), "name": "Spring"}, message["lead"].(map[string]any)["campaign"])
		require.Equal(t, "Spring", message["campaign"].(map[string]any)["name"])
		require.EqualValues(t, campaign.ID, message["campaign"].(map[string]any)["id"])
		delete(message, "timestamp")
		delete(message, "lead")
		delete(message, "campaign")
		want := map[string]any{
			"type": "call.completed", "event": "call.completed", "id": float64(c.ID), "call_type": "outbound", "customer_phone": "+12025550100", "assistant_phone": "+12025550180",
			"duration": 42.0, "status": "completed", "ended_by": "customer", "end_reason": "customer_ended", "answered_by": "human",
			"extracted_variables": map[string]any{"status": true, "summary": "Größe ✓"}, "input_variables": map[string]any{"name": "Ada"}, "variables": map[string]any{"name": "Ada", "day": "Monday"},
			"transcript": []any{map[string]any{
				"text": "Hello.", "sender": "bot", "timestamp": "2026-01-31T12:29:00.000000Z", "started_ms": 10.0, "ended_ms": 900.0, "interrupted": false,
				"latency": map[string]any{"transcript_ms": 0.0, "end_of_turn_ms": 0.0, "first_token_ms": 0.0, "first_sound_ms": 0.0, "first_audio_ms": 0.0},
			}},
			"formatted_transcript": "AI: Hello.", "recording_url": link, "carrier_cost": asJSON(t, c.CarrierCost), "total_cost": asJSON(t, c.TotalCost),
			"created_at": parley.Timestamp(c.CreatedAt), "finished_at": "2026-01-31T12:30:00.123456Z", "assistant": map[string]any{"id": float64(a.ID), "name": "Front desk"},
		}
		require.Equal(t, want, message)

		// What the receiver said is on the call, and the try in its timeline.
		kept, err := o.tenant.Call(t.Context(), c.ID)
		require.NoError(t, err)
		require.Equal(t, 200, kept.WebhookResponse.Status)
		require.Equal(t, map[string]any{"ok": true}, kept.WebhookResponse.Body)
		require.Equal(t, parley.Timestamp(*d.DeliveredAt), kept.WebhookResponse.DeliveredAt)
		last := kept.Timeline[len(kept.Timeline)-1]
		require.Equal(t, parley.EventWebhook, last.Event)
		require.Equal(t, "call.completed", last.Detail["event"])
	})
}

func asJSON(t *testing.T, v any) (back any) {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &back))
	return back
}

// Who is told what: the switches of an assistant, each honoured.
func TestPromiseW5FiltersAreHonoured(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		link := "http://parley.example/recordings/1.wav"
		o := newOffice(t, db, func(n *Notifier) { n.Recording = func(*parley.Call) *string { return &link } })
		box := newPostbox(t)
		everything := func(a *parley.Assistant) { a.SendWebhookOnlyOnCompleted = false }
		inbound := func(a *parley.Assistant) { a.Type = parley.Inbound; a.EnableInboundWebhook(box.url + "/inbound") }
		off := func(a *parley.Assistant) { a.DisableWebhook() }
		came := func(c *parley.Call) { c.Type = parley.Inbound }
		became := func(s parley.CallStatus) func(*parley.Call) { return func(c *parley.Call) { c.Status = s } }
		unlinked := func(a *parley.Assistant) { a.IncludeRecordingInWebhook = false }
		type changes = []func(*parley.Assistant)
		type facts = []func(*parley.Call)
		for name, x := range map[string]struct {
			assistant changes
			call      facts
			told      []parley.DeliveryKind
		}{
			"completed":                       {nil, nil, []parley.DeliveryKind{parley.PostCallWebhook}},
			"busy":                            {nil, facts{became(parley.CallBusy)}, nil},
			"no answer":                       {nil, facts{became(parley.CallNoAnswer)}, nil},
			"failed":                          {nil, facts{became(parley.CallFailed)}, nil},
			"busy, wanted":                    {changes{everything}, facts{became(parley.CallBusy)}, []parley.DeliveryKind{parley.PostCallWebhook}},
			"no answer, wanted":               {changes{everything}, facts{became(parley.CallNoAnswer)}, []parley.DeliveryKind{parley.PostCallWebhook}},
			"failed, wanted":                  {changes{everything}, facts{became(parley.CallFailed)}, []parley.DeliveryKind{parley.PostCallWebhook}},
			"off":                             {changes{off}, nil, nil},
			"off, busy":                       {changes{off, everything}, facts{became(parley.CallBusy)}, nil},
			"inbound":                         {changes{inbound}, facts{came}, []parley.DeliveryKind{parley.PostCallWebhook, parley.InboundWebhook}},
			"inbound, post-call off":          {changes{inbound, off}, facts{came}, []parley.DeliveryKind{parley.InboundWebhook}},
			"inbound that nobody answered":    {changes{inbound}, facts{came, became(parley.CallFailed)}, []parley.DeliveryKind{parley.InboundWebhook}},
			"outbound with inbound address":   {changes{inbound, off}, nil, nil},
			"without the link to a recording": {changes{unlinked}, nil, []parley.DeliveryKind{parley.PostCallWebhook}},
		} {
			a := o.assistant(box.url+"/post", x.assistant...)
			c := o.call(a, x.call...)
			o.ends(c, a)
			all, _, err := o.tenant.Deliveries(t.Context(), store.DeliveryFilter{CallID: &c.ID}, 10, 0)
			require.NoError(t, err)
			told := map[parley.DeliveryKind]bool{}
			for _, d := range all {
				told[d.Kind] = true
				var message map[string]any
				require.NoError(t, json.Unmarshal([]byte(d.Body), &message))
				require.Equal(t, string(c.Status), message["status"], name)
				_, linked := message["recording_url"]
				require.Equal(t, a.IncludeRecordingInWebhook, linked, name)
				require.Contains(t, message, "lead")
				require.Nil(t, message["lead"])
				require.Nil(t, message["campaign"])
				require.Equal(t, map[string]any{}, message["extracted_variables"])
				require.Equal(t, []any{}, message["transcript"])
			}
			require.Len(t, all, len(x.told), name)
			for _, kind := range x.told {
				require.True(t, told[kind], "%s: %s", name, kind)
			}
		}
		for _, d := range o.deliveries() {
			require.Equal(t, parley.DeliveryDelivered, d.Status)
		}
	})
}

// A call that rings: the receiver is asked, its answer counts, and the timeline shows it.
func TestTheMessageOfACallThatRings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db)
		box := newPostbox(t)
		a := o.assistant(box.url, func(a *parley.Assistant) {
			a.Type, a.Variables = parley.Inbound, parley.Object{"company": "Acme", "tier": "none"}
			a.EnableInboundWebhook(box.url + "/ring")
		})
		c := o.call(a, func(c *parley.Call) {
			c.Type, c.Status, c.Variables = parley.Inbound, parley.CallRinging, parley.Object{"tier": "gold"}
		})
		box.answers(200, `{"variables": {"name": "Ada"}}`)
		require.Equal(t, parley.Object{"name": "Ada"}, o.Incoming(t.Context(), c, a))
		got := box.all()
		require.Len(t, got, 1)
		require.Equal(t, "/ring", got[0].uri)
		secrets, err := o.tenant.WebhookSecrets(t.Context(), NewSecret)
		require.NoError(t, err)
		require.NoError(t, verify(t, secrets[0].Secret, got[0].header, []byte(got[0].body)))
		var message map[string]any
		require.NoError(t, json.Unmarshal([]byte(got[0].body), &message))
		require.NotEmpty(t, message["timestamp"])
		delete(message, "timestamp")
		require.Equal(t, map[string]any{
			"event": "call.incoming", "call_id": float64(c.ID), "assistant_id": float64(a.ID), "customer_phone": "+12025550100", "assistant_phone": "+12025550180",
			"status": "incoming", "variables": map[string]any{"company": "Acme", "tier": "gold"},
		}, message)

		box.answers(500, `{"name": "Eva"}`)
		require.Nil(t, o.Incoming(t.Context(), c, a))
		kept, err := o.tenant.Call(t.Context(), c.ID)
		require.NoError(t, err)
		tries := kept.Timeline[len(kept.Timeline)-2:]
		require.Equal(t, json.Number("200"), tries[0].Detail["status"])
		require.Equal(t, "answered with status 500", tries[1].Detail["error"])
		require.Empty(t, o.deliveries(), "a call that rings is told of once, or not at all")

		a.DisableInboundWebhook()
		require.Nil(t, o.Incoming(t.Context(), c, a))
		require.Len(t, box.all(), 2)
	})
}
