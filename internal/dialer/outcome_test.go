package dialer_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
)

func processing(attempts, contact, secondary int) parley.Lead {
	l := parley.Lead{ID: 1, UserID: 1, CampaignID: 1, PhoneNumber: number(0), Status: parley.LeadProcessing, Attempts: attempts, NextContact: contact + 1}
	for i := range secondary {
		l.Secondary = append(l.Secondary, parley.SecondaryContact{PhoneNumber: number(i + 1), Status: parley.LeadCreated})
	}
	if contact > 0 {
		l.Secondary[contact-1].Status = parley.LeadProcessing
	}
	return l
}

func TestOutcomesFollowTheRetryRules(t *testing.T) {
	t.Parallel()
	goal := "booked"
	plain := func(*parley.Campaign) {}
	machines := func(c *parley.Campaign) { c.RetryOnVoicemail = false }
	goals := func(c *parley.Campaign) { c.RetryOnGoalIncomplete, c.GoalVariable = true, &goal }
	talked := func(v any) dialer.Result {
		return dialer.Result{Status: parley.CallCompleted, Evaluation: parley.Object{goal: v}}
	}
	for name, c := range map[string]struct {
		set      func(*parley.Campaign)
		lead     parley.Lead
		result   dialer.Result
		status   parley.LeadStatus
		next     int
		due      time.Duration
		contacts []parley.LeadStatus
	}{
		"busy":                  {plain, processing(1, 0, 0), dialer.Result{Status: parley.CallBusy}, "rescheduled", 0, time.Hour, nil},
		"no answer":             {plain, processing(2, 0, 0), dialer.Result{Status: parley.CallNoAnswer}, "rescheduled", 0, time.Hour, nil},
		"failed":                {plain, processing(1, 0, 0), dialer.Result{Status: parley.CallFailed}, "rescheduled", 0, time.Hour, nil},
		"the last one":          {plain, processing(3, 0, 0), dialer.Result{Status: parley.CallFailed}, "reached-max-retries", 1, 0, nil},
		"talked":                {plain, processing(3, 0, 0), talked(nil), "completed", 1, -1, nil},
		"ended, not yet stored": {plain, processing(1, 0, 0), dialer.Result{Status: parley.CallEndedByCustomer}, "completed", 1, -1, nil},
		"machine":               {plain, processing(1, 0, 0), dialer.Result{Status: parley.CallCompleted, Voicemail: true}, "rescheduled", 0, time.Hour, nil},
		"machine is fine":       {machines, processing(1, 0, 0), dialer.Result{Status: parley.CallCompleted, Voicemail: true}, "completed", 1, -1, nil},
		"goal reached":          {goals, processing(1, 0, 0), talked(true), "completed", 1, -1, nil},
		"goal missed":           {goals, processing(1, 0, 0), talked(false), "rescheduled", 0, time.Hour, nil},
		"goal unknown":          {goals, processing(1, 0, 0), talked(nil), "rescheduled", 0, time.Hour, nil},
		"goal missed, contacts": {goals, processing(1, 0, 1), talked("no"), "rescheduled", 0, time.Hour, []parley.LeadStatus{"created"}},
		"goal missed for good":  {goals, processing(3, 0, 0), talked(json.Number("0")), "reached-max-retries", 1, 0, nil},
		"nobody knows":          {plain, processing(1, 0, 0), dialer.Result{Status: parley.CallInProgress, Indeterminate: true}, "rescheduled", 0, time.Hour, nil},
		"next contact":          {plain, processing(1, 0, 2), dialer.Result{Status: parley.CallBusy}, "scheduled", 1, 0, []parley.LeadStatus{"created", "created"}},
		"contact after that":    {plain, processing(1, 1, 2), dialer.Result{Contact: 1, Status: parley.CallBusy}, "scheduled", 2, 0, []parley.LeadStatus{"rescheduled", "created"}},
		"last contact":          {plain, processing(1, 2, 2), dialer.Result{Contact: 2, Status: parley.CallBusy}, "rescheduled", 0, time.Hour, []parley.LeadStatus{"created", "rescheduled"}},
		"last of all":           {plain, processing(3, 2, 2), dialer.Result{Contact: 2, Status: parley.CallBusy}, "reached-max-retries", 3, 0, []parley.LeadStatus{"created", "reached-max-retries"}},
		"contact reached":       {plain, processing(1, 1, 2), dialer.Result{Contact: 1, Status: parley.CallCompleted}, "completed", 2, -1, []parley.LeadStatus{"completed", "created"}},
		"opt-out":               {plain, processing(1, 0, 1), dialer.Result{Status: parley.CallCompleted, OptOut: true}, "blacklisted", 1, -1, []parley.LeadStatus{"created"}},
		"a contact's opt-out":   {plain, processing(1, 1, 2), dialer.Result{Contact: 1, Status: parley.CallCompleted, OptOut: true}, "blacklisted", 2, -1, []parley.LeadStatus{"blacklisted", "created"}},
	} {
		campaign := campaign(1, 1)
		c.set(&campaign)
		c.result.At, c.result.Number = noon, c.lead.Number(c.result.Contact)
		got := dialer.Outcome(&campaign, c.lead, c.result)
		require.Equal(t, c.status, got.Status, name)
		require.True(t, parley.LeadProcessing.CanBecome(got.Status), name)
		require.Equal(t, c.next, got.NextContact, name)
		require.Equal(t, c.lead.Attempts, got.Attempts, name)
		if c.due >= 0 {
			require.Equal(t, noon.Add(c.due), got.DueAt, name)
		}
		for i, status := range c.contacts {
			require.Equal(t, status, got.Secondary[i].Status, name)
		}
	}
}

func TestOutcomeOfALeadThatWasChangedMeanwhile(t *testing.T) {
	t.Parallel()
	c := campaign(1, 1)
	byHand := processing(1, 0, 0)
	require.NoError(t, byHand.SetByHand(parley.LeadCompleted))
	busy := dialer.Result{Number: number(0), Status: parley.CallBusy, At: noon}
	require.Equal(t, byHand, dialer.Outcome(&c, byHand, busy), "what its owner said stays")
	optOut := dialer.Result{Number: number(0), Status: parley.CallCompleted, OptOut: true, At: noon}
	require.Equal(t, parley.LeadBlacklisted, dialer.Outcome(&c, byHand, optOut).Status, "but an opt-out counts")

	edited := processing(1, 2, 2)
	edited.Secondary = nil
	got := dialer.Outcome(&c, edited, dialer.Result{Contact: 2, Number: number(2), Status: parley.CallBusy, At: noon})
	require.Equal(t, parley.LeadRescheduled, got.Status)
	require.Equal(t, noon.Add(time.Hour), got.DueAt)

	c.MaxRetries = 0
	require.Equal(t, parley.LeadReachedMaxRetries, dialer.Outcome(&c, processing(2, 0, 2), busy).Status, "no other contact either")
}

func TestClaimRefusesWhatThePlanDidNotSee(t *testing.T) {
	t.Parallel()
	waiting := processing(1, 0, 1)
	waiting.Status = parley.LeadScheduled
	good := dialer.Call{Contact: 1, Attempt: 1, Number: number(1)}
	claimed, ok := dialer.Claim(waiting, good)
	require.True(t, ok)
	require.Equal(t, parley.LeadProcessing, claimed.Secondary[0].Status)
	require.Equal(t, parley.LeadCreated, waiting.Secondary[0].Status, "the lead it was given is not changed")
	for name, call := range map[string]dialer.Call{
		"another number":  {Contact: 1, Attempt: 1, Number: number(5)},
		"another attempt": {Contact: 1, Attempt: 2, Number: number(1)},
		"a later attempt": {Contact: 0, Attempt: 3, Number: number(0)},
		"no such contact": {Contact: 2, Attempt: 1, Number: number(1)},
	} {
		_, ok := dialer.Claim(waiting, call)
		require.False(t, ok, name)
	}
	past := waiting
	past.NextContact = 2
	_, ok = dialer.Claim(past, good)
	require.False(t, ok, "it had its turn in this round")
}

func TestGoalsInWords(t *testing.T) {
	t.Parallel()
	goal := "g"
	c := campaign(1, 1)
	c.RetryOnGoalIncomplete, c.GoalVariable = true, &goal
	for value, reached := range map[any]bool{
		true: true, false: false, "yes": true, " No ": false, "": false, "2026-11-20 10:00": true, "FALSE": false,
		json.Number("3"): true, json.Number("0.0"): false, 1.0: true, 0.0: false,
	} {
		got := dialer.Outcome(&c, processing(1, 0, 0), dialer.Result{Number: number(0), Status: parley.CallCompleted, At: noon, Evaluation: parley.Object{goal: value}})
		require.Equal(t, reached, got.Status == parley.LeadCompleted, "%v", value)
	}
	got := dialer.Outcome(&c, processing(1, 0, 0), dialer.Result{Number: number(0), Status: parley.CallCompleted, At: noon, Evaluation: parley.Object{goal: []any{}}})
	require.Equal(t, parley.LeadRescheduled, got.Status)
}
