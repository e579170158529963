package parley_test

import (
	"encoding/json"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

func TestPlacement(t *testing.T) {
	t.Parallel()
	tool := parley.Tool{Schema: []parley.Param{{Name: "order", Type: "string"}, {Name: "count", Type: "number"}, {Name: "when", Type: "string"}}}
	arguments := map[string]any{"order": "a/b c", "count": 2.5, "when": "x&y=z"}
	values := map[string]string{"id": "7/8", "host": "eu.example.com", "braces": "{order}", "tier": "{{id}}"}
	for _, c := range []struct{ method, endpoint, url, shown, body string }{
		{"GET", "https://x.example", "https://x.example?order=a%2Fb+c&count=2.5&when=x%26y%3Dz", "", ""},
		{"DELETE", "https://x.example/{order}", "https://x.example/a%2Fb%20c?count=2.5&when=x%26y%3Dz", "", ""},
		{"GET", "https://x.example/?w={when}&n={ count }&{order}", "https://x.example/?w=x%26y%3Dz&n=2.5&a%2Fb+c", "", ""},
		{"GET", "https://x.example/{order}/{order}?count={count}&when={when}#frag{when}", "https://x.example/a%2Fb%20c/a%2Fb%20c?count=2.5&when=x%26y%3Dz", "", ""},
		{"POST", "https://x.example/{order}?key=s3cret&flag", "https://x.example/a%2Fb%20c?key=s3cret&flag", "https://x.example/a%2Fb%20c?key=***&flag", `{"count":2.5,"when":"x\u0026y=z"}`},
		{"PUT", "https://me:pw@{{host}}:8443/{{id}}/{{ braces }}", "https://me:pw@eu.example.com:8443/7%2F8/%7Border%7D", "https://eu.example.com:8443/7%2F8/%7Border%7D", `{"count":2.5,"order":"a/b c","when":"x\u0026y=z"}`},
		{"PATCH", "https://x.example/{unknown}?a={{missing}}&b={{tier}}x{order}", "https://x.example/{unknown}?a=&b=%7B%7Bid%7D%7Dxa%2Fb+c", "https://x.example/{unknown}?a=***&b=***", `{"count":2.5,"when":"x\u0026y=z"}`},
	} {
		tool.Method, tool.Endpoint = c.method, c.endpoint
		got, failure := tool.Place(arguments, values)
		require.Nil(t, failure, c.endpoint)
		require.Equal(t, c.url, got.URL)
		if c.shown == "" {
			c.shown = c.url
		}
		require.Equal(t, c.shown, got.Shown)
		require.Equal(t, c.body, string(got.Body))
	}
}

// Whatever is said on the telephone, the host, the depth of the path and the other
// parameters stay what the tool's owner wrote.
func TestNoValueChangesAnAddressesMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value, variable := rapid.String().Draw(t, "value"), rapid.String().Draw(t, "variable")
		tool := parley.Tool{Method: "GET", Endpoint: "https://x.example/a/{said}/{{known}}/b?q={said}&v={{known}}&z=1", Schema: []parley.Param{{Name: "said", Type: "string"}, {Name: "more", Type: "string"}},
			Headers: []parley.Header{{Name: "X-Known", Value: "{{known}}"}}}
		placed, failure := tool.Place(map[string]any{"said": value, "more": value}, map[string]string{"known": variable})
		if failure != nil {
			require.Contains(t, []string{"", ".", ".."}, map[bool]string{true: value, false: variable}[strings.Contains(failure.Message, "said")])
			return
		}
		u, err := url.Parse(placed.URL)
		require.NoError(t, err)
		require.Equal(t, "x.example", u.Host)
		segments := strings.Split(u.EscapedPath(), "/")
		require.Len(t, segments, 5)
		require.Equal(t, "b", segments[4])
		query, err := url.ParseQuery(u.RawQuery)
		require.NoError(t, err)
		require.Equal(t, url.Values{"q": {value}, "v": {variable}, "z": {"1"}, "more": {value}}, query)
		require.NotContains(t, placed.Headers[0].Value, "\n")
		require.NotContains(t, placed.Headers[0].Value, "\r")
	})
}

func TestArgumentsAreTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   string
		v      any
		typed  any
		usable bool
	}{
		{"string", "x", "x", true}, {"string", 3.5, "3.5", true}, {"string", true, "true", true}, {"string", nil, nil, false},
		{"string", map[string]any{"a": 1.0}, `{"a":1}`, true}, {"string", []any{"a"}, `["a"]`, true}, {"string", json.Number("12345678901234567890"), "12345678901234567890", true},
		{"number", " 3 ", 3.0, true}, {"number", 3, 3.0, true}, {"number", json.Number("1e3"), 1000.0, true}, {"number", "three", nil, false}, {"number", true, nil, false},
		{"number", "NaN", nil, false}, {"number", "Inf", nil, false}, {"number", math.NaN(), nil, false}, {"number", json.Number("1e999"), nil, false},
		{"boolean", "Yes", true, true}, {"bool", "0", false, true}, {"boolean", false, false, true}, {"boolean", 1.0, nil, false}, {"boolean", "perhaps", nil, false},
	} {
		typed, ok := parley.TypedAs(c.kind, c.v)
		require.Equal(t, c.usable, ok, "%s %v", c.kind, c.v)
		if ok {
			require.Equal(t, c.typed, typed, "%s %v", c.kind, c.v)
		}
	}
}

func TestTheSystemsVariablesWin(t *testing.T) {
	t.Parallel()
	a := &parley.Assistant{ID: 12, Name: "Front desk", Settings: parley.Settings{Timezone: "Asia/Tokyo", Variables: parley.Object{"company": "Acme", "tone": "calm", "call_id": "forged"}}}
	values := parley.CallFacts{CallID: "9", CustomerPhone: "+1", AssistantPhone: "+2", Variables: map[string]any{"tone": "brisk", "current_time": "forged"}}.
		Values(a, time.Date(2026, 5, 1, 20, 30, 0, 0, time.UTC))
	require.Equal(t, map[string]string{"company": "Acme", "tone": "brisk", "customer_phone": "+1", "assistant_phone": "+2", "assistant_id": "12", "assistant_name": "Front desk",
		"call_id": "9", "current_date": "2026-05-02", "current_time": "05:30"}, values)
}

func TestEndpointsHoldParametersInPathAndQueryOnly(t *testing.T) {
	t.Parallel()
	for endpoint, says := range map[string]string{
		"https://{host}/x":                        "The endpoint must hold {param} in its path or query only.",
		"https://x.example:{port}/":               "The endpoint must hold {param} in its path or query only.",
		"https://{{region}}.example.com/{x}?{y}":  "",
		"https://me:{{password}}@x.example/":      "",
		"https://x.example/{a}/{{b}}?c={ d }#{e}": "",
	} {
		_, err := parley.CreateTool(parley.Input{"name": "n", "description": "d", "method": "GET", "endpoint": endpoint})
		if says == "" {
			require.NoError(t, err, endpoint)
		} else {
			require.ErrorContains(t, err, says)
		}
	}
	_, err := parley.CreateTool(parley.Input{"name": "n", "description": "d", "method": "GET", "endpoint": "https://x.example", "headers": []any{map[string]any{"name": "Host", "value": "y"}}})
	require.ErrorContains(t, err, "must not be a header that frames the request")
}
