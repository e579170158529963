package parley

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Call is one telephone call: what was planned, what happened, and what it cost.
type Call struct {
	ID              ID
	UserID          ID
	AssistantID     ID
	AssistantName   string
	CampaignID      *ID
	CampaignName    *string
	LeadID          *ID
	LeadContact     int // 0: the lead's own number
	LeadAttempt     int
	Type            Direction
	Status          CallStatus
	AssistantNumber string
	CustomerNumber  string
	Carrier         Carrier
	TrunkID         *ID // of CarrierTrunk
	Variables       Object
	Input           Object // the variables it began with
	Evaluation      Object
	WebhookResponse *WebhookResponse
	Transcript      string
	Turns           []Turn
	AnsweredBy      string
	EndedBy         *string
	EndReason       *EndReason
	Failure         *string // what a provider or carrier said, in words fit for the record
	CarrierCost     Money
	TotalCost       Money
	Costs           Costs
	Recording       string  // its file's name; empty: there is none
	RecordingURL    *string // made when the record is shown
	Quality         *Quality
	Timeline        []CallEvent
	OptedOut        bool
	Duration        int // seconds of conversation
	CreatedAt       time.Time
	UpdatedAt       time.Time
	DialedAt        *time.Time // when the row said so: the INVITE left after it, or never
	AnsweredAt      *time.Time
	EndedAt         *time.Time
}

// WebCall is a call from a browser.
const WebCall Direction = "web"

// CallStatus is how far a call has come.
type CallStatus string

// The statuses. Every one can be filtered by.
const (
	CallInitiated        CallStatus = "initiated"
	CallRinging          CallStatus = "ringing"
	CallInProgress       CallStatus = "in-progress"
	CallEndedByCustomer  CallStatus = "ended_by_customer"
	CallEndedByAssistant CallStatus = "ended_by_assistant"
	CallEnded            CallStatus = "ended" // the system ended it: a limit, silence, voicemail, a stop
	CallCompleted        CallStatus = "completed"
	CallBusy             CallStatus = "busy"
	CallNoAnswer         CallStatus = "no-answer"
	CallFailed           CallStatus = "failed"
)

// CallStatuses are all of them, in the order a call goes through them.
var CallStatuses = []CallStatus{CallInitiated, CallRinging, CallInProgress, CallEndedByCustomer, CallEndedByAssistant, CallEnded, CallCompleted, CallBusy, CallNoAnswer, CallFailed}

// stage orders the statuses. A call only ever moves to a later stage; it may skip some.
var stage = map[CallStatus]int{
	CallInitiated: 1, CallRinging: 2, CallInProgress: 3,
	CallEndedByCustomer: 4, CallEndedByAssistant: 4, CallEnded: 4,
	CallCompleted: 5,
}

// withoutConversation are the ends of a call that nobody answered.
var withoutConversation = []CallStatus{CallBusy, CallNoAnswer, CallFailed}

// CanBecome says whether a call may move from one status to another: never
// backward, and to an end without a conversation only before there was one.
func (s CallStatus) CanBecome(next CallStatus) bool {
	if slices.Contains(withoutConversation, next) {
		return s == CallInitiated || s == CallRinging
	}
	return stage[s] > 0 && stage[next] > stage[s]
}

// Final says whether a call's status will not change any more.
func (s CallStatus) Final() bool {
	return s == CallCompleted || slices.Contains(withoutConversation, s)
}

// Live says whether a call is under way or waits to be placed.
func (s CallStatus) Live() bool { return stage[s] > 0 && stage[s] <= stage[CallInProgress] }

// Talked says whether there was, or is, a conversation.
func (s CallStatus) Talked() bool { return stage[s] >= stage[CallInProgress] }

// Before are the statuses from which a call may become this one: what a guarded
// update asks of the row.
func (s CallStatus) Before() (from []CallStatus) {
	for _, status := range CallStatuses {
		if status.CanBecome(s) {
			from = append(from, status)
		}
	}
	return from
}

// Turn is something that was said and heard.
type Turn struct {
	Text        string  `json:"text"`
	Sender      string  `json:"sender"` // bot or human
	Timestamp   string  `json:"timestamp"`
	StartedMS   int64   `json:"started_ms"` // since the answer
	EndedMS     int64   `json:"ended_ms"`
	Interrupted bool    `json:"interrupted"`
	Latency     Latency `json:"latency"`
}

// Latency is where the time before an answer went, in milliseconds since the end of
// the customer's speech; 0 means that it does not apply.
type Latency struct {
	TranscriptMS int64 `json:"transcript_ms"`
	EndOfTurnMS  int64 `json:"end_of_turn_ms"`
	FirstTokenMS int64 `json:"first_token_ms"`
	FirstSoundMS int64 `json:"first_sound_ms"`
	FirstAudioMS int64 `json:"first_audio_ms"`
}

// Transcript writes turns as a call's record shows them: a line an utterance.
func Transcript(turns []Turn) string {
	var text strings.Builder
	for i, t := range turns {
		if i > 0 {
			text.WriteByte('\n')
		}
		if t.Sender == "bot" {
			text.WriteString("AI: " + t.Text)
		} else {
			text.WriteString("Customer: " + t.Text)
		}
	}
	return text.String()
}

// CallEvent is a step of a call: of its timeline, or a turn for whoever listens live.
type CallEvent struct {
	ID     ID        `json:"-"`
	CallID ID        `json:"-"`
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail Object    `json:"detail"`
}

// The kinds of a CallEvent.
const (
	EventStatus  = "status"
	EventSIP     = "sip"
	EventTool    = "tool"
	EventWebhook = "webhook"
	EventNote    = "note" // a provider failed and the call went on, and the like
	EventTurn    = "transcript"
)

// Quality is how well the line carried the call.
type Quality struct {
	PacketsSent     uint64  `json:"packets_sent"`
	PacketsReceived uint64  `json:"packets_received"`
	PacketsLost     uint64  `json:"packets_lost"`
	RemoteLost      int64   `json:"remote_packets_lost"`
	JitterMS        float64 `json:"jitter_ms"`
	RemoteJitterMS  float64 `json:"remote_jitter_ms"`
	RoundTripMS     float64 `json:"round_trip_ms"`
	ConcealedFrames uint64  `json:"concealed_frames"`
	LateFrames      uint64  `json:"late_packets"`
}

// WebhookResponse is what a receiver answered to the post-call webhook.
type WebhookResponse struct {
	Status      int    `json:"status"`
	Body        any    `json:"body"`
	DeliveredAt string `json:"delivered_at"`
}

// Money is an amount in millionths of the installation's currency.
type Money int64

// NewMoney rounds an amount to a millionth.
func NewMoney(amount float64) Money { return Money(math.Round(amount * 1e6)) }

// Float is the amount as records show it.
func (m Money) Float() float64 { return float64(m) / 1e6 }

// MarshalJSON writes a number.
func (m Money) MarshalJSON() ([]byte, error) { return json.Marshal(m.Float()) }

// maxAmount is far from where millionths would overflow, also a thousandfold.
const maxAmount = 1e9

// UnmarshalJSON reads a number.
func (m *Money) UnmarshalJSON(raw []byte) error {
	var amount float64
	if err := json.Unmarshal(raw, &amount); err != nil {
		return err
	}
	if math.Abs(amount) > maxAmount {
		return fmt.Errorf("the amount %g is too large", amount)
	}
	*m = NewMoney(amount)
	return nil
}

// money is the place of an amount that the record shows as a number.
func money(m Money) *float64 {
	f := m.Float()
	return &f
}

// CallForm is the table of a call's record.
var CallForm = Form[Call]{
	{Name: "id", At: func(c *Call) any { return &c.ID }, Example: 41},
	{Name: "assistant_name", At: func(c *Call) any { return &c.AssistantName }},
	{Name: "campaign_name", At: func(c *Call) any { return &c.CampaignName }, Rule: Rule{Absent: true}, Effect: "Only for calls of a campaign."},
	{Name: "type", At: func(c *Call) any { return &c.Type }, Rule: Rule{In: []string{"inbound", "outbound", "web"}}},
	{Name: "duration", At: func(c *Call) any { return &c.Duration }, Effect: "Seconds from the answer to the end."},
	{Name: "assistant_phone_number", At: func(c *Call) any { return &c.AssistantNumber }},
	{Name: "client_phone_number", At: func(c *Call) any { return &c.CustomerNumber }},
	{Name: "status", At: func(c *Call) any { return &c.Status }, Rule: Rule{In: texts(CallStatuses)}},
	{Name: "transcript", At: func(c *Call) any { return &c.Transcript }, Effect: "What was really heard, a line an utterance: AI: ... or Customer: ..."},
	{Name: "variables", At: func(c *Call) any { return &c.Variables }, Effect: "Those given, those of the inbound webhook, and those collected in the conversation."},
	{Name: "evaluation", At: func(c *Call) any { return &c.Evaluation }, Effect: "By the names of post_call_schema; null for what the call did not yield."},
	{Name: "webhook_response", At: func(c *Call) any { return &c.WebhookResponse }, Rule: Rule{Each: webhookResponseForm}, Effect: "What the post-call webhook's receiver answered; null before."},
	{Name: "carrier_cost", At: func(c *Call) any { return money(c.CarrierCost) }},
	{Name: "total_cost", At: func(c *Call) any { return money(c.TotalCost) }},
	{Name: "answered_by", At: func(c *Call) any { return &c.AnsweredBy }, Rule: Rule{In: []string{"human", "machine", "unknown"}}},
	{Name: "recording_url", At: func(c *Call) any { return &c.RecordingURL }, Rule: Rule{Absent: true}, Effect: "A signed link that expires, to a stereo WAV: customer left, assistant right. Only when there is a recording."},
	{Name: "created_at", At: func(c *Call) any { return short(c.CreatedAt) }},
	{Name: "updated_at", At: func(c *Call) any { return short(c.UpdatedAt) }},
	{Name: "assistant_id", At: func(c *Call) any { return &c.AssistantID }},
	{Name: "campaign_id", At: func(c *Call) any { return &c.CampaignID }, Rule: Rule{Absent: true}, Effect: "Only for calls of a campaign."},
	{Name: "lead_id", At: func(c *Call) any { return &c.LeadID }, Rule: Rule{Absent: true}, Effect: "Only for calls of a campaign."},
	{Name: "ended_by", At: func(c *Call) any { return &c.EndedBy }, Rule: Rule{In: []string{"customer", "assistant", "system"}}},
	{Name: "end_reason", At: func(c *Call) any { return &c.EndReason }, Rule: Rule{In: texts(EndReasons())}, Effect: "Why it ended: a closed list."},
	{Name: "fault", At: func(c *Call) any { return c.fault() }, Rule: Rule{In: texts(Faults)}, Effect: "Whose doing the end was."},
	{Name: "failure", At: func(c *Call) any { return &c.Failure }, Effect: "What a failed provider or the carrier said."},
	{Name: "answered_at", At: func(c *Call) any { return shortOrNull(c.AnsweredAt) }},
	{Name: "ended_at", At: func(c *Call) any { return shortOrNull(c.EndedAt) }},
	{Name: "transcript_turns", At: func(c *Call) any { return &c.Turns }, Rule: Rule{Each: turnForm}},
	{Name: "cost_breakdown", At: func(c *Call) any { return &c.Costs }, Rule: Rule{Each: costsForm}},
	{Name: "quality", At: func(c *Call) any { return &c.Quality }, Rule: Rule{Each: qualityForm}, Effect: "How well the line carried the call."},
	{Name: "timeline", At: func(c *Call) any { return &c.Timeline }, Rule: Rule{Each: eventForm}, Effect: "The state steps, SIP answers, tool runs and webhook attempts."},
}

// fault is the place of whose doing the end of a call was.
func (c *Call) fault() **Fault {
	var fault *Fault
	if c.EndReason != nil {
		whose := c.EndReason.Fault()
		fault = &whose
	}
	return &fault
}

func texts[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = string(word)
	}
	return all
}

// shortOrNull is the place of a time that the record shows in short form, or null.
func shortOrNull(t *time.Time) **string {
	var text *string
	if t != nil {
		text = short(*t)
	}
	return &text
}

var turnForm = Form[Turn]{
	{Name: "text", At: func(t *Turn) any { return &t.Text }},
	{Name: "sender", At: func(t *Turn) any { return &t.Sender }, Rule: Rule{In: []string{"bot", "human"}}},
	{Name: "timestamp", At: func(t *Turn) any { return &t.Timestamp }},
	{Name: "started_ms", At: func(t *Turn) any { return &t.StartedMS }, Effect: "Since the answer."},
	{Name: "ended_ms", At: func(t *Turn) any { return &t.EndedMS }},
	{Name: "interrupted", At: func(t *Turn) any { return &t.Interrupted }},
	{Name: "latency", At: func(t *Turn) any { return &t.Latency }, Rule: Rule{Each: latencyForm}},
}

var latencyForm = Form[Latency]{
	{Name: "transcript_ms", At: func(l *Latency) any { return &l.TranscriptMS }},
	{Name: "end_of_turn_ms", At: func(l *Latency) any { return &l.EndOfTurnMS }},
	{Name: "first_token_ms", At: func(l *Latency) any { return &l.FirstTokenMS }},
	{Name: "first_sound_ms", At: func(l *Latency) any { return &l.FirstSoundMS }},
	{Name: "first_audio_ms", At: func(l *Latency) any { return &l.FirstAudioMS }},
}

var eventForm = Form[CallEvent]{
	{Name: "at", At: func(e *CallEvent) any { return &e.At }},
	{Name: "event", At: func(e *CallEvent) any { return &e.Event }, Rule: Rule{In: []string{EventStatus, EventSIP, EventTool, EventWebhook, EventNote}}},
	{Name: "detail", At: func(e *CallEvent) any { return &e.Detail }},
}

// MarshalJSON writes the event as a timeline shows it.
func (e CallEvent) MarshalJSON() ([]byte, error) { return eventForm.AppendRecord(nil, &e) }

var qualityForm = Form[Quality]{
	{Name: "packets_sent", At: func(q *Quality) any { return count(q.PacketsSent) }},
	{Name: "packets_received", At: func(q *Quality) any { return count(q.PacketsReceived) }},
	{Name: "packets_lost", At: func(q *Quality) any { return count(q.PacketsLost) }},
	{Name: "remote_packets_lost", At: func(q *Quality) any { return &q.RemoteLost }},
	{Name: "jitter_ms", At: func(q *Quality) any { return &q.JitterMS }},
	{Name: "remote_jitter_ms", At: func(q *Quality) any { return &q.RemoteJitterMS }},
	{Name: "round_trip_ms", At: func(q *Quality) any { return &q.RoundTripMS }},
	{Name: "concealed_frames", At: func(q *Quality) any { return count(q.ConcealedFrames) }},
	{Name: "late_packets", At: func(q *Quality) any { return count(q.LateFrames) }},
}

func count(n uint64) *int64 {
	whole := int64(min(n, math.MaxInt64))
	return &whole
}

var webhookResponseForm = Form[WebhookResponse]{
	{Name: "status", At: func(r *WebhookResponse) any { return &r.Status }},
	{Name: "body", At: func(r *WebhookResponse) any { return &r.Body }},
	{Name: "delivered_at", At: func(r *WebhookResponse) any { return &r.DeliveredAt }},
}

// CallRequest is a request to place a call.
type CallRequest struct {
	PhoneNumber string
	AssistantID ID
	Variables   Object
}

// CallRequestForm is the table of such a request.
var CallRequestForm = Form[CallRequest]{
	{Name: "phone_number", At: func(r *CallRequest) any { return &r.PhoneNumber }, Rule: Rule{Required: true, Check: E164}, Effect: "Whom to call, in E.164 form.", Example: "+12025550100"},
	{Name: "assistant_id", At: func(r *CallRequest) any { return &r.AssistantID }, Rule: Rule{Required: true}, Effect: "The assistant that calls.", Example: 12},
	{Name: "variables", At: func(r *CallRequest) any { return &r.Variables }, Default: map[string]any{}, Effect: "Variables of this call; they win over the assistant's.", Example: map[string]any{"name": "Ada"}},
}

// ReadCallRequest reads such a request.
func ReadCallRequest(in Input) (CallRequest, error) {
	var r CallRequest
	_, errs := CallRequestForm.Create(in, &r)
	return r, invalid(errs, DataInvalid)
}
