package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// idIn says which resource's id stands in a path. A route with an id that is
// missing here fails the test: nobody adds one without saying whose it is.
var idIn = map[string]string{
	"/user/api-keys/{id}":                   "api key",
	"/user/tools/{id}":                      "tool",
	"/user/tools/{id}/test":                 "tool",
	"/user/assistant/{id}":                  "assistant",
	"/user/phone-numbers/{id}":              "phone number",
	"/user/phone-numbers/sip-trunks/{id}":   "trunk",
	"/user/campaigns/{id}":                  "campaign",
	"/user/campaign/{id}":                   "campaign",
	"/user/campaigns/{id}/preview":          "campaign",
	"/user/campaigns/{id}/leads/import":     "campaign",
	"/user/leads/{id}":                      "lead",
	"/leads/{id}":                           "lead",
	"/user/calls/{id}":                      "call",
	"/user/calls/{id}/hangup":               "call",
	"/user/calls/{id}/events":               "call",
	"/user/webhooks/deliveries/{id}":        "delivery",
	"/user/webhooks/deliveries/{id}/replay": "delivery",
}

// idFields says which resource's id stands in a field of a body or query.
var idFields = map[string]string{
	"assistant_id": "assistant", "tool_ids": "tool", "phone_number_id": "phone number", "voice_id": "voice", "sip_trunk_id": "trunk",
	"language_id": "everybody's", "llm_model_id": "everybody's", "knowledgebase_id": "nobody's yet", "tools": "tool",
	"campaign_id": "campaign", "phone_number_ids": "phone number", "call_id": "call",
}

// possessions is one of each of the victim's resources.
func possessions(t testing.TB, s *service) map[string]parley.ID {
	t.Helper()
	user, err := s.db.System().UserByEmail(t.Context(), "owner@example.com")
	require.NoError(t, err)
	require.NoError(t, s.db.System().AddVoice(t.Context(), &parley.Voice{Name: "Cloned", Mode: parley.Pipeline, Provider: "x", Key: "k", UserID: &user.ID}))
	voices := s.want(200, "GET", "/user/assistants/voices", "").list(t)
	idOf := func(path, body string) parley.ID {
		created := s.call("POST", path, body).object(t)
		data, ok := created["data"].(map[string]any)
		if !ok {
			data = created["api_key"].(map[string]any)
		}
		return parley.ID(data["id"].(float64))
	}
	own := map[string]parley.ID{
		"voice":   parley.ID(voices[len(voices)-1]["id"].(float64)),
		"api key": idOf("/user/api-keys", `{"name":"k"}`),
		"tool":    idOf("/user/tools", aTool),
		"trunk":   idOf("/user/phone-numbers/sip-trunks", `{"sip_address":"a.example"}`),
	}
	own["phone number"] = idOf("/user/phone-numbers", fmt.Sprintf(`{"phone_number":"+12025550180","type_label":"SIP","sip_trunk_id":%d}`, own["trunk"]))
	own["assistant"] = idOf("/user/assistant", anAssistant(fmt.Sprintf(`"tool_ids":[%d],"voice_id":%d,"phone_number_id":%d`, own["tool"], own["voice"], own["phone number"])))
	own["campaign"] = idOf("/user/campaigns", fmt.Sprintf(`{"name":"Spring","assistant_id":%d,"phone_number_ids":[%d]}`, own["assistant"], own["phone number"]))
	own["lead"] = idOf("/user/lead", fmt.Sprintf(`{"campaign_id":%d,"phone_number":"+12025550100","secondary_contacts":[{"phone_number":"+12025550101"}]}`, own["campaign"]))
	s.want(200, "POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`)
	made := s.want(200, "POST", "/user/make_call", fmt.Sprintf(`{"phone_number":"+12025550100","assistant_id":%d}`, own["assistant"])).object(t)
	own["call"] = parley.ID(made["call_id"].(float64))
	told := &parley.Delivery{UserID: user.ID, CallID: own["call"], AssistantID: own["assistant"], Kind: parley.PostCallWebhook, Event: parley.EventCompleted, URL: "https://x.example", Body: "{}"}
	require.NoError(t, s.db.System().AddDelivery(t.Context(), told))
	own["delivery"] = told.ID
	return own
}

// everything is all that a user can see of their own, as bytes.
func everything(s *service) string {
	var b strings.Builder
	for _, route := range api.Routes() {
		if route.Method == "GET" && !strings.Contains(route.Path, "{id}") {
			b.WriteString(s.call("GET", route.Path, "").body)
		}
	}
	return b.String()
}

func TestPromiseA1TenantsNeverMeet(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		victim := newService(t, db)
		own := possessions(t, victim)
		before := everything(victim)
		attacker := victim.as("attacker@example.com")
		attacker.want(201, "POST", "/user/assistant", anAssistant(""))
		const unknown = 987654321

		for _, route := range api.Routes() {
			at := route.Method + " " + route.Path
			if strings.Contains(route.Path, "{id}") {
				kind, known := idIn[route.Path]
				require.True(t, known, "%s: say in idIn whose id this is", at)
				call := func(id parley.ID) answer {
					return attacker.want(404, route.Method, strings.ReplaceAll(route.Path, "{id}", fmt.Sprint(id)), `{"name":"x","assistant_name":"x"}`)
				}
				require.Equal(t, call(unknown).body, call(own[kind]).body, at)
			}
			for _, field := range append(route.Body, route.Query...) {
				if field.ID && !field.Rule.ReadOnly {
					require.Contains(t, idFields, field.Name, "%s: say in idFields whose id this is", at)
				}
			}
		}
		attacker.want(201, "POST", "/user/campaigns", `{"name":"Mine","assistant_id":2}`)
		mine := attacker.want(200, "GET", "/user/assistants", "").list(t)[0]["id"].(float64)
		update := fmt.Sprintf("/user/assistant/%.0f", mine)
		for _, position := range []struct{ method, path, body, kind string }{
			{"POST", "/user/assistant", anAssistant(`"tool_ids":[%d]`), "tool"},
			{"POST", "/user/assistant", anAssistant(`"tools":[{"type":"http","data":{"id":%d}}]`), "tool"},
			{"POST", "/user/assistant", strings.Replace(anAssistant(""), `"voice_id":1`, `"voice_id":%d`, 1), "voice"},
			{"POST", "/user/assistant", anAssistant(`"phone_number_id":%d`), "phone number"},
			{"PUT", update, `{"tool_ids":[%d]}`, "tool"},
			{"PUT", update, `{"voice_id":%d}`, "voice"},
			{"PUT", update, `{"phone_number_id":"%d"}`, "phone number"},
			{"POST", "/user/phone-numbers", `{"phone_number":"+12025550111","type_label":"SIP","sip_trunk_id":%d}`, "trunk"},
			{"POST", "/user/assistants/enable-webhook", `{"assistant_id":%d,"webhook_url":"https://x.example"}`, "assistant"},
			{"POST", "/user/assistants/disable-webhook", `{"assistant_id":%d}`, "assistant"},
			{"POST", "/user/assistants/enable-inbound-webhook", `{"assistant_id":"%d","webhook_url":"https://x.example"}`, "assistant"},
			{"POST", "/user/assistants/disable-inbound-webhook", `{"assistant_id":%d}`, "assistant"},
			{"POST", "/user/campaigns", `{"name":"x","assistant_id":%d}`, "assistant"},
			{"POST", "/user/campaigns", `{"name":"x","assistant_id":2,"phone_number_ids":[%d]}`, "phone number"},
			{"PUT", "/user/campaigns/2", `{"assistant_id":%d}`, "assistant"},
			{"PUT", "/user/campaigns/2", `{"phone_number_ids":["%d"]}`, "phone number"},
			{"POST", "/user/campaigns/update-status", `{"campaign_id":%d,"action":"start"}`, "campaign"},
			{"POST", "/user/campaigns/update-status", `{"campaign_id":"%d","action":"stop","hangup":true}`, "campaign"},
			{"POST", "/user/lead", `{"campaign_id":%d,"phone_number":"+12025550111"}`, "campaign"},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":%d}`, "assistant"},
		} {
			foreign := attacker.call(position.method, position.path, fmt.Sprintf(position.body, own[position.kind]))
			none := attacker.call(position.method, position.path, fmt.Sprintf(position.body, unknown))
			require.Equal(t, none.body, foreign.body, "%+v", position)
			require.Equal(t, none.status, foreign.status)
			require.GreaterOrEqual(t, foreign.status, 400, "%+v", position)
		}
		// Somebody else's campaign is an empty list, as an unknown one is; a number another has listed or called is not.
		require.Equal(t, "[]", attacker.want(200, "GET", fmt.Sprintf("/user/leads?campaign_id=%d", own["campaign"]), "").body)
		lead := attacker.want(200, "POST", "/user/lead", `{"campaign_id":2,"phone_number":"+12025550108"}`)
		require.Contains(t, lead.body, `"status":"created"`)
		attacker.want(200, "POST", "/user/do-not-call", `{"phone_number":"+12025550100"}`)
		// Filters find nothing of another's.
		for _, filter := range []string{"", "?phone_number=%2B12025550100", "?status=initiated", fmt.Sprintf("?assistant_id=%d", own["assistant"])} {
			found := attacker.want(200, "GET", "/user/calls"+filter, "").object(t)
			require.Empty(t, found["data"])
			require.Zero(t, found["total"])
		}
		// The same number may be a line of both: whether it is another's stays unknown.
		attacker.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"SIP"}`)
		require.Equal(t, before, everything(victim), "the victim's rows are as they were")
	})
}

// Random requests of one user never show or touch another's rows.
func TestPromiseA1RandomPairs(t *testing.T) {
	t.Parallel()
	victim := newService(t, storetest.Open(t, storetest.SQLite(t)))
	possessions(t, victim)
	victim.want(200, "PUT", "/user/assistant/1", `{"assistant_name":"CANARY"}`)
	before := everything(victim)
	attacker := victim.as("attacker@example.com")
	random := rand.New(rand.NewPCG(1, 2))
	routes := api.Routes()
	for range promise.Figure(1000, 10_000) {
		route := routes[random.IntN(len(routes))]
		id := random.IntN(4) + 1
		body := fmt.Sprintf(`{"assistant_id":%d,"webhook_url":"https://evil.example","assistant_name":"owned","tool_ids":[%d],"voice_id":%d,"timeout":3,"max_channels":2,"country_code":"CA","campaign_id":%d,"action":"start","name":"owned","phone_number":"+1202555010%d","allow_duplicate":true,"phone_number_ids":[%d]}`, id, id, random.IntN(8), id, id, id)
		request := httptest.NewRequest(route.Method, "/api"+strings.ReplaceAll(route.Path, "{id}", fmt.Sprint(id)), strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+attacker.token)
		recorder := httptest.NewRecorder()
		attacker.handler.ServeHTTP(recorder, request)
		require.Less(t, recorder.Code, 500, "%s %s", route.Method, route.Path)
		require.NotContains(t, recorder.Body.String(), "CANARY")
		require.NotContains(t, recorder.Body.String(), "owner@example.com")
	}
	require.Equal(t, before, everything(victim))
}

// Only documented fields bind: every name of the record is sent with a value that
// would show, on creation and on update.
func TestPromiseA2OnlyDocumentedFieldsBind(t *testing.T) {
	each(t, func(s *service) {
		s.as("other@example.com") // user 2, to whom the forged user_id would give the rows
		forged := map[string]string{
			"id": "4242", "user_id": "2", "uuid": `"00000000-0000-0000-0000-000000000000"`, "created_at": `"2001-01-01T00:00:00.000000Z"`, "updated_at": `"2001-01-01T00:00:00.000000Z"`,
			"deleted_at": `"2001-01-01T00:00:00.000000Z"`, "instance_id": "77", "engine_id": "77", "synthesizer_id": "77", "transcriber_id": "77", "flows_platform_id": "77",
			"transcriber_provider_id": "77", "synthesizer_provider_id": "77", "multimodal_model_id": "77",
		}
		var members []string
		readOnly := 0
		for _, field := range parley.AssistantForm.Describe() {
			if !field.Rule.ReadOnly || field.Name == "tools" {
				continue
			}
			readOnly++
			value, ok := forged[field.Name]
			require.True(s.t, ok, "forge a value for the read-only field %s", field.Name)
			members = append(members, fmt.Sprintf("%q:%s", field.Name, value))
		}
		require.Equal(s.t, len(forged), readOnly)
		body := strings.Join(members, ",")
		created := s.want(201, "POST", "/user/assistant", anAssistant(body+`,"status":"inactive"`)).data(s.t)
		require.Equal(s.t, "active", created["status"], "status is bound on update only")
		s.want(200, "PUT", fmt.Sprintf("/user/assistant/%v", created["id"]), "{"+body+"}")
		record := s.want(200, "GET", fmt.Sprintf("/user/assistant/%v", created["id"]), "").object(s.t)
		for name, value := range forged {
			require.NotEqual(s.t, strings.Trim(value, `"`), fmt.Sprint(record[name]), name)
		}
		s.want(201, "POST", "/user/tools", strings.Replace(aTool, "{", `{"id":4242,"user_id":2,"created_at":"2001-01-01T00:00:00.000000Z",`, 1))
		tool := s.want(200, "GET", "/user/tools/1", "")
		require.NotContains(s.t, tool.body, "2001-")
		s.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"Caller ID","is_available":true,"user_id":2,"id":4242}`)
		require.Contains(s.t, s.want(200, "GET", "/user/phone-numbers/all", "").body, `{"id":1,"phone_number":"+12025550180","country_code":"US","type_label":"Caller ID","is_available":false`)
	})
}
