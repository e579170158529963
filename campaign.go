package parley

import (
	"slices"
	"strconv"
	"time"
)

// Campaign calls a list of leads with an assistant, at the hours and with the
// retries its owner sets. CampaignForm says what each field does.
type Campaign struct {
	ID                    ID
	UserID                ID
	Name                  string
	Status                CampaignStatus
	AssistantID           ID
	Timezone              string
	MaxCallsInParallel    int
	MarkComplete          bool
	HoursStart            string // HH:MM:SS
	HoursEnd              string // HH:MM:SS
	AllowedDays           []string
	MaxRetries            int
	RetryInterval         int // seconds
	RetryOnVoicemail      bool
	RetryOnGoalIncomplete bool
	GoalVariable          *string
	PhoneNumberIDs        []ID
	StopReason            *string // why the dialer stopped it; nil when its owner did
	Progress              Progress
	CreatedAt             time.Time
	UpdatedAt             time.Time
}

// CampaignStatus is how far a campaign has come.
type CampaignStatus string

// The statuses of a campaign.
const (
	CampaignDraft      CampaignStatus = "draft"
	CampaignInProgress CampaignStatus = "in-progress"
	CampaignStopped    CampaignStatus = "stopped"
	CampaignCompleted  CampaignStatus = "completed"
)

// CampaignStatuses are all of them.
var CampaignStatuses = []CampaignStatus{CampaignDraft, CampaignInProgress, CampaignStopped, CampaignCompleted}

// CanBecome says whether a campaign may move from one status to another. A stopped
// or completed one may be started again; none becomes a draft again.
func (s CampaignStatus) CanBecome(next CampaignStatus) bool {
	switch next {
	case CampaignInProgress:
		return s == CampaignDraft || s == CampaignStopped || s == CampaignCompleted
	case CampaignStopped, CampaignCompleted:
		return s == CampaignInProgress
	default:
		return false
	}
}

// Before are the statuses from which a campaign may become this one: what a guarded
// update asks of the row.
func (s CampaignStatus) Before() (from []CampaignStatus) {
	for _, status := range CampaignStatuses {
		if status.CanBecome(s) {
			from = append(from, status)
		}
	}
	return from
}

// Progress counts a campaign's leads by their status.
type Progress struct {
	Total             int `json:"total"`
	Created           int `json:"created"` // scheduled ones too: they wait for their first call
	Processing        int `json:"processing"`
	Completed         int `json:"completed"`
	Rescheduled       int `json:"rescheduled"`
	ReachedMaxRetries int `json:"reached_max_retries"`
	Blacklisted       int `json:"blacklisted"`
}

// Add counts n leads of a status.
func (p *Progress) Add(status LeadStatus, n int) {
	p.Total += n
	switch status {
	case LeadProcessing:
		p.Processing += n
	case LeadCompleted:
		p.Completed += n
	case LeadRescheduled:
		p.Rescheduled += n
	case LeadReachedMaxRetries:
		p.ReachedMaxRetries += n
	case LeadBlacklisted:
		p.Blacklisted += n
	default:
		p.Created += n
	}
}

// Left is how many leads are not done.
func (p *Progress) Left() int { return p.Created + p.Processing + p.Rescheduled }

var progressForm = Form[Progress]{
	{Name: "total", At: func(p *Progress) any { return &p.Total }},
	{Name: "created", At: func(p *Progress) any { return &p.Created }, Effect: "Waiting for their first call."},
	{Name: "processing", At: func(p *Progress) any { return &p.Processing }, Effect: "Being called."},
	{Name: "completed", At: func(p *Progress) any { return &p.Completed }},
	{Name: "rescheduled", At: func(p *Progress) any { return &p.Rescheduled }, Effect: "Waiting for a retry."},
	{Name: "reached_max_retries", At: func(p *Progress) any { return &p.ReachedMaxRetries }},
	{Name: "blacklisted", At: func(p *Progress) any { return &p.Blacklisted }},
}

// CampaignForm is the table of a campaign.
var CampaignForm = Form[Campaign]{
	{Name: "id", At: func(c *Campaign) any { return &c.ID }, Rule: readOnly, Example: 5},
	{Name: "name", At: func(c *Campaign) any { return &c.Name }, Rule: Rule{Required: true, Max: 255}, Effect: "What the campaign is called in lists and calls.", Example: "Spring reminders"},
	{Name: "status", At: func(c *Campaign) any { return &c.Status }, Rule: Rule{ReadOnly: true, In: []string{"draft", "in-progress", "stopped", "completed"}}, Default: CampaignDraft,
		Effect: "Changed by POST /user/campaigns/update-status, and by the last lead."},
	{Name: "assistant_id", At: func(c *Campaign) any { return &c.AssistantID }, Rule: Rule{Required: true}, Effect: "The outbound assistant that calls.", Example: 12},
	{Name: "timezone", At: func(c *Campaign) any { return &c.Timezone }, Rule: Rule{Check: Zone}, Effect: "Whose clock the allowed hours and days are on; the assistant's when not sent.", Example: "Europe/Berlin"},
	{Name: "max_calls_in_parallel", At: func(c *Campaign) any { return &c.MaxCallsInParallel }, Rule: Rule{Min: 1, Max: 100}, Default: 3, Effect: "How many of its calls may be up at once."},
	{Name: "mark_complete_when_no_leads", At: func(c *Campaign) any { return &c.MarkComplete }, Default: true, Effect: "Completes the campaign when no lead is left; otherwise it waits for more."},
	{Name: "allowed_hours_start_time", At: func(c *Campaign) any { return &c.HoursStart }, Rule: Rule{Check: clockTime}, Default: "00:00:00", Effect: "From when calls are placed: HH:MM or HH:MM:SS.", Example: "09:00"},
	{Name: "allowed_hours_end_time", At: func(c *Campaign) any { return &c.HoursEnd }, Rule: Rule{Check: clockTime}, Default: "23:59:59",
		Effect: "From when no more calls are placed; 23:59:59 is the end of the day. Before the start: the hours cross midnight and belong to the day they start on.", Example: "18:00"},
	{Name: "allowed_days", At: func(c *Campaign) any { return &c.AllowedDays }, Rule: Rule{Max: 7}, Default: Weekdays, Effect: "The days of the week on which calls are placed.", Example: []string{"monday", "tuesday"}},
	{Name: "max_retries", At: func(c *Campaign) any { return &c.MaxRetries }, Rule: Rule{Max: 10}, Default: 3, Effect: "How often a lead that was not reached is called again."},
	{Name: "retry_interval", At: func(c *Campaign) any { return &c.RetryInterval }, Rule: Rule{Min: 60, Max: 604800}, Default: 3600, Effect: "Seconds from the end of an attempt to the next one, at least."},
	{Name: "retry_on_voicemail", At: func(c *Campaign) any { return &c.RetryOnVoicemail }, Default: true, Effect: "An answering machine counts as not reached."},
	{Name: "retry_on_goal_incomplete", At: func(c *Campaign) any { return &c.RetryOnGoalIncomplete }, Default: false, Effect: "A conversation that did not reach its goal is retried."},
	{Name: "goal_completion_variable", At: func(c *Campaign) any { return &c.GoalVariable }, Rule: Rule{Max: 255}, Effect: "The variable of the post-call evaluation that says whether the goal was reached.", Example: "status"},
	{Name: "phone_number_ids", At: func(c *Campaign) any { return &c.PhoneNumberIDs }, Rule: Rule{Max: 100}, Default: []ID{}, Effect: "The lines it calls from, in turn; none: the assistant's.", Example: []ID{3}},
	{Name: "stop_reason", At: func(c *Campaign) any { return &c.StopReason }, Rule: readOnly, Effect: "Why it stopped by itself; null otherwise."},
	{Name: "progress", At: func(c *Campaign) any { return &c.Progress }, Rule: Rule{ReadOnly: true, Each: progressForm}, Effect: "How many leads are where."},
	{Name: "created_at", At: func(c *Campaign) any { return &c.CreatedAt }, Rule: readOnly},
	{Name: "updated_at", At: func(c *Campaign) any { return &c.UpdatedAt }, Rule: readOnly},
}

// CreateCampaign makes a campaign from a request. Its assistant and lines are still
// to be looked up, and its zone, where none was sent, is to be the assistant's.
func CreateCampaign(in Input) (*Campaign, Sent, FieldErrors) {
	c := &Campaign{}
	sent, errs := CampaignForm.Create(in, c)
	c.settle(&errs)
	return c, sent, errs
}

// Update changes a campaign to what a request supplies.
func (c *Campaign) Update(in Input) (Sent, FieldErrors) {
	sent, errs := CampaignForm.Update(in, c)
	c.settle(&errs)
	return sent, errs
}

// settle applies the rules that join fields, and writes the times as the record shows them.
func (c *Campaign) settle(errs *FieldErrors) {
	c.settleDays(errs)
	if from, ok := ParseTimeOfDay(c.HoursStart); ok {
		c.HoursStart = from.String()
	}
	if to, ok := ParseTimeOfDay(c.HoursEnd); ok {
		c.HoursEnd = to.String()
	}
	if c.HoursStart == c.HoursEnd && !errs.Has("allowed_hours_start_time") && !errs.Has("allowed_hours_end_time") {
		errs.Add("allowed_hours_end_time", "The allowed hours end time must differ from the allowed hours start time. Send 00:00 and 23:59:59 for the whole day.")
	}
	if c.RetryOnGoalIncomplete && (c.GoalVariable == nil || *c.GoalVariable == "") && !errs.Has("goal_completion_variable") {
		errs.Add("goal_completion_variable", "The goal completion variable field is required when retry on goal incomplete is true.")
	}
}

// settleDays keeps each day once, in the week's order. No day at all would be a
// campaign that never calls, which stopping says better.
func (c *Campaign) settleDays(errs *FieldErrors) {
	if errs.Under("allowed_days") {
		return
	}
	if len(c.AllowedDays) == 0 {
		errs.Add("allowed_days", Required("allowed_days"))
		return
	}
	for i, word := range c.AllowedDays {
		if _, ok := weekday(word); !ok {
			path := "allowed_days." + strconv.Itoa(i)
			errs.Add(path, Selected(path, Weekdays))
		}
	}
	if errs.Under("allowed_days") {
		return
	}
	days := make([]string, 0, len(Weekdays))
	for _, word := range Weekdays {
		if slices.Contains(c.AllowedDays, word) {
			days = append(days, word)
		}
	}
	c.AllowedDays = days
}

// Window is when the campaign may call, by its own clock. What cannot be read, of a
// row that something else wrote, makes a window that is never open.
func (c *Campaign) Window() Window { return c.WindowIn(LoadZone(c.Timezone)) }

// WindowIn is Window for who has loaded the campaign's zone already.
func (c *Campaign) WindowIn(zone *time.Location) Window {
	from, ok1 := ParseTimeOfDay(c.HoursStart)
	to, ok2 := ParseTimeOfDay(c.HoursEnd)
	if !ok1 || !ok2 {
		return Window{}
	}
	days := make([]time.Weekday, 0, len(c.AllowedDays))
	for _, word := range c.AllowedDays {
		day, ok := weekday(word)
		if !ok {
			return Window{}
		}
		days = append(days, day)
	}
	return NewWindow(zone, days, from, to)
}

// RetryAfter is the pause between the end of an attempt and the next one.
func (c *Campaign) RetryAfter() time.Duration { return time.Duration(c.RetryInterval) * time.Second }

// MaxAttempts is how often a lead may be called.
func (c *Campaign) MaxAttempts() int { return 1 + c.MaxRetries }

// Readiness is what a campaign needs before it may start.
type Readiness struct {
	Assistant bool // an active outbound assistant
	Line      bool // a number to call from, or the simulated carrier
	Lead      bool // one that may be called
}

func refused(message string) error { return &Error{Code: Conflict, Message: message} }

// Start puts a campaign in progress, or says what it lacks.
func (c *Campaign) Start(ready Readiness) error {
	switch {
	case c.Status == CampaignInProgress:
		return refused("The campaign is already running.")
	case !c.Status.CanBecome(CampaignInProgress):
		return refused("The campaign cannot be started.")
	case !ready.Assistant:
		return refused("The campaign needs an active outbound assistant before it can start.")
	case !ready.Line:
		return refused("The campaign needs a usable phone number before it can start.")
	case !ready.Lead && c.MarkComplete:
		return refused("The campaign has no lead to call. Add leads first, or set mark_complete_when_no_leads to false.")
	}
	c.Status, c.StopReason = CampaignInProgress, nil
	return nil
}

// Stop ends the placing of calls.
func (c *Campaign) Stop() error {
	if !c.Status.CanBecome(CampaignStopped) {
		return refused("The campaign is not running.")
	}
	c.Status = CampaignStopped
	return nil
}

// Complete ends a running campaign that has no lead left and is to end so.
func (c *Campaign) Complete(left int) bool {
	if left > 0 || !c.MarkComplete || !c.Status.CanBecome(CampaignCompleted) {
		return false
	}
	c.Status = CampaignCompleted
	return true
}

// Forecast is what a campaign would do if it ran now.
type Forecast struct {
	Now   int            // leads called at once
	Later int            // called when what holds them is over
	Never int            // not called, unless something is changed
	Why   map[string]int // what keeps the others
	First *time.Time     // when the first of those later is called; nil: as soon as there is room
}

// ForecastForm is the table of a forecast.
var ForecastForm = Form[Forecast]{
	{Name: "now", At: func(f *Forecast) any { return &f.Now }, Effect: "Leads that would be called at once."},
	{Name: "later", At: func(f *Forecast) any { return &f.Later }, Effect: "Leads that would be called when what holds them is over."},
	{Name: "never", At: func(f *Forecast) any { return &f.Never }, Effect: "Leads that would not be called, unless something is changed."},
	{Name: "why", At: func(f *Forecast) any { return &f.Why }, Effect: "How many are held by what, such as campaign-hours, callee-hours, retry-interval, campaign-full, do-not-call or max-retries."},
	{Name: "first_at", At: func(f *Forecast) any { return &f.First }, Effect: "When the first of those later would be called; null: as soon as there is room."},
}

// What update-status answers.
const (
	CampaignStarted    = "Campaign started successfully."
	CampaignHasStopped = "Campaign stopped successfully."
	startAction        = "start"
	stopAction         = "stop"
)

// CampaignSwitch is a request to start or stop a campaign.
type CampaignSwitch struct {
	CampaignID ID
	Action     string
	HangUp     bool
}

// Starts says whether the request is to start.
func (s *CampaignSwitch) Starts() bool { return s.Action == startAction }

// CampaignSwitchForm is the table of such a request.
var CampaignSwitchForm = Form[CampaignSwitch]{
	{Name: "campaign_id", At: func(s *CampaignSwitch) any { return &s.CampaignID }, Rule: Rule{Required: true}, Effect: "The campaign.", Example: 5},
	{Name: "action", At: func(s *CampaignSwitch) any { return &s.Action }, Rule: Rule{Required: true, In: []string{startAction, stopAction}}, Effect: "start or stop.", Example: startAction},
	{Name: "hangup", At: func(s *CampaignSwitch) any { return &s.HangUp }, Default: false, Effect: "With stop: ends the running calls too."},
}

// ReadCampaignSwitch reads such a request.
func ReadCampaignSwitch(in Input) (CampaignSwitch, error) {
	var s CampaignSwitch
	_, errs := CampaignSwitchForm.Create(in, &s)
	return s, invalid(errs, DataInvalid)
}
