package parley

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// Lead is somebody a campaign calls.
type Lead struct {
	ID             ID
	UserID         ID
	CampaignID     ID
	CampaignName   string
	PhoneNumber    string
	Variables      Object
	Status         LeadStatus
	Timezone       *string // the lead's own; nil: found from the number
	Secondary      []SecondaryContact
	AllowDuplicate bool // of the request: the same number may be in the campaign already
	CreatedAt      time.Time
	UpdatedAt      time.Time

	// Attempts counts the rounds that have begun. A round tries the lead's number and
	// then, while nobody is reached, its secondary contacts.
	Attempts int
	// NextContact is whom the round tries next: 0 begins a new round with the lead's
	// own number, n is the n-th secondary contact.
	NextContact int
	// DueAt is the instant before which the lead must not be called; within a
	// round it is when the contact before was given up. Only an attempt's end moves it:
	// hours and limits are asked anew each time.
	DueAt time.Time
}

// SecondaryContact is another number of a lead, tried when the ones before were not reached.
type SecondaryContact struct {
	ID          ID
	PhoneNumber string
	Variables   Object
	Status      LeadStatus
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// LeadStatus is how far a lead, or one of its contacts, has come.
type LeadStatus string

// The statuses of a lead.
const (
	LeadCreated           LeadStatus = "created"
	LeadScheduled         LeadStatus = "scheduled"  // due; waits for its hours or for a line
	LeadProcessing        LeadStatus = "processing" // being called
	LeadCompleted         LeadStatus = "completed"
	LeadRescheduled       LeadStatus = "rescheduled" // waits for a retry
	LeadReachedMaxRetries LeadStatus = "reached-max-retries"
	LeadBlacklisted       LeadStatus = "blacklisted" // asked not to be called
)

// LeadStatuses are all of them, in the order a lead meets them.
var LeadStatuses = []LeadStatus{LeadCreated, LeadScheduled, LeadProcessing, LeadCompleted, LeadRescheduled, LeadReachedMaxRetries, LeadBlacklisted}

// ByHand are the statuses that a user may give a lead.
var ByHand = []LeadStatus{LeadCreated, LeadCompleted, LeadReachedMaxRetries}

// Waiting says whether a lead may still be called and is not being called now.
func (s LeadStatus) Waiting() bool {
	return s == LeadCreated || s == LeadScheduled || s == LeadRescheduled
}

// Final says whether a lead is done with, unless it is put back by hand.
func (s LeadStatus) Final() bool {
	return s == LeadCompleted || s == LeadReachedMaxRetries || s == LeadBlacklisted
}

// CanBecome says whether the dialer may move a lead from one status to another. A
// call in progress may end in anything but a lead nobody ever tried.
func (s LeadStatus) CanBecome(next LeadStatus) bool {
	switch next {
	case LeadScheduled:
		return s == LeadCreated || s == LeadRescheduled || s == LeadProcessing
	case LeadProcessing:
		return s.Waiting()
	case LeadRescheduled:
		return s == LeadProcessing || s == LeadScheduled // the contacts left in the round may not be called
	case LeadCompleted:
		return s == LeadProcessing
	case LeadReachedMaxRetries:
		return s == LeadProcessing || s.Waiting() // max_retries may be lowered while it waits
	case LeadBlacklisted:
		return s != LeadBlacklisted // an opt-out counts whatever the lead's state
	default:
		return false
	}
}

// Before are the statuses from which the dialer may give a lead this one: what a
// guarded update asks of the row.
func (s LeadStatus) Before() (from []LeadStatus) {
	for _, status := range LeadStatuses {
		if status.CanBecome(s) {
			from = append(from, status)
		}
	}
	return from
}

// SetByHand gives a lead a status that its owner chose. Back in the queue it begins
// anew, which must wait for a call that is still up: it would be called twice.
func (l *Lead) SetByHand(status LeadStatus) error {
	switch {
	case !slices.Contains(ByHand, status):
		return refused("The status of a lead can only be set to created, completed or reached-max-retries.")
	case status == LeadCreated && l.Status == LeadProcessing:
		return refused("The lead is being called. Put it back when the call has ended.")
	case status == LeadCreated:
		l.Attempts, l.NextContact, l.DueAt = 0, 0, time.Time{}
		for i := range l.Secondary {
			l.Secondary[i].Status = LeadCreated
		}
	}
	l.Status = status
	return nil
}

// Suppress ends a lead that has a number which must not be called, whichever of its
// contacts it is.
func (l *Lead) Suppress(listed map[string]bool) {
	if listed[l.PhoneNumber] {
		l.Status = LeadBlacklisted
	}
	for i := range l.Secondary {
		if listed[l.Secondary[i].PhoneNumber] {
			l.Status, l.Secondary[i].Status = LeadBlacklisted, LeadBlacklisted
		}
	}
}

// Contacts is how many numbers a lead has.
func (l *Lead) Contacts() int { return 1 + len(l.Secondary) }

// Number is the number of a contact: 0 is the lead's own.
func (l *Lead) Number(contact int) string {
	if contact == 0 {
		return l.PhoneNumber
	}
	return l.Secondary[contact-1].PhoneNumber
}

// VariablesOf are the variables of a call to a contact: its own win over the lead's.
func (l *Lead) VariablesOf(contact int) Object {
	merged := maps.Clone(l.Variables)
	if contact > 0 {
		merged = merge(merged, l.Secondary[contact-1].Variables)
	}
	return merged
}

func merge(under, over Object) Object {
	merged := make(Object, len(under)+len(over))
	maps.Copy(merged, under)
	maps.Copy(merged, over)
	return merged
}

// campaignRef is the campaign as a lead's record names it.
type campaignRef struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
}

var campaignRefForm = Form[campaignRef]{
	{Name: "id", At: func(r *campaignRef) any { return &r.ID }},
	{Name: "name", At: func(r *campaignRef) any { return &r.Name }},
}

// short is the place of a time that the record shows as YYYY-MM-DD HH:MM:SS.
func short(t time.Time) *string {
	s := ShortTimestamp(t)
	return &s
}

// LeadForm is the table of a lead. A record that was read can be sent back: what
// cannot be changed is ignored.
var LeadForm = Form[Lead]{
	{Name: "id", At: func(l *Lead) any { return &l.ID }, Rule: readOnly, Example: 31},
	{Name: "campaign_id", At: func(l *Lead) any { return &l.CampaignID }, Rule: Rule{Required: true}, Effect: "The campaign that calls the lead; it cannot be changed later.", Example: 5},
	{Name: "phone_number", At: func(l *Lead) any { return &l.PhoneNumber }, Rule: Rule{Required: true, Check: E164}, Effect: "The number in E.164 form.", Example: "+12025550100"},
	{Name: "variables", At: func(l *Lead) any { return &l.Variables }, Default: map[string]any{}, Effect: "Variables of the lead's calls; an array holding the object is accepted. Merged on update.", Example: map[string]any{"name": "Ada"}},
	{Name: "status", At: func(l *Lead) any { return &l.Status }, Rule: Rule{ReadOnly: true}, Default: LeadCreated, Effect: "How far the lead has come; created, completed and reached-max-retries can be set on update."},
	{Name: "timezone", At: func(l *Lead) any { return &l.Timezone }, Rule: Rule{Check: Zone}, Effect: "The lead's own time zone; null: found from the number.", Example: "America/New_York"},
	{Name: "created_at", At: func(l *Lead) any { return short(l.CreatedAt) }, Rule: readOnly},
	{Name: "updated_at", At: func(l *Lead) any { return short(l.UpdatedAt) }, Rule: readOnly},
	{Name: "campaign", At: func(l *Lead) any { return &campaignRef{l.CampaignID, l.CampaignName} }, Rule: Rule{ReadOnly: true, Each: campaignRefForm}, Effect: "The campaign."},
	{Name: "secondary_contacts", At: func(l *Lead) any { shown := append([]SecondaryContact{}, l.Secondary...); return &shown }, Rule: Rule{ReadOnly: true, Each: ContactForm},
		Effect: "Other numbers of the lead, each with its own status."},
	{Name: "secondary_contacts", At: func(l *Lead) any { return &l.Secondary }, Rule: Rule{WriteOnly: true, Max: 10, Each: contactRequest},
		Effect: "Tried in order within the same attempt when the one before was not reached. Replaces the earlier ones."},
	{Name: "allow_duplicate", Request: "allow_dupplicate", At: func(l *Lead) any { return &l.AllowDuplicate }, Rule: Rule{WriteOnly: true}, Default: false,
		Effect: "Accepts a number that the campaign already has."},
}

// ContactForm is the table of a secondary contact's record.
var ContactForm = Form[SecondaryContact]{
	{Name: "id", At: func(c *SecondaryContact) any { return &c.ID }},
	{Name: "phone_number", At: func(c *SecondaryContact) any { return &c.PhoneNumber }},
	{Name: "variables", At: func(c *SecondaryContact) any { return &c.Variables }},
	{Name: "status", At: func(c *SecondaryContact) any { return &c.Status }},
	{Name: "created_at", At: func(c *SecondaryContact) any { return short(c.CreatedAt) }},
	{Name: "updated_at", At: func(c *SecondaryContact) any { return short(c.UpdatedAt) }},
}

// contactRequest is what of a secondary contact a request may set.
var contactRequest = Form[SecondaryContact]{
	{Name: "phone_number", At: func(c *SecondaryContact) any { return &c.PhoneNumber }, Rule: Rule{Required: true, Check: E164}, Example: "+12025550101"},
	{Name: "variables", At: func(c *SecondaryContact) any { return &c.Variables }, Default: map[string]any{}},
}

// MarshalJSON writes the contact's record.
func (c SecondaryContact) MarshalJSON() ([]byte, error) { return ContactForm.AppendRecord(nil, &c) }

// DuplicateLead refuses a number that the campaign already has.
const DuplicateLead = "The phone number is already a lead of this campaign. Send allow_duplicate true to add it again."

// CreateLead makes a lead from a request. Its campaign is still to be looked up, and
// whether the number is new to it.
func CreateLead(in Input) (*Lead, FieldErrors) {
	l := &Lead{}
	_, errs := LeadForm.Create(unwrapped(in), l)
	l.settle(nil, &errs)
	return l, errs
}

// Update changes a lead to what a request supplies: variables are merged, contacts
// replaced, and contacts that stay keep their state.
func (l *Lead) Update(in Input) error {
	in = unwrapped(in)
	delete(in, "campaign_id")
	earlier, variables := l.Secondary, l.Variables
	sent, errs := LeadForm.Update(in, l)
	if sent["variables"] {
		l.Variables = merge(variables, l.Variables)
	}
	if sent["secondary_contacts"] || sent["phone_number"] {
		l.settle(earlier, &errs)
	}
	raw, wanted := in["status"]
	status, isText := raw.(string)
	if wanted && LeadStatus(status) != l.Status {
		if !isText || !slices.Contains(ByHand, LeadStatus(status)) {
			errs.Add("status", Selected("status", []string{string(LeadCreated), string(LeadCompleted), string(LeadReachedMaxRetries)}))
		}
		if len(errs) == 0 {
			return l.SetByHand(LeadStatus(status))
		}
	}
	return invalid(errs, ValidationFailed)
}

// settle gives new contacts their first status and keeps that of the ones that stay.
// A number twice in one lead would be called twice in one attempt.
func (l *Lead) settle(earlier []SecondaryContact, errs *FieldErrors) {
	if errs.Under("secondary_contacts") {
		return
	}
	seen := map[string]bool{l.PhoneNumber: true}
	for i := range l.Secondary {
		c := &l.Secondary[i]
		if seen[c.PhoneNumber] {
			path := "secondary_contacts." + strconv.Itoa(i) + ".phone_number"
			errs.Add(path, "The "+Spaced(path)+" field has a duplicate value.")
		}
		seen[c.PhoneNumber] = true
		c.Status = LeadCreated
		for _, e := range earlier {
			if e.PhoneNumber == c.PhoneNumber {
				c.ID, c.Status, c.CreatedAt, c.UpdatedAt = e.ID, e.Status, e.CreatedAt, e.UpdatedAt
			}
		}
	}
	// A round under way cannot go on with contacts in another order: somebody would be
	// called twice in it. It is over, and the retry waits its time.
	if l.NextContact > 0 {
		l.NextContact = l.Contacts()
	}
}

// unwrapped takes variables out of the array that some clients put them in. It
// copies what it changes.
func unwrapped(in Input) Input {
	in = maps.Clone(in)
	if in == nil {
		in = Input{}
	}
	only(in)
	contacts, ok := in["secondary_contacts"].([]any)
	if !ok {
		return in
	}
	contacts = slices.Clone(contacts)
	for i := range contacts {
		if contact, ok := contacts[i].(map[string]any); ok {
			contact = maps.Clone(contact)
			only(contact)
			contacts[i] = contact
		}
	}
	in["secondary_contacts"] = contacts
	return in
}

func only(object map[string]any) {
	if list, ok := object["variables"].([]any); ok && len(list) == 1 {
		object["variables"] = list[0]
	}
}
