package api

import (
	"context"
	"net/http"

	"github.com/nyaruka/phonenumbers"

	"parley"
	"parley/internal/store"
)

func numberRoutes() []Route {
	const group = "Phone numbers"
	body := parley.OwnNumberForm.Describe()
	missing := Failure{http.StatusNotFound, "The phone number is unknown or another user's.", "Phone number not found", nil}
	refused := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed,
		example{"phone_number": {"The phone number must be a phone number in E.164 form, such as +12025550100."}}}
	return []Route{
		{Method: "GET", Path: "/user/phone-numbers/all", Group: group, Summary: "List lines", handle: listNumbers, Answer: bare(arrayOf("OwnPhoneNumber"))},
		{Method: "POST", Path: "/user/phone-numbers", Group: group, Summary: "Add a line", handle: createNumber,
			Body: body, Answer: changed(http.StatusCreated, "Phone number created successfully", ref("OwnPhoneNumber")), Errors: []Failure{refused}},
		{Method: "PUT", Path: "/user/phone-numbers/{id}", Group: group, Summary: "Update a line", handle: updateNumber, Updates: true,
			Body: body, Answer: changed(http.StatusOK, "Phone number updated successfully", ref("OwnPhoneNumber")), Errors: []Failure{missing, refused}},
		{Method: "DELETE", Path: "/user/phone-numbers/{id}", Group: group, Summary: "Delete a line", handle: deleteNumber,
			Answer: changed(http.StatusOK, "Phone number deleted successfully", nil), Errors: []Failure{missing,
				{http.StatusUnprocessableEntity, "An assistant uses it.", "The phone number is assigned to an assistant. Unassign it first.", nil}}},
	}
}

func listNumbers(ctx context.Context, rq *request) (*reply, error) {
	all, err := rq.tenant.PhoneNumbers(ctx)
	return ok(records(parley.OwnNumberForm, all, err))
}

func createNumber(ctx context.Context, rq *request) (*reply, error) {
	number, errs := parley.CreatePhoneNumber(rq.input)
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		if err := settleNumber(ctx, t, number, &errs); err != nil {
			return err
		}
		return t.CreatePhoneNumber(ctx, number)
	})
	if err != nil {
		return nil, err
	}
	data, err := record(parley.OwnNumberForm, number)
	return done(http.StatusCreated, "Phone number created successfully", data), err
}

func updateNumber(ctx context.Context, rq *request) (*reply, error) {
	var data []byte
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		number, err := t.PhoneNumber(ctx, rq.id())
		if err != nil {
			return err
		}
		rings := number.Type != parley.CallerIDNumber && !number.Available
		errs := number.Update(rq.input)
		if rings && number.Type == parley.CallerIDNumber {
			errs.Add("type_label", "The type label cannot become Caller ID while an inbound assistant answers the number.")
		}
		if err := settleNumber(ctx, t, number, &errs); err != nil {
			return err
		}
		if err := t.SavePhoneNumber(ctx, number); err != nil {
			return err
		}
		if number, err = t.PhoneNumber(ctx, number.ID); err != nil {
			return err
		}
		data, err = record(parley.OwnNumberForm, number)
		return err
	})
	return done(http.StatusOK, "Phone number updated successfully", data), err
}

// settleNumber finds the trunk and, where it was not sent, the country.
func settleNumber(ctx context.Context, t *store.Tenant, number *parley.PhoneNumber, errs *parley.FieldErrors) error {
	if number.TrunkID != nil && !errs.Has("sip_trunk_id") {
		_, err := t.Trunk(ctx, *number.TrunkID)
		if parley.ErrorCode(err) == parley.NotFound {
			errs.Add("sip_trunk_id", parley.Selected("sip_trunk_id", nil))
		} else if err != nil {
			return err
		}
	}
	if number.CountryCode == "" && !errs.Has("country_code") && !errs.Has("phone_number") {
		if number.CountryCode = countryOf(number.Number); number.CountryCode == "" {
			errs.Add("country_code", "The country code field is required: the number's prefix belongs to no single country.")
		}
	}
	if len(*errs) > 0 {
		return &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: *errs}
	}
	return nil
}

// countryOf is the country a number belongs to, or "".
func countryOf(number string) string {
	parsed, err := phonenumbers.Parse(number, "")
	if err != nil {
		return ""
	}
	country := phonenumbers.GetRegionCodeForNumber(parsed)
	if len(country) != 2 || country == "ZZ" {
		// Numbers kept for fiction are in no plan: the prefix decides.
		country = phonenumbers.GetRegionCodeForCountryCode(int(parsed.GetCountryCode()))
	}
	if len(country) != 2 || country == "ZZ" {
		return ""
	}
	return country
}

func deleteNumber(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "Phone number deleted successfully", nil), rq.tenant.DeletePhoneNumber(ctx, rq.id())
}
