package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"parley/internal/simulator"
	"parley/internal/store"
)

// shop is the server of a user of ours: it has an address for each tool, and takes webhooks.
type shop struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	tools    []string // method, address and body of each request of a tool
	messages []message
}

// message is a webhook as it came.
type message struct {
	path   string
	header http.Header
	raw    []byte
	body   map[string]any
}

// answers are what the tools find, by method.
var answers = map[string]string{
	"GET":    `{"status":"shipped"}`,
	"DELETE": `{"basket":"empty"}`,
	"POST":   `{"ticket":"open"}`,
	"PUT":    `{"address":"changed"}`,
	"PATCH":  `{"phone":"noted"}`,
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Header.Get("Webhook-Id") == "" {
			s.tools = append(s.tools, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body)))
			fmt.Fprint(w, answers[r.Method])
			return
		}
		m := message{path: r.URL.Path, header: r.Header, raw: body}
		if err := json.Unmarshal(body, &m.body); err != nil {
			t.Errorf("a webhook that is no JSON: %s", body)
		}
		s.messages = append(s.messages, m)
		if m.body["event"] == "call.incoming" {
			fmt.Fprint(w, `{"variables":{"name":"Ada","tier":"gold"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// received waits for a message about a call at an address.
func (s *shop) received(path, event string, call float64) (found message) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.messages {
			id, named := m.body["id"]
			if !named {
				id = m.body["call_id"]
			}
			if m.path == path && m.body["event"] == event && id == call {
				found = m
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond, "%s never came to %s", event, path)
	return found
}

// ran is what the tools were asked since the last time.
func (s *shop) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.tools
	s.tools = nil
	return all
}

// buyer knows an order number and has time to hear what became of the order.
func buyer() simulator.Callee {
	return simulator.Callee{Code: "90", About: "knows an order number", Script: []simulator.Step{
		{Say: "My order number is four seven one one."},
		{Hears: regexp.MustCompile("shipped"), Again: 3, Say: "No, thank you, goodbye."},
		{Say: "Goodbye."},
		{Say: "Goodbye."},
	}}
}

// TestToolsAndWebhooks: in a call, out and in, the assistant uses a tool of every method
// on a server of this machine and says what it found; after it the server is told,
// signed, with the evaluation.
func TestToolsAndWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serves(t, []string{"PARLEY_DATA=" + dir, "PARLEY_ALLOW_PRIVATE=127.0.0.1"})
	s := newShop(t)
	carrier, err := simulator.Start(buyer())
	require.NoError(t, err)
	t.Cleanup(func() { _ = carrier.Close() })
	n.arrange(s, carrier.Trunk().Address)
	var secret struct{ Secret string }
	require.NoError(t, json.Unmarshal([]byte(n.want(200, "GET", "/api/user/webhooks/secret", "")), &secret))
	receiver, err := standard.NewWebhook(secret.Secret)
	require.NoError(t, err)

	tries(t, func() bool {
		id := idIn(t, n.want(200, "POST", "/api/user/make_call", `{"assistant_id":1,"phone_number":"+12025552390","variables":{"name":"Ada","tier":"gold"}}`), "call_id")
		return s.wentWell(receiver, s.received("/post", "call.completed", id), "outbound")
	})

	peer := simulator.Peer{Address: netip.MustParseAddrPort(n.sipAddress()), Username: simulatorUser, Password: passwordOf(t, dir)}
	tries(t, func() bool {
		_, err := carrier.Call(t.Context(), peer, "+12025550111", "+12025550180", buyer())
		require.NoError(t, err)
		var calls struct{ Data []struct{ ID float64 } }
		require.NoError(t, json.Unmarshal([]byte(n.want(200, "GET", "/api/user/calls?type=inbound&per_page=1", "")), &calls))
		id := calls.Data[0].ID
		rang := s.received("/ring", "call.incoming", id)
		require.NoError(t, receiver.Verify(rang.raw, rang.header))
		require.Equal(t, "+12025550111", rang.body["customer_phone"])
		over := s.received("/ring", "call.completed", id)
		require.NoError(t, receiver.Verify(over.raw, over.header))
		told := s.received("/post", "call.completed", id)
		require.NotEqual(t, told.header.Get("Webhook-Id"), over.header.Get("Webhook-Id"))
		return s.wentWell(receiver, told, "inbound")
	})
	n.stops()
}

// arrange makes the tools and the two assistants. The one that calls does so by a trunk
// of its user's, to the carrier at this address.
func (n *node) arrange(s *shop, carrier string) {
	const schema = `"schema":[{"name":"order_number","type":"string","description":"The order number."}]`
	for _, tool := range []struct{ name, method, path string }{
		{"find_order", "GET", "/orders/{order_number}?tier={{tier}}"}, {"empty_basket", "DELETE", "/baskets"},
		{"open_ticket", "POST", "/tickets"}, {"change_address", "PUT", "/addresses/{order_number}"}, {"note_phone", "PATCH", "/phones"},
	} {
		n.want(201, "POST", "/api/user/tools", fmt.Sprintf(`{"name":%q,"description":"Knows orders.","endpoint":"%s%s","method":%q,%s}`, tool.name, s.URL, tool.path, tool.method, schema))
	}
	trunk := idIn(n.t, n.want(201, "POST", "/api/user/phone-numbers/sip-trunks", fmt.Sprintf(`{"sip_address":%q}`, carrier)), "id")
	line := idIn(n.t, n.want(201, "POST", "/api/user/phone-numbers", fmt.Sprintf(`{"phone_number":"+12025550185","type_label":"SIP","sip_trunk_id":%.0f}`, trunk)), "id")
	const assistant = `{"assistant_name":"Orders","voice_id":1,"language":"English","llm_model":"sandbox","engine_type":"pipeline","timezone":"UTC",
		"initial_message":"Hello {{name}}, this is Acme. What is your order number?","system_prompt":"You tell customers where their orders are.","tool_ids":[1,2,3,4,5],
		"post_call_schema":[{"name":"order_number","type":"string","description":"The order number."}],"is_webhook_active":true,"webhook_url":"%s/post",`
	n.want(201, "POST", "/api/user/assistant", fmt.Sprintf(assistant+`"calls_direction":"make","phone_number_id":%.0f}`, s.URL, line))
	n.want(201, "POST", "/api/user/assistant", fmt.Sprintf(assistant+`"calls_direction":"receive","phone_number_id":1,"inbound_webhook_url":"%s/ring"}`, s.URL, s.URL))
}

// tries a call up to three times: on a machine that is too busy to carry sound, words
// are lost.
func tries(t *testing.T, call func() bool) {
	t.Helper()
	for range 3 {
		if call() {
			return
		}
	}
	t.Fatal("no call went well")
}

// wentWell holds a message and what the tools were asked in its call against what must
// be, and says whether everything was said and heard.
func (s *shop) wentWell(receiver *standard.Webhook, m message, direction string) bool {
	t := s.t
	t.Helper()
	require.NoError(t, receiver.Verify(m.raw, m.header))
	require.Equal(t, direction, m.body["call_type"])
	require.Equal(t, "completed", m.body["status"])
	require.Equal(t, map[string]any{"name": "Ada", "tier": "gold"}, m.body["input_variables"])
	ran := s.ran()
	t.Logf("%s: tools %q, said %s, found %v", direction, ran, m.body["formatted_transcript"], m.body["extracted_variables"])
	said := fmt.Sprint(m.body["formatted_transcript"])
	found, evaluated := m.body["extracted_variables"].(map[string]any)
	require.True(t, evaluated)
	for _, word := range []string{"Hello Ada, this is Acme.", "shipped", "empty", "open", "changed", "noted"} {
		if !strings.Contains(said, word) {
			return false
		}
	}
	if strings.Contains(said, "…") || found["order_number"] != "4711" {
		return false
	}
	require.ElementsMatch(t, []string{
		"GET /orders/4711?tier=gold", "DELETE /baskets?order_number=4711",
		`POST /tickets {"order_number":"4711"}`, `PUT /addresses/4711 {}`, `PATCH /phones {"order_number":"4711"}`,
	}, ran, "each tool once, with its parameter where its method has it")
	return true
}

// idIn is an id in an answer or in its data.
func idIn(t *testing.T, answer, name string) float64 {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(answer), &object))
	id, ok := object[name].(float64)
	if !ok {
		id, ok = object["data"].(map[string]any)[name].(float64)
	}
	require.True(t, ok, answer)
	return id
}

// passwordOf is what simulated callers of a server prove themselves with.
func passwordOf(t *testing.T, dir string) string {
	t.Helper()
	keys, err := store.KeyFile(filepath.Join(dir, "secret.key"))
	require.NoError(t, err)
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Keys: keys})
	require.NoError(t, err)
	defer db.Close()
	password, err := simulatorPassword(db)
	require.NoError(t, err)
	return password
}
