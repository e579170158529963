package parley

import (
	"regexp"
	"time"
)

// Assistant is a voice assistant: who it is, how it behaves on the telephone, and
// whom it tells about its calls. AssistantForm says what each field does.
type Assistant struct {
	ID            ID
	UserID        ID
	UUID          string
	Name          string
	Type          Direction
	Status        AssistantStatus
	Mode          Mode
	PhoneNumberID *ID
	VoiceID       ID
	LanguageID    ID
	LLMModelID    ID
	CreatedAt     time.Time
	UpdatedAt     time.Time
	DeletedAt     *time.Time
	Settings

	// ToolIDs are the attached mid call tools, Tools the tools themselves where
	// they have been loaded.
	ToolIDs []ID
	Tools   []Tool

	instanceID ID
	toolRefs   []toolRef
}

// Settings is the part of an assistant that nothing looks up by: it is stored as
// one document, so that a new setting needs no migration. The document's names must
// never change: they are the record's.
type Settings struct {
	Language                   string       `json:"language"`
	LLMModel                   string       `json:"llm_model"`
	MultimodalModelID          *ID          `json:"multimodal_model_id"`
	EngineID                   *ID          `json:"engine_id"`
	SynthesizerID              *ID          `json:"synthesizer_id"`
	TranscriberID              *ID          `json:"transcriber_id"`
	TranscriberProviderID      *ID          `json:"transcriber_provider_id"`
	SynthesizerProviderID      *ID          `json:"synthesizer_provider_id"`
	FlowsPlatformID            *ID          `json:"flows_platform_id"`
	KnowledgebaseID            *ID          `json:"knowledgebase_id"`
	KnowledgebaseMode          string       `json:"knowledgebase_mode"`
	Timezone                   string       `json:"timezone"`
	InitialMessage             string       `json:"initial_message"`
	SystemPrompt               string       `json:"system_prompt"`
	WaitForCustomer            bool         `json:"wait_for_customer"`
	Variables                  Object       `json:"variables"`
	PostCallEvaluation         bool         `json:"post_call_evaluation"`
	PostCallSchema             []Param      `json:"post_call_schema"`
	EndCallDescription         *string      `json:"end_call_description"`
	EndpointType               string       `json:"endpoint_type"`
	EndpointSensitivity        float64      `json:"endpoint_sensitivity"`
	AllowInterruptions         bool         `json:"allow_interruptions"`
	InterruptSensitivity       float64      `json:"interrupt_sensitivity"`
	UseMinInterruptWords       bool         `json:"use_min_interrupt_words"`
	MinInterruptWords          int          `json:"min_interrupt_words"`
	Fillers                    Bit          `json:"fillers"`
	FillerConfig               FillerConfig `json:"filler_config"`
	ReengagementInterval       int          `json:"reengagement_interval"` // seconds
	MaxSilenceDuration         int          `json:"max_silence_duration"`  // seconds
	MaxDuration                int          `json:"max_duration"`          // seconds
	EndCallOnVoicemail         Bit          `json:"end_call_on_voicemail"`
	EnableNoiseCancellation    bool         `json:"enable_noise_cancellation"`
	AmbientSound               string       `json:"ambient_sound"`
	AmbientSoundVolume         Decimal      `json:"ambient_sound_volume"`
	SpeechSpeed                Decimal      `json:"speech_speed"`
	VoiceStability             Decimal      `json:"voice_stability"`
	VoiceSimilarity            Decimal      `json:"voice_similarity"`
	LLMTemperature             Decimal      `json:"llm_temperature"`
	Record                     bool         `json:"record"`
	IsWebhookActive            bool         `json:"is_webhook_active"`
	WebhookURL                 *string      `json:"webhook_url"`
	InboundWebhookURL          *string      `json:"inbound_webhook_url"`
	SendWebhookOnlyOnCompleted bool         `json:"send_webhook_only_on_completed"`
	IncludeRecordingInWebhook  bool         `json:"include_recording_in_webhook"`
	WidgetSettings             Object       `json:"widget_settings"`
}

// Direction is which way an assistant's calls go.
type Direction string

// The two directions.
const (
	Inbound  Direction = "inbound"
	Outbound Direction = "outbound"
)

// AssistantStatus says whether an assistant takes part in calls.
type AssistantStatus string

// An inactive assistant answers no call and places none.
const (
	Active   AssistantStatus = "active"
	Inactive AssistantStatus = "inactive"
)

// Mode is how an assistant thinks: transcriber, model and speaker in a row, or one
// speech-to-speech model.
type Mode string

// The two modes.
const (
	Pipeline   Mode = "pipeline"
	Multimodal Mode = "multimodal"
)

// FillerConfig holds the short utterances that bridge a pause, by the mood of what
// the customer said. An empty list means the language's own.
type FillerConfig struct {
	Neutral  []string `json:"neutral"`
	Negative []string `json:"negative"`
	Positive []string `json:"positive"`
	Question []string `json:"question"`
}

// installation is the instance_id of every assistant: a Parley installation is one instance.
const installation ID = 1

// AssistantForm is the one table of an assistant, in the record's order.
var AssistantForm = Form[Assistant]{
	{Name: "id", At: func(a *Assistant) any { return &a.ID }, Rule: readOnly, Example: 12},
	{Name: "user_id", At: func(a *Assistant) any { return &a.UserID }, Rule: readOnly, Effect: "The owner.", Example: 1},
	{Name: "phone_number_id", At: func(a *Assistant) any { return &a.PhoneNumberID },
		Effect: "The line it answers (inbound) or calls from (outbound). null unassigns it.", Example: 3},
	{Name: "engine_id", At: func(a *Assistant) any { return &a.EngineID }, Rule: readOnly, Effect: "Reserved: engine_type names the engine."},
	{Name: "synthesizer_id", At: func(a *Assistant) any { return &a.SynthesizerID }, Rule: readOnly, Effect: "Reserved: the voice names its synthesizer."},
	{Name: "transcriber_id", At: func(a *Assistant) any { return &a.TranscriberID }, Rule: readOnly, Effect: "Reserved: the operator's settings name the transcriber."},
	{Name: "voice_id", At: func(a *Assistant) any { return &a.VoiceID }, Rule: Rule{Required: true},
		Effect: "The voice it speaks with: one of GET /user/assistants/voices that fits engine_type.", Example: 1},
	{Name: "instance_id", At: func(a *Assistant) any { a.instanceID = installation; return &a.instanceID }, Rule: readOnly, Effect: "Reserved: the installation, always 1.", Example: 1},
	{Name: "name", Request: "assistant_name", At: func(a *Assistant) any { return &a.Name }, Rule: Rule{Required: true, Max: 255},
		Effect: "What the assistant is called in lists, webhooks and as {{assistant_name}}.", Example: "Front desk"},
	{Name: "variables", At: func(a *Assistant) any { return &a.Variables }, Default: map[string]any{},
		Effect: "Values for {{variable}} in initial_message, system_prompt and tools; a call's own variables win.", Example: map[string]any{"company": "Acme"}},
	{Name: "post_call_evaluation", At: func(a *Assistant) any { return &a.PostCallEvaluation }, Default: true,
		Effect: "After a call the model fills post_call_schema from the transcript."},
	{Name: "fillers", Request: "filler_audios", At: func(a *Assistant) any { return &a.Fillers }, Default: Bit(false),
		Effect: "Bridges a slow model or tool with a short utterance of filler_config."},
	{Name: "post_call_schema", At: func(a *Assistant) any { return &a.PostCallSchema }, Rule: Rule{Max: 50, Each: postCallForm},
		Default: []Param{{"status", "bool", "objective reached"}, {"summary", "string", "summary of the call"}},
		Effect:  "What the evaluation of a call yields.", Example: []Param{{"appointment", "string", "the date agreed on"}}},
	{Name: "tools", At: func(a *Assistant) any { refs := a.attached(); return &refs }, Rule: Rule{ReadOnly: true, Each: toolRefDoc},
		Effect: "What the assistant can do in a call: its mid call tools ({type: http}) and how it ends one ({type: end_call})."},
	{Name: "tools", At: func(a *Assistant) any { return &a.toolRefs }, Rule: Rule{WriteOnly: true, Max: 50, Each: toolRefForm},
		Effect: "The same list as the record shows; replaces tool_ids and end_call_tool."},
	{Name: "tool_ids", At: func(a *Assistant) any { return &a.ToolIDs }, Rule: Rule{WriteOnly: true, Max: 50},
		Effect: "The mid call tools it may use. Replaces all earlier ones; an empty array removes all.", Example: []ID{7}},
	{Name: "end_call_tool.description", At: func(a *Assistant) any { return &a.EndCallDescription }, Rule: Rule{WriteOnly: true, Max: 500},
		Effect: "Tells the model when to end the call by itself.", Example: "End the call once the customer has said goodbye."},
	{Name: "is_webhook_active", At: func(a *Assistant) any { return &a.IsWebhookActive }, Default: false,
		Effect: "Sends post-call notifications to webhook_url. false switches them off and removes the address."},
	{Name: "webhook_url", At: func(a *Assistant) any { return &a.WebhookURL }, Rule: Rule{Max: 2048, Check: URL},
		Effect: "Where post-call notifications go. null switches them off.", Example: "https://crm.example.com/parley"},
	{Name: "inbound_webhook_url", At: func(a *Assistant) any { return &a.InboundWebhookURL }, Rule: Rule{Max: 2048, Check: URL},
		Effect: "Told of each inbound call before it is answered and when it has ended; may add variables.", Example: "https://crm.example.com/incoming"},
	{Name: "language", At: func(a *Assistant) any { return &a.Language }, Rule: Rule{Required: true, Instead: "language_id", Max: 100},
		Effect: "The language it hears and speaks: a name from GET /user/assistants/languages.", Example: "English"},
	{Name: "type", Request: "calls_direction", At: func(a *Assistant) any { return &a.Type },
		Rule:   Rule{Required: true, In: []string{"inbound", "outbound"}, Words: []Word{{"receive", Inbound}, {"make", Outbound}}},
		Effect: "Whether it answers calls or places them.", Example: "make"},
	{Name: "status", At: func(a *Assistant) any { return &a.Status }, Rule: Rule{OnUpdate: true, In: []string{"active", "inactive"}}, Default: Active,
		Effect: "An inactive assistant answers no call and places none."},
	{Name: "max_duration", Request: "max_call_duration", At: func(a *Assistant) any { return &a.MaxDuration }, Rule: Rule{Min: 20, Max: 1200}, Default: 600,
		Effect: "Seconds after which the call is closed with a last sentence."},
	{Name: "record", Request: "record_call", At: func(a *Assistant) any { return &a.Record }, Default: false, Effect: "Keeps a stereo recording of the call."},
	{Name: "initial_message", At: func(a *Assistant) any { return &a.InitialMessage }, Rule: Rule{Required: true},
		Effect: "The first thing it says.", Example: "Hello {{name}}, this is Acme. Do you have a minute?"},
	{Name: "system_prompt", At: func(a *Assistant) any { return &a.SystemPrompt }, Rule: Rule{Required: true},
		Effect: "Its behaviour and personality, as the model is told.", Example: "You arrange appointments for Acme. Be brief and friendly."},
	{Name: "flows_platform_id", At: func(a *Assistant) any { return &a.FlowsPlatformID }, Rule: readOnly, Effect: "Reserved: Parley has no flows."},
	{Name: "timezone", At: func(a *Assistant) any { return &a.Timezone }, Rule: Rule{Required: true, Check: Zone},
		Effect: "The model knows the date and time there.", Example: "Europe/Berlin"},
	{Name: "created_at", At: func(a *Assistant) any { return &a.CreatedAt }, Rule: readOnly},
	{Name: "updated_at", At: func(a *Assistant) any { return &a.UpdatedAt }, Rule: readOnly},
	{Name: "max_silence_duration", At: func(a *Assistant) any { return &a.MaxSilenceDuration }, Rule: Rule{Min: 1, Max: 120}, Default: 40,
		Effect: "Seconds of silence after which the call ends."},
	{Name: "reengagement_interval", Request: "re_engagement_interval", At: func(a *Assistant) any { return &a.ReengagementInterval }, Rule: Rule{Min: 7, Max: 600}, Default: 30,
		Effect: "Seconds of silence after which the assistant asks whether the customer is still there."},
	{Name: "deleted_at", At: func(a *Assistant) any { return &a.DeletedAt }, Rule: readOnly},
	{Name: "end_call_on_voicemail", At: func(a *Assistant) any { return &a.EndCallOnVoicemail }, Default: Bit(true),
		Effect: "Hangs up on an answering machine; otherwise leaves initial_message on it."},
	{Name: "llm_temperature", At: func(a *Assistant) any { return &a.LLMTemperature }, Rule: Rule{Max: 1}, Default: Decimal(0.1), Effect: "How freely the model chooses its words."},
	{Name: "voice_stability", At: func(a *Assistant) any { return &a.VoiceStability }, Rule: Rule{Max: 1}, Default: Decimal(0.7), Effect: "How evenly the voice speaks."},
	{Name: "voice_similarity", At: func(a *Assistant) any { return &a.VoiceSimilarity }, Rule: Rule{Max: 1}, Default: Decimal(0.5), Effect: "How closely a cloned voice keeps to its original."},
	{Name: "speech_speed", At: func(a *Assistant) any { return &a.SpeechSpeed }, Rule: Rule{Min: 0.7, Max: 1.2}, Default: Decimal(1), Effect: "How fast the voice speaks."},
	{Name: "ambient_sound_volume", At: func(a *Assistant) any { return &a.AmbientSoundVolume }, Rule: Rule{Max: 1}, Default: Decimal(0.5), Effect: "How loud ambient_sound is."},
	{Name: "allow_interruptions", At: func(a *Assistant) any { return &a.AllowInterruptions }, Default: true, Effect: "Lets the customer interrupt the assistant."},
	{Name: "enable_noise_cancellation", Request: "noise_cancellation", At: func(a *Assistant) any { return &a.EnableNoiseCancellation }, Default: true,
		Effect: "Suppresses noise on the customer's side before it is transcribed."},
	{Name: "endpoint_sensitivity", At: func(a *Assistant) any { return &a.EndpointSensitivity }, Rule: Rule{Max: 5}, Default: 0.5,
		Effect: "The higher, the sooner a pause counts as the end of the customer's turn."},
	{Name: "interrupt_sensitivity", At: func(a *Assistant) any { return &a.InterruptSensitivity }, Rule: Rule{Max: 5}, Default: 0.5,
		Effect: "The higher, the less speech it takes to interrupt the assistant."},
	{Name: "endpoint_type", At: func(a *Assistant) any { return &a.EndpointType }, Rule: Rule{In: []string{"vad", "ai"}}, Default: "vad",
		Effect: "What ends the customer's turn: a pause (vad), or a pause judged by the words before it (ai)."},
	{Name: "wait_for_customer", Request: "who_speaks_first", At: func(a *Assistant) any { return &a.WaitForCustomer },
		Rule:    Rule{Words: []Word{{"AI assistant", false}, {"Customer", true}}},
		Default: false, Effect: "Who speaks first.", Example: "AI assistant"},
	{Name: "mode", Request: "engine_type", At: func(a *Assistant) any { return &a.Mode }, Rule: Rule{Required: true, In: []string{"pipeline", "multimodal"}},
		Effect: "Transcriber, model and speaker in a row, or one speech-to-speech model.", Example: "pipeline"},
	{Name: "language_id", At: func(a *Assistant) any { return &a.LanguageID }, Effect: "The language by its id, in place of language.", Example: 1},
	{Name: "llm_model_id", At: func(a *Assistant) any { return &a.LLMModelID }, Effect: "The model by its id, in place of llm_model.", Example: 1},
	{Name: "llm_model", At: func(a *Assistant) any { return &a.LLMModel }, Rule: Rule{Required: true, Instead: "llm_model_id", WriteOnly: true, Max: 100},
		Effect: "The language model: a name from GET /user/assistants/models.", Example: "sandbox"},
	{Name: "transcriber_provider_id", At: func(a *Assistant) any { return &a.TranscriberProviderID }, Rule: readOnly, Effect: "Reserved: the operator's settings name the transcriber."},
	{Name: "synthesizer_provider_id", At: func(a *Assistant) any { return &a.SynthesizerProviderID }, Rule: readOnly, Effect: "Reserved: the voice names its provider."},
	{Name: "multimodal_model_id", At: func(a *Assistant) any { return &a.MultimodalModelID }, Rule: readOnly, Effect: "The model of a multimodal assistant; follows llm_model."},
	{Name: "ambient_sound", At: func(a *Assistant) any { return &a.AmbientSound }, Rule: Rule{In: AmbientSounds}, Default: "off",
		Effect: "What is heard behind the assistant's voice."},
	{Name: "uuid", At: func(a *Assistant) any { return &a.UUID }, Rule: readOnly, Example: "018f6f1e-7d3a-4c55-9a53-7f3f0a6f2c11"},
	{Name: "send_webhook_only_on_completed", At: func(a *Assistant) any { return &a.SendWebhookOnlyOnCompleted }, Default: true,
		Effect: "Notifies of completed calls only, not of busy, unanswered and failed ones."},
	{Name: "include_recording_in_webhook", At: func(a *Assistant) any { return &a.IncludeRecordingInWebhook }, Default: true, Effect: "Puts the recording's link into the notification."},
	{Name: "filler_config", At: func(a *Assistant) any { return &a.FillerConfig }, Rule: Rule{Each: fillerForm}, Default: noFillers,
		Effect:  "The fillers, by the mood of what the customer said. An empty list means the language's own.",
		Example: FillerConfig{Neutral: []string{"Let me see."}, Negative: []string{"I understand."}, Positive: []string{"Great."}, Question: []string{"Good question."}}},
	{Name: "knowledgebase_id", At: func(a *Assistant) any { return &a.KnowledgebaseID }, Effect: "Reserved until knowledge bases exist: null only."},
	{Name: "knowledgebase_mode", At: func(a *Assistant) any { return &a.KnowledgebaseMode }, Rule: Rule{In: []string{"function_call", "prompt"}}, Default: "function_call",
		Effect: "Reserved until knowledge bases exist. prompt needs engine_type pipeline."},
	{Name: "min_interrupt_words", At: func(a *Assistant) any { return &a.MinInterruptWords }, Rule: Rule{Max: 10}, Default: 0,
		Effect: "How many words the customer must say to interrupt."},
	{Name: "use_min_interrupt_words", At: func(a *Assistant) any { return &a.UseMinInterruptWords }, Default: true,
		Effect: "false: min_interrupt_words has no effect."},
	{Name: "widget_settings", At: func(a *Assistant) any { return &a.WidgetSettings }, Default: map[string]any{"enabled": false},
		Effect: "Reserved until the web widget exists: kept as sent."},
}

var readOnly = Rule{ReadOnly: true}

// AmbientSounds are the values of ambient_sound.
var AmbientSounds = []string{"off", "office", "city", "forest", "crowded_room", "cafe", "nature"}

var noFillers = FillerConfig{Neutral: []string{}, Negative: []string{}, Positive: []string{}, Question: []string{}}

var fillerForm = Form[FillerConfig]{
	{Name: "neutral", At: func(f *FillerConfig) any { return &f.Neutral }, Rule: Rule{Max: 50}, Default: []string{}},
	{Name: "negative", At: func(f *FillerConfig) any { return &f.Negative }, Rule: Rule{Max: 50}, Default: []string{}},
	{Name: "positive", At: func(f *FillerConfig) any { return &f.Positive }, Rule: Rule{Max: 50}, Default: []string{}},
	{Name: "question", At: func(f *FillerConfig) any { return &f.Question }, Rule: Rule{Max: 50}, Default: []string{}},
}

var postCallForm = Form[Param]{
	{Name: "name", At: func(p *Param) any { return &p.Name }, Rule: Rule{Required: true, Max: 255, Match: regexp.MustCompile(`^[A-Za-z0-9_]+$`)}},
	{Name: "type", At: func(p *Param) any { return &p.Type }, Rule: Rule{Required: true, In: []string{"string", "number", "bool"}}},
	{Name: "description", At: func(p *Param) any { return &p.Description }, Rule: Rule{Required: true, Max: 500}},
}

// CreateAssistant makes an assistant from a request. What it refers to (voice,
// language, model, line, tools) is still to be looked up.
func CreateAssistant(in Input) (*Assistant, Sent, FieldErrors) {
	a := &Assistant{}
	sent, errs := AssistantForm.Create(in, a)
	a.settle(sent, &errs)
	return a, sent, errs
}

// Update changes an assistant to what a request supplies.
func (a *Assistant) Update(in Input) (Sent, FieldErrors) {
	sent, errs := AssistantForm.Update(in, a)
	a.settle(sent, &errs)
	return sent, errs
}

// settle applies the rules that join fields.
func (a *Assistant) settle(sent Sent, errs *FieldErrors) {
	distinct(errs, "post_call_schema", a.PostCallSchema)
	a.settleTools(sent)
	a.settleWebhook(sent, errs)
	if a.KnowledgebaseMode == "prompt" && a.Mode == Multimodal {
		errs.Add("knowledgebase_mode", "The knowledgebase mode prompt needs the engine type pipeline.")
	}
	if a.KnowledgebaseID != nil {
		errs.Add("knowledgebase_id", Selected("knowledgebase_id", nil))
	}
}

// settleWebhook keeps the switch and the address of the post-call webhook in step:
// a null address or a false switch turns it off; true needs an address.
func (a *Assistant) settleWebhook(sent Sent, errs *FieldErrors) {
	switch {
	case sent["is_webhook_active"] && !a.IsWebhookActive:
		a.WebhookURL = nil
	case sent["is_webhook_active"] && a.WebhookURL == nil:
		if !errs.Has("webhook_url") {
			errs.Add("webhook_url", "The webhook url field is required when is webhook active is true.")
		}
	case sent["webhook_url"] && a.WebhookURL == nil:
		a.IsWebhookActive = false
	}
}

// EnableWebhook sends post-call notifications to an address.
func (a *Assistant) EnableWebhook(url string) { a.IsWebhookActive, a.WebhookURL = true, &url }

// DisableWebhook stops post-call notifications and forgets their address.
func (a *Assistant) DisableWebhook() { a.IsWebhookActive, a.WebhookURL = false, nil }

// EnableInboundWebhook sends inbound notifications to an address.
func (a *Assistant) EnableInboundWebhook(url string) { a.InboundWebhookURL = &url }

// DisableInboundWebhook stops inbound notifications and forgets their address.
func (a *Assistant) DisableInboundWebhook() { a.InboundWebhookURL = nil }

// toolRef is an element of an assistant's tools.
type toolRef struct {
	Type string
	Data toolRefData
}

type toolRefData struct {
	ID          ID
	Description string
	tool        *Tool
}

// appendToolRef writes a mid call tool whole, and of the end-call tool its description.
func appendToolRef(b []byte, ref *toolRef) (_ []byte, err error) {
	b = append(append(append(b, `{"type":"`...), ref.Type...), `","data":`...)
	if ref.Data.tool != nil {
		b, err = ToolForm.AppendRecord(b, ref.Data.tool)
		return append(b, '}'), err
	}
	b, err = appendText(append(b, `{"description":`...), ref.Data.Description)
	return append(b, "}}"...), err
}

const (
	httpTool    = "http"
	endCallTool = "end_call"
)

var toolRefForm = Form[toolRef]{
	{Name: "type", At: func(r *toolRef) any { return &r.Type }, Rule: Rule{Required: true, In: []string{httpTool, endCallTool}}},
	{Name: "data", At: func(r *toolRef) any { return &r.Data }, Rule: Rule{Required: true, Each: Form[toolRefData]{
		{Name: "id", At: func(d *toolRefData) any { return &d.ID }},
		{Name: "description", At: func(d *toolRefData) any { return &d.Description }, Rule: Rule{Max: 500}},
	}}},
}

// toolRefDoc describes the elements as the record shows them.
var toolRefDoc = Form[toolRef]{
	{Name: "type", At: func(r *toolRef) any { return &r.Type }, Rule: Rule{Required: true, In: []string{httpTool, endCallTool}}},
	{Name: "data", At: func(*toolRef) any { return &map[string]any{} }, Rule: Rule{Required: true},
		Effect: "The tool's record, or {description} of the end-call tool."},
}

// settleTools reads a list of tools in the record's own shape.
func (a *Assistant) settleTools(sent Sent) {
	if !sent["tools"] {
		return
	}
	ids := []ID{}
	var endCall *string
	for _, ref := range a.toolRefs {
		if ref.Type == endCallTool {
			endCall = &ref.Data.Description
		} else {
			ids = append(ids, ref.Data.ID)
		}
	}
	if !sent["tool_ids"] {
		a.ToolIDs = ids
	}
	if !sent["end_call_tool.description"] {
		a.EndCallDescription = endCall
	}
	a.toolRefs = nil
}

// attached lists an assistant's tools as its record shows them.
func (a *Assistant) attached() []toolRef {
	refs := make([]toolRef, 0, len(a.Tools)+1)
	for i := range a.Tools {
		refs = append(refs, toolRef{Type: httpTool, Data: toolRefData{tool: &a.Tools[i]}})
	}
	if a.EndCallDescription != nil {
		refs = append(refs, toolRef{Type: endCallTool, Data: toolRefData{Description: *a.EndCallDescription}})
	}
	return refs
}

// SettleModel keeps multimodal_model_id in step with the mode and the model.
func (a *Assistant) SettleModel() {
	a.MultimodalModelID = nil
	if a.Mode == Multimodal {
		id := a.LLMModelID
		a.MultimodalModelID = &id
	}
}
