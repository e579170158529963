package parley_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

func TestCampaignDefaultsAndRecord(t *testing.T) {
	t.Parallel()
	c, sent, errs := parley.CreateCampaign(input(t, `{"name":"N","assistant_id":"12","status":"completed","id":9,"allowed_hours_start_time":"09:00"}`))
	require.Empty(t, errs)
	require.False(t, sent["timezone"], "the assistant's is to be used")
	c.ID, c.Timezone, c.CreatedAt = 5, "Europe/Berlin", time.Unix(0, 0)
	c.Progress.Add(parley.LeadScheduled, 2)
	record, err := parley.CampaignForm.AppendRecord(nil, c)
	require.NoError(t, err)
	require.Equal(t, `{"id":5,"name":"N","status":"draft","assistant_id":12,"timezone":"Europe/Berlin","max_calls_in_parallel":3,"mark_complete_when_no_leads":true,`+
		`"allowed_hours_start_time":"09:00:00","allowed_hours_end_time":"23:59:59","allowed_days":["monday","tuesday","wednesday","thursday","friday","saturday","sunday"],`+
		`"max_retries":3,"retry_interval":3600,"retry_on_voicemail":true,"retry_on_goal_incomplete":false,"goal_completion_variable":null,"phone_number_ids":[],"stop_reason":null,`+
		`"progress":{"total":2,"created":2,"processing":0,"completed":0,"rescheduled":0,"reached_max_retries":0,"blacklisted":0},`+
		`"created_at":"1970-01-01T00:00:00.000000Z","updated_at":"0001-01-01T00:00:00.000000Z"}`, string(record))
	require.Equal(t, time.Hour, c.RetryAfter())
	require.Equal(t, 4, c.MaxAttempts())

	_, errs = c.Update(input(t, `{"allowed_days":["sunday","monday","sunday"],"allowed_hours_end_time":"02:30:15"}`))
	require.Empty(t, errs)
	require.Equal(t, []string{"monday", "sunday"}, c.AllowedDays)
	require.Equal(t, "02:30:15", c.HoursEnd)
	require.NotEmpty(t, parley.CampaignForm.Describe())
}

func TestCampaignMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, value, message string }{
		{"name", `""`, "The name field is required."},
		{"assistant_id", `"x"`, "The assistant id must be an integer."},
		{"timezone", `"Mars"`, "The timezone must be a valid time zone, such as Europe/Berlin."},
		{"max_calls_in_parallel", `0`, "The max calls in parallel must be between 1 and 100."},
		{"max_calls_in_parallel", `101`, "The max calls in parallel must be between 1 and 100."},
		{"allowed_hours_start_time", `"9:00"`, "The allowed hours start time must be a time of day such as 09:00 or 09:00:00."},
		{"allowed_hours_end_time", `"24:00"`, "The allowed hours end time must be a time of day such as 09:00 or 09:00:00."},
		{"allowed_hours_end_time", `"00:00"`, "The allowed hours end time must differ from the allowed hours start time. Send 00:00 and 23:59:59 for the whole day."},
		{"allowed_days", `[]`, "The allowed days field is required."},
		{"allowed_days", `"monday"`, "The allowed days must be an array."},
		{"allowed_days.1", `["monday","Monday"]`, "The selected allowed days.1 is invalid. Available: monday, tuesday, wednesday, thursday, friday, saturday, sunday."},
		{"max_retries", `11`, "The max retries must be between 0 and 10."},
		{"max_retries", `-1`, "The max retries must be between 0 and 10."},
		{"retry_interval", `59`, "The retry interval must be between 60 and 604800."},
		{"retry_interval", `604801`, "The retry interval must be between 60 and 604800."},
		{"goal_completion_variable", `null,"retry_on_goal_incomplete":true`, "The goal completion variable field is required when retry on goal incomplete is true."},
	} {
		name := c.field
		if name == "allowed_days.1" {
			name = "allowed_days"
		}
		campaign, _, errs := parley.CreateCampaign(input(t, `{"name":"N","assistant_id":1}`))
		require.Empty(t, errs)
		_, errs = campaign.Update(input(t, `{"`+name+`":`+c.value+`}`))
		require.Equal(t, parley.FieldErrors{{Field: c.field, Messages: []string{c.message}}}, errs)
	}
	_, _, errs := parley.CreateCampaign(parley.Input{})
	require.True(t, errs.Has("name") && errs.Has("assistant_id"))
}

func TestCampaignStartsAndStops(t *testing.T) {
	t.Parallel()
	ready := parley.Readiness{Assistant: true, Line: true, Lead: true}
	c := &parley.Campaign{Status: parley.CampaignDraft, MarkComplete: true}
	require.EqualError(t, c.Stop(), "The campaign is not running.")
	require.EqualError(t, c.Start(parley.Readiness{Line: true, Lead: true}), "The campaign needs an active outbound assistant before it can start.")
	require.EqualError(t, c.Start(parley.Readiness{Assistant: true, Lead: true}), "The campaign needs a usable phone number before it can start.")
	require.ErrorContains(t, c.Start(parley.Readiness{Assistant: true, Line: true}), "no lead to call")
	require.Equal(t, parley.CampaignDraft, c.Status)
	require.False(t, c.Complete(0), "a draft has not run")
	require.NoError(t, c.Start(ready))
	require.EqualError(t, c.Start(ready), "The campaign is already running.")
	require.False(t, c.Complete(1))
	require.True(t, c.Complete(0))
	require.EqualError(t, c.Stop(), "The campaign is not running.")
	c.MarkComplete = false
	require.NoError(t, c.Start(parley.Readiness{Assistant: true, Line: true}), "it waits for leads")
	require.False(t, c.Complete(0))
	require.NoError(t, c.Stop())
	require.ElementsMatch(t, []parley.CampaignStatus{"draft", "stopped", "completed"}, parley.CampaignInProgress.Before())
	require.Empty(t, parley.CampaignDraft.Before())
	c.Status = "nonsense"
	require.Error(t, c.Start(ready))

	s, err := parley.ReadCampaignSwitch(input(t, `{"campaign_id":"5","action":"start"}`))
	require.NoError(t, err)
	require.True(t, s.Starts())
	_, err = parley.ReadCampaignSwitch(input(t, `{"campaign_id":5,"action":"pause"}`))
	require.EqualError(t, err, "The given data was invalid.")
}

func TestLeadDefaultsAndRecord(t *testing.T) {
	t.Parallel()
	l, errs := parley.CreateLead(input(t, `{"phone_number":"+12025550100","campaign_id":5,"status":"completed","variables":[{"name":"Ada"}],"allow_dupplicate":1,`+
		`"secondary_contacts":[{"phone_number":"+12025550101","status":"completed","id":4},{"phone_number":"+12025550102","variables":[{"a":1}]}]}`))
	require.Empty(t, errs)
	require.True(t, l.AllowDuplicate)
	l.CampaignName, l.CreatedAt, l.UpdatedAt = "N", time.Unix(0, 0), time.Unix(1, 0)
	for i := range l.Secondary {
		l.Secondary[i].CreatedAt, l.Secondary[i].UpdatedAt = l.CreatedAt, l.UpdatedAt
	}
	record, err := parley.LeadForm.AppendRecord(nil, l)
	require.NoError(t, err)
	require.Equal(t, `{"id":0,"campaign_id":5,"phone_number":"+12025550100","variables":{"name":"Ada"},"status":"created","timezone":null,`+
		`"created_at":"1970-01-01 00:00:00","updated_at":"1970-01-01 00:00:01","campaign":{"id":5,"name":"N"},"secondary_contacts":[`+
		`{"id":0,"phone_number":"+12025550101","variables":{},"status":"created","created_at":"1970-01-01 00:00:00","updated_at":"1970-01-01 00:00:01"},`+
		`{"id":0,"phone_number":"+12025550102","variables":{"a":1},"status":"created","created_at":"1970-01-01 00:00:00","updated_at":"1970-01-01 00:00:01"}]}`, string(record))

	plain, errs := parley.CreateLead(input(t, `{"phone_number":"+12025550100","campaign_id":5,"allow_duplicate":true,"variables":[]}`))
	require.Empty(t, errs)
	require.True(t, plain.AllowDuplicate)
	record, err = parley.LeadForm.AppendRecord(nil, plain)
	require.NoError(t, err)
	require.Contains(t, string(record), `"variables":{},`)
	require.Contains(t, string(record), `"secondary_contacts":[]`)
	require.NotEmpty(t, parley.LeadForm.Describe())
}

func TestLeadMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, field, message string }{
		{`{"campaign_id":1}`, "phone_number", "The phone number field is required."},
		{`{"campaign_id":1,"phone_number":"030123"}`, "phone_number", "The phone number must be a phone number in E.164 form, such as +12025550100."},
		{`{"phone_number":"+12025550100"}`, "campaign_id", "The campaign id field is required."},
		{`{"campaign_id":1,"phone_number":"+12025550100","variables":[{},{}]}`, "variables", "The variables must be an object."},
		{`{"campaign_id":1,"phone_number":"+12025550100","timezone":"Local"}`, "timezone", "The timezone must be a valid time zone, such as Europe/Berlin."},
		{`{"campaign_id":1,"phone_number":"+12025550100","secondary_contacts":[{}]}`, "secondary_contacts.0.phone_number", "The secondary contacts.0.phone number field is required."},
		{`{"campaign_id":1,"phone_number":"+12025550100","secondary_contacts":[{"phone_number":"+12025550100"}]}`, "secondary_contacts.0.phone_number", "The secondary contacts.0.phone number field has a duplicate value."},
		{`{"campaign_id":1,"phone_number":"+12025550100","secondary_contacts":[1]}`, "secondary_contacts.0", "The secondary contacts.0 must be an object."},
		{`{"campaign_id":1,"phone_number":"+12025550100","secondary_contacts":[{},{},{},{},{},{},{},{},{},{},{}]}`, "secondary_contacts", "The secondary contacts must not have more than 10 items."},
	} {
		_, errs := parley.CreateLead(input(t, c.body))
		require.Equal(t, parley.FieldErrors{{Field: c.field, Messages: []string{c.message}}}, errs, c.body)
	}
	_, errs := parley.CreateLead(nil)
	require.Len(t, errs, 2)
}

func TestLeadUpdate(t *testing.T) {
	t.Parallel()
	l, errs := parley.CreateLead(input(t, `{"phone_number":"+12025550100","campaign_id":5,"variables":{"a":"1","b":"2"},"secondary_contacts":[{"phone_number":"+12025550101"}]}`))
	require.Empty(t, errs)
	l.Secondary[0].ID, l.Secondary[0].Status, l.NextContact, l.Attempts, l.Status = 8, parley.LeadRescheduled, 1, 1, parley.LeadScheduled
	body := input(t, `{"campaign_id":6,"variables":[{"b":"3"}],"secondary_contacts":[{"phone_number":"+12025550102"},{"phone_number":"+12025550101"}]}`)
	require.NoError(t, l.Update(body))
	require.Contains(t, body, "campaign_id", "the request is not changed")
	require.Equal(t, parley.ID(5), l.CampaignID)
	require.Equal(t, parley.Object{"a": "1", "b": "3"}, l.Variables)
	require.Equal(t, parley.ID(8), l.Secondary[1].ID)
	require.Equal(t, parley.LeadRescheduled, l.Secondary[1].Status)
	require.Equal(t, 3, l.NextContact, "a round with other contacts is over")
	require.Equal(t, parley.Object{"a": "1", "b": "3"}, l.VariablesOf(1))

	require.NoError(t, l.Update(input(t, `{"status":"scheduled"}`)), "a record can be sent back")
	require.EqualError(t, l.Update(input(t, `{"status":"blacklisted"}`)), "Validation failed")
	require.EqualError(t, l.Update(input(t, `{"status":7}`)), "Validation failed")
	require.NoError(t, l.Update(input(t, `{"status":"completed"}`)))
	require.NoError(t, l.Update(input(t, `{"status":"created"}`)))
	require.Zero(t, l.Attempts)
	require.Zero(t, l.NextContact)
	require.Equal(t, parley.LeadCreated, l.Secondary[1].Status)
	l.Status = parley.LeadProcessing
	require.ErrorContains(t, l.Update(input(t, `{"status":"created"}`)), "being called")
	require.Error(t, l.SetByHand(parley.LeadScheduled))
}

func TestALeadThatIsDoneStaysDone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		status := parley.LeadCreated
		for range 20 {
			next := rapid.SampledFrom(parley.LeadStatuses).Draw(r, "next")
			if !status.CanBecome(next) {
				continue
			}
			require.Contains(r, next.Before(), status)
			if status.Final() {
				require.Equal(r, parley.LeadBlacklisted, next, "only an opt-out still counts")
			}
			status = next
		}
	})
	require.Empty(t, parley.LeadCreated.Before(), "only by hand")
	var p parley.Progress
	for _, s := range parley.LeadStatuses {
		p.Add(s, 1)
		require.False(t, s.Final() && s.Waiting())
	}
	require.Equal(t, parley.Progress{Total: 7, Created: 2, Processing: 1, Completed: 1, Rescheduled: 1, ReachedMaxRetries: 1, Blacklisted: 1}, p)
	require.Equal(t, 4, p.Left())
}
