package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPromiseA5DoNotCallContract(t *testing.T) {
	each(t, func(s *service) {
		const updated = `{"message":"Do-not-call list updated successfully"}`
		invalid := func(errors string) string { return `{"message":"Validation failed","errors":{` + errors + `}}` }
		s.play([]step{
			{"GET", "/user/do-not-call", "", 200, "[]", nil, nil},
			{"POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`, 200, updated, nil, nil},
			{"POST", "/user/do-not-call", `{"phone_number":"+12025550108","reason":"again"}`, 200, updated, nil, nil},
			{"POST", "/user/do-not-call", `{"phone_numbers":["+12025550101","+12025550102"],"phone_number":"+12025550103","reason":"asked by mail"}`, 200, updated, nil, nil},
			{"GET", "/user/do-not-call?phone_number=%2B12025550108", "", 200, "", []string{`[{"id":1,"phone_number":"+12025550108","reason":"api","created_at":"20`}, []string{`"id":2`}},
			{"GET", "/user/do-not-call?phone_number=+12025550101", "", 200, "", []string{`"reason":"asked by mail"`}, nil},
			{"GET", "/user/do-not-call?per_page=2&page=2", "", 200, "", []string{"+12025550108"}, []string{"+12025550103"}},
			{"GET", "/user/do-not-call?per_page=1001", "", 422, invalid(`"per_page":["The per page must be between 1 and 1000."]`), nil, nil},
			{"POST", "/user/do-not-call", `{}`, 422, invalid(`"phone_number":["The phone number field is required."]`), nil, nil},
			{"POST", "/user/do-not-call", `{"phone_numbers":[]}`, 422, invalid(`"phone_number":["The phone number field is required."]`), nil, nil},
			{"POST", "/user/do-not-call", `{"phone_number":"0123"}`, 422, "", []string{`"phone_number":["The phone number must be a phone number in E.164 form`}, nil},
			{"POST", "/user/do-not-call", `{"phone_numbers":["+12025550105","x"]}`, 422, "", []string{`"phone_numbers.1":["The phone numbers.1 must be a phone number in E.164 form`}, nil},
			{"POST", "/user/do-not-call", `{"phone_numbers":"+12025550105"}`, 422, "", []string{`"phone_numbers":["The phone numbers must be an array."]`}, nil},
			{"DELETE", "/user/do-not-call", `{"phone_number":"+12025550109"}`, 404, `{"message":"Phone number not found"}`, nil, nil},
			{"DELETE", "/user/do-not-call", `{"phone_numbers":["+12025550101","+12025550109"]}`, 404, `{"message":"Phone number not found"}`, nil, nil},
			{"DELETE", "/user/do-not-call", `{"phone_numbers":["+12025550101","+12025550102"]}`, 200, updated, nil, nil},
			{"DELETE", "/user/do-not-call?phone_number=%2B12025550103", "", 200, updated, nil, nil},
			{"DELETE", "/user/do-not-call?phone_number=+12025550108", "", 200, updated, nil, nil},
			{"DELETE", "/user/do-not-call", "", 422, invalid(`"phone_number":["The phone number field is required."]`), nil, nil},
			{"GET", "/user/do-not-call", "", 200, "[]", nil, nil},
		})
		s.want(200, "POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`)
		require.Equal(s.t, "1", s.want(200, "GET", "/user/do-not-call", "").header.Get("X-Total-Count"))
		other := s.as("other@example.com")
		require.Equal(s.t, "[]", other.want(200, "GET", "/user/do-not-call", "").body)
		other.want(404, "DELETE", "/user/do-not-call", `{"phone_number":"+12025550108"}`)
	})
}
