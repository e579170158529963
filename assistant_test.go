package parley_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
)

const minimal = `"assistant_name":"A","voice_id":1,"language":"English","llm_model":"m","calls_direction":"make","engine_type":"pipeline","timezone":"UTC","initial_message":"i","system_prompt":"s"`

func TestAssistantDefaults(t *testing.T) {
	t.Parallel()
	a, _, errs := parley.CreateAssistant(input(t, "{"+minimal+"}"))
	require.Empty(t, errs)
	require.Equal(t, parley.Outbound, a.Type)
	require.Equal(t, parley.Active, a.Status)
	require.Equal(t, parley.Settings{
		Language: "English", LLMModel: "m", KnowledgebaseMode: "function_call", Timezone: "UTC", InitialMessage: "i", SystemPrompt: "s",
		Variables: map[string]any{}, PostCallEvaluation: true,
		PostCallSchema: []parley.Param{{Name: "status", Type: "bool", Description: "objective reached"}, {Name: "summary", Type: "string", Description: "summary of the call"}},
		EndpointType:   "vad", EndpointSensitivity: 0.5, AllowInterruptions: true, InterruptSensitivity: 0.5, UseMinInterruptWords: true,
		FillerConfig:         parley.FillerConfig{Neutral: []string{}, Negative: []string{}, Positive: []string{}, Question: []string{}},
		ReengagementInterval: 30, MaxSilenceDuration: 40, MaxDuration: 600, EndCallOnVoicemail: true, EnableNoiseCancellation: true,
		AmbientSound: "off", AmbientSoundVolume: 0.5, SpeechSpeed: 1, VoiceStability: 0.7, VoiceSimilarity: 0.5, LLMTemperature: 0.1,
		SendWebhookOnlyOnCompleted: true, IncludeRecordingInWebhook: true, WidgetSettings: map[string]any{"enabled": false},
	}, a.Settings)
}

func TestWebhookSwitchAndAddressStayInStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		on    bool   // before
		body  string // update
		after bool
		url   string
		fails bool
	}{
		{false, `{"is_webhook_active":true}`, true, "", true},
		{false, `{"is_webhook_active":true,"webhook_url":"https://b.example"}`, true, "https://b.example", false},
		{true, `{"is_webhook_active":true}`, true, "https://a.example", false},
		{true, `{"is_webhook_active":true,"webhook_url":null}`, true, "", true},
		{true, `{"webhook_url":null}`, false, "", false},
		{true, `{"webhook_url":"https://b.example"}`, true, "https://b.example", false},
		{true, `{"is_webhook_active":false}`, false, "", false},
		{true, `{"is_webhook_active":false,"webhook_url":"https://b.example"}`, false, "", false},
		{false, `{"webhook_url":"https://b.example"}`, false, "https://b.example", false},
		{true, `{"webhook_url":"nonsense"}`, true, "https://a.example", true},
	} {
		a, _, _ := parley.CreateAssistant(input(t, "{"+minimal+"}"))
		if c.on {
			a.EnableWebhook("https://a.example")
		}
		_, errs := a.Update(input(t, c.body))
		require.Equal(t, c.fails, errs.Has("webhook_url"), "%+v: %v", c, errs)
		if c.fails {
			continue
		}
		require.Equal(t, c.after, a.IsWebhookActive, "%+v", c)
		got := ""
		if a.WebhookURL != nil {
			got = *a.WebhookURL
		}
		require.Equal(t, c.url, got, "%+v", c)
	}
	a := &parley.Assistant{}
	a.EnableInboundWebhook("https://in.example")
	require.Equal(t, "https://in.example", *a.InboundWebhookURL)
	a.DisableInboundWebhook()
	require.Nil(t, a.InboundWebhookURL)
	a.EnableWebhook("https://x.example")
	a.DisableWebhook()
	require.Nil(t, a.WebhookURL)
}

func TestToolsInTheRecordsShape(t *testing.T) {
	t.Parallel()
	a, sent, errs := parley.CreateAssistant(input(t, `{`+minimal+`,"tools":[{"type":"http","data":{"id":"4"}},{"type":"end_call","data":{"description":"Bye."}}]}`))
	require.Empty(t, errs)
	require.True(t, sent["tools"])
	require.Equal(t, []parley.ID{4}, a.ToolIDs)
	require.Equal(t, "Bye.", *a.EndCallDescription)

	_, errs = a.Update(input(t, `{"tools":[],"tool_ids":[9],"end_call_tool":{"description":"Later."}}`))
	require.Empty(t, errs)
	require.Equal(t, []parley.ID{9}, a.ToolIDs, "the seed's own field wins")
	require.Equal(t, "Later.", *a.EndCallDescription)

	a.Tools = []parley.Tool{{ID: 9, Name: "t", Headers: []parley.Header{}, Schema: []parley.Param{}}}
	b, err := parley.AssistantForm.AppendRecord(nil, a)
	require.NoError(t, err)
	require.Contains(t, string(b), `"tools":[{"type":"http","data":{"id":9,"name":"t",`)
	require.Contains(t, string(b), `{"type":"end_call","data":{"description":"Later."}}]`)
	require.Contains(t, string(b), `"instance_id":1`)
}

func TestModeDecidesTheMultimodalModel(t *testing.T) {
	t.Parallel()
	a := &parley.Assistant{Mode: parley.Multimodal, LLMModelID: 4}
	a.SettleModel()
	require.Equal(t, parley.ID(4), *a.MultimodalModelID)
	a.Mode = parley.Pipeline
	a.SettleModel()
	require.Nil(t, a.MultimodalModelID)
	a.Mode, a.KnowledgebaseMode = parley.Multimodal, "prompt"
	_, errs := a.Update(parley.Input{})
	require.True(t, errs.Has("knowledgebase_mode"))
	_, errs = a.Update(input(t, `{"knowledgebase_id":3}`))
	require.True(t, errs.Has("knowledgebase_id"))
}

func TestToolMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, message string }{
		{`{}`, "The name field is required. (and 3 more errors)"},
		{`{"name":"a"}`, "The description field is required. (and 2 more errors)"},
		{`{"name":"a","description":"d"}`, "The endpoint field is required. (and 1 more error)"},
		{`{"name":"a","description":"d","endpoint":"https://x.example"}`, "The method field is required."},
		{`{"name":"A"}`, "The name field must contain only lowercase letters and underscores, and start with a letter."},
	} {
		_, err := parley.CreateTool(input(t, c.body))
		require.EqualError(t, err, c.message)
	}
	tool, err := parley.CreateTool(input(t, `{"name":"a","description":"d","endpoint":"https://{{host}}/{id}?q={{ name }}","method":"DELETE"}`))
	require.NoError(t, err)
	require.NoError(t, tool.Update(input(t, `{"headers":[{"name":"X-A","value":"tab\tis fine"}]}`)))
	require.EqualError(t, tool.Update(input(t, `{"timeout":31}`)), "Validation failed")
	require.EqualError(t, tool.Update(input(t, `{"schema":[{"name":"ab","type":"string","description":"ddd"},{"name":"ab","type":"number","description":"ddd"}]}`)), "Validation failed")
	require.EqualError(t, tool.Update(input(t, `{"headers":[{"name":"Content-Length","value":"1"}]}`)), "Validation failed")
	require.Equal(t, parley.Limit, parley.ErrToolLimit(5).Code)
}

func TestTrunksAndNumbers(t *testing.T) {
	t.Parallel()
	trunk, err := parley.CreateTrunk(input(t, `{"sip_address":"a.example"}`))
	require.NoError(t, err)
	require.Equal(t, "udp", trunk.Transport)
	require.Error(t, trunk.Update(input(t, `{"register":true}`)), "registering needs a name")
	require.Error(t, trunk.Update(input(t, `{"register":false,"allowed_inbound_ips":["10.0.0.0/33"]}`)))
	number, errs := parley.CreatePhoneNumber(input(t, `{"phone_number":"+12025550100","type_label":"SIP"}`))
	require.Empty(t, errs)
	require.Empty(t, number.Update(input(t, `{"sip_trunk_id":3}`)))
	require.Equal(t, parley.ID(3), *number.TrunkID)
	token, err := parley.CreateToken(input(t, `{"name":"x"}`))
	require.NoError(t, err)
	require.Equal(t, "x", token.Name)
	require.Equal(t, "4|s", parley.TokenText(4, "s"))
	require.True(t, parley.WeakToken("short"))
	_, err = parley.ReadWebhookSwitch(parley.DisableWebhookForm, input(t, `{"assistant_id":"x"}`))
	require.EqualError(t, err, "The given data was invalid.")
}
