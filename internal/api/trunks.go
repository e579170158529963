package api

import (
	"context"
	"net/http"

	"parley"
	"parley/internal/store"
)

func trunkRoutes() []Route {
	const group = "SIP trunks"
	body := parley.TrunkForm.Describe()
	missing := Failure{http.StatusNotFound, "The trunk is unknown or another user's.", "SIP trunk not found", nil}
	refused := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed,
		example{"sip_address": {"The sip address must be a host or host:port, such as sip.example.com:5060."}}}
	return []Route{
		{Method: "GET", Path: "/user/phone-numbers/sip-trunks", Group: group, Summary: "List SIP trunks", handle: listTrunks, Answer: bare(arrayOf("SIPTrunk"))},
		{Method: "POST", Path: "/user/phone-numbers/sip-trunks", Group: group, Summary: "Add a SIP trunk", handle: createTrunk,
			Body: body, Answer: changed(http.StatusCreated, "SIP trunk created successfully", ref("SIPTrunk")), Errors: []Failure{refused}},
		{Method: "GET", Path: "/user/phone-numbers/sip-trunks/{id}", Group: group, Summary: "Get a SIP trunk", handle: getTrunk,
			Answer: bare(ref("SIPTrunk")), Errors: []Failure{missing}},
		{Method: "PUT", Path: "/user/phone-numbers/sip-trunks/{id}", Group: group, Summary: "Update a SIP trunk", handle: updateTrunk, Updates: true,
			Body: body, Answer: changed(http.StatusOK, "SIP trunk updated successfully", ref("SIPTrunk")), Errors: []Failure{missing, refused}},
		{Method: "DELETE", Path: "/user/phone-numbers/sip-trunks/{id}", Group: group, Summary: "Delete a SIP trunk", handle: deleteTrunk,
			Answer: changed(http.StatusOK, "SIP trunk deleted successfully", nil), Errors: []Failure{missing,
				{http.StatusUnprocessableEntity, "It carries lines.", "The SIP trunk carries phone numbers. Move or delete them first.", nil}}},
	}
}

func listTrunks(ctx context.Context, rq *request) (*reply, error) {
	all, err := rq.tenant.Trunks(ctx)
	return ok(records(parley.TrunkForm, all, err))
}

func createTrunk(ctx context.Context, rq *request) (*reply, error) {
	trunk, err := parley.CreateTrunk(rq.input)
	if err != nil {
		return nil, err
	}
	if err := rq.tenant.CreateTrunk(ctx, trunk); err != nil {
		return nil, err
	}
	data, err := record(parley.TrunkForm, trunk)
	return done(http.StatusCreated, "SIP trunk created successfully", data), err
}

func getTrunk(ctx context.Context, rq *request) (*reply, error) {
	trunk, err := rq.tenant.Trunk(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	return ok(record(parley.TrunkForm, trunk))
}

func updateTrunk(ctx context.Context, rq *request) (*reply, error) {
	var data []byte
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		trunk, err := t.Trunk(ctx, rq.id())
		if err != nil {
			return err
		}
		if err := trunk.Update(rq.input); err != nil {
			return err
		}
		if err := t.SaveTrunk(ctx, trunk); err != nil {
			return err
		}
		data, err = record(parley.TrunkForm, trunk)
		return err
	})
	return done(http.StatusOK, "SIP trunk updated successfully", data), err
}

func deleteTrunk(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "SIP trunk deleted successfully", nil), rq.tenant.DeleteTrunk(ctx, rq.id())
}
