package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// tenant is the view of the service's user.
func (s *service) tenant() *store.Tenant {
	s.t.Helper()
	user, err := s.db.System().Authenticate(s.t.Context(), s.token)
	require.NoError(s.t, err)
	return s.db.Tenant(user.ID)
}

// with is the same service whose requests carry a header.
func (s *service) with(name, value string) *service {
	other := *s
	other.header = http.Header{name: {value}}
	return &other
}

const aCall = `{"phone_number":"+12025550100","assistant_id":1}`

// dataInvalid is make_call's answer to a field that breaks a rule.
func dataInvalid(errors string) string {
	return `{"message":"The given data was invalid.","errors":{` + errors + `}}`
}

func TestPromiseA5MakeCallContract(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(`"variables":{"company":"Acme"}`))
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(200, "PUT", "/user/assistant/2", `{"status":"inactive"}`)
		s.want(201, "POST", "/user/assistant", strings.Replace(anAssistant(""), `"make"`, `"receive"`, 1))
		s.want(200, "POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`)
		const form = "The phone number must be a phone number in E.164 form, such as +12025550100."
		number := func(n string) string { return fmt.Sprintf(`{"phone_number":%s,"assistant_id":1}`, n) }
		badNumber := dataInvalid(`"phone_number":["` + form + `"]`)
		s.play([]step{
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":1,"variables":{"name":"Ada"}}`, 200, "", []string{
				`{"message":"Call initiated successfully","data":{"call_id":1,"id":1,"assistant_name":"Front desk","type":"outbound","duration":0,"assistant_phone_number":"","client_phone_number":"+12025550100","status":"initiated","transcript":"",` +
					`"variables":{"name":"Ada"},"evaluation":{},"webhook_response":null,"carrier_cost":0,"total_cost":0,"answered_by":"unknown","created_at":"20`,
				`"ended_by":null,"end_reason":null,"fault":null,"failure":null,"answered_at":null,"ended_at":null,"transcript_turns":[],"cost_breakdown":{"carrier":0,`, `"timeline":[{"at":"20`,
				`},"call_id":1,"status":"initiated"}`}, []string{"campaign_name", "campaign_id", "lead_id", "recording_url", "user_id"}},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":"3"}`, 200, "", []string{`"call_id":2`, `"variables":{}`}, nil}, // an inbound assistant may call too
			{"POST", "/user/make_call", `{}`, 422, dataInvalid(`"phone_number":["The phone number field is required."],"assistant_id":["The assistant id field is required."]`), nil, nil},
			{"POST", "/user/make_call", ``, 422, dataInvalid(`"phone_number":["The phone number field is required."],"assistant_id":["The assistant id field is required."]`), nil, nil},
			{"POST", "/user/make_call", `{"assistant_id":1}`, 422, dataInvalid(`"phone_number":["The phone number field is required."]`), nil, nil},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100"}`, 422, dataInvalid(`"assistant_id":["The assistant id field is required."]`), nil, nil},
			{"POST", "/user/make_call", number(`"12025550100"`), 422, badNumber, nil, nil},
			{"POST", "/user/make_call", number(`"+02025550100"`), 422, badNumber, nil, nil},
			{"POST", "/user/make_call", number(`"+123456"`), 422, badNumber, nil, nil},
			{"POST", "/user/make_call", number(`"+1234567890123456"`), 422, badNumber, nil, nil},
			{"POST", "/user/make_call", number(`"+1202555010a"`), 422, badNumber, nil, nil},
			{"POST", "/user/make_call", number(`"+1 202 555 0100"`), 422, badNumber, nil, nil},
			{"POST", "/user/make_call", number(`12025550100`), 422, dataInvalid(`"phone_number":["The phone number must be a string."]`), nil, nil},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":"x"}`, 422, dataInvalid(`"assistant_id":["The assistant id must be an integer."]`), nil, nil},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":1,"variables":"x"}`, 422, dataInvalid(`"variables":["The variables must be an object."]`), nil, nil},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":2}`, 422, dataInvalid(`"assistant_id":["The selected assistant is inactive. Set its status to active first."]`), nil, nil},
			{"POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":99}`, 404, `{"message":"Assistant not found"}`, nil, nil},
			{"POST", "/user/make_call", number(`"+19005551234"`), 403, `{"message":"Calls to +1900 numbers are blocked by this installation's policy."}`, nil, nil},
			{"POST", "/user/make_call", number(`"+12025550108"`), 403, `{"message":"The number is on the do-not-call list."}`, nil, nil},
			{"GET", "/user/calls/99", "", 404, `{"message":"Call not found"}`, nil, nil},
			{"GET", "/user/calls/x", "", 404, `{"message":"Call not found"}`, nil, nil},
			{"GET", "/user/calls/1", "", 200, "", []string{`{"id":1,"assistant_name":"Front desk"`}, []string{`"call_id"`, `"data"`, `"user_id"`}},
			{"POST", "/user/calls/99/hangup", "", 404, `{"message":"Call not found"}`, nil, nil},
			{"POST", "/user/calls/1/hangup", "", 200, "", []string{`{"message":"Call is being hung up","data":{"id":1,`}, nil},
			{"POST", "/user/calls/1/hangup", "", 200, "", []string{`"status":"initiated"`}, nil}, // to ask again changes nothing
			{"DELETE", "/user/calls/1", "", 422, `{"message":"The call has not ended yet. Hang it up first, and delete it when it is completed."}`, nil, nil},
			{"DELETE", "/user/calls/99", "", 404, `{"message":"Call not found"}`, nil, nil},
			{"GET", "/user/calls/99/events", "", 404, `{"message":"Call not found"}`, nil, nil},
		})
		s.finish(1, parley.CallBusy, "")
		s.play([]step{
			{"POST", "/user/calls/1/hangup", "", 422, `{"message":"The call has ended already."}`, nil, nil},
			{"GET", "/user/calls/1", "", 200, "", []string{`"status":"busy"`, `"end_reason":"busy","fault":"callee"`}, nil},
			{"DELETE", "/user/calls/1", "", 200, `{"message":"Call deleted successfully"}`, nil, nil},
			{"GET", "/user/calls/1", "", 404, `{"message":"Call not found"}`, nil, nil},
		})
	})
}

// finish gives a call an end, as its node would, with a recording or without.
func (s *service) finish(id parley.ID, status parley.CallStatus, recording string) {
	s.t.Helper()
	ctx, system := s.t.Context(), s.db.System()
	call, err := system.Call(ctx, id)
	require.NoError(s.t, err)
	reason, over := parley.EndBusy, time.Now()
	if status.Talked() {
		reason = parley.EndHungUp
	}
	complete := status == parley.CallCompleted
	if complete {
		status = parley.CallEnded
	}
	call.Status, call.EndReason, call.EndedAt, call.Recording = status, &reason, &over, recording
	require.NoError(s.t, system.EndCall(ctx, "", call))
	if complete {
		_, err = system.CompleteCall(ctx, call)
		require.NoError(s.t, err)
	}
}

// Where there is no line to call with, the answer says what to add.
func TestMakeCallWithoutALine(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db, func(c *api.Config) { c.Carriers = parley.Carriers{} })
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		got := s.want(422, "POST", "/user/make_call", aCall)
		require.Equal(t, dataInvalid(`"assistant_id":["There is no line to call with. Add a SIP trunk and give the assistant a number of it."]`), got.body)
		s.want(201, "POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"sip.example.com"}`)
		got = s.want(422, "POST", "/user/make_call", aCall)
		require.Contains(t, got.body, "The assistant's phone number is on none of your SIP trunks.")
		s.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+442079460123","type_label":"SIP","sip_trunk_id":1}`)
		s.want(200, "PUT", "/user/assistant/1", `{"phone_number_id":1}`)
		got = s.want(200, "POST", "/user/make_call", aCall)
		require.Contains(t, got.body, `"assistant_phone_number":"+442079460123"`)
		call, err := s.tenant().Call(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, parley.CarrierTrunk, call.Carrier)
		require.EqualValues(t, 1, *call.TrunkID)
	})
}

func TestPromiseA5CallListContract(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(201, "POST", "/user/assistant", anAssistant(`"assistant_name":"Second"`))
		tenant := s.tenant()
		campaign, name := parley.ID(5), "Spring"
		for i := range 12 {
			c := &parley.Call{AssistantID: parley.ID(i%2 + 1), AssistantName: "x", Type: []parley.Direction{parley.Outbound, parley.Inbound, parley.WebCall}[i%3],
				Status: parley.CallStatuses[i%10], CustomerNumber: fmt.Sprintf("+1202555010%d", i%4)}
			if i%6 == 0 {
				c.CampaignID, c.CampaignName = &campaign, &name
			}
			require.NoError(s.t, tenant.CreateCall(s.t.Context(), c, ""))
		}
		ids := func(query string) (all []int) {
			s.t.Helper()
			page := s.want(200, "GET", "/user/calls?"+query, "").object(s.t)
			for _, item := range page["data"].([]any) {
				all = append(all, int(item.(map[string]any)["id"].(float64)))
			}
			if page["next_page_url"] == nil && page["prev_page_url"] == nil {
				require.EqualValues(s.t, len(all), page["total"], query)
			}
			return all
		}
		today := time.Now().UTC().Format(time.DateOnly)
		yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
		everyone := []int{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
		for query, want := range map[string][]int{
			"":                     everyone,
			"status=initiated":     {11, 1},
			"status=no-answer":     {9},
			"type=web":             {12, 9, 6, 3},
			"type=outbound":        {10, 7, 4, 1},
			"assistant_id=2":       {12, 10, 8, 6, 4, 2},
			"assistant_id=99":      nil,
			"campaign_id=5":        {7, 1},
			"campaign_id=6":        nil,
			"date_from=" + today:   everyone,
			"date_to=" + today:     everyone,
			"date_to=" + yesterday: nil,
			"date_from=2020-02-29": everyone,
			"date_from=" + yesterday + "&date_to=" + today:                everyone,
			"date_from=" + today + "&date_to=" + today:                    everyone,
			"phone_number=%2B12025550101":                                 {10, 6, 2},
			"phone_number=+12025550101":                                   {10, 6, 2}, // not escaped
			"type=outbound&assistant_id=1":                                {7, 1},
			"type=outbound&assistant_id=1&campaign_id=5&status=initiated": {1},
			"status=initiated&type=inbound&phone_number=%2B12025550102":   {11},
			"status=initiated&date_from=" + today + "&date_to=" + today:   {11, 1},
			"status=initiated&date_to=" + yesterday:                       nil,
			"per_page=5":                                                  {12, 11, 10, 9, 8},
			"per_page=5&page=3":                                           {2, 1},
			"per_page=5&page=4":                                           nil,
			"assistant_id=2&per_page=2&page=2":                            {8, 6},
		} {
			require.Equal(s.t, want, ids(query), query)
		}
		page := s.want(200, "GET", "/user/calls?status=initiated&per_page=1", "").object(s.t)
		require.Contains(s.t, page["next_page_url"], "status=initiated")
		require.Contains(s.t, s.want(200, "GET", "/user/calls/7", "").body, `"campaign_name":"Spring"`)
		for query, message := range map[string]string{
			"status=lost":          `"status":["The selected status is invalid. Available: initiated, ringing, in-progress, ended_by_customer, ended_by_assistant, ended, completed, busy, no-answer, failed."]`,
			"type=fax":             `"type":["The selected type is invalid. Available: inbound, outbound, web."]`,
			"phone_number=12345":   `"phone_number":["The phone number must be a phone number in E.164 form, such as +12025550100."]`,
			"assistant_id=x":       `"assistant_id":["The assistant id must be an integer."]`,
			"campaign_id=1.5":      `"campaign_id":["The campaign id must be an integer."]`,
			"date_from=2026-13-01": `"date_from":["The date from must be a date such as 2026-01-31."]`,
			"date_from=yesterday":  `"date_from":["The date from must be a date such as 2026-01-31."]`,
			"date_to=2026-02-30":   `"date_to":["The date to must be a date such as 2026-01-31."]`,
			"date_to=2026-1-1":     `"date_to":["The date to must be a date such as 2026-01-31."]`,
			"per_page=0":           `"per_page":["The per page must be between 1 and 100."]`,
			"per_page=101":         `"per_page":["The per page must be between 1 and 100."]`,
			"page=0":               `"page":["The page must be between 1 and 10000000."]`,
			"page=x":               `"page":["The page must be an integer."]`,
			"date_from=2026-02-02&date_to=2026-02-01": `"date_to":["The date to must not be before the date from."]`,
		} {
			got := s.want(422, "GET", "/user/calls?"+query, "")
			require.Equal(s.t, `{"message":"Validation failed","errors":{`+message+`}}`, got.body, query)
		}
	})
}

func TestPromiseS5CapsAtTheirLimits(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		call := func(s *service) string {
			a := s.want(200, "GET", "/user/assistants", "").list(t)[0]["id"].(float64)
			return fmt.Sprintf(`{"phone_number":"+12025550100","assistant_id":%.0f}`, a)
		}
		for name, c := range map[string]struct {
			caps parley.CallCaps
			is   string
		}{
			"parallel": {parley.CallCaps{Parallel: 3}, `{"message":"Too Many Attempts.","retry_after":5,"reason":"The account has its 3 calls at once. Try again when one has ended."}`},
			"rate":     {parley.CallCaps{PerSecond: 3}, `{"message":"Too Many Attempts.","retry_after":1,"reason":"The account may begin 3 calls a second."}`},
		} {
			s := newServiceFor(t, db, name+"@example.com", func(config *api.Config) { config.Calls = c.caps })
			body := call(s)
			for range 3 {
				s.want(200, "POST", "/user/make_call", body)
				if name == "rate" { // however slow this machine is, they were begun just now
					_, err := db.SQL().Exec(fmt.Sprintf("UPDATE calls SET created_at = %d WHERE client_phone_number = '+12025550100'", time.Now().Add(time.Minute).UnixMicro()))
					require.NoError(t, err)
				}
			}
			got := s.want(429, "POST", "/user/make_call", body)
			require.Equal(t, c.is, got.body)
			require.NotEmpty(t, got.header.Get("Retry-After"))
		}
		for name, c := range map[string]struct {
			caps    parley.CallCaps
			cost    parley.Money
			seconds int
			is      string
		}{
			"spend":   {parley.CallCaps{SpendPerDay: parley.NewMoney(2.5)}, parley.NewMoney(2.499999), 1, `{"message":"The account's spend limit of 2.5 a day is reached. It begins anew at midnight UTC."}`},
			"minutes": {parley.CallCaps{MinutesPerDay: 2}, 1, 119, `{"message":"The account's limit of 2 minutes a day is reached. It begins anew at midnight UTC."}`},
		} {
			s := newServiceFor(t, db, name+"@example.com", func(config *api.Config) { config.Calls = c.caps })
			body := call(s)
			made := s.want(200, "POST", "/user/make_call", body).object(t)
			spent, err := db.System().Call(t.Context(), parley.ID(made["call_id"].(float64)))
			require.NoError(t, err)
			require.NoError(t, db.System().AddUsage(t.Context(), spent, c.cost, c.seconds))
			s.want(200, "POST", "/user/make_call", body)
			require.NoError(t, db.System().AddUsage(t.Context(), spent, 1, 1))
			require.Equal(t, c.is, s.want(402, "POST", "/user/make_call", body).body)
		}
	})
}

// newServiceFor is a service whose user has an assistant.
func newServiceFor(t testing.TB, db *store.DB, email string, change func(*api.Config)) *service {
	t.Helper()
	s := serve(t, db, change).as(email)
	s.want(201, "POST", "/user/assistant", anAssistant(""))
	return s
}

// at sends the same request from many sides at once.
func (s *service) at(n int, method, path, body string) []answer {
	answers := make([]answer, n)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			request := httptest.NewRequest(method, "/api"+path, strings.NewReader(body))
			request.Header.Set("Authorization", "Bearer "+s.token)
			maps.Copy(request.Header, s.header)
			recorder := httptest.NewRecorder()
			<-start
			s.handler.ServeHTTP(recorder, request)
			answers[i] = answer{recorder.Code, recorder.Header(), recorder.Body.String()}
		})
	}
	close(start)
	wait.Wait()
	return answers
}

func count(answers []answer, status int) (n int) {
	for _, a := range answers {
		if a.status == status {
			n++
		}
	}
	return n
}

func (s *service) calls() int {
	s.t.Helper()
	_, total, err := s.tenant().Calls(s.t.Context(), store.CallFilter{Limit: 1})
	require.NoError(s.t, err)
	return total
}

// dialJobs is how many calls are to be placed.
func (s *service) dialJobs() (n int) {
	s.t.Helper()
	require.NoError(s.t, s.db.SQL().QueryRow("SELECT COUNT(*) FROM river_job WHERE kind = 'dial'").Scan(&n))
	return n
}

func TestPromiseS5OneSlotIsTakenOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db, func(c *api.Config) { c.Calls.Parallel = 1 })
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		answers := s.at(100, "POST", "/user/make_call", aCall)
		require.Equal(t, 1, count(answers, 200))
		require.Equal(t, 99, count(answers, 429))
		require.Equal(t, 1, s.calls())
		require.Equal(t, 1, s.dialJobs())
	})
}

// Two hundred numbers that cost or harm are refused before anything is written.
func TestPromiseS5NumbersAreRefusedBeforeACall(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		refused := 0
		for _, prefix := range parley.DefaultBlocked {
			for _, rest := range []string{"1234567", "00000000", "987654"} {
				got := s.want(403, "POST", "/user/make_call", fmt.Sprintf(`{"phone_number":%q,"assistant_id":1}`, prefix+rest))
				require.Contains(s.t, got.body, "blocked by this installation's policy")
				refused++
			}
		}
		for _, number := range []string{"112", "911", "999", "110", "+112", "+911", "+1911", "+49110", "+44999", "900", "0900123456", "00881631234567", "+", "+1", "tel:+19005551234", "+1 900 555 1234"} {
			s.want(422, "POST", "/user/make_call", fmt.Sprintf(`{"phone_number":%q,"assistant_id":1}`, number))
			refused++
		}
		require.GreaterOrEqual(s.t, refused, 200)
		require.Zero(s.t, s.calls())
		require.Zero(s.t, s.dialJobs())
	})
}

// A retry of make_call rings once: a hundred at once with one key are one call.
func TestPromiseA8ARetryRingsOnce(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		keyed := s.with("Idempotency-Key", "order-7")
		answers := keyed.at(100, "POST", "/user/make_call", aCall)
		replayed := 0
		for _, a := range answers {
			require.Equal(s.t, 200, a.status, a.body)
			require.Equal(s.t, answers[0].body, a.body)
			if a.header.Get("Idempotent-Replayed") == "true" {
				replayed++
			}
		}
		require.Equal(s.t, 99, replayed)
		require.Equal(s.t, 1, s.calls())
		require.Equal(s.t, 1, s.dialJobs())

		again := keyed.want(200, "POST", "/user/make_call", `{"assistant_id": 1, "phone_number": "+12025550100"}`)
		require.Equal(s.t, answers[0].body, again.body, "the same fields in another order are the same request")
		got := keyed.want(409, "POST", "/user/make_call", `{"phone_number":"+12025550101","assistant_id":1}`)
		require.Equal(s.t, `{"message":"The Idempotency-Key was used for another request within the last 24 hours. Send a new one."}`, got.body)
		require.NotEqual(s.t, again.body, s.with("Idempotency-Key", "order-8").want(200, "POST", "/user/make_call", aCall).body)
		s.want(200, "POST", "/user/make_call", aCall)
		require.Equal(s.t, 3, s.calls())

		failing := s.with("Idempotency-Key", "order-9")
		failing.want(404, "POST", "/user/make_call", `{"phone_number":"+12025550100","assistant_id":99}`)
		failing.want(200, "POST", "/user/make_call", aCall) // what failed has not taken the key
		bad := s.with("Idempotency-Key", "two words").want(422, "POST", "/user/make_call", aCall)
		require.Equal(s.t, dataInvalid(`"Idempotency-Key":["The Idempotency-Key must be 1 to 255 printable characters without spaces."]`), bad.body)
		s.with("Idempotency-Key", strings.Repeat("k", 256)).want(422, "POST", "/user/make_call", aCall)
	})
}

func TestRecordingLinks(t *testing.T) {
	each(t, func(s *service) {
		t := s.t
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(200, "POST", "/user/make_call", aCall)
		s.want(200, "POST", "/user/make_call", aCall)
		file, err := s.recordings.Create(1)
		require.NoError(t, err)
		sound := strings.Repeat("RIFF and more. ", 100)
		_, err = file.WriteString(sound)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		s.finish(1, parley.CallCompleted, store.RecordingName(1))
		s.finish(2, parley.CallCompleted, "")
		require.NotContains(t, s.want(200, "GET", "/user/calls/2", "").body, "recording_url")
		link := s.want(200, "GET", "/user/calls/1", "").object(t)["recording_url"].(string)
		listed := s.want(200, "GET", "/user/calls", "").object(t)["data"].([]any)[1].(map[string]any)["recording_url"].(string)
		require.Equal(t, link[:40], listed[:40])
		at, err := url.Parse(link)
		require.NoError(t, err)
		require.Equal(t, "/recordings/1.wav", at.Path)

		get := func(method, address string, header ...string) *httptest.ResponseRecorder {
			request := httptest.NewRequest(method, address, nil)
			if len(header) > 0 {
				request.Header.Set(header[0], header[1])
			}
			recorder := httptest.NewRecorder()
			s.handler.ServeHTTP(recorder, request)
			return recorder
		}
		whole := get("GET", link)
		require.Equal(t, 200, whole.Code)
		require.Equal(t, sound, whole.Body.String())
		require.Equal(t, "audio/wav", whole.Header().Get("Content-Type"))
		require.Equal(t, "bytes", whole.Header().Get("Accept-Ranges"))
		part := get("GET", link, "Range", "bytes=5-7")
		require.Equal(t, 206, part.Code)
		require.Equal(t, "and", part.Body.String())
		require.Equal(t, "bytes 5-7/1500", part.Header().Get("Content-Range"))
		require.Equal(t, "more. ", get("GET", link, "Range", "bytes=-6").Body.String())
		require.Equal(t, 416, get("GET", link, "Range", "bytes=9999-").Code)
		head := get("HEAD", link)
		require.Equal(t, 200, head.Code)
		require.Equal(t, "1500", head.Header().Get("Content-Length"))
		require.Empty(t, head.Body.String())

		query := at.Query()
		changed := func(name, value string) string {
			q, _ := url.ParseQuery(query.Encode())
			q.Set(name, value)
			return at.Path + "?" + q.Encode()
		}
		signature := query.Get("signature")
		flipped := []byte(signature)
		flipped[0] ^= 1
		for _, address := range []string{
			at.Path, changed("signature", ""), changed("signature", string(flipped)), changed("expires", query.Get("expires")+"0"), changed("expires", "x"),
			strings.Replace(at.Path, "1.wav", "2.wav", 1) + "?" + at.RawQuery, "/recordings/x.wav?" + at.RawQuery,
		} {
			got := get("GET", address)
			require.Equal(t, 403, got.Code, address)
			require.Equal(t, `{"message":"The link is not valid."}`, got.Body.String())
		}
		signed := func(id parley.ID, expires int64) string {
			signature, err := s.db.Keys().Sign("recording link", fmt.Sprintf("%d %d", id, expires))
			require.NoError(t, err)
			return fmt.Sprintf("/recordings/%d.wav?expires=%d&signature=%s", id, expires, signature)
		}
		expired := get("GET", signed(1, time.Now().Add(-2*time.Second).Unix()))
		require.Equal(t, 403, expired.Code)
		require.Equal(t, `{"message":"The link has expired. Ask for the call again to get a new one."}`, expired.Body.String())
		soon := time.Now().Add(time.Minute).Unix()
		require.Equal(t, 200, get("GET", signed(1, soon)).Code)
		require.Equal(t, 404, get("GET", signed(2, soon)).Code)
		require.Equal(t, 404, get("GET", signed(99, soon)).Code)

		require.FileExists(t, filepath.Join(string(s.recordings), store.RecordingName(1)))
		s.want(200, "DELETE", "/user/calls/1", "")
		require.NoFileExists(t, filepath.Join(string(s.recordings), store.RecordingName(1)))
		gone := get("GET", link)
		require.Equal(t, 404, gone.Code)
		require.Equal(t, `{"message":"Recording not found"}`, gone.Body.String())
	})
}
