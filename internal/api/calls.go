package api

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"parley"
	"parley/internal/store"
)

func callRoutes() []Route {
	const group = "Calls"
	missing := Failure{http.StatusNotFound, "The call is unknown or another user's.", "Call not found", nil}
	return []Route{
		{Method: "POST", Path: "/user/make_call", Group: group, Summary: "Make a call", handle: makeCall, Body: parley.CallRequestForm.Describe(), Answer: callMade,
			Detail: "Accepts the call and has it placed at once. An `Idempotency-Key` header makes a repetition safe: within 24 hours the same key and body get the first answer again, with `Idempotent-Replayed: true`, and nobody is called twice.",
			Errors: []Failure{
				{http.StatusUnprocessableEntity, "A field breaks its rule, the assistant is inactive, or there is no line to call with.", parley.DataInvalid,
					example{"phone_number": {"The phone number must be a phone number in E.164 form, such as +12025550100."}}},
				{http.StatusNotFound, "The assistant is unknown or another user's.", "Assistant not found", nil},
				{http.StatusPaymentRequired, "A limit of the account's day is reached.", "The account's spend limit of 100 a day is reached. It begins anew at midnight UTC.", nil},
				{http.StatusForbidden, "Policy forbids to call the number.", parley.ErrDoNotCall().Message, nil},
				{http.StatusConflict, "The Idempotency-Key was used for another request.", "The Idempotency-Key was used for another request within the last 24 hours. Send a new one.", nil},
			}},
		{Method: "GET", Path: "/user/calls", Group: group, Summary: "List calls", handle: listCalls, Query: callQuery.Describe(),
			Detail: "Newest first.", Answer: bare(pageOf("Call")),
			Errors: []Failure{{http.StatusUnprocessableEntity, "A filter has a bad value.", parley.ValidationFailed, example{"date_from": {"The date from must be a date such as 2026-01-31."}}}}},
		{Method: "GET", Path: "/user/calls/{id}", Group: group, Summary: "Get a call", handle: getCall, Answer: bare(ref("Call")), Errors: []Failure{missing}},
		{Method: "DELETE", Path: "/user/calls/{id}", Group: group, Summary: "Delete a call", handle: deleteCall,
			Detail: "With its recording and its deliveries.", Answer: changed(http.StatusOK, "Call deleted successfully", nil),
			Errors: []Failure{missing, {http.StatusUnprocessableEntity, "The call has not ended.", "The call has not ended yet. Hang it up first, and delete it when it is completed.", nil}}},
		{Method: "POST", Path: "/user/calls/{id}/hangup", Group: group, Summary: "Hang up", handle: hangUp,
			Detail: "Ends a call that is under way, or keeps one that waits from being placed.", Answer: changed(http.StatusOK, hangupMessage, ref("Call")),
			Errors: []Failure{missing, {http.StatusUnprocessableEntity, "The call has ended.", "The call has ended already.", nil}}},
		{Method: "GET", Path: "/user/calls/{id}/events", Group: group, Summary: "Follow a call", handle: followCall,
			Detail: "Server-sent events as they happen: `status`, `transcript` (a turn each), `tool`, `sip`, `webhook` and `note`. What has happened already comes first; the stream ends with the call. `Last-Event-ID` goes on after an event.",
			Answer: Answer{Status: http.StatusOK, Stream: true}, Errors: []Failure{missing}},
	}
}

const (
	callMessage   = "Call initiated successfully"
	hangupMessage = "Call is being hung up"
)

var callMade = func() Answer {
	data := recordSchema(parley.CallForm.Describe())
	properties, _ := data["properties"].(object)
	required, _ := data["required"].([]string)
	properties["call_id"] = object{"type": "integer"}
	data["required"] = append(required, "call_id")
	return Answer{Status: http.StatusOK, Message: callMessage, Schema: closed(object{
		"message": object{"type": "string", "const": callMessage}, "data": data, "call_id": object{"type": "integer"}, "status": object{"type": "string", "const": string(parley.CallInitiated)},
	})}
}()

var idempotencyKey = regexp.MustCompile(`^[!-~]{1,255}$`)

// makeCall accepts a call and has it placed. Everything that speaks against it is asked
// in the transaction that makes the row, and again in the one that dials.
func makeCall(ctx context.Context, rq *request) (*reply, error) {
	wanted, err := parley.ReadCallRequest(rq.input)
	if err != nil {
		return nil, err
	}
	key := rq.Header.Get("Idempotency-Key")
	if key != "" && !idempotencyKey.MatchString(key) {
		var errs parley.FieldErrors
		errs.Add("Idempotency-Key", "The Idempotency-Key must be 1 to 255 printable characters without spaces.")
		return nil, &parley.Error{Code: parley.Invalid, Message: parley.DataInvalid, Fields: errs}
	}
	var answer string
	replayed := false
	err = rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		if key != "" {
			if answer, err = t.Remembered(ctx, key, encode(rq.input)); err != nil || answer != "" {
				replayed = err == nil
				return err
			}
		}
		call, err := rq.server.planCall(ctx, t, wanted)
		if err != nil {
			return err
		}
		if err := t.CreateCall(ctx, call, ""); err != nil {
			return err
		}
		if err := rq.server.config.Queue.Dial(ctx, t.System(), call.ID); err != nil {
			return err
		}
		if answer, err = callAnswer(call); err != nil || key == "" {
			return err
		}
		return t.Remember(ctx, key, answer)
	})
	if err != nil {
		return nil, err
	}
	made := &reply{status: http.StatusOK, body: []byte(answer), header: http.Header{}}
	if replayed {
		made.header.Set("Idempotent-Replayed", "true")
	}
	return made, nil
}

// planCall is the call that a request asks for, or why it must not be made.
func (s *Server) planCall(ctx context.Context, t *store.Tenant, wanted parley.CallRequest) (*parley.Call, error) {
	a, line, err := t.Caller(ctx, wanted.AssistantID)
	if err != nil {
		return nil, err
	}
	if a.Status != parley.Active {
		var errs parley.FieldErrors
		errs.Add("assistant_id", "The selected assistant is inactive. Set its status to active first.")
		return nil, &parley.Error{Code: parley.Invalid, Message: parley.DataInvalid, Fields: errs}
	}
	if err := s.config.Policy.Check(wanted.PhoneNumber); err != nil {
		return nil, err
	}
	listed, err := t.DoNotCall(ctx, wanted.PhoneNumber)
	if err != nil {
		return nil, err
	}
	if listed[wanted.PhoneNumber] {
		return nil, parley.ErrDoNotCall()
	}
	load, err := t.Load(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	if err := s.config.Calls.Admit(load); err != nil {
		return nil, err
	}
	call := &parley.Call{
		AssistantID: a.ID, AssistantName: a.Name, Type: parley.Outbound, Status: parley.CallInitiated,
		CustomerNumber: wanted.PhoneNumber, Variables: wanted.Variables,
	}
	var trunk *parley.ID
	if line != nil {
		call.AssistantNumber, trunk = line.Number, line.TrunkID
	}
	others, err := t.HasTrunk(ctx)
	if err != nil {
		return nil, err
	}
	call.Carrier, call.TrunkID, err = s.config.Carriers.Route(wanted.PhoneNumber, trunk, others)
	return call, err
}

// callAnswer is what make_call answers: some clients look for the id and the status at
// the top, others in data.
func callAnswer(call *parley.Call) (string, error) {
	data, err := record(parley.CallForm, call)
	if err != nil {
		return "", err
	}
	id := strconv.FormatInt(call.ID, 10)
	return `{"message":"` + callMessage + `","data":{"call_id":` + id + `,` + string(data[1:]) + `,"call_id":` + id + `,"status":"` + string(call.Status) + `"}`, nil
}

// callList is the query of a list of calls.
type callList struct {
	paging
	store.CallFilter
	days
}

var callQuery = append(parley.Form[callList]{
	{Name: "status", At: func(q *callList) any { return &q.Status }, Rule: parley.Rule{In: words(parley.CallStatuses)}, Effect: "Only those of this status."},
	{Name: "type", At: func(q *callList) any { return &q.Type }, Rule: parley.Rule{In: []string{"inbound", "outbound", "web"}}, Effect: "Only those of this type."},
	{Name: "phone_number", At: func(q *callList) any { return &q.PhoneNumber }, Rule: parley.Rule{Check: parley.E164}, Effect: "Only those with this client."},
	{Name: "assistant_id", At: func(q *callList) any { return &q.AssistantID }, Effect: "Only those of this assistant."},
	{Name: "campaign_id", At: func(q *callList) any { return &q.CampaignID }, Effect: "Only those of this campaign."},
	{Name: "date_from", At: func(q *callList) any { return &q.days.From }, Rule: parley.Rule{Check: date}, Effect: "Created on this day or later (YYYY-MM-DD, UTC)."},
	{Name: "date_to", At: func(q *callList) any { return &q.days.To }, Rule: parley.Rule{Check: date}, Effect: "Created on this day or earlier."},
}, pagingFields(func(q *callList) *paging { return &q.paging }, 15)...)

func listCalls(ctx context.Context, rq *request) (*reply, error) {
	values := rq.URL.Query()
	values.Set("phone_number", plus(values.Get("phone_number")))
	q, err := readQuery(callQuery, values)
	if err != nil {
		return nil, err
	}
	if q.CallFilter.From, q.CallFilter.To, err = q.span(); err != nil {
		return nil, err
	}
	q.Limit, q.Offset = q.PerPage, q.offset()
	calls, total, err := rq.tenant.Calls(ctx, q.CallFilter)
	for i := range calls {
		rq.linkRecording(&calls[i])
	}
	items, err := records(parley.CallForm, calls, err)
	if err != nil {
		return nil, err
	}
	return ok(rq.server.paginate(rq.Request, q.paging, items, len(calls), total), nil)
}

func getCall(ctx context.Context, rq *request) (*reply, error) {
	call, err := rq.tenant.Call(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	rq.linkRecording(call)
	return ok(record(parley.CallForm, call))
}

func deleteCall(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "Call deleted successfully", nil), rq.tenant.DeleteCall(ctx, rq.id(), rq.server.config.Recordings)
}

func hangUp(ctx context.Context, rq *request) (*reply, error) {
	call, err := rq.tenant.RequestHangup(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	rq.linkRecording(call)
	data, err := record(parley.CallForm, call)
	return done(http.StatusOK, hangupMessage, data), err
}
