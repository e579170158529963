package api

import (
	"context"
	"net/http"
	"regexp"

	"parley"
	"parley/internal/store"
)

func leadRoutes() []Route {
	const group = "Leads"
	body := parley.LeadForm.Describe()
	missing := Failure{http.StatusNotFound, "The lead is unknown or another user's.", "Lead not found", nil}
	refused := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed,
		example{"phone_number": {parley.DuplicateLead}}}
	update := Route{Method: "PUT", Path: "/user/leads/{id}", Group: group, Summary: "Update a lead", handle: updateLead, Updates: true,
		Detail: "Only supplied fields change. `variables` are merged, `secondary_contacts` replaced. `status` can be set to created (back in the queue, from the beginning), completed or reached-max-retries.",
		Body:   body, Answer: changed(http.StatusOK, "Lead updated successfully", ref("Lead")), Errors: []Failure{missing, refused,
			{http.StatusUnprocessableEntity, "The status cannot be set now.", suppressedLead, nil}}}
	return []Route{
		{Method: "POST", Path: "/user/lead", Group: group, Summary: "Create a lead", handle: createLead,
			Detail: "A number on the do-not-call list makes the lead `blacklisted`.", Body: body,
			Answer: changed(http.StatusOK, "Lead created successfully", ref("Lead")), Errors: []Failure{refused}},
		{Method: "GET", Path: "/user/leads", Group: group, Summary: "List leads", handle: listLeads, Query: leadQuery.Describe(),
			Detail: "Newest first, up to 1,000 a page as a bare array; `X-Total-Count` says how many there are.", Answer: bare(arrayOf("Lead")),
			Errors: []Failure{{http.StatusUnprocessableEntity, "A query value breaks its rule.", parley.ValidationFailed, example{"date_from": {"The date from must be a date such as 2026-01-31."}}}}},
		{Method: "GET", Path: "/user/leads/{id}", Group: group, Summary: "Get a lead", handle: getLead, Answer: bare(ref("Lead")), Errors: []Failure{missing}},
		update, alias(update, "/leads/{id}"),
		{Method: "DELETE", Path: "/user/leads/{id}", Group: group, Summary: "Delete a lead", handle: deleteLead,
			Detail: "A call to it that is up goes on.", Answer: changed(http.StatusOK, "Lead deleted successfully", nil), Errors: []Failure{missing}},
	}
}

func createLead(ctx context.Context, rq *request) (*reply, error) {
	l, errs := parley.CreateLead(rq.input)
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		if !errs.Has("campaign_id") {
			campaign, err := t.CampaignToUse(ctx, l.CampaignID)
			switch {
			case parley.ErrorCode(err) == parley.NotFound:
				errs.Add("campaign_id", parley.Selected("campaign_id", nil))
			case err != nil:
				return err
			default:
				l.CampaignName = campaign.Name
			}
		}
		if len(errs) > 0 {
			return &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: errs}
		}
		return t.CreateLead(ctx, l)
	})
	if err != nil {
		return nil, err
	}
	data, err := record(parley.LeadForm, l)
	return done(http.StatusOK, "Lead created successfully", data), err
}

// leadList is the query of the list of leads.
type leadList struct {
	paging
	store.LeadFilter
	days
}

var leadQuery = append(bareFields(func(q *leadList) *paging { return &q.paging }), parley.Form[leadList]{
	{Name: "campaign_id", At: func(q *leadList) any { return &q.CampaignID }, Effect: "Only those of this campaign."},
	{Name: "status", At: func(q *leadList) any { return &q.Status }, Rule: parley.Rule{In: words(parley.LeadStatuses)}, Effect: "Only those of this status."},
	{Name: "phone_number", At: func(q *leadList) any { return &q.PhoneNumber }, Rule: parley.Rule{Match: regexp.MustCompile(`^[+ ]?[0-9]{0,15}$`), MatchText: "The phone number must be a part of a phone number, such as +1202 or 0100."},
		Effect: "Only those whose number contains this; with a plus, those whose number begins so."},
	{Name: "date_from", At: func(q *leadList) any { return &q.days.From }, Rule: parley.Rule{Check: date}, Effect: "Only those created on this day (UTC) or later: YYYY-MM-DD.", Example: "2026-01-01"},
	{Name: "date_to", At: func(q *leadList) any { return &q.days.To }, Rule: parley.Rule{Check: date}, Effect: "Only those created on this day (UTC) or before: YYYY-MM-DD.", Example: "2026-01-31"},
}...)

func listLeads(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(leadQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	filter := q.LeadFilter
	filter.PhoneNumber = plus(filter.PhoneNumber)
	if filter.From, filter.To, err = q.span(); err != nil {
		return nil, err
	}
	all, total, err := rq.tenant.Leads(ctx, filter, q.PerPage, q.offset())
	return counted(parley.LeadForm, all, total, err)
}

func getLead(ctx context.Context, rq *request) (*reply, error) {
	l, err := rq.tenant.Lead(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	return ok(record(parley.LeadForm, l))
}

const suppressedLead = "The lead has a number on the do-not-call list. Take it off the list first."

func updateLead(ctx context.Context, rq *request) (*reply, error) {
	var data []byte
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		l, err := t.Lead(ctx, rq.id())
		if err != nil {
			return err
		}
		was := l.Status
		if err := l.Update(rq.input); err != nil {
			return err
		}
		wanted := l.Status
		if err := t.SaveLead(ctx, l); err != nil {
			return err
		}
		if wanted != was && l.Status != wanted {
			return &parley.Error{Code: parley.Conflict, Message: suppressedLead}
		}
		data, err = record(parley.LeadForm, l)
		return err
	})
	return done(http.StatusOK, "Lead updated successfully", data), err
}

func deleteLead(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "Lead deleted successfully", nil), rq.tenant.DeleteLead(ctx, rq.id())
}
