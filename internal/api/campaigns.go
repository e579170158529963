package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/internal/store"
)

func campaignRoutes() []Route {
	const group = "Campaigns"
	body := parley.CampaignForm.Describe()
	missing := Failure{http.StatusNotFound, "The campaign is unknown or another user's.", "Campaign not found", nil}
	refused := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed,
		example{"max_calls_in_parallel": {"The max calls in parallel must be between 1 and 100."}}}
	create := Route{Method: "POST", Path: "/user/campaigns", Group: group, Summary: "Create a campaign", handle: createCampaign,
		Detail: "It calls nobody until it is started.", Body: body, Answer: changed(http.StatusCreated, "Campaign created successfully", ref("Campaign")), Errors: []Failure{refused}}
	remove := Route{Method: "DELETE", Path: "/user/campaigns/{id}", Group: group, Summary: "Delete a campaign", handle: deleteCampaign,
		Detail: "With its leads. Running calls finish; its calls' records stay.", Answer: changed(http.StatusOK, "Campaign deleted successfully", nil), Errors: []Failure{missing}}
	return []Route{
		create, alias(create, "/user/campaign"),
		{Method: "GET", Path: "/user/campaigns", Group: group, Summary: "List campaigns", handle: listCampaigns, Query: campaignQuery.Describe(),
			Detail: "Newest first, up to 1,000 a page as a bare array; `X-Total-Count` says how many there are.", Answer: bare(arrayOf("Campaign")),
			Errors: []Failure{{http.StatusUnprocessableEntity, "A query value breaks its rule.", parley.ValidationFailed, example{"status": {"The selected status is invalid."}}}}},
		{Method: "POST", Path: "/user/campaigns/update-status", Group: group, Summary: "Start or stop a campaign", handle: switchCampaign, flagged: true,
			Detail: "A started campaign calls its leads at the allowed hours. From the instant a stop is answered no new call is placed; running ones finish, or end with `hangup`.",
			Body:   parley.CampaignSwitchForm.Describe(), Answer: campaignSwitched,
			Errors: []Failure{
				{http.StatusNotFound, "The campaign is unknown or another user's.", "Campaign not found.", nil},
				{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.DataInvalid, example{"action": {"The action field is required."}}},
				{http.StatusUnprocessableEntity, "It cannot be started or stopped now.", "The campaign is already running.", nil},
			}},
		{Method: "GET", Path: "/user/campaigns/{id}", Group: group, Summary: "Get a campaign", handle: getCampaign, Answer: bare(ref("Campaign")), Errors: []Failure{missing}},
		{Method: "PUT", Path: "/user/campaigns/{id}", Group: group, Summary: "Update a campaign", handle: updateCampaign, Updates: true,
			Detail: "Only supplied fields change, at once also for a campaign that runs.", Body: body,
			Answer: changed(http.StatusOK, "Campaign updated successfully", ref("Campaign")), Errors: []Failure{missing, refused}},
		remove, alias(remove, "/user/campaign/{id}"),
	}
}

// alias is a route under a second path.
func alias(route Route, path string) Route {
	original := route.Path
	route.Path, route.Summary, route.Detail = path, route.Summary+" (another path)", "The same as `"+original+"`."
	return route
}

func createCampaign(ctx context.Context, rq *request) (*reply, error) {
	c, sent, errs := parley.CreateCampaign(rq.input)
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		assistant, err := lookUpCampaign(ctx, t, c, sent, &errs)
		if err != nil {
			return err
		}
		if !sent["timezone"] {
			c.Timezone = assistant.Timezone
		}
		return t.CreateCampaign(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	data, err := record(parley.CampaignForm, c)
	return done(http.StatusCreated, "Campaign created successfully", data), err
}

// lookUpCampaign finds the assistant and lines that a request names, and refuses what
// is not there for this user. Only what was sent is looked up.
func lookUpCampaign(ctx context.Context, t *store.Tenant, c *parley.Campaign, sent parley.Sent, errs *parley.FieldErrors) (assistant *parley.Assistant, err error) {
	if sent["assistant_id"] && !errs.Has("assistant_id") {
		assistant, err = t.Assistant(ctx, c.AssistantID)
		switch {
		case parley.ErrorCode(err) == parley.NotFound:
			errs.Add("assistant_id", parley.Selected("assistant_id", nil))
		case err != nil:
			return nil, err
		case assistant.Type != parley.Outbound:
			errs.Add("assistant_id", "The selected assistant id is an inbound assistant. A campaign needs an outbound one.")
		}
	}
	if sent["phone_number_ids"] && !errs.Under("phone_number_ids") {
		if err := lookUpLines(ctx, t, c, errs); err != nil {
			return nil, err
		}
	}
	if len(*errs) > 0 {
		return nil, &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: *errs}
	}
	return assistant, nil
}

func lookUpLines(ctx context.Context, t *store.Tenant, c *parley.Campaign, errs *parley.FieldErrors) error {
	distinct := []parley.ID{}
	for i, id := range c.PhoneNumberIDs {
		if slices.Contains(distinct, id) {
			continue
		}
		distinct = append(distinct, id)
		_, err := t.PhoneNumber(ctx, id)
		if parley.ErrorCode(err) == parley.NotFound {
			field := "phone_number_ids." + strconv.Itoa(i)
			errs.Add(field, parley.Selected(field, nil))
		} else if err != nil {
			return err
		}
	}
	c.PhoneNumberIDs = distinct
	return nil
}

// campaignList is the query of the list of campaigns.
type campaignList struct {
	paging
	Status parley.CampaignStatus
}

var campaignQuery = append(bareFields(func(q *campaignList) *paging { return &q.paging }), parley.Form[campaignList]{
	{Name: "status", At: func(q *campaignList) any { return &q.Status }, Rule: parley.Rule{In: words(parley.CampaignStatuses)}, Effect: "Only those of this status."},
}...)

func words[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

func listCampaigns(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(campaignQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	all, total, err := rq.tenant.Campaigns(ctx, q.Status, q.PerPage, q.offset())
	return counted(parley.CampaignForm, all, total, err)
}

func getCampaign(ctx context.Context, rq *request) (*reply, error) {
	c, err := rq.tenant.Campaign(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	return ok(record(parley.CampaignForm, c))
}

func updateCampaign(ctx context.Context, rq *request) (*reply, error) {
	var data []byte
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		c, err := t.Campaign(ctx, rq.id())
		if err != nil {
			return err
		}
		sent, errs := c.Update(rq.input)
		if _, err := lookUpCampaign(ctx, t, c, sent, &errs); err != nil {
			return err
		}
		if err := t.SaveCampaign(ctx, c); err != nil {
			return err
		}
		data, err = record(parley.CampaignForm, c)
		return err
	})
	return done(http.StatusOK, "Campaign updated successfully", data), err
}

func deleteCampaign(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "Campaign deleted successfully", nil), rq.tenant.DeleteCampaign(ctx, rq.id())
}

// switchCampaign starts or stops a campaign. Its refusals say so in a flag of their own.
func switchCampaign(ctx context.Context, rq *request) (*reply, error) {
	c, message, err := rq.switchCampaign(ctx)
	if err != nil {
		return flaggedRefusal(err)
	}
	return &reply{status: http.StatusOK, body: encode(struct {
		Message string `json:"message"`
		Success bool   `json:"success"`
		Data    any    `json:"data"`
	}{message, true, struct {
		CampaignID parley.ID             `json:"campaign_id"`
		Status     parley.CampaignStatus `json:"status"`
	}{c.ID, c.Status}})}, nil
}

func (rq *request) switchCampaign(ctx context.Context) (c *parley.Campaign, message string, err error) {
	wanted, err := parley.ReadCampaignSwitch(rq.input)
	if err != nil {
		return nil, "", err
	}
	err = rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		if c, err = t.Campaign(ctx, wanted.CampaignID); err != nil {
			return err
		}
		if wanted.Starts() {
			message, err = parley.CampaignStarted, rq.start(ctx, t, c)
		} else {
			message, err = parley.CampaignHasStopped, rq.stop(ctx, t, c, wanted.HangUp)
		}
		if err != nil {
			return err
		}
		return t.SetCampaignStatus(ctx, c)
	})
	if err == nil && !wanted.Starts() {
		err = awaitDialled(ctx, rq.tenant, c.ID)
	}
	return c, message, err
}

// awaitDialled waits until the calls that were being dialled when a campaign was stopped
// have left: no INVITE leaves once the stop has been answered.
func awaitDialled(ctx context.Context, t *store.Tenant, campaign parley.ID) error {
	for {
		leaving, err := t.Leaving(ctx, campaign)
		if err != nil || leaving == 0 {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// start puts a campaign in progress, if it has all it needs.
func (rq *request) start(ctx context.Context, t *store.Tenant, c *parley.Campaign) error {
	ready := parley.Readiness{Line: true, Lead: c.Progress.Left() > 0}
	assistant, err := t.Assistant(ctx, c.AssistantID)
	switch {
	case parley.ErrorCode(err) == parley.NotFound:
	case err != nil:
		return err
	default:
		ready.Assistant = assistant.Type == parley.Outbound && assistant.Status == parley.Active
		if canDial := rq.server.config.CanDial; canDial != nil {
			if ready.Line, err = canDial(ctx, t, c, assistant); err != nil {
				return err
			}
		}
	}
	return c.Start(ready)
}

func (rq *request) stop(ctx context.Context, t *store.Tenant, c *parley.Campaign, hangUp bool) error {
	if err := c.Stop(); err != nil {
		return err
	}
	if hangUp && rq.server.config.HangUp != nil {
		return rq.server.config.HangUp(ctx, t, c.ID)
	}
	return nil
}

// flaggedRefusal answers an error of the user's with success: false.
func flaggedRefusal(err error) (*reply, error) {
	status, _, ours := problem(err)
	if !ours {
		return nil, err
	}
	e, _ := errors.AsType[*parley.Error](err)
	body := struct {
		Message string             `json:"message"`
		Errors  parley.FieldErrors `json:"errors,omitempty"`
		Success bool               `json:"success"`
	}{e.Message, e.Fields, false}
	if e.Code == parley.NotFound {
		body.Message += "."
	}
	return &reply{status: status, body: encode(body)}, nil
}
