package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/api"
	"parley/internal/egress"
	"parley/internal/store/storetest"
)

// A tool is tried against a real server, through the same door as in a call.
func TestPromiseA5ToolTest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(r.URL.Path, "broken") {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprintf(w, "%s %s %s key=%s", r.Method, r.RequestURI, body, r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(server.Close)
	allowed, err := egress.ParseAllowed([]string{"127.0.0.1"})
	require.NoError(t, err)
	client := egress.New(egress.Config{Allowed: allowed})
	t.Cleanup(client.Close)
	s := newService(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config) { c.TryTool = client.TryTool })
	const schema = `"schema":[{"name":"order_number","type":"string","description":"ddd"},{"name":"count","type":"number","description":"ddd"},{"name":"urgent","type":"boolean","description":"ddd"}]`
	create := func(method, path string) {
		s.want(201, "POST", "/user/tools", fmt.Sprintf(`{"name":"get_order","description":"d","endpoint":"%s%s","method":"%s","headers":[{"name":"X-Api-Key","value":"s3cret-key"}],%s}`, server.URL, path, method, schema))
	}
	create("GET", "/orders/{order_number}?for={{customer_id}}")
	create("POST", "/orders/{order_number}")
	create("PUT", "/broken")
	s.play([]step{
		{"POST", "/user/tools/1/test", `{"parameters":{"order_number":"A 1","count":"3","stranger":1},"variables":{"customer_id":42}}`, 200, "", []string{
			`{"tool":"get_order","method":"GET","url":"` + server.URL + `/orders/A%201?for=***`, `"arguments":{"count":3,"order_number":"A 1"},"status":200,"duration_ms":`,
			`"truncated":false,"answer":"GET /orders/A%201?for=42\u0026count=3  key=***","error":null}`}, []string{"s3cret-key", "stranger"}},
		{"POST", "/user/tools/2/test", ``, 200, "", []string{`"answer":"POST /orders/sample {\"count\":1,\"urgent\":true} key=***"`, `"arguments":{"count":1,"order_number":"sample","urgent":true}`}, nil},
		{"POST", "/user/tools/2/test", `{"parameters":{}}`, 200, "", []string{`"url":"","arguments":{},"status":0,`, `"error":{"type":"unsendable","message":"the parameter order_number is missing"}}`}, nil},
		{"POST", "/user/tools/3/test", `{}`, 200, "", []string{`"status":418,`, `"answer":"","error":{"type":"status","message":"the tool answered with status 418 (I'm a teapot): PUT /broken`}, []string{"s3cret-key"}},
		{"POST", "/user/tools/1/test", `{"parameters":{"count":"many","urgent":"perhaps","order_number":null}}`, 422, `{"message":"Validation failed","errors":{"parameters.order_number":["The parameters.order number must be a string."],"parameters.count":["The parameters.count must be a number."],"parameters.urgent":["The parameters.urgent must be a boolean."]}}`, nil, nil},
		{"POST", "/user/tools/1/test", `{"parameters":"x"}`, 422, `{"message":"Validation failed","errors":{"parameters":["The parameters must be an object."]}}`, nil, nil},
		{"POST", "/user/tools/9/test", `{"parameters":"x"}`, 404, `{"message":"Tool not found"}`, nil, nil},
		{"GET", "/user/tools/1/test", "", 405, "", []string{"Allowed: POST."}, nil},
	})
	require.NotContains(t, s.log.String(), "s3cret-key")
}

// The model calls a tool by its name: two of one name could not be told apart.
func TestAnAssistantsToolsHaveDifferentNames(t *testing.T) {
	each(t, func(s *service) {
		other := strings.Replace(aTool, "get_order", "cancel_order", 1)
		s.want(201, "POST", "/user/tools", aTool)
		s.want(201, "POST", "/user/tools", aTool)
		s.want(201, "POST", "/user/tools", other)
		const same = `{"message":"Validation failed","errors":{"tool_ids.2":["The tool ids.2 has the same name as tool 1 (get_order). Rename one of them first."]}}`
		const taken = `{"message":"Validation failed","errors":{"name":["The name is that of another tool (get_order) of the same assistant. Choose another, or detach one of them first."]}}`
		s.play([]step{
			{"POST", "/user/assistant", anAssistant(`"tool_ids":[1,3,2]`), 422, same, nil, nil},
			{"POST", "/user/assistant", anAssistant(`"tools":[{"type":"http","data":{"id":1}},{"type":"http","data":{"id":3}},{"type":"http","data":{"id":2}}]`), 422, same, nil, nil},
			{"POST", "/user/assistant", anAssistant(`"tool_ids":[1,3,1]`), 201, "", nil, nil},
			{"PUT", "/user/assistant/1", `{"tool_ids":[1,3,2]}`, 422, same, nil, nil},
			{"PUT", "/user/tools/3", `{"name":"get_order"}`, 422, taken, nil, nil},
			{"PUT", "/user/tools/3", `{"name":"get_orders"}`, 200, "", nil, nil},
			{"PUT", "/user/tools/1", `{"name":"get_order","timeout":9}`, 200, "", nil, nil},
			{"PUT", "/user/tools/2", `{"name":"get_orders"}`, 200, "", nil, nil}, // attached to no assistant
			{"PUT", "/user/assistant/1", `{"tool_ids":[2,1]}`, 200, "", nil, nil},
			{"PUT", "/user/tools/3", `{"name":"get_order"}`, 200, "", nil, nil},
		})
	})
}
