package dialer

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley"
)

// Result is how an attempt to call a contact ended.
type Result struct {
	Contact int
	Number  string // as dialled: the lead may have been edited meanwhile
	Status  parley.CallStatus
	At      time.Time // when it ended

	// Indeterminate says that nobody knows how it ended: the node died. It may have rung
	// and may have been a conversation; it is never repeated, and counts as a failure.
	Indeterminate bool
	Voicemail     bool
	OptOut        bool          // the callee asked not to be called again
	Evaluation    parley.Object // of the conversation
}

// Claim is how a lead becomes when a call to it is placed. It must be stored before
// the call leaves. False: the lead is no longer what the plan saw, so do not call.
func Claim(lead parley.Lead, call Call) (parley.Lead, bool) {
	if !lead.Status.CanBecome(parley.LeadProcessing) || call.Contact >= lead.Contacts() || lead.Number(call.Contact) != call.Number {
		return lead, false
	}
	if call.Contact == 0 && call.Attempt != lead.Attempts+1 || call.Contact > 0 && (call.Attempt != lead.Attempts || call.Contact < lead.NextContact) {
		return lead, false
	}
	lead.Secondary = slices.Clone(lead.Secondary)
	lead.Status = parley.LeadProcessing
	lead.Attempts = call.Attempt
	lead.NextContact = call.Contact + 1
	if call.Contact > 0 {
		lead.Secondary[call.Contact-1].Status = parley.LeadProcessing
	}
	return lead, true
}

// Unclaim is how a lead becomes whose call was never dialled after all: as it was before
// Claim, so that the attempt is still to be made.
func Unclaim(lead parley.Lead, contact, attempt int) parley.Lead {
	if lead.Status != parley.LeadProcessing || lead.Attempts != attempt {
		return lead // ended by hand meanwhile
	}
	lead.Secondary = slices.Clone(lead.Secondary)
	lead.Status = parley.LeadScheduled
	switch {
	case contact == 0:
		lead.Attempts, lead.NextContact = attempt-1, 0
	case lead.NextContact == contact+1: // else it was edited, which ended the round
		lead.NextContact = contact
		lead.Secondary[contact-1].Status = parley.LeadRescheduled
	}
	for i := range lead.Secondary {
		if lead.Secondary[i].Status == parley.LeadProcessing {
			lead.Secondary[i].Status = parley.LeadRescheduled
		}
	}
	return lead
}

// Outcome is how a lead becomes when an attempt to call it has ended.
func Outcome(c *parley.Campaign, lead parley.Lead, r Result) parley.Lead {
	lead.Secondary = slices.Clone(lead.Secondary)
	// A lead that was replaced or edited while it was called has no such contact any more.
	known := r.Contact < lead.Contacts() && lead.Number(r.Contact) == r.Number
	status := parley.LeadScheduled
	switch {
	case r.OptOut:
		status = parley.LeadBlacklisted
	case lead.Status != parley.LeadProcessing:
		return lead // ended by hand meanwhile
	case reached(c, r) && satisfied(c, r):
		status = parley.LeadCompleted
	case reached(c, r):
		// Somebody answered: the round is over, whoever else could have been tried.
		lead.NextContact = lead.Contacts()
	}
	if status == parley.LeadScheduled {
		status = again(c, &lead, r.At)
	}
	lead.Status = status
	if known && r.Contact > 0 {
		lead.Secondary[r.Contact-1].Status = contactAfter(status)
	}
	if status.Final() {
		settleContacts(&lead)
	}
	return lead
}

// again is what follows an attempt that did not do: the round's next contact, the
// next round, or nothing.
func again(c *parley.Campaign, lead *parley.Lead, at time.Time) parley.LeadStatus {
	lead.DueAt = at
	if lead.NextContact < lead.Contacts() && lead.Attempts <= c.MaxAttempts() {
		return parley.LeadScheduled
	}
	if lead.Attempts >= c.MaxAttempts() {
		return parley.LeadReachedMaxRetries
	}
	lead.NextContact = 0
	lead.DueAt = at.Add(c.RetryAfter())
	return parley.LeadRescheduled
}

// contactAfter is what a contact becomes when its lead becomes something: one that was
// not reached waits for the next round.
func contactAfter(lead parley.LeadStatus) parley.LeadStatus {
	if lead == parley.LeadScheduled {
		return parley.LeadRescheduled
	}
	return lead
}

// settleContacts ends the contacts that still wait for another round with their lead.
// Those that were never tried stay as they were created.
func settleContacts(lead *parley.Lead) {
	for i := range lead.Secondary {
		if s := &lead.Secondary[i].Status; *s == parley.LeadRescheduled || *s == parley.LeadProcessing {
			*s = lead.Status
		}
	}
}

// reached says whether somebody was reached: a conversation, or an answering machine
// where the campaign takes one for an answer.
func reached(c *parley.Campaign, r Result) bool {
	if r.Voicemail && c.RetryOnVoicemail {
		return false
	}
	return r.Status.Talked() && !r.Indeterminate
}

// satisfied says whether the conversation needs no other one. A machine that counts
// as an answer can reach no goal, so none is asked of it.
func satisfied(c *parley.Campaign, r Result) bool {
	if r.Voicemail || !c.RetryOnGoalIncomplete || c.GoalVariable == nil {
		return true
	}
	return affirmed(r.Evaluation[*c.GoalVariable])
}

// affirmed reads the goal's variable, which the campaign's owner may have declared
// as a yes-or-no, a number or a text.
func affirmed(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case json.Number:
		f, err := v.Float64()
		return err == nil && f != 0
	case float64:
		return v != 0
	case string:
		return !slices.Contains([]string{"", "false", "no", "0", "null", "none"}, strings.ToLower(strings.TrimSpace(v)))
	default:
		return false
	}
}

// Conclude is how a lead becomes that a plan found done.
func Conclude(lead parley.Lead, d Done) parley.Lead {
	if !lead.Status.CanBecome(d.Status) {
		return lead
	}
	lead.Secondary = slices.Clone(lead.Secondary)
	lead.Status = d.Status
	settleContacts(&lead)
	return lead
}

// Recheck is asked in the instant before a claimed call leaves: between the plan and
// the line there may have been a queue, a stop, an opt-out, an edit or the end of the hours.
// The empty reason lets it go.
func Recheck(now time.Time, c *parley.Campaign, lead *parley.Lead, call Call, calleeHours, doNotCall bool) Why {
	window := c.Window()
	hours := newAtlas().hours(window, lead, call.Number, calleeHours)
	switch {
	case c.Status != parley.CampaignInProgress:
		return NotRunning
	case doNotCall:
		return DoNotCall
	case call.Attempt > c.MaxAttempts():
		return MaxRetries
	case !window.Open(now):
		return CampaignHours
	case !hours.Open(now):
		return CalleeHours
	default:
		return ""
	}
}
