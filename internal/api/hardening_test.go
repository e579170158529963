package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)))
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"cut off":         {`{"name":`, 400, "The request body is not valid JSON."},
		"not JSON":        {`name=x`, 400, "The request body is not valid JSON."},
		"NaN":             {`{"timeout":NaN}`, 400, "The request body is not valid JSON."},
		"two values":      {`{} {}`, 400, "The request body holds more than one JSON value."},
		"a list":          {`[1]`, 400, "The request body must be a JSON object."},
		"a string":        {`"x"`, 400, "The request body must be a JSON object."},
		"null":            {`null`, 400, "The request body must be a JSON object."},
		"invalid UTF-8":   {"{\"name\":\"\xff\xfe\"}", 400, "The request body is not valid UTF-8."},
		"deep nesting":    {`{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", 400, "The request body is nested too deeply."},
		"very deep":       {strings.Repeat(`{"x":`, 100_000), 400, "The request body is nested too deeply."},
		"over 1 MiB":      {`{"name":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "The request body is larger than 1 MiB."},
		"NUL in a text":   {`{"name":"a\u0000"}`, 422, `The name must not contain NUL characters.`},
		"brackets quoted": {`{"name":"` + strings.Repeat(`[[\"`, 20) + `"}`, 422, "Tool name must contain only"},
	} {
		got := s.call("POST", "/user/tools", c.body)
		require.Equal(t, c.status, got.status, "%s: %s", name, got.body)
		require.Contains(t, got.body, c.says, name)
	}
	s.want(201, "POST", "/user/assistant", anAssistant(""))
	got := s.want(422, "PUT", "/user/assistant/1", `{"variables":{"a":{"b":["x","\u0000"]}}}`)
	require.Contains(t, got.body, `"variables.a.b.1":["The variables.a.b.1 must not contain NUL characters."]`)
	got = s.want(422, "PUT", "/user/assistant/1", `{"variables":{"a\u0000":1}}`)
	require.Contains(t, got.body, `must not contain NUL characters.`)
	got = s.want(422, "PUT", "/user/assistant/1", `{"variables":{"huge":[1e999999999]}}`)
	require.Contains(t, got.body, `"variables.huge.0":["The variables.huge.0 must be a number of at most 308 digits."]`)
	s.want(200, "PUT", "/user/assistant/1", `{"variables":{"surrogate":"\ud800"}}`)
	s.want(200, "GET", "/user/assistant/1", "")
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)))
	for _, path := range []string{"/api", "/api/", "/api/user", "/api/user/nothing", "/api/user/tools/", "/api//user/tools", "/api/user/../user/tools", "/nothing", "/api/user/tools/1/2"} {
		request := httptest.NewRequest("GET", "/", nil)
		request.URL.Path = path
		request.Header.Set("Authorization", "Bearer "+s.token)
		request.Header.Set("Accept", "text/html")
		recorder := httptest.NewRecorder()
		s.handler.ServeHTTP(recorder, request)
		require.Equal(t, 404, recorder.Code, path)
		require.Equal(t, `{"message":"Not found"}`, recorder.Body.String(), path)
		require.Equal(t, "application/json", recorder.Header().Get("Content-Type"))
	}
	allowed := map[string][]string{}
	for _, route := range api.Routes() {
		allowed[route.Path] = append(allowed[route.Path], route.Method)
	}
	for path, methods := range allowed {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
			if strings.Contains(strings.Join(methods, " "), method) {
				continue
			}
			got := s.call(method, strings.ReplaceAll(path, "{id}", "1"), "")
			require.Equal(t, 405, got.status, "%s %s", method, path)
			for _, m := range methods {
				require.Contains(t, got.header.Get("Allow"), m)
			}
		}
	}
	recorder := httptest.NewRecorder()
	head := httptest.NewRequest("HEAD", "/api/user/tools", nil)
	head.Header.Set("Authorization", "Bearer "+s.token)
	s.handler.ServeHTTP(recorder, head)
	require.Equal(t, 200, recorder.Code, "HEAD is GET without the body")
}

// Random bodies, built from each route's own field names: never a 5xx, always a
// documented answer, and a refusal changes nothing.
func TestPromiseA6OddInputNeverBreaks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db)
		s.want(201, "POST", "/user/tools", aTool)
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(201, "POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"a.example"}`)
		s.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"SIP"}`)
		s.odd = true
		random := rand.New(rand.NewPCG(3, 4))
		for _, route := range api.Routes() {
			if route.Body == nil {
				continue
			}
			path := strings.ReplaceAll(route.Path, "{id}", "1")
			for range promise.Figure(60, 10_000) {
				body := oddBody(random, route.Body)
				got := s.call(route.Method, path, body)
				require.Less(t, got.status, 500, "%s %s %s: %s", route.Method, path, body, got.body)
			}
		}
		require.NotContains(t, s.log.String(), "panic")

		for _, refused := range []string{`{"assistant_name":"changed","max_call_duration":"x"}`, `{"assistant_name":"changed","tool_ids":[1,424242]}`, `{"assistant_name":"changed"`} {
			before := everything(s)
			require.GreaterOrEqual(t, s.call("PUT", "/user/assistant/1", refused).status, 400)
			require.Equal(t, before, everything(s), "a refused request changes nothing: %s", refused)
		}
	})
}

// oddBody is a body that a broken or hostile client might send.
func oddBody(r *rand.Rand, fields []parley.FieldDoc) string {
	if r.IntN(20) == 0 {
		raw := make([]byte, r.IntN(60))
		for i := range raw {
			raw[i] = byte(r.IntN(256))
		}
		return string(raw)
	}
	var members []string
	for range r.IntN(8) {
		f := fields[r.IntN(len(fields))]
		name := f.Name
		if f.Request != "" && r.IntN(2) == 0 {
			name = f.Request
		}
		members = append(members, fmt.Sprintf("%q:%s", name, oddValue(r, f, 3)))
	}
	body := "{" + strings.Join(members, ",") + "}"
	if r.IntN(30) == 0 {
		body = body[:r.IntN(len(body))]
	}
	return body
}

var oddScalars = []string{`null`, `true`, `0`, `-1`, `1`, `3.7`, `1e308`, `-1e400`, `99999999999999999999999`, `""`, `"x"`, `"NaN"`, `"Infinity"`, `"0x10"`, `"1"`, `" 1"`, `"\u0000"`, `"\ud800"`,
	`"'; DROP TABLE users; --"`, `"<script>"`, `"../../etc/passwd"`, `"http://[::1"`, `"https://x.example"`, `"+12025550180"`, `"Europe/Berlin"`, `{}`, `[]`, `[[]]`, `{"":{}}`}

func oddValue(r *rand.Rand, f parley.FieldDoc, depth int) string {
	switch {
	case depth > 0 && f.Elements != nil && r.IntN(2) == 0:
		var members []string
		for _, e := range f.Elements {
			if r.IntN(4) > 0 {
				members = append(members, fmt.Sprintf("%q:%s", e.Name, oddValue(r, e, depth-1)))
			}
		}
		object := "{" + strings.Join(members, ",") + "}"
		if f.Type == "array" {
			return "[" + object + "," + oddScalars[r.IntN(len(oddScalars))] + "]"
		}
		return object
	case f.Example != nil && r.IntN(3) == 0:
		shown, _ := json.Marshal(f.Example)
		return string(shown)
	case len(f.Rule.In) > 0 && r.IntN(3) == 0:
		return fmt.Sprintf("%q", f.Rule.In[r.IntN(len(f.Rule.In))])
	default:
		return oddScalars[r.IntN(len(oddScalars))]
	}
}

func TestPromiseA3RatesAreLimited(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	s := newService(t, db, func(c *api.Config) { c.RatePerToken = 5 })
	api.FreezeClock(s.handler)
	for i := range 5 {
		got := s.want(200, "GET", "/user/me", "")
		require.Equal(t, "5", got.header.Get("X-RateLimit-Limit"))
		require.Equal(t, fmt.Sprint(4-i), got.header.Get("X-RateLimit-Remaining"))
		require.NotEmpty(t, got.header.Get("X-RateLimit-Reset"))
	}
	got := s.want(429, "GET", "/user/me", "")
	require.Equal(t, `{"message":"Too Many Attempts.","retry_after":1}`, got.body)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Equal(t, "0", got.header.Get("X-RateLimit-Remaining"))
	s.as("other@example.com").want(200, "GET", "/user/me", "") // another token has its own count

	byAddress := newLimited(t, 3)
	for range 3 {
		byAddress.want(401, "GET", "/user/me", "")
	}
	byAddress.want(429, "GET", "/user/me", "")
}

// newLimited is a service that takes few requests from an address, called without a token.
func newLimited(t *testing.T, perAddress int) *service {
	t.Helper()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config) { c.RatePerAddress = perAddress })
	api.FreezeClock(s.handler)
	s.token = ""
	return s
}

func TestForwardedAddressesAreBelievedOfTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	request := func(s *service, forwarded string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/api/user/assistants/get", nil) // from 192.0.2.1
		r.Header.Set("X-Forwarded-For", forwarded)
		r.Header.Set("X-Forwarded-Proto", "https")
		r.Header.Set("X-Forwarded-Host", "parley.example.com")
		r.Header.Set("Authorization", "Bearer "+s.token)
		recorder := httptest.NewRecorder()
		s.handler.ServeHTTP(recorder, r)
		return recorder
	}
	direct := newService(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config) { c.RatePerAddress = 1 })
	api.FreezeClock(direct.handler)
	require.Contains(t, request(direct, "198.51.100.1").Body.String(), `"path":"http://example.com/api`)
	require.Equal(t, 429, request(direct, "198.51.100.2").Code, "a stranger cannot choose an address")

	behind := newService(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config) {
		c.RatePerAddress, c.TrustedProxies = 1, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	api.FreezeClock(behind.handler)
	require.Contains(t, request(behind, "6.6.6.6, 198.51.100.1").Body.String(), `"path":"https://parley.example.com/api`)
	require.Equal(t, 200, request(behind, "6.6.6.6, 198.51.100.2").Code)
	require.Equal(t, 429, request(behind, "7.7.7.7, 198.51.100.2").Code, "what stands before the last hop could be made up")
}

func TestPublicURLIsUsedInLinks(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config) { c.PublicURL = "https://parley.example.com/" })
	require.Contains(t, s.want(200, "GET", "/user/assistants/get", "").body, `"path":"https://parley.example.com/api/user/assistants/get"`)
}

func TestPromiseA4TokensAreSafeAtRest(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db)
		for range promise.Figure(100, 1000) {
			s.call("GET", "/user/me", "")
		}
		made := s.want(201, "POST", "/user/api-keys", `{"name":"x"}`).object(t)["api_key"].(map[string]any)["token"].(string)
		kept := dump(t, db)
		for _, token := range []string{s.token, made} {
			_, secret, _ := strings.Cut(token, "|")
			require.GreaterOrEqual(t, len(secret), 40)
			require.NotContains(t, kept, secret)
			require.NotContains(t, s.log.String(), secret)
		}
		// Revoked and unknown look the same.
		s.want(200, "DELETE", "/user/api-keys/1", "")
		revoked := s.want(401, "GET", "/user/me", "")
		unknown := *s
		unknown.token = "1|" + strings.Repeat("x", 43)
		require.Equal(t, unknown.want(401, "GET", "/user/me", "").body, revoked.body)
	})
}

// dump is every byte the database keeps: its files, or every row of every table.
func dump(t testing.TB, db *store.DB) string {
	t.Helper()
	var b strings.Builder
	if db.Postgres() {
		rows, err := db.SQL().Query(`SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`)
		require.NoError(t, err)
		var tables []string
		for rows.Next() {
			var name string
			require.NoError(t, rows.Scan(&name))
			tables = append(tables, name)
		}
		require.NoError(t, rows.Close())
		require.Greater(t, len(tables), 10)
		for _, table := range tables {
			var text *string
			require.NoError(t, db.SQL().QueryRow(`SELECT string_agg(encode(convert_to(x::text, 'UTF8'), 'escape') || x::text, '') FROM `+table+` x`).Scan(&text))
			if text != nil {
				b.WriteString(*text)
			}
		}
		return b.String()
	}
	files, err := filepath.Glob(filepath.Join(db.Options().Dir, store.FileName+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		b.Write(raw)
	}
	return b.String()
}

func TestPromiseL1SecretsAreEncrypted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db)
		s.want(201, "POST", "/user/tools", strings.Replace(aTool, "{", `{"headers":[{"name":"X-Key","value":"CANARY-HEADER"}],`, 1))
		s.want(201, "POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"a.example","sip_username":"u","sip_password":"CANARY-PASSWORD"}`)
		kept := dump(t, db)
		require.Contains(t, kept, "a.example", "the dump does show what is kept in clear")
		require.NotContains(t, kept, "CANARY")
		require.Contains(t, s.want(200, "GET", "/user/tools/1", "").body, "CANARY-HEADER", "their owner sees header values")
		require.NotContains(t, s.want(200, "GET", "/user/phone-numbers/sip-trunks/1", "").body, "CANARY", "nobody sees a password")
	})
}

func TestPromiseL2LogsHoldNoPeople(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)))
	canaries := []string{"CANARYNAME", "+12025550199", "CANARYSENTENCE", s.token}
	for range 20 {
		s.call("POST", "/user/assistant", anAssistant(`"variables":{"x":"CANARYNAME"},"webhook_url":"https://x.example/CANARYNAME"`))
		s.call("PUT", "/user/assistant/1", `{"initial_message":"CANARYSENTENCE","timezone":"CANARYNAME"}`)
		s.call("POST", "/user/phone-numbers", `{"phone_number":"+12025550199","type_label":"CANARYNAME"}`)
		s.call("POST", "/user/phone-numbers", `{"phone_number":"+12025550199","type_label":"Normal"}`)
		s.call("GET", "/user/assistants/get?type=CANARYNAME", "")
		s.call("GET", "/user/tools/CANARYNAME", "")
	}
	require.NoError(t, s.db.Close()) // every request fails inside now, and is logged
	s.call("POST", "/user/assistant", anAssistant(`"variables":{"x":"CANARYNAME"}`))
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, s.log.String(), "request failed")
	for _, canary := range canaries {
		require.NotContains(t, s.log.String(), canary)
		require.NotContains(t, recorder.Body.String(), canary)
	}
}

// The two messages of section 7, when storage fails in the middle of the work.
func TestStorageFailuresAreAnsweredAndLeaveNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db)
		s.want(201, "POST", "/user/tools", aTool)
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		before := everything(s)
		breakInserts(t, db, "assistant_tools")
		require.Equal(t, `{"message":"Assistant creation failed"}`, s.want(500, "POST", "/user/assistant", anAssistant(`"tool_ids":[1]`)).body)
		require.Equal(t, `{"message":"Assistant update failed"}`, s.want(500, "PUT", "/user/assistant/1", `{"assistant_name":"half","tool_ids":[1]}`).body)
		breakInserts(t, db, "tools")
		require.Equal(t, `{"message":"Server error"}`, s.want(500, "POST", "/user/tools", aTool).body)
		require.Equal(t, before, everything(s), "nothing is half written")
		require.Equal(t, 3, strings.Count(s.log.String(), "request failed"))
	})
}

// breakInserts makes every insert into a table fail, as a full disk would.
func breakInserts(t testing.TB, db *store.DB, table string) {
	t.Helper()
	statement := `CREATE TRIGGER broken_` + table + ` BEFORE INSERT ON ` + table + ` BEGIN SELECT RAISE(ABORT, 'no space'); END`
	if db.Postgres() {
		_, err := db.SQL().Exec(`CREATE OR REPLACE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space'; END $$`)
		require.NoError(t, err)
		statement = `CREATE TRIGGER broken BEFORE INSERT ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION broken()`
	}
	_, err := db.SQL().Exec(statement)
	require.NoError(t, err)
}

// Attaching races with deleting: somebody is refused, nothing fails inside.
func TestRacesAreRefusedNotFailed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db)
		assistant := fmt.Sprint("/user/assistant/", s.want(201, "POST", "/user/assistant", anAssistant("")).data(t)["id"])
		for range 20 {
			tool := s.want(201, "POST", "/user/tools", aTool).data(t)["id"]
			trunk := s.want(201, "POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"a.example"}`).data(t)["id"]
			number := s.want(201, "POST", "/user/phone-numbers", `{"phone_number":"+12025550180","type_label":"SIP"}`).data(t)["id"]
			var wait sync.WaitGroup
			for _, c := range []struct{ method, path, body string }{
				{"PUT", assistant, fmt.Sprintf(`{"tool_ids":[%v],"phone_number_id":%v}`, tool, number)},
				{"DELETE", fmt.Sprint("/user/tools/", tool), ""},
				{"PUT", fmt.Sprint("/user/phone-numbers/", number), fmt.Sprintf(`{"sip_trunk_id":%v}`, trunk)},
				{"DELETE", fmt.Sprint("/user/phone-numbers/sip-trunks/", trunk), ""},
				{"DELETE", fmt.Sprint("/user/phone-numbers/", number), ""},
				{"PUT", assistant, `{"phone_number_id":null,"tool_ids":[]}`},
			} {
				wait.Go(func() {
					request := httptest.NewRequest(c.method, "/api"+c.path, strings.NewReader(c.body))
					request.Header.Set("Authorization", "Bearer "+s.token)
					recorder := httptest.NewRecorder()
					s.handler.ServeHTTP(recorder, request)
					if recorder.Code >= 500 {
						t.Errorf("%s %s: %d %s", c.method, c.path, recorder.Code, recorder.Body)
					}
				})
			}
			wait.Wait()
			s.want(200, "PUT", assistant, `{"phone_number_id":null,"tool_ids":[]}`)
			s.call("DELETE", fmt.Sprint("/user/phone-numbers/", number), "")
		}
		require.Empty(t, s.log.String())
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)))
	get := func(path string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		s.handler.ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
		return recorder
	}
	s.want(200, "GET", "/user/tools", "")
	s.want(404, "GET", "/user/tools/424242", "")
	require.Equal(t, 200, get("/healthz").Code)
	require.Equal(t, `{"checks":{"database":"ok"},"status":"ok"}`, get("/readyz").Body.String())
	metrics := get("/metrics").Body.String()
	require.Contains(t, metrics, `parley_http_requests_total{method="GET",route="/user/tools/{id}",status="404"} 1`)
	require.NotContains(t, metrics, "424242")
	require.Contains(t, get("/docs").Body.String(), "Create an assistant")
	require.NotContains(t, get("/docs").Body.String(), "//cdn", "the page needs no internet")
	require.Contains(t, get("/docs").Header().Get("Content-Security-Policy"), "default-src 'none'")
	require.Equal(t, http.StatusOK, get("/api/openapi.json").Code)
	require.NoError(t, s.db.Close())
	require.Equal(t, 200, get("/healthz").Code, "alive, though not ready")
	require.Equal(t, 503, get("/readyz").Code)
	require.Equal(t, `{"checks":{"database":"unavailable"},"status":"unavailable"}`, get("/readyz").Body.String())
}
