package parley

import "time"

// Delivery is a message to one of an assistant's webhooks, and what became of it.
type Delivery struct {
	ID             ID
	UserID         ID
	CallID         ID
	AssistantID    ID
	Kind           DeliveryKind
	MessageID      string
	Event          string
	URL            string
	Body           string
	Status         DeliveryStatus
	Attempts       int
	ResponseStatus *int
	ResponseBody   *string
	Error          *string
	NextAt         *time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	DeliveredAt    *time.Time
}

// DeliveryKind is which of an assistant's two addresses a message is for.
type DeliveryKind string

// The two addresses.
const (
	PostCallWebhook DeliveryKind = "post_call"
	InboundWebhook  DeliveryKind = "inbound"
)

// DeliveryStatus is how far a delivery has come.
type DeliveryStatus string

// The statuses. A cancelled one was switched off before it was delivered.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliverySending   DeliveryStatus = "sending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryDead      DeliveryStatus = "dead"
	DeliveryCancelled DeliveryStatus = "cancelled"
)

// DeliveryStatuses are all of them.
var DeliveryStatuses = []DeliveryStatus{DeliveryPending, DeliverySending, DeliveryDelivered, DeliveryDead, DeliveryCancelled}

// Over says whether nothing more is tried, unless it is replayed.
func (s DeliveryStatus) Over() bool { return s != DeliveryPending && s != DeliverySending }

// The events a webhook is told.
const (
	EventIncoming  = "call.incoming"
	EventCompleted = "call.completed"
)

// DeliveryForm is the table of a delivery's record.
var DeliveryForm = Form[Delivery]{
	{Name: "id", At: func(d *Delivery) any { return &d.ID }, Example: 7},
	{Name: "webhook_id", At: func(d *Delivery) any { return &d.MessageID }, Effect: "The webhook-id header: the same on every try."},
	{Name: "event", At: func(d *Delivery) any { return &d.Event }},
	{Name: "kind", At: func(d *Delivery) any { return &d.Kind }, Rule: Rule{In: []string{"post_call", "inbound"}}, Effect: "Which of the assistant's two addresses."},
	{Name: "call_id", At: func(d *Delivery) any { return &d.CallID }},
	{Name: "assistant_id", At: func(d *Delivery) any { return &d.AssistantID }},
	{Name: "url", At: func(d *Delivery) any { return &d.URL }},
	{Name: "status", At: func(d *Delivery) any { return &d.Status }, Rule: Rule{In: texts(DeliveryStatuses)}, Effect: "dead: the last try failed; replay it. cancelled: the webhook was switched off."},
	{Name: "attempts", At: func(d *Delivery) any { return &d.Attempts }},
	{Name: "response_status", At: func(d *Delivery) any { return &d.ResponseStatus }, Effect: "Of the last try; null without an answer."},
	{Name: "response_body", At: func(d *Delivery) any { return &d.ResponseBody }, Effect: "Of the last try, at most 20,000 bytes."},
	{Name: "error", At: func(d *Delivery) any { return &d.Error }, Effect: "Why the last try failed."},
	{Name: "next_attempt_at", At: func(d *Delivery) any { return &d.NextAt }},
	{Name: "created_at", At: func(d *Delivery) any { return &d.CreatedAt }},
	{Name: "updated_at", At: func(d *Delivery) any { return &d.UpdatedAt }},
	{Name: "delivered_at", At: func(d *Delivery) any { return &d.DeliveredAt }},
}

// WebhookFor is the address that an assistant wants messages of a kind at; "" when it
// wants none.
func (a *Assistant) WebhookFor(kind DeliveryKind) string {
	switch {
	case a.DeletedAt != nil:
		return ""
	case kind == PostCallWebhook && a.IsWebhookActive && a.WebhookURL != nil:
		return *a.WebhookURL
	case kind == InboundWebhook && a.InboundWebhookURL != nil:
		return *a.InboundWebhookURL
	default:
		return ""
	}
}

// Notifies says whether the end of a call is told to an address: the post-call one only
// of completed calls if the assistant wants it so, the inbound one of calls that came in.
func (a *Assistant) Notifies(kind DeliveryKind, c *Call) bool {
	if a.WebhookFor(kind) == "" {
		return false
	}
	if kind == InboundWebhook {
		return c.Type == Inbound
	}
	return !a.SendWebhookOnlyOnCompleted || c.Status == CallCompleted
}

// CompletedMessage is what a webhook is told when a call is over. Its fields are all at
// the top, where receivers of such services look for them.
type CompletedMessage struct {
	Type                string           `json:"type"`
	Event               string           `json:"event"`
	Timestamp           string           `json:"timestamp"`
	ID                  ID               `json:"id"`
	CallType            Direction        `json:"call_type"`
	CustomerPhone       string           `json:"customer_phone"`
	AssistantPhone      string           `json:"assistant_phone"`
	Duration            int              `json:"duration"`
	Status              CallStatus       `json:"status"`
	EndedBy             *string          `json:"ended_by"`
	EndReason           *EndReason       `json:"end_reason"`
	AnsweredBy          string           `json:"answered_by"`
	ExtractedVariables  Object           `json:"extracted_variables"`
	InputVariables      Object           `json:"input_variables"`
	Variables           Object           `json:"variables"`
	Transcript          []Turn           `json:"transcript"`
	FormattedTranscript string           `json:"formatted_transcript"`
	RecordingURL        *string          `json:"recording_url,omitempty"`
	CarrierCost         Money            `json:"carrier_cost"`
	TotalCost           Money            `json:"total_cost"`
	CreatedAt           string           `json:"created_at"`
	FinishedAt          *string          `json:"finished_at"`
	Assistant           assistantRef     `json:"assistant"`
	Lead                *messageLead     `json:"lead"`
	Campaign            *messageCampaign `json:"campaign"`
}

type assistantRef struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
}

// messageLead and messageCampaign write the records that the API shows.
type (
	messageLead     struct{ *Lead }
	messageCampaign struct{ *Campaign }
)

func (l messageLead) MarshalJSON() ([]byte, error) { return LeadForm.AppendRecord(nil, l.Lead) }
func (c messageCampaign) MarshalJSON() ([]byte, error) {
	return CampaignForm.AppendRecord(nil, c.Campaign)
}

// NewCompletedMessage is the message of a call that is over, with its lead and campaign if
// it has them, and a link to its recording if the assistant wants it sent.
func NewCompletedMessage(c *Call, a *Assistant, lead *Lead, campaign *Campaign, recording *string, now time.Time) *CompletedMessage {
	m := &CompletedMessage{
		Type: EventCompleted, Event: EventCompleted, Timestamp: Timestamp(now), ID: c.ID, CallType: c.Type,
		CustomerPhone: c.CustomerNumber, AssistantPhone: c.AssistantNumber, Duration: c.Duration, Status: c.Status, EndedBy: c.EndedBy, EndReason: c.EndReason, AnsweredBy: c.AnsweredBy,
		ExtractedVariables: c.Evaluation, InputVariables: c.Input, Variables: c.Variables, Transcript: c.Turns, FormattedTranscript: c.Transcript,
		CarrierCost: c.CarrierCost, TotalCost: c.TotalCost, CreatedAt: Timestamp(c.CreatedAt), Assistant: assistantRef{c.AssistantID, c.AssistantName},
	}
	if a.IncludeRecordingInWebhook {
		m.RecordingURL = recording
	}
	if c.EndedAt != nil {
		finished := Timestamp(*c.EndedAt)
		m.FinishedAt = &finished
	}
	if lead != nil {
		m.Lead = &messageLead{lead}
	}
	if campaign != nil {
		m.Campaign = &messageCampaign{campaign}
	}
	return m
}

// IncomingMessage is what the inbound webhook is told before a call is answered.
type IncomingMessage struct {
	Event          string `json:"event"`
	CallID         ID     `json:"call_id"`
	AssistantID    ID     `json:"assistant_id"`
	CustomerPhone  string `json:"customer_phone"`
	AssistantPhone string `json:"assistant_phone"`
	Timestamp      string `json:"timestamp"`
	Status         string `json:"status"`
	Variables      Object `json:"variables"`
}

// NewIncomingMessage is the message of a call that rings.
func NewIncomingMessage(c *Call, a *Assistant, now time.Time) *IncomingMessage {
	return &IncomingMessage{
		Event: EventIncoming, CallID: c.ID, AssistantID: c.AssistantID, CustomerPhone: c.CustomerNumber, AssistantPhone: c.AssistantNumber,
		Timestamp: Timestamp(now), Status: "incoming", Variables: merge(a.Variables, c.Variables),
	}
}

// disableAfter is how long a webhook may do nothing but fail before it is switched off: a
// receiver that is gone must not be called for years.
const disableAfter = 5 * 24 * time.Hour

// Hopeless says whether a webhook is to be switched off, of which nothing was taken since.
func Hopeless(failingSince, now time.Time) bool { return now.Sub(failingSince) > disableAfter }
