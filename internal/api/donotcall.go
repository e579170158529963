package api

import (
	"context"
	"net/http"
	"strings"

	"parley"
)

func doNotCallRoutes() []Route {
	const group = "Do not call"
	refused := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed,
		example{"phone_number": {"The phone number must be a phone number in E.164 form, such as +12025550100."}}}
	return []Route{
		{Method: "GET", Path: "/user/do-not-call", Group: group, Summary: "List the numbers that are not called", handle: listDoNotCall,
			Detail: "Newest first, up to 1,000 a page as a bare array; `X-Total-Count` says how many there are.", Query: doNotCallQuery.Describe(),
			Answer: bare(arrayOf("DoNotCall")), Errors: []Failure{refused}},
		{Method: "POST", Path: "/user/do-not-call", Group: group, Summary: "List numbers as not to be called", handle: addDoNotCall,
			Detail: "From now on no campaign and no `make_call` of yours calls them. Leads that have one of them, also as a secondary contact, become `blacklisted`.",
			Body:   parley.AddDoNotCallForm.Describe(), Answer: changed(http.StatusOK, "Do-not-call list updated successfully", nil), Errors: []Failure{refused}},
		{Method: "DELETE", Path: "/user/do-not-call", Group: group, Summary: "Take numbers off the list", handle: removeDoNotCall,
			Detail: "In the body, or one as the query's `phone_number`. Blacklisted leads stay so until their status is set. If one of the numbers is not listed, none is removed.",
			Query:  removeQuery.Describe(), Body: parley.RemoveDoNotCallForm.Describe(), Updates: true, Answer: changed(http.StatusOK, "Do-not-call list updated successfully", nil),
			Errors: []Failure{refused, {http.StatusNotFound, "A number is not on the list.", "Phone number not found", nil}}},
	}
}

// doNotCallList is the query of the list.
type doNotCallList struct {
	paging
	Number string
}

// plus gives back the plus sign that a query string turns into a space.
func plus(number string) string {
	if strings.HasPrefix(number, " ") {
		return "+" + strings.TrimLeft(number, " ")
	}
	return number
}

var (
	removeQuery    = parley.Form[doNotCallList]{{Name: "phone_number", At: func(q *doNotCallList) any { return &q.Number }, Effect: "The number in E.164 form."}}
	doNotCallQuery = append(bareFields(func(q *doNotCallList) *paging { return &q.paging }),
		parley.Form[doNotCallList]{{Name: "phone_number", At: func(q *doNotCallList) any { return &q.Number }, Effect: "Only this number."}}...)
)

func listDoNotCall(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(doNotCallQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	all, total, err := rq.tenant.DoNotCallList(ctx, plus(q.Number), q.PerPage, q.offset())
	return counted(parley.DoNotCallForm, all, total, err)
}

func addDoNotCall(ctx context.Context, rq *request) (*reply, error) {
	numbers, reason, err := parley.ReadDoNotCall(parley.AddDoNotCallForm, rq.input)
	if err != nil {
		return nil, err
	}
	return done(http.StatusOK, "Do-not-call list updated successfully", nil), rq.tenant.AddAllDoNotCall(ctx, numbers, reason)
}

func removeDoNotCall(ctx context.Context, rq *request) (*reply, error) {
	if number := rq.URL.Query().Get("phone_number"); number != "" {
		rq.input["phone_number"] = plus(number)
	}
	numbers, _, err := parley.ReadDoNotCall(parley.RemoveDoNotCallForm, rq.input)
	if err != nil {
		return nil, err
	}
	return done(http.StatusOK, "Do-not-call list updated successfully", nil), rq.tenant.RemoveDoNotCall(ctx, numbers...)
}
