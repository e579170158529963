package api

import (
	"context"
	"net/http"

	"parley"
)

func accountRoutes() []Route {
	const group = "Account"
	return []Route{
		{Method: "GET", Path: "/user/me", Group: group, Summary: "Who am I", handle: getMe, Answer: bare(ref("User"))},
		{Method: "GET", Path: "/user/api-keys", Group: group, Summary: "List API keys", handle: listTokens,
			Detail: "The keys that work now, without their secrets.", Answer: bare(arrayOf("APIKey"))},
		{Method: "POST", Path: "/user/api-keys", Group: group, Summary: "Create an API key", handle: createToken,
			Detail: "The token is shown in this answer and never again.", Body: parley.TokenForm.Describe(), Answer: newAPIKey,
			Errors: []Failure{{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed, example{"name": {"The name field is required."}}}}},
		{Method: "DELETE", Path: "/user/api-keys/{id}", Group: group, Summary: "Revoke an API key", handle: revokeToken,
			Detail: "The next request with it is refused.", Answer: changed(http.StatusOK, "API key deleted successfully", nil),
			Errors: []Failure{{http.StatusNotFound, "The key is unknown or another user's.", "API key not found", nil}}},
	}
}

func getMe(_ context.Context, rq *request) (*reply, error) {
	u, calls := rq.user, rq.server.config.Calls
	var spend *float64
	if amount := calls.SpendPerDay.Float(); amount > 0 {
		spend = &amount
	}
	return ok(encode(struct {
		ID           parley.ID      `json:"id"`
		Name         string         `json:"name"`
		Email        string         `json:"email"`
		Plan         string         `json:"plan"`
		TotalBalance float64        `json:"total_balance"`
		Limits       map[string]any `json:"limits"`
	}{u.ID, u.Name, u.Email, u.Plan, 0, map[string]any{
		"tools": limitOrNull(u.Limits().Tools), "requests_per_second": limitOrNull(rq.server.config.RatePerToken),
		"parallel_calls": limitOrNull(calls.Parallel), "calls_per_second": limitOrNull(calls.PerSecond),
		"minutes_per_day": limitOrNull(calls.MinutesPerDay), "spend_per_day": spend,
	}}), nil)
}

func limitOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func listTokens(ctx context.Context, rq *request) (*reply, error) {
	all, err := rq.tenant.Tokens(ctx)
	return ok(records(parley.TokenForm, all, err))
}

func createToken(ctx context.Context, rq *request) (*reply, error) {
	token, err := parley.CreateToken(rq.input)
	if err != nil {
		return nil, err
	}
	text, err := rq.tenant.CreateToken(ctx, token)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusCreated, body: encode(map[string]any{
		"message": "API key created successfully",
		"api_key": map[string]any{"id": token.ID, "name": token.Name, "token": text, "created_at": parley.Timestamp(token.CreatedAt)},
	})}, nil
}

func revokeToken(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "API key deleted successfully", nil), rq.tenant.RevokeToken(ctx, rq.id())
}
