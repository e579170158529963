package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/api"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// step is one exchange of a scenario: what is sent, and exactly what must come back.
type step struct {
	method, path, body string
	status             int
	is                 string   // the whole answer
	has                []string // parts of it
	lacks              []string
}

func (s *service) play(steps []step) {
	s.t.Helper()
	for i, st := range steps {
		got := s.call(st.method, st.path, st.body)
		at := fmt.Sprintf("step %d: %s %s %s\n%s", i, st.method, st.path, st.body, got.body)
		require.Equal(s.t, st.status, got.status, at)
		if st.is != "" {
			require.Equal(s.t, st.is, got.body, at)
		}
		for _, part := range st.has {
			require.Contains(s.t, got.body, part, at)
		}
		for _, part := range st.lacks {
			require.NotContains(s.t, got.body, part, at)
		}
	}
}

func each(t *testing.T, run func(*service)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { run(newService(t, db)) })
}

const nameRule = `The name field must contain only lowercase letters and underscores, and start with a letter.`

func TestPromiseA5ToolContract(t *testing.T) {
	each(t, func(s *service) {
		const field = `"errors":{"name":["Tool name must contain only lowercase letters and underscores, and start with a letter."]}}`
		tool := func(member string) string { return strings.Replace(aTool, "{", "{"+member+",", 1) }
		rename := func(name string) string { return strings.Replace(aTool, "get_order", name, 1) }
		s.play([]step{
			{"POST", "/user/tools", aTool, 201, "", []string{`{"message":"Tool created successfully","data":{"id":1,"name":"get_order",`, `"timeout":10,"headers":[],"schema":[],`}, nil},
			{"GET", "/user/tools/1", "", 200, "", []string{`{"id":1,"name":"get_order","description":"Looks up an order.","endpoint":"https://shop.example.com/{order_number}","method":"GET","timeout":10,"headers":[],"schema":[],"created_at":"20`}, []string{"data", "user_id"}},
			{"GET", "/user/tools", "", 200, "", []string{`[{"id":1,`}, nil},
			// Names.
			{"POST", "/user/tools", rename("Get"), 422, `{"message":"` + nameRule + `",` + field, nil, nil},
			{"POST", "/user/tools", rename("get-1"), 422, `{"message":"` + nameRule + `",` + field, nil, nil},
			{"POST", "/user/tools", rename("_get"), 422, `{"message":"` + nameRule + `",` + field, nil, nil},
			{"POST", "/user/tools", rename("get2"), 422, `{"message":"` + nameRule + `",` + field, nil, nil},
			{"PUT", "/user/tools/1", `{"name":"Get"}`, 422, `{"message":"Validation failed",` + field, nil, nil},
			// Required fields, one and several.
			{"POST", "/user/tools", "{}", 422, `{"message":"The name field is required. (and 3 more errors)","errors":{"name":["The name field is required."],"description":["The description field is required."],"endpoint":["The endpoint field is required."],"method":["The method field is required."]}}`, nil, nil},
			{"POST", "/user/tools", "", 422, "", []string{"The name field is required. (and 3 more errors)"}, nil},
			{"POST", "/user/tools", `{"name":"a","description":"d","endpoint":"https://x.example"}`, 422, `{"message":"The method field is required.","errors":{"method":["The method field is required."]}}`, nil, nil},
			{"POST", "/user/tools", `{"name":null,"description":"","endpoint":"https://x.example","method":"GET"}`, 422, "", []string{`"name":["The name field is required."]`, `"description":["The description field is required."]`}, nil},
			// Limits of section 8.
			{"POST", "/user/tools", tool(`"timeout":0`), 422, `{"message":"The timeout must be between 1 and 30.","errors":{"timeout":["The timeout must be between 1 and 30."]}}`, nil, nil},
			{"POST", "/user/tools", tool(`"timeout":31`), 422, "", []string{"The timeout must be between 1 and 30."}, nil},
			{"POST", "/user/tools", tool(`"timeout":99999999999999999999`), 422, "", []string{"The timeout must be between 1 and 30."}, nil},
			{"POST", "/user/tools", tool(`"timeout":1.5`), 422, "", []string{"The timeout must be an integer."}, nil},
			{"POST", "/user/tools", tool(`"timeout":"10"`), 422, "", []string{"The timeout must be an integer."}, nil},
			{"POST", "/user/tools", tool(`"timeout":null`), 422, "", []string{"The timeout must be an integer."}, nil},
			{"POST", "/user/tools", strings.Replace(aTool, "Looks up an order.", strings.Repeat("é", 256), 1), 422, "", []string{"The description must not be greater than 255 characters."}, nil},
			{"POST", "/user/tools", strings.Replace(aTool, "Looks up an order.", strings.Repeat("é", 255), 1), 201, "", nil, nil},
			{"POST", "/user/tools", strings.Replace(aTool, "https://shop.example.com/{order_number}", "not a url", 1), 422, "", []string{"The endpoint must be a valid URL."}, nil},
			{"POST", "/user/tools", strings.Replace(aTool, "https://", "ftp://", 1), 422, "", []string{"The endpoint must be a valid URL."}, nil},
			{"POST", "/user/tools", strings.Replace(aTool, "shop.example.com", "{{region}}.example.com", 1), 201, "", nil, nil},
			{"POST", "/user/tools", strings.Replace(aTool, `"GET"`, `"get"`, 1), 422, "", []string{"The selected method is invalid. Available: GET, POST, PUT, PATCH, DELETE."}, nil},
			// Nested keys.
			{"POST", "/user/tools", tool(`"headers":[{"name":"A","value":"b"},{"name":"B"}]`), 422, "", []string{`"headers.1.value":["The headers.1.value field is required."]`}, nil},
			{"POST", "/user/tools", tool(`"headers":[{"name":"A b","value":"c\nd"}]`), 422, "", []string{`"headers.0.name":["The headers.0.name must be a valid HTTP header name."]`, `"headers.0.value":["The headers.0.value must not contain control characters."]`}, nil},
			{"POST", "/user/tools", tool(`"headers":["x"]`), 422, "", []string{`"headers.0":["The headers.0 must be an object."]`}, nil},
			{"POST", "/user/tools", tool(`"headers":{}`), 422, "", []string{`"headers":["The headers must be an array."]`}, nil},
			{"POST", "/user/tools", tool(`"schema":[{"type":"string","description":"ddd"}]`), 422, "", []string{`"schema.0.name":["The schema.0.name field is required."]`}, nil},
			{"POST", "/user/tools", tool(`"schema":[{"name":"x","type":"bool","description":"dd"}]`), 422, "", []string{
				`"schema.0.name":["The schema.0.name must be between 2 and 32 characters."]`, `"schema.0.type":["The selected schema.0.type is invalid. Available: string, number, boolean."]`,
				`"schema.0.description":["The schema.0.description must be between 3 and 255 characters."]`}, nil},
			{"POST", "/user/tools", tool(`"schema":[{"name":"1x","type":"string","description":"ddd"}]`), 422, "", []string{`"schema.0.name":["The schema.0.name format is invalid."]`}, nil},
			{"POST", "/user/tools", tool(`"schema":[{"name":"xx","type":"string","description":"ddd"},{"name":"xx","type":"string","description":"ddd"}]`), 422, "", []string{`"schema.1.name":["The schema.1.name field has a duplicate value."]`}, nil},
			// Update: supplied fields only, lists replace.
			{"PUT", "/user/tools/1", `{"headers":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"schema":[{"name":"Order_no","type":"number","description":"ddd"}],"timeout":30}`, 200, "", []string{
				`{"message":"Tool updated successfully","data":{"id":1,"name":"get_order"`, `"timeout":30,"headers":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"schema":[{"name":"Order_no","type":"number","description":"ddd"}]`}, nil},
			{"PUT", "/user/tools/1", `{"headers":[]}`, 200, "", []string{`"headers":[],"schema":[{"name":"Order_no"`, `"timeout":30`}, nil},
			{"PUT", "/user/tools/1", `{}`, 200, "", []string{`"timeout":30`}, nil},
			{"PUT", "/user/tools/1", `{"description":null}`, 422, `{"message":"Validation failed","errors":{"description":["The description field is required."]}}`, nil, nil},
			{"PUT", "/user/tools/999", `{"timeout":0}`, 404, `{"message":"Tool not found"}`, nil, nil},
			{"GET", "/user/tools/999", "", 404, `{"message":"Tool not found"}`, nil, nil},
			{"GET", "/user/tools/abc", "", 404, `{"message":"Tool not found"}`, nil, nil},
			{"GET", "/user/tools/99999999999999999999", "", 404, `{"message":"Tool not found"}`, nil, nil},
			{"DELETE", "/user/tools/1", "", 200, `{"message":"Tool deleted successfully"}`, nil, nil},
			{"DELETE", "/user/tools/1", "", 404, `{"message":"Tool not found"}`, nil, nil},
		})
	})
}

func TestPromiseA5PlanLimit(t *testing.T) {
	each(t, func(s *service) {
		user, err := s.db.System().UserByEmail(s.t.Context(), "owner@example.com")
		require.NoError(s.t, err)
		require.NoError(s.t, s.db.System().SetPlan(s.t.Context(), user.ID, "default"))
		for range 5 {
			s.want(201, "POST", "/user/tools", aTool)
		}
		got := s.want(422, "POST", "/user/tools", aTool)
		require.Equal(s.t, `{"message":"You have reached the limit of 5 mid call tools of your plan. Please upgrade your plan to create more."}`, got.body)
		s.want(200, "DELETE", "/user/tools/1", "")
		s.want(201, "POST", "/user/tools", aTool)
	})
}

func TestPromiseA5AssistantContract(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/tools", aTool)
		invalid := func(errors string) string { return `{"message":"Validation failed","errors":{` + errors + `}}` }
		const needsURL = `"webhook_url":["The webhook url field is required when is webhook active is true."]`
		steps := []step{
			{"POST", "/user/assistant", anAssistant(""), 201, `{"message":"Assistant created successfully","data":{"id":1,"name":"Front desk","status":"active","type":"outbound","mode":"pipeline"}}`, nil, nil},
			{"POST", "/user/assistant", "{}", 422, "", []string{`"message":"Validation failed"`, `"assistant_name":["The assistant name field is required."]`, `"voice_id":["The voice id field is required."]`,
				`"language":["The language field is required."]`, `"llm_model":["The llm model field is required."]`, `"calls_direction":["The calls direction field is required."]`, `"engine_type":["The engine type field is required."]`,
				`"timezone":["The timezone field is required."]`, `"initial_message":["The initial message field is required."]`, `"system_prompt":["The system prompt field is required."]`}, nil},
			{"POST", "/user/assistant", anAssistant(`"is_webhook_active":true`), 422, invalid(needsURL), nil, nil},
			{"POST", "/user/assistant", anAssistant(`"is_webhook_active":true,"webhook_url":null`), 422, invalid(needsURL), nil, nil},
			{"POST", "/user/assistant", anAssistant(`"is_webhook_active":true,"webhook_url":"nonsense"`), 422, invalid(`"webhook_url":["The webhook url must be a valid URL."]`), nil, nil},
			// Update and read.
			{"PUT", "/user/assistant/1", `{"status":"inactive","max_call_duration":20}`, 200, `{"message":"Assistant updated successfully","data":{"id":1,"name":"Front desk","status":"inactive","type":"outbound","mode":"pipeline"}}`, nil, nil},
			{"PATCH", "/user/assistant/1", `{"status":"active"}`, 200, "", []string{`"status":"active"`}, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"max_duration":20,`, `"status":"active"`}, nil},
			{"PUT", "/user/assistant/1", `{"status":"paused"}`, 422, invalid(`"status":["The selected status is invalid. Available: active, inactive."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"assistant_name":""}`, 422, invalid(`"assistant_name":["The assistant name field is required."]`), nil, nil},
			{"PUT", "/user/assistant/77", `{"assistant_name":"x"}`, 404, `{"message":"Assistant not found"}`, nil, nil},
			{"GET", "/user/assistant/77", "", 404, `{"message":"Assistant not found"}`, nil, nil},
			// References.
			{"PUT", "/user/assistant/1", `{"voice_id":999}`, 422, invalid(`"voice_id":["The selected voice id is invalid."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"voice_id":5}`, 422, "", []string{`"voice_id":["The selected voice id does not fit the engine type pipeline.`}, nil},
			{"PUT", "/user/assistant/1", `{"engine_type":"multimodal"}`, 422, "", []string{`"voice_id":["The selected voice id does not fit the engine type multimodal.`}, nil},
			{"PUT", "/user/assistant/1", `{"engine_type":"multimodal","voice_id":"5"}`, 200, "", []string{`"mode":"multimodal"`}, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"multimodal_model_id":1,`}, nil},
			{"PUT", "/user/assistant/1", `{"knowledgebase_mode":"prompt"}`, 422, invalid(`"knowledgebase_mode":["The knowledgebase mode prompt needs the engine type pipeline."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"engine_type":"pipeline","voice_id":1,"knowledgebase_mode":"prompt"}`, 200, "", []string{`"mode":"pipeline"`}, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"multimodal_model_id":null,`}, nil},
			{"PUT", "/user/assistant/1", `{"knowledgebase_id":1}`, 422, invalid(`"knowledgebase_id":["The selected knowledgebase id is invalid."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"llm_model":"gpt"}`, 422, invalid(`"llm_model":["The selected llm model is invalid. Available: sandbox, sandbox-realistic."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"language":"Klingon"}`, 422, "", []string{`"language":["The selected language is invalid. Available: English, German,`}, nil},
			{"PUT", "/user/assistant/1", `{"language":"German","llm_model":"sandbox-realistic"}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"language":"German"`, `"language_id":2,"llm_model_id":2,`}, nil},
			{"PUT", "/user/assistant/1", `{"timezone":"Mars/Olympus"}`, 422, "", []string{`"timezone":["The timezone must be a valid time zone`}, nil},
			{"PUT", "/user/assistant/1", `{"timezone":"Local"}`, 422, "", []string{`"timezone":[`}, nil},
			{"PUT", "/user/assistant/1", `{"phone_number_id":12345}`, 422, invalid(`"phone_number_id":["The selected phone number id is invalid."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"tool_ids":[1,2]}`, 422, invalid(`"tool_ids.1":["The selected tool ids.1 is invalid."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"tool_ids":[1,"x"]}`, 422, invalid(`"tool_ids.1":["The tool ids.1 must be an integer."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"tool_ids":["1",1]}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"tools":[{"type":"http","data":{"id":1,"name":"get_order",`}, nil},
			{"PUT", "/user/assistant/1", `{"end_call_tool":{"description":"Say goodbye first."}}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"tools":[{"type":"http","data":{"id":1,`, `{"type":"end_call","data":{"description":"Say goodbye first."}}]`}, nil},
			{"PUT", "/user/assistant/1", `{"end_call_tool.description":"` + strings.Repeat("x", 501) + `"}`, 422, invalid(`"end_call_tool.description":["The end call tool.description must not be greater than 500 characters."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"end_call_tool.description":"Dotted."}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`{"type":"end_call","data":{"description":"Dotted."}}]`}, nil},
			{"PUT", "/user/assistant/1", `{"tools":[{"type":"end_call","data":{"description":"Listed."}}]}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"tools":[{"type":"end_call","data":{"description":"Listed."}}],`}, nil},
			{"PUT", "/user/assistant/1", `{"tools":[{"type":"carrier_pigeon","data":{}}]}`, 422, "", []string{`"tools.0.type":["The selected tools.0.type is invalid.`}, nil},
			{"PUT", "/user/assistant/1", `{"tool_ids":[]}`, 200, "", nil, nil},
			// Lists and objects replace.
			{"PUT", "/user/assistant/1", `{"variables":{"a":1,"b":{"c":[true,null]}}}`, 200, "", nil, nil},
			{"PUT", "/user/assistant/1", `{"variables":{"z":12345678901234567890.5}}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"variables":{"z":12345678901234567890.5},`}, nil},
			{"PUT", "/user/assistant/1", `{"variables":"x"}`, 422, invalid(`"variables":["The variables must be an object."]`), nil, nil},
			{"PUT", "/user/assistant/1", `{"post_call_schema":[{"name":"a-b","type":"boolean","description":""}]}`, 422, "", []string{`"post_call_schema.0.name":["The post call schema.0.name format is invalid."]`, `"post_call_schema.0.type":[`, `"post_call_schema.0.description":[`}, nil},
			{"PUT", "/user/assistant/1", `{"post_call_schema":[{"name":"Date_1","type":"bool","description":"d"}]}`, 200, "", nil, nil},
			{"PUT", "/user/assistant/1", `{"filler_config":{"neutral":["Hm."]}}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"post_call_schema":[{"name":"Date_1","type":"bool","description":"d"}]`, `"filler_config":{"neutral":["Hm."],"negative":[],"positive":[],"question":[]}`}, nil},
			{"PUT", "/user/assistant/1", `{"filler_config":{"neutral":[1]}}`, 422, invalid(`"filler_config.neutral.0":["The filler config.neutral.0 must be a string."]`), nil, nil},
			// Delete.
			{"DELETE", "/user/assistant/1", "", 200, `{"message":"Assistant deleted successfully"}`, nil, nil},
			{"DELETE", "/user/assistant/1", "", 404, `{"message":"Assistant not found"}`, nil, nil},
			{"GET", "/user/assistants", "", 200, `[]`, nil, nil},
			{"POST", "/user/assistants/disable-webhook", `{"assistant_id":1}`, 404, `{"message":"Assistant not found"}`, nil, nil},
		}
		s.play(steps)
	})
}

// Every limit of section 8: its two ends are accepted, one step beyond is refused in the seed's words.
func TestPromiseA5AssistantLimits(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		for _, limit := range []struct{ field, low, high, below, above string }{
			{"endpoint_sensitivity", "0", "5", "-0.1", "5.1"},
			{"interrupt_sensitivity", "0", "5", "-1", "1e400"},
			{"ambient_sound_volume", "0", "1", "-0.01", "1.01"},
			{"llm_temperature", "0", "1", "-1", "2"},
			{"voice_stability", "0", "1", "-1", "2"},
			{"voice_similarity", "0", "1", "-1", "2"},
			{"speech_speed", "0.7", "1.2", "0.69", "1.21"},
			{"min_interrupt_words", "0", "10", "-1", "11"},
			{"re_engagement_interval", "7", "600", "6", "601"},
			{"max_call_duration", "20", "1200", "19", "1201"},
			{"max_silence_duration", "1", "120", "0", "121"},
		} {
			for _, fine := range []string{limit.low, limit.high} {
				s.want(200, "PUT", "/user/assistant/1", fmt.Sprintf(`{%q:%s}`, limit.field, fine))
			}
			for _, wrong := range []string{limit.below, limit.above} {
				got := s.want(422, "PUT", "/user/assistant/1", fmt.Sprintf(`{%q:%s}`, limit.field, wrong))
				require.Equal(s.t, fmt.Sprintf(`{"message":"Validation failed","errors":{%q:["The %s must be between %s and %s."]}}`,
					limit.field, strings.ReplaceAll(limit.field, "_", " "), limit.low, limit.high), got.body)
			}
		}
		for _, limit := range []struct {
			field string
			max   int
		}{{"assistant_name", 255}, {"language", 100}, {"llm_model", 100}} {
			got := s.want(422, "PUT", "/user/assistant/1", fmt.Sprintf(`{%q:%q}`, limit.field, strings.Repeat("x", limit.max+1)))
			require.Contains(s.t, got.body, fmt.Sprintf("must not be greater than %d characters.", limit.max))
		}
		s.want(200, "PUT", "/user/assistant/1", fmt.Sprintf(`{"assistant_name":%q}`, strings.Repeat("ü", 255)))
	})
}

// Both of a field's names are accepted, and the seed's wins.
func TestRequestNamesAndStoredNames(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", `{"name":"Stored names","voice_id":1,"language_id":3,"llm_model_id":"2","type":"inbound","mode":"pipeline","timezone":"UTC","initial_message":"Hi","system_prompt":"p"}`)
		for _, c := range []struct{ body, shows string }{
			{`{}`, `"language":"French","type":"inbound"`},
			{`{"assistant_name":"seed","name":"stored"}`, `"name":"seed"`},
			{`{"calls_direction":"make","type":"inbound"}`, `"type":"outbound"`},
			{`{"type":"inbound"}`, `"type":"inbound"`},
			{`{"filler_audios":true}`, `"fillers":1`},
			{`{"fillers":0}`, `"fillers":0`},
			{`{"re_engagement_interval":9,"reengagement_interval":8}`, `"reengagement_interval":9`},
			{`{"max_duration":99}`, `"max_duration":99`},
			{`{"noise_cancellation":"false"}`, `"enable_noise_cancellation":false`},
			{`{"record_call":1}`, `"record":true`},
			{`{"who_speaks_first":"Customer"}`, `"wait_for_customer":true`},
			{`{"wait_for_customer":false}`, `"wait_for_customer":false`},
			{`{"end_call_on_voicemail":false}`, `"end_call_on_voicemail":0`},
			{`{"llm_temperature":"0.35"}`, `"llm_temperature":"0.35"`},
			{`{"speech_speed":0.999}`, `"speech_speed":"1.00"`},
			{`{"use_min_interrupt_words":false,"min_interrupt_words":4}`, `"min_interrupt_words":4,"use_min_interrupt_words":false`},
			{`{"ambient_sound":"crowded_room"}`, `"ambient_sound":"crowded_room"`},
			{`{"inbound_webhook_url":"https://x.example"}`, `"inbound_webhook_url":"https://x.example"`},
			{`{"language":"German","language_id":1}`, `"language":"German"`},
		} {
			s.want(200, "PUT", "/user/assistant/1", c.body)
			require.Contains(s.t, s.want(200, "GET", "/user/assistant/1", "").body, c.shows, c.body)
		}
		for _, wrong := range []struct{ body, says string }{
			{`{"calls_direction":"outbound"}`, `"calls_direction":["The selected calls direction is invalid. Available: receive, make."]`},
			{`{"type":"make"}`, `"type":["The selected type is invalid. Available: inbound, outbound."]`},
			{`{"who_speaks_first":true}`, `"who_speaks_first":["The selected who speaks first is invalid. Available: AI assistant, Customer."]`},
			{`{"record_call":"yes"}`, `"record_call":["The record call field must be true or false."]`},
			{`{"record_call":2}`, `"record_call":["The record call field must be true or false."]`},
			{`{"llm_temperature":"NaN"}`, `"llm_temperature":["The llm temperature must be a number."]`},
			{`{"endpoint_sensitivity":"1"}`, `"endpoint_sensitivity":["The endpoint sensitivity must be a number."]`},
		} {
			require.Contains(s.t, s.want(422, "PUT", "/user/assistant/1", wrong.body).body, wrong.says)
		}
	})
}

// A record that was read can be sent back as it is, and changes nothing.
func TestARecordSentBackChangesNothing(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/tools", aTool)
		s.want(201, "POST", "/user/assistant", anAssistant(`"tool_ids":[1],"end_call_tool":{"description":"Bye."},"is_webhook_active":true,"webhook_url":"https://x.example","variables":{"a":1}`))
		before := s.want(200, "GET", "/user/assistant/1", "").object(s.t)
		s.want(200, "PUT", "/user/assistant/1", s.call("GET", "/user/assistant/1", "").body)
		after := s.want(200, "GET", "/user/assistant/1", "").object(s.t)
		delete(before, "updated_at")
		delete(after, "updated_at")
		require.Equal(s.t, before, after)
	})
}

func TestPromiseA5WebhookSwitches(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(`"is_webhook_active":true,"webhook_url":"https://a.example/hook"`))
		const missing = `{"message":"Assistant not found"}`
		const both = `{"message":"The given data was invalid.","errors":{"assistant_id":["The assistant id field is required."],"webhook_url":["The webhook url field is required."]}}`
		const one = `{"message":"The given data was invalid.","errors":{"assistant_id":["The assistant id field is required."]}}`
		const noURL = `{"message":"The given data was invalid.","errors":{"webhook_url":["The webhook url must be a valid URL."]}}`
		on := func(path, message, shows string) []step {
			return []step{
				{"POST", path, `{"assistant_id":1,"webhook_url":"https://b.example"}`, 200, `{"message":"` + message + `","data":[]}`, nil, nil},
				{"GET", "/user/assistant/1", "", 200, "", []string{shows}, nil},
				{"POST", path, `{}`, 422, both, nil, nil},
				{"POST", path, `{"assistant_id":1,"webhook_url":"mailto:x@example.com"}`, 422, noURL, nil, nil},
				{"POST", path, `{"assistant_id":9,"webhook_url":"https://b.example"}`, 404, missing, nil, nil},
				{"POST", path, `{"assistant_id":"one","webhook_url":"https://b.example"}`, 422, "", []string{`"assistant_id":["The assistant id must be an integer."]`}, nil},
			}
		}
		off := func(path, message, shows string) []step {
			return []step{
				{"POST", path, `{"assistant_id":"1"}`, 200, `{"message":"` + message + `","data":[]}`, nil, nil},
				{"GET", "/user/assistant/1", "", 200, "", []string{shows}, nil},
				{"POST", path, `{}`, 422, one, nil, nil},
				{"POST", path, `{"assistant_id":9}`, 404, missing, nil, nil},
			}
		}
		s.play(off("/user/assistants/disable-webhook", "Webhook disabled successfully", `"is_webhook_active":false,"webhook_url":null`))
		s.play(on("/user/assistants/enable-webhook", "Webhook enabled successfully", `"is_webhook_active":true,"webhook_url":"https://b.example"`))
		s.play(on("/user/assistants/enable-inbound-webhook", "Inbound webhook enabled successfully", `"inbound_webhook_url":"https://b.example"`))
		s.play(off("/user/assistants/disable-inbound-webhook", "Inbound webhook disabled successfully", `"inbound_webhook_url":null`))
		s.play([]step{
			{"PUT", "/user/assistant/1", `{"is_webhook_active":true}`, 200, "", nil, nil}, // the stored address serves
			{"PUT", "/user/assistant/1", `{"webhook_url":null}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"is_webhook_active":false,"webhook_url":null`}, nil},
			{"PUT", "/user/assistant/1", `{"is_webhook_active":true}`, 422, `{"message":"Validation failed","errors":{"webhook_url":["The webhook url field is required when is webhook active is true."]}}`, nil, nil},
			{"PUT", "/user/assistant/1", `{"is_webhook_active":true,"webhook_url":"https://c.example"}`, 200, "", nil, nil},
			{"PUT", "/user/assistant/1", `{"is_webhook_active":false}`, 200, "", nil, nil},
			{"GET", "/user/assistant/1", "", 200, "", []string{`"is_webhook_active":false,"webhook_url":null`}, nil},
		})
	})
}

func TestPromiseA5Lookups(t *testing.T) {
	each(t, func(s *service) {
		s.play([]step{
			{"POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"Normal"}`, 201, "", []string{`{"message":"Phone number created successfully","data":{"id":1,"phone_number":"+12025550180","country_code":"US","type_label":"Normal","is_available":true,"sip_trunk_id":null,`}, nil},
			{"POST", "/user/phone-numbers", `{"phone_number":"+442079460180","type_label":"Caller ID"}`, 201, "", []string{`"country_code":"GB"`, `"is_available":false`}, nil},
			{"POST", "/user/phone-numbers", `{"phone_number":"+12025550181","type_label":"SIP","country_code":"CA"}`, 201, "", []string{`"country_code":"CA"`}, nil},
			{"POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"Normal"}`, 422, `{"message":"Validation failed","errors":{"phone_number":["The phone number has already been added."]}}`, nil, nil},
			{"POST", "/user/phone-numbers", `{"phone_number":"0301234","type_label":"Fax","country_code":"Us","sip_trunk_id":4}`, 422, "", []string{`"phone_number":["The phone number must be a phone number in E.164 form`, `"type_label":["The selected type label is invalid. Available: Normal, SIP, Caller ID."]`, `"country_code":["The country code must be two capital letters`, `"sip_trunk_id":["The selected sip trunk id is invalid."]`}, nil},
			{"POST", "/user/phone-numbers", `{"phone_number":"+88312345678","type_label":"Normal"}`, 422, "", []string{`"country_code":["The country code field is required`}, nil},
			{"GET", "/user/assistants/phone-numbers", "", 200, `[{"id":1,"phone_number":"+12025550180","country_code":"US","type_label":"Normal","is_available":true},{"id":2,"phone_number":"+442079460180","country_code":"GB","type_label":"Caller ID","is_available":false},{"id":3,"phone_number":"+12025550181","country_code":"CA","type_label":"SIP","is_available":true}]`, nil, nil},
			{"POST", "/user/assistant", anAssistant(`"phone_number_id":2`), 201, "", nil, nil}, // outbound: any own number
			{"PUT", "/user/assistant/1", `{"calls_direction":"receive"}`, 422, `{"message":"Validation failed","errors":{"phone_number_id":["The selected phone number id is a caller ID, which cannot be called."]}}`, nil, nil},
			{"PUT", "/user/assistant/1", `{"calls_direction":"receive","phone_number_id":1}`, 200, "", nil, nil},
			{"POST", "/user/assistant", anAssistant(`"phone_number_id":1`), 201, "", nil, nil},
			{"POST", "/user/assistant", strings.Replace(anAssistant(`"phone_number_id":1`), `"make"`, `"receive"`, 1), 422, `{"message":"Validation failed","errors":{"phone_number_id":["The selected phone number id is already assigned to another inbound assistant."]}}`, nil, nil},
			{"GET", "/user/assistants/phone-numbers?type=inbound", "", 200, `[{"id":3,"phone_number":"+12025550181","country_code":"CA","type_label":"SIP","is_available":true}]`, nil, nil},
			{"GET", "/user/assistants/phone-numbers?type=outbound", "", 200, "", []string{`"id":1,`, `"id":2,`, `"id":3,`}, nil},
			{"GET", "/user/assistants/phone-numbers?type=sideways", "", 422, "", []string{`"type":["The selected type is invalid. Available: inbound, outbound."]`}, nil},
			{"PUT", "/user/phone-numbers/1", `{"type_label":"Caller ID"}`, 422, "", []string{`"type_label":["The type label cannot become Caller ID`}, nil},
			{"DELETE", "/user/phone-numbers/1", "", 422, `{"message":"The phone number is assigned to an assistant. Unassign it first."}`, nil, nil},
			{"PUT", "/user/assistant/1", `{"phone_number_id":null}`, 200, "", nil, nil},
			{"PUT", "/user/assistant/2", `{"phone_number_id":""}`, 200, "", nil, nil},
			{"PUT", "/user/phone-numbers/1", `{"country_code":"CA"}`, 200, "", []string{`"message":"Phone number updated successfully"`, `"country_code":"CA"`, `"is_available":true`}, nil},
			{"DELETE", "/user/phone-numbers/1", "", 200, `{"message":"Phone number deleted successfully"}`, nil, nil},
			{"PUT", "/user/phone-numbers/1", `{}`, 404, `{"message":"Phone number not found"}`, nil, nil},
			{"DELETE", "/user/phone-numbers/1", "", 404, `{"message":"Phone number not found"}`, nil, nil},
			{"GET", "/user/phone-numbers/all", "", 200, "", []string{`"sip_trunk_id":null`}, []string{`"id":1,`}},
			// Catalogue.
			{"GET", "/user/assistants/voices", "", 200, "", []string{`[{"id":1,"name":"Sandbox Alto","mode":"pipeline"},`, `"mode":"multimodal"}`}, []string{"provider"}},
			{"GET", "/user/assistants/voices?mode=multimodal", "", 200, "", []string{`"mode":"multimodal"`}, []string{`"mode":"pipeline"`}},
			{"GET", "/user/assistants/voices?mode=x", "", 422, "", []string{`"mode":["The selected mode is invalid.`}, nil},
			{"GET", "/user/assistants/voices?language_id=1", "", 200, "", []string{`"id":1`}, nil},
			{"GET", "/user/assistants/voices?language_id=x", "", 422, "", []string{`"language_id":["The language id must be an integer."]`}, nil},
			{"GET", "/user/assistants/models", "", 200, `[{"id":1,"name":"sandbox"},{"id":2,"name":"sandbox-realistic"}]`, nil, nil},
			{"GET", "/user/assistants/languages", "", 200, "", []string{`[{"id":1,"name":"English","iso_2":"en"},{"id":2,"name":"German","iso_2":"de"},`}, nil},
		})
	})
}

func TestPromiseA5SIPTrunks(t *testing.T) {
	each(t, func(s *service) {
		s.play([]step{
			{"POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"sip.example.com:5061","transport":"tls","sip_username":"u","sip_password":"hush","register":true,"outbound_proxy":"[2001:db8::1]:5060","allowed_inbound_ips":["203.0.113.0/28","2001:db8::7"],"calling_format":"national","max_channels":3,"calls_per_second":2}`, 201, "",
				[]string{`{"message":"SIP trunk created successfully","data":{"id":1,"sip_address":"sip.example.com:5061","transport":"tls","sip_username":"u","register":true,"outbound_proxy":"[2001:db8::1]:5060","allowed_inbound_ips":["203.0.113.0/28","2001:db8::7"],"calling_format":"national","max_channels":3,"calls_per_second":2,`}, []string{"hush", "password"}},
			{"POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"a b","transport":"sctp","allowed_inbound_ips":["x"],"calling_format":"x","max_channels":0,"calls_per_second":0,"register":true,"outbound_proxy":"h:99999"}`, 422, "", []string{
				`"sip_address":["The sip address must be a host or host:port`, `"transport":[`, `"allowed_inbound_ips.0":["The allowed inbound ips.0 must be an IP address or a network`, `"calling_format":[`, `"max_channels":["The max channels must be between 1 and 10000."]`,
				`"calls_per_second":[`, `"sip_username":["The sip username field is required when register is true."]`, `"outbound_proxy":[`}, nil},
			{"PUT", "/user/phone-numbers/sip-trunks/1", `{"transport":"udp","outbound_proxy":null}`, 200, "", []string{`"message":"SIP trunk updated successfully"`, `"transport":"udp"`, `"outbound_proxy":null`, `"register":true`}, nil},
			{"PUT", "/user/phone-numbers/sip-trunks/1", `{"transport":"x"}`, 422, "", nil, nil},
			{"GET", "/user/phone-numbers/sip-trunks/1", "", 200, "", []string{`{"id":1,"sip_address":`}, []string{"hush", "password"}},
			{"GET", "/user/phone-numbers/sip-trunks", "", 200, "", []string{`[{"id":1,"sip_address":`}, []string{"hush", "password"}},
			{"POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"SIP","sip_trunk_id":1}`, 201, "", []string{`"sip_trunk_id":1`}, nil},
			{"DELETE", "/user/phone-numbers/sip-trunks/1", "", 422, `{"message":"The SIP trunk carries phone numbers. Move or delete them first."}`, nil, nil},
			{"PUT", "/user/phone-numbers/1", `{"sip_trunk_id":null}`, 200, "", nil, nil},
			{"DELETE", "/user/phone-numbers/sip-trunks/1", "", 200, `{"message":"SIP trunk deleted successfully"}`, nil, nil},
			{"GET", "/user/phone-numbers/sip-trunks/1", "", 404, `{"message":"SIP trunk not found"}`, nil, nil},
			{"PUT", "/user/phone-numbers/sip-trunks/1", "{}", 404, `{"message":"SIP trunk not found"}`, nil, nil},
			{"DELETE", "/user/phone-numbers/sip-trunks/1", "", 404, `{"message":"SIP trunk not found"}`, nil, nil},
		})
		// The password is kept through updates that do not mention it.
		s.want(201, "POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"a.example","sip_username":"u","sip_password":"hush"}`)
		s.want(200, "PUT", "/user/phone-numbers/sip-trunks/2", `{"max_channels":9}`)
		user, err := s.db.System().UserByEmail(s.t.Context(), "owner@example.com")
		require.NoError(s.t, err)
		trunk, err := s.db.Tenant(user.ID).Trunk(s.t.Context(), 2)
		require.NoError(s.t, err)
		require.Equal(s.t, "hush", trunk.Password)
	})
}

func TestPromiseA5Account(t *testing.T) {
	each(t, func(s *service) {
		s.play([]step{
			{"GET", "/user/me", "", 200, "", []string{`{"id":1,"name":"owner","email":"owner@example.com","plan":"unlimited","total_balance":0,"limits":{`}, nil},
			{"POST", "/user/api-keys", `{}`, 422, `{"message":"Validation failed","errors":{"name":["The name field is required."]}}`, nil, nil},
			{"POST", "/user/api-keys", `{"name":"CRM"}`, 201, "", []string{`"message":"API key created successfully"`, `"name":"CRM"`, `"token":"2|`}, nil},
			{"GET", "/user/api-keys", "", 200, "", []string{`[{"id":1,"name":"test","created_at":"`, `{"id":2,"name":"CRM","created_at":"`}, []string{"token", "hash", "|"}},
		})
		made := s.want(201, "POST", "/user/api-keys", `{"name":"short-lived"}`).object(s.t)["api_key"].(map[string]any)
		other := *s
		other.token = made["token"].(string)
		other.want(200, "GET", "/user/me", "")
		s.want(200, "DELETE", fmt.Sprintf("/user/api-keys/%v", made["id"]), "")
		s.want(404, "DELETE", fmt.Sprintf("/user/api-keys/%v", made["id"]), "")
		got := other.want(401, "GET", "/user/me", "")
		require.Equal(s.t, `{"message":"Unauthenticated."}`, got.body)
	})
}

// 401 on every route, the same for no token, a wrong one, another scheme.
func TestPromiseA5EveryRouteNeedsAToken(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)))
	for _, route := range api.Routes() {
		for _, token := range []string{"", "1|wrong", "%%%"} {
			caller := *s
			caller.token = token
			got := caller.want(401, route.Method, strings.ReplaceAll(route.Path, "{id}", "1"), "")
			require.Equal(t, `{"message":"Unauthenticated."}`, got.body)
			require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
		}
	}
}

func TestPagination(t *testing.T) {
	each(t, func(s *service) {
		empty := s.want(200, "GET", "/user/assistants/get", "").body
		require.Equal(s.t, `{"current_page":1,"data":[],"first_page_url":"http://example.com/api/user/assistants/get?page=1","from":null,"last_page":1,"last_page_url":"http://example.com/api/user/assistants/get?page=1",`+
			`"links":[{"url":null,"label":"&laquo; Previous","active":false},{"url":"http://example.com/api/user/assistants/get?page=1","label":"1","active":true},{"url":null,"label":"Next &raquo;","active":false}],`+
			`"next_page_url":null,"path":"http://example.com/api/user/assistants/get","per_page":10,"prev_page_url":null,"to":null,"total":0}`, empty)
		for i := range 12 {
			s.want(201, "POST", "/user/assistant", strings.Replace(anAssistant(""), "Front desk", fmt.Sprint("assistant ", i), 1))
		}
		s.want(200, "PUT", "/user/assistant/1", `{"status":"inactive"}`)
		first := s.want(200, "GET", "/user/assistants/get", "").object(s.t)
		require.Len(s.t, first["data"], 10)
		require.EqualValues(s.t, 12, first["total"])
		second := s.want(200, "GET", "/user/assistants/get?page=2&x=y%20z", "").object(s.t)
		require.EqualValues(s.t, 11, second["from"])
		require.EqualValues(s.t, 12, second["to"])
		require.Nil(s.t, second["next_page_url"])
		require.Equal(s.t, "http://example.com/api/user/assistants/get?page=1&x=y+z", second["prev_page_url"], "other parameters are kept")
		beyond := s.want(200, "GET", "/user/assistants/get?page=9", "").object(s.t)
		require.Nil(s.t, beyond["from"])
		require.Empty(s.t, beyond["data"])
		filtered := s.want(200, "GET", "/user/assistants/get?status=inactive&type=outbound&per_page=1", "").object(s.t)
		require.EqualValues(s.t, 1, filtered["total"])
		for query, says := range map[string]string{
			"per_page=0": "The per page must be between 1 and 100.", "per_page=101": "The per page must be between 1 and 100.", "per_page=x": "The per page must be an integer.",
			"page=0": "The page must be between 1 and", "page=-1": "The page must be between 1 and", "page=99999999999999999999": "The page must be between", "type=x": "The selected type is invalid.", "status=x": "The selected status is invalid.",
		} {
			require.Contains(s.t, s.want(422, "GET", "/user/assistants/get?"+query, "").body, says, query)
		}
		bare := s.want(200, "GET", "/user/assistants", "")
		require.Len(s.t, bare.list(s.t), 12)
		require.Equal(s.t, "12", bare.header.Get("X-Total-Count"))
		s.want(200, "PUT", "/user/assistant/1", `{"calls_direction":"receive"}`)
		require.Len(s.t, s.want(200, "GET", "/user/assistants/outbound", "").list(s.t), 11)
	})
}
