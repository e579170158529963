package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestPromiseA5CampaignContract(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(201, "POST", "/user/assistant", strings.Replace(anAssistant(""), `"make"`, `"receive"`, 1))
		s.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"SIP"}`)
		s.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+12025550181","type_label":"Caller ID"}`)
		invalid := func(errors string) string { return `{"message":"Validation failed","errors":{` + errors + `}}` }
		s.play([]step{
			{"POST", "/user/campaigns", `{"name":"Spring","assistant_id":"1"}`, 201, "", []string{
				`{"message":"Campaign created successfully","data":{"id":1,"name":"Spring","status":"draft","assistant_id":1,"timezone":"Europe/Berlin","max_calls_in_parallel":3,"mark_complete_when_no_leads":true,` +
					`"allowed_hours_start_time":"00:00:00","allowed_hours_end_time":"23:59:59","allowed_days":["monday","tuesday","wednesday","thursday","friday","saturday","sunday"],"max_retries":3,"retry_interval":3600,` +
					`"retry_on_voicemail":true,"retry_on_goal_incomplete":false,"goal_completion_variable":null,"phone_number_ids":[],"stop_reason":null,` +
					`"progress":{"total":0,"created":0,"processing":0,"completed":0,"rescheduled":0,"reached_max_retries":0,"blacklisted":0},"created_at":"20`}, []string{"user_id"}},
			{"POST", "/user/campaign", `{"name":"Summer","assistant_id":1,"timezone":"Asia/Tokyo","allowed_hours_start_time":"09:00","allowed_days":["friday"],"phone_number_ids":[2,"1",2]}`, 201, "",
				[]string{`"id":2,`, `"timezone":"Asia/Tokyo"`, `"allowed_hours_start_time":"09:00:00"`, `"allowed_days":["friday"]`, `"phone_number_ids":[2,1]`}, nil},
			{"POST", "/user/campaigns", `{}`, 422, invalid(`"name":["The name field is required."],"assistant_id":["The assistant id field is required."]`), nil, nil},
			{"POST", "/user/campaigns", `{"name":"x","assistant_id":99}`, 422, invalid(`"assistant_id":["The selected assistant id is invalid."]`), nil, nil},
			{"POST", "/user/campaigns", `{"name":"x","assistant_id":2}`, 422, "", []string{"is an inbound assistant"}, nil},
			{"POST", "/user/campaigns", `{"name":"x","assistant_id":1,"phone_number_ids":[1,77]}`, 422, invalid(`"phone_number_ids.1":["The selected phone number ids.1 is invalid."]`), nil, nil},
			{"POST", "/user/campaigns", `{"name":"x","assistant_id":1,"max_retries":11}`, 422, invalid(`"max_retries":["The max retries must be between 0 and 10."]`), nil, nil},
			{"GET", "/user/campaigns", "", 200, "", []string{`[{"id":2,"name":"Summer"`, `{"id":1,"name":"Spring"`}, []string{`"data"`}},
			{"GET", "/user/campaigns?status=draft&per_page=1", "", 200, "", []string{`"id":2`}, []string{`"id":1,`}},
			{"GET", "/user/campaigns?status=completed", "", 200, "[]", nil, nil},
			{"GET", "/user/campaigns?status=paused", "", 422, "", []string{"The selected status is invalid. Available: draft, in-progress, stopped, completed."}, nil},
			{"GET", "/user/campaigns/2", "", 200, "", []string{`{"id":2,"name":"Summer","status":"draft"`, `"phone_number_ids":[2,1]`}, nil},
			{"GET", "/user/campaigns/9", "", 404, `{"message":"Campaign not found"}`, nil, nil},
			{"PUT", "/user/campaigns/2", `{"name":"Autumn","phone_number_ids":[]}`, 200, "", []string{`{"message":"Campaign updated successfully","data":{"id":2,"name":"Autumn"`, `"phone_number_ids":[]`, `"timezone":"Asia/Tokyo"`}, nil},
			{"PUT", "/user/campaigns/2", `{"assistant_id":2}`, 422, "", []string{`"assistant_id":["The selected assistant id is an inbound assistant.`}, nil},
			{"PUT", "/user/campaigns/2", `{"allowed_hours_end_time":"09:00"}`, 422, "", []string{"must differ from the allowed hours start time"}, nil},
			{"PUT", "/user/campaigns/9", `{"name":"x"}`, 404, `{"message":"Campaign not found"}`, nil, nil},
			{"PUT", "/user/campaigns/1", `{"phone_number_ids":[1]}`, 200, "", nil, nil},
			{"DELETE", "/user/phone-numbers/1", "", 422, `{"message":"The phone number is a line of a campaign. Remove it there first."}`, nil, nil},
			{"DELETE", "/user/campaigns/2", "", 200, `{"message":"Campaign deleted successfully"}`, nil, nil},
			{"DELETE", "/user/campaigns/2", "", 404, `{"message":"Campaign not found"}`, nil, nil},
			{"DELETE", "/user/campaign/1", "", 200, `{"message":"Campaign deleted successfully"}`, nil, nil},
			{"GET", "/user/campaigns", "", 200, "[]", nil, nil},
			{"DELETE", "/user/phone-numbers/1", "", 200, "", nil, nil},
		})
	})
}

func TestPromiseA5CampaignStatusContract(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		lines, hungUp := true, 0
		s := newService(t, db, func(c *api.Config) {
			c.CanDial = func(context.Context, *store.Tenant, *parley.Campaign, *parley.Assistant) (bool, error) {
				return lines, nil
			}
			c.HangUp = func(context.Context, *store.Tenant, parley.ID) error { hungUp++; return nil }
		})
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(201, "POST", "/user/campaigns", `{"name":"Spring","assistant_id":1}`)
		refused := func(message string) string { return `{"message":"` + message + `","success":false}` }
		started := `{"message":"Campaign started successfully.","success":true,"data":{"campaign_id":1,"status":"in-progress"}}`
		stopped := `{"message":"Campaign stopped successfully.","success":true,"data":{"campaign_id":1,"status":"stopped"}}`
		const path = "/user/campaigns/update-status"
		s.play([]step{
			{"POST", path, `{}`, 422, `{"message":"The given data was invalid.","errors":{"campaign_id":["The campaign id field is required."],"action":["The action field is required."]},"success":false}`, nil, nil},
			{"POST", path, `{"campaign_id":"x","action":"pause"}`, 422, `{"message":"The given data was invalid.","errors":{"campaign_id":["The campaign id must be an integer."],"action":["The selected action is invalid. Available: start, stop."]},"success":false}`, nil, nil},
			{"POST", path, `{"campaign_id":9,"action":"start"}`, 404, refused("Campaign not found."), nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"stop"}`, 422, refused("The campaign is not running."), nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"start"}`, 422, refused("The campaign has no lead to call. Add leads first, or set mark_complete_when_no_leads to false."), nil, nil},
			{"PUT", "/user/campaigns/1", `{"mark_complete_when_no_leads":false}`, 200, "", nil, nil},
			{"POST", path, `{"campaign_id":"1","action":"start"}`, 200, started, nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"start"}`, 422, refused("The campaign is already running."), nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"stop"}`, 200, stopped, nil, nil},
			{"PUT", "/user/campaigns/1", `{"mark_complete_when_no_leads":true}`, 200, "", nil, nil},
			{"POST", "/user/lead", `{"campaign_id":1,"phone_number":"+12025550108"}`, 200, "", nil, nil},
			{"POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`, 200, "", nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"start"}`, 422, "", []string{"The campaign has no lead to call."}, nil},
			{"POST", "/user/lead", `{"campaign_id":1,"phone_number":"+12025550100"}`, 200, "", nil, nil},
			{"PUT", "/user/assistant/1", `{"status":"inactive"}`, 200, "", nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"start"}`, 422, refused("The campaign needs an active outbound assistant before it can start."), nil, nil},
			{"PUT", "/user/assistant/1", `{"status":"active"}`, 200, "", nil, nil},
		})
		lines = false
		s.play([]step{{"POST", path, `{"campaign_id":1,"action":"start"}`, 422, refused("The campaign needs a usable phone number before it can start."), nil, nil}})
		lines = true
		s.play([]step{{"POST", path, `{"campaign_id":1,"action":"start"}`, 200, started, nil, nil}})
		require.Zero(t, hungUp)
		s.play([]step{
			{"POST", path, `{"campaign_id":1,"action":"stop","hangup":true}`, 200, stopped, nil, nil},
			{"DELETE", "/user/assistant/1", "", 200, "", nil, nil},
			{"POST", path, `{"campaign_id":1,"action":"start"}`, 422, refused("The campaign needs an active outbound assistant before it can start."), nil, nil},
			{"GET", "/user/campaigns/1/preview", "", 200, `{"now":1,"later":0,"never":0,"why":{},"first_at":null}`, nil, nil},
			{"GET", "/user/campaigns/7/preview", "", 404, `{"message":"Campaign not found"}`, nil, nil},
		})
		require.Equal(t, 1, hungUp)
	})
}

func TestPromiseA5LeadContract(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(201, "POST", "/user/campaigns", `{"name":"Spring","assistant_id":1}`)
		invalid := func(errors string) string { return `{"message":"Validation failed","errors":{` + errors + `}}` }
		const duplicate = `"phone_number":["The phone number is already a lead of this campaign. Send allow_duplicate true to add it again."]`
		lead := func(more string) string { return `{"campaign_id":1,"phone_number":"+12025550100"` + more + `}` }
		s.play([]step{
			{"POST", "/user/lead", lead(`,"variables":{"name":"Ada"},"secondary_contacts":[{"phone_number":"+12025550101","variables":{"who":"office"}}]`), 200, "", []string{
				`{"message":"Lead created successfully","data":{"id":1,"campaign_id":1,"phone_number":"+12025550100","variables":{"name":"Ada"},"status":"created","timezone":null,"created_at":"20`,
				`"campaign":{"id":1,"name":"Spring"},"secondary_contacts":[{"id":1,"phone_number":"+12025550101","variables":{"who":"office"},"status":"created","created_at":"20`}, []string{"T", "Z", "user_id", "attempts"}},
			{"POST", "/user/lead", lead(""), 422, invalid(duplicate), nil, nil},
			{"POST", "/user/lead", lead(`,"allow_dupplicate":true`), 200, "", []string{`"id":2,`, `"variables":{}`, `"secondary_contacts":[]`}, nil},
			{"POST", "/user/lead", lead(`,"allow_duplicate":1`), 200, "", []string{`"id":3,`}, nil},
			{"POST", "/user/lead", `{"phone_number":"0171"}`, 422, invalid(`"campaign_id":["The campaign id field is required."],"phone_number":["The phone number must be a phone number in E.164 form, such as +12025550100."]`), nil, nil},
			{"POST", "/user/lead", `{"phone_number":"+12025550102","campaign_id":7}`, 422, invalid(`"campaign_id":["The selected campaign id is invalid."]`), nil, nil},
			{"POST", "/user/lead", lead(`,"secondary_contacts":[{"phone_number":"+12025550100"}]`), 422, "", []string{`"secondary_contacts.0.phone_number":["The secondary contacts.0.phone number field has a duplicate value."]`}, nil},
			{"GET", "/user/leads/1", "", 200, "", []string{`{"id":1,"campaign_id":1,`, `"campaign":{"id":1,"name":"Spring"}`}, nil},
			{"GET", "/user/leads/9", "", 404, `{"message":"Lead not found"}`, nil, nil},
			{"PUT", "/user/leads/1", `{"variables":{"city":"London"},"timezone":"Europe/London"}`, 200, "", []string{`{"message":"Lead updated successfully","data":{"id":1,`, `"variables":{"city":"London","name":"Ada"}`, `"timezone":"Europe/London"`}, nil},
			{"PUT", "/leads/1", `{"status":"completed"}`, 200, "", []string{`"status":"completed"`}, nil},
			{"PUT", "/leads/1", `{"status":"processing"}`, 422, invalid(`"status":["The selected status is invalid. Available: created, completed, reached-max-retries."]`), nil, nil},
			{"PUT", "/user/leads/1", `{"status":"created","campaign_id":7}`, 200, "", []string{`"status":"created"`, `"campaign_id":1`}, nil},
			{"PUT", "/user/leads/9", `{}`, 404, `{"message":"Lead not found"}`, nil, nil},
			{"PUT", "/user/leads/1", `{"secondary_contacts":[{"phone_number":"+12025550102"},{"phone_number":"+12025550101"}]}`, 200, "", []string{`"secondary_contacts":[{"id":2,"phone_number":"+12025550102"`, `{"id":1,"phone_number":"+12025550101"`}, nil},
			// Do not call: whichever of its numbers it is, at once and for later leads too.
			{"POST", "/user/do-not-call", `{"phone_number":"+12025550102"}`, 200, "", nil, nil},
			{"GET", "/user/leads/1", "", 200, "", []string{`"status":"blacklisted","timezone"`, `"id":2,"phone_number":"+12025550102","variables":{},"status":"blacklisted"`, `"id":1,"phone_number":"+12025550101","variables":{},"status":"created"`}, nil},
			{"PUT", "/user/leads/1", `{"status":"created"}`, 422, `{"message":"The lead has a number on the do-not-call list. Take it off the list first."}`, nil, nil},
			{"PUT", "/user/leads/1", `{"variables":{"x":1}}`, 200, "", []string{`"status":"blacklisted"`}, nil},
			{"POST", "/user/lead", `{"campaign_id":1,"phone_number":"+12025550102"}`, 200, "", []string{`"status":"blacklisted"`}, nil},
			{"DELETE", "/user/do-not-call", `{"phone_number":"+12025550102"}`, 200, "", nil, nil},
			{"PUT", "/user/leads/1", `{"status":"created"}`, 200, "", []string{`"status":"created"`}, nil},
			{"GET", "/user/campaigns/1", "", 200, "", []string{`"progress":{"total":4,"created":3,"processing":0,"completed":0,"rescheduled":0,"reached_max_retries":0,"blacklisted":1}`}, nil},
			// Lists.
			{"GET", "/user/leads", "", 200, "", []string{`[{"id":4,`}, []string{`"data"`}},
			{"GET", "/user/leads?campaign_id=1&status=blacklisted", "", 200, "", []string{`[{"id":4,`}, []string{`"id":3,`}},
			{"GET", "/user/leads?phone_number=0102", "", 200, "", []string{`[{"id":4,`}, []string{`"id":3,`}},
			{"GET", "/user/leads?phone_number=+1202555010&per_page=1&page=2", "", 200, "", []string{`[{"id":3,`}, []string{`"id":4,`}},
			{"GET", "/user/leads?date_from=2001-01-01&date_to=2001-01-31", "", 200, "[]", nil, nil},
			{"GET", "/user/leads?campaign_id=77", "", 200, "[]", nil, nil},
			{"GET", "/user/leads?date_from=yesterday", "", 422, invalid(`"date_from":["The date from must be a date such as 2026-01-31."]`), nil, nil},
			{"GET", "/user/leads?status=x&campaign_id=y&phone_number=z", "", 422, "", []string{`"campaign_id":["The campaign id must be an integer."]`, `"status":["The selected status is invalid. Available: created, scheduled,`, `"phone_number":["The phone number must be a part of a phone number`}, nil},
			{"DELETE", "/user/leads/4", "", 200, `{"message":"Lead deleted successfully"}`, nil, nil},
			{"DELETE", "/user/leads/4", "", 404, `{"message":"Lead not found"}`, nil, nil},
		})
		require.Equal(s.t, "3", s.want(200, "GET", "/user/leads?per_page=1", "").header.Get("X-Total-Count"))
		s.odd = true // an array around the variables is accepted, not advertised
		require.Contains(s.t, s.want(200, "POST", "/user/lead", `{"campaign_id":1,"phone_number":"+12025550109","variables":[{"a":"b"}]}`).body, `"variables":{"a":"b"}`)
		s.want(200, "DELETE", "/user/campaigns/1", "")
		require.Equal(s.t, "[]", s.want(200, "GET", "/user/leads", "").body, "a campaign's leads go with it")
	})
}

// Only documented fields of campaigns and leads bind.
func TestPromiseA2CampaignsAndLeadsBindNothingElse(t *testing.T) {
	each(t, func(s *service) {
		s.as("other@example.com")
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		const forged = `"id":4242,"user_id":2,"created_at":"2001-01-01","updated_at":"2001-01-01","deleted_at":"2001-01-01","attempts":9,"due_at":"2001-01-01","next_contact":3,"progress":{"total":9}`
		s.want(201, "POST", "/user/campaigns", `{"name":"Spring","assistant_id":1,"status":"in-progress",`+forged+`}`)
		s.want(200, "PUT", "/user/campaigns/1", `{"status":"completed",`+forged+`}`)
		got := s.want(200, "GET", "/user/campaigns/1", "").body
		require.Contains(s.t, got, `{"id":1,"name":"Spring","status":"draft"`)
		require.NotContains(s.t, got, "2001")
		require.NotContains(s.t, got, "9}")
		s.want(200, "POST", "/user/lead", `{"campaign_id":1,"phone_number":"+12025550100","status":"completed","secondary_contacts":[{"phone_number":"+12025550101","id":77,"status":"completed"}],`+forged+`}`)
		s.want(200, "PUT", "/user/leads/1", "{"+forged+"}")
		got = s.want(200, "GET", "/user/leads/1", "").body
		require.Contains(s.t, got, `{"id":1,"campaign_id":1,"phone_number":"+12025550100","variables":{},"status":"created"`)
		require.Contains(s.t, got, `"secondary_contacts":[{"id":1,"phone_number":"+12025550101","variables":{},"status":"created"`)
		require.NotContains(s.t, got, "2001")
		lead, err := s.db.Tenant(1).Lead(s.t.Context(), 1)
		require.NoError(s.t, err)
		require.Zero(s.t, lead.Attempts+lead.NextContact)
	})
}
