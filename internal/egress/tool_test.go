package egress

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// received is a request as the user's server saw it.
type received struct {
	method, uri, body string
	header            http.Header
}

// inbox is a server that keeps what it receives.
func inbox(t testing.TB) (url string, next func() received) {
	t.Helper()
	all := make(chan received, 16)
	url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all <- received{r.Method, r.RequestURI, string(body), r.Header}
		fmt.Fprint(w, `{"ok": true}`)
	})
	return url, func() received { return <-all }
}

func TestToolPlacementForEveryMethod(t *testing.T) {
	t.Parallel()
	c := home(t)
	url, next := inbox(t)
	arguments := map[string]any{"order_number": "A 1/2", "count": "3", "urgent": "yes", "stranger": "dropped", "note": nil}
	schema := []string{"order_number:string", "count:number", "urgent:boolean", "note:string"}
	for method, want := range map[string]struct{ query, body string }{
		"GET":    {"&count=3&urgent=true", ""},
		"DELETE": {"&count=3&urgent=true", ""},
		"POST":   {"", `{"count":3,"urgent":true}`},
		"PUT":    {"", `{"count":3,"urgent":true}`},
		"PATCH":  {"", `{"count":3,"urgent":true}`},
	} {
		tool := aTool(method, url+"/customers/{{customer_id}}/orders/{order_number}?tier={{tier}}&key=k3y", schema...)
		tool.Headers = []parley.Header{{Name: "X-Call", Value: "{{call_id}} from {{customer_phone}}"}, {Name: "X-Api-Key", Value: "s3cret-{{tier}}"}}
		e := run(t, c, tool, arguments)
		require.Nil(t, e.Failure, method)
		got := next()
		require.Equal(t, method, got.method)
		require.Equal(t, "/customers/42/orders/A%201%2F2?tier=gold&key=k3y"+want.query, got.uri)
		require.Equal(t, want.body, got.body, method)
		require.Equal(t, "call-1-3", got.header.Get("Idempotency-Key"))
		require.Equal(t, "call-1 from +12025550100", got.header.Get("X-Call"))
		require.Equal(t, "s3cret-gold", got.header.Get("X-Api-Key"))
		require.Equal(t, "Parley/test", got.header.Get("User-Agent"))
		if want.body != "" {
			require.Equal(t, "application/json", got.header.Get("Content-Type"))
		}
		require.Equal(t, parley.Exchange{
			Tool: "look_up", Method: method, URL: url + "/customers/42/orders/A%201%2F2?tier=***&key=***" + want.query,
			Arguments: map[string]any{"order_number": "A 1/2", "count": 3.0, "urgent": true},
			Status:    200, Size: 12, Answer: `{"ok": true}`, DurationMS: e.DurationMS,
		}, e)
	}
}

func TestToolHeadersAreTheUsers(t *testing.T) {
	t.Parallel()
	c := home(t)
	url, next := inbox(t)
	tool := aTool("POST", url)
	tool.Headers = []parley.Header{
		{Name: "content-type", Value: "application/vnd.api+json"}, {Name: "User-Agent", Value: "Mine"}, {Name: "Accept-Encoding", Value: "gzip"},
		{Name: "Idempotency-Key", Value: "always the same"}, {Name: "X-Twice", Value: "1"}, {Name: "X-Twice", Value: "2"}, {Name: "X-Lines", Value: "{{evil}}"},
	}
	e := c.RunTool(t.Context(), tool, Invocation{Assistant: &parley.Assistant{}, Number: 1,
		Call: parley.CallFacts{CallID: "9", Variables: map[string]any{"evil": "a\r\nX-Injected: b"}}})
	require.Nil(t, e.Failure)
	got := next()
	require.Equal(t, []string{"application/vnd.api+json"}, got.header["Content-Type"])
	require.Equal(t, []string{"Mine"}, got.header["User-Agent"])
	require.Equal(t, []string{"identity"}, got.header["Accept-Encoding"])
	require.Equal(t, []string{"9-1"}, got.header["Idempotency-Key"], "ours tells invocations apart")
	require.Equal(t, []string{"1", "2"}, got.header["X-Twice"])
	require.Equal(t, []string{"a  X-Injected: b"}, got.header["X-Lines"])
	require.Empty(t, got.header["X-Injected"])
}

// The name and password of an address are sent, and stand in no record.
func TestUserinfoIsSentAndNotShown(t *testing.T) {
	t.Parallel()
	url, next := inbox(t)
	e := run(t, home(t), aTool("GET", strings.Replace(url, "//", "//me:pa55word@", 1)), nil)
	require.Equal(t, "Basic bWU6cGE1NXdvcmQ=", next().header.Get("Authorization"))
	require.Equal(t, url, e.URL)
}

// What may be said of an answer, and what not.
func TestToolAnswers(t *testing.T) {
	t.Parallel()
	c := home(t)
	for name, a := range map[string]struct {
		status int
		body   string
		answer string
		kind   parley.FailureKind
		says   string
		ends   string
	}{
		"JSON":              {200, `{"status": "shipped"}`, `{"status": "shipped"}`, "", "", ""},
		"text":              {201, " done \n", "done", "", "", ""},
		"a byte order mark": {200, "\xef\xbb\xbf{}", "{}", "", "", ""},
		"XML":               {200, "<order/>", "<order/>", "", "", ""},
		"nothing":           {200, "", "", "", "", ""},
		"a page":            {200, "<html><body>Welcome</body></html>", "", parley.Unreadable, "neither JSON nor text", ""},
		"another charset":   {200, "caf\xe9", "", parley.Unreadable, "neither JSON nor text", ""},
		"a reason":          {404, `{"message":"no such order"}`, "", parley.BadStatus, `the tool answered with status 404 (Not Found): {"message":"no such order"}`, ""},
		"a long reason":     {422, strings.Repeat("x", 1000), "", parley.BadStatus, "the tool answered with status 422 (Unprocessable Entity)", "Entity)"},
		"a stack trace":     {500, "panic: db at 10.0.0.3", "", parley.BadStatus, "the tool answered with status 500 (Internal Server Error)", "Error)"},
		"moved":             {301, "", "", parley.Moved, "the tool answered with a redirect (status 301), which is not followed", ""},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(a.status)
			fmt.Fprint(w, a.body)
		})
		e := run(t, c, aTool("GET", url), nil)
		require.Equal(t, a.answer, e.Answer, name)
		require.Equal(t, a.kind, kindOf(e.Failure), name)
		result, err := e.Result()
		if a.kind != "" {
			require.ErrorContains(t, err, a.says, name)
			require.True(t, strings.HasSuffix(err.Error(), a.ends), err.Error())
			require.Empty(t, result)
			continue
		}
		require.NoError(t, err)
		require.NotEmpty(t, result, "a model is always told something")
	}
	// The cut goes through a character: it is left out whole.
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x"+strings.Repeat("é", 40_000)) })
	e := run(t, c, aTool("GET", url), nil)
	require.Nil(t, e.Failure)
	require.True(t, e.Truncated)
	require.Equal(t, "x"+strings.Repeat("é", 32_767), e.Answer)
	require.Equal(t, 64<<10, e.Size)
}

// What is missing or would change an address's meaning is not sent.
func TestToolsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	c := home(t)
	url, hits := listen(t, "127.0.0.1:0", echo)
	base := "http://127.0.0.1:" + url
	for endpoint, says := range map[string]string{
		base + "/orders/{order}":                "the parameter order is missing",
		base + "/orders?id={order}":             "the parameter order is missing",
		base + "/orders/{empty}":                "the value of empty cannot stand in the path",
		base + "/orders/{dots}/x":               "the value of dots cannot stand in the path",
		base + "/orders/{{unknown}}":            "the value of unknown cannot stand in the path",
		"http://{{evil}}/":                      "the variable evil cannot stand in the host",
		"http://{{unknown}}/":                   "the variable unknown cannot stand in the host",
		"http://127.0.0.1:{empty}/":             "not valid",
		"http://{host_name}/":                   "not valid",
		"http://user:{{evil}}@127.0.0.1:" + url: "the variable evil cannot stand in the host",
	} {
		tool := aTool("DELETE", endpoint, "order:string", "empty:string", "dots:string", "host_name:string")
		e := c.RunTool(t.Context(), tool, Invocation{Assistant: &parley.Assistant{}, Call: parley.CallFacts{CallID: "1", Variables: map[string]any{"evil": "evil.example/?"}}, Number: 1,
			Arguments: map[string]any{"empty": "", "dots": "..", "host_name": "evil.example"}})
		require.NotNil(t, e.Failure, endpoint)
		require.Equal(t, parley.Unsendable, e.Failure.Kind)
		require.Contains(t, e.Failure.Message, says, endpoint)
	}
	require.Zero(t, hits.Load())
}

// TestPromiseC6ToolsAreBounded: a tool that hangs, fails or floods is cut in time and
// size, its arguments are the schema's alone, and no header value comes back.
func TestPromiseC6ToolsAreBounded(t *testing.T) {
	t.Parallel()
	c := home(t)
	const secret = "canary-7f3a9"
	kinds := map[string]http.HandlerFunc{
		"hang": hangs, "drip": drips, "10 MB": floods,
		"500":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"echo": echo,
		"echo as JSON": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			json.NewEncoder(w).Encode(map[string]any{"headers": r.Header, "body": string(body)})
		},
		"echo and refuse": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "bad key ", r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
		},
	}
	var wait sync.WaitGroup
	ran := 0
	for name, handler := range kinds {
		url := serve(t, handler)
		tool := aTool("POST", url, "known:string")
		tool.Headers = []parley.Header{{Name: "X-Api-Key", Value: secret}, {Name: "Authorization", Value: "Bearer quoted\"" + secret}, {Name: "Content-Type", Value: "application/json"}}
		for range 15 {
			ran++
			wait.Go(func() {
				began := time.Now()
				e := run(t, c, tool, map[string]any{"known": "yes", "unknown": "canary-argument"})
				took := time.Since(began)
				result, err := e.Result()
				record, _ := json.Marshal(e)
				all := fmt.Sprint(result, err, string(record), fmt.Sprintf("%+v", e))
				switch {
				case strings.Contains(all, secret):
					t.Errorf("%s: the secret came back: %s", name, all)
				case strings.Contains(all, "canary-argument"):
					t.Errorf("%s: an argument outside the schema was sent: %s", name, all)
				case took > 1250*time.Millisecond || (name == "hang" || name == "drip") && took < 999*time.Millisecond:
					t.Errorf("%s took %s", name, took)
				case len(result) > 64<<10 || name == "10 MB" && len(result) != 64<<10:
					t.Errorf("%s: %d bytes", name, len(result))
				case (err != nil) != (name == "hang" || name == "drip" || name == "500" || name == "echo and refuse"):
					t.Errorf("%s: %v", name, err)
				case err != nil && len(err.Error()) > 300:
					t.Errorf("%s: too long to be spoken about: %v", name, err)
				}
			})
		}
	}
	wait.Wait()
	t.Logf("%d runs", ran)
}
