package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/jobs"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// service is the API on a database, called as a client would call it.
type service struct {
	t       testing.TB
	db      *store.DB
	handler http.Handler
	log     *bytes.Buffer
	token   string
	header  http.Header // sent besides
	odd     bool        // its requests are not meant to fit the document

	recordings store.Recordings
}

// tried is what running a tool yields in tests that are not about it.
func tried(_ context.Context, tool parley.Tool, trial parley.ToolTrial) parley.Exchange {
	return parley.Exchange{Tool: tool.Name, Method: tool.Method, URL: tool.Endpoint, Arguments: tool.Arguments(trial.Parameters), Status: 200, Answer: "{}"}
}

// newService has one user, whose token its requests carry.
func newService(t testing.TB, db *store.DB, change ...func(*api.Config)) *service {
	t.Helper()
	s := serve(t, db, change...)
	_, s.token = storetest.User(t, db, "owner@example.com")
	return s
}

// serve has no user yet.
func serve(t testing.TB, db *store.DB, change ...func(*api.Config)) *service {
	t.Helper()
	queue, err := jobs.New(db, slog.New(slog.DiscardHandler), jobs.Work{}) // not started: calls stay where they are
	require.NoError(t, err)
	config := api.Config{
		Version: "test", TryTool: tried, Queue: queue, Carriers: parley.Carriers{Simulated: true}, Recordings: store.Recordings(t.TempDir()),
		NewSecret: func() string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(parley.NewSecret())) },
		Preview: func(context.Context, parley.ID, parley.ID) (parley.Forecast, error) {
			return parley.Forecast{Now: 1, Why: map[string]int{}}, nil
		},
	}
	for _, c := range change {
		c(&config)
	}
	s := &service{t: t, db: db, log: &bytes.Buffer{}, recordings: config.Recordings}
	s.handler = api.New(config, db, slog.New(slog.NewTextHandler(s.log, nil)), prometheus.NewRegistry())
	return s
}

// as is the same service called by another user.
func (s *service) as(email string) *service {
	other := *s
	_, other.token = storetest.User(s.t, s.db, email)
	return &other
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes a request and holds it and its answer against the OpenAPI document.
func (s *service) call(method, path, body string) answer {
	s.t.Helper()
	request := httptest.NewRequest(method, "/api"+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	maps.Copy(request.Header, s.header)
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	result := recorder.Result()
	got := answer{status: result.StatusCode, header: result.Header, body: recorder.Body.String()}
	require.NotEmpty(s.t, got.body, "never an empty body")
	require.Equal(s.t, "application/json", got.header.Get("Content-Type"))
	require.NotEmpty(s.t, got.header.Get("X-Request-Id"))
	require.True(s.t, json.Valid([]byte(got.body)), got.body)
	s.checkDocumented(request, body, result, got)
	return got
}

// checkDocumented holds an exchange against the document: the answer always, the
// request when it was accepted.
func (s *service) checkDocumented(request *http.Request, body string, result *http.Response, got answer) {
	t := s.t
	t.Helper()
	if got.status == http.StatusMethodNotAllowed || got.body == `{"message":"Not found"}` {
		return
	}
	document := documentation()
	result.Body = io.NopCloser(strings.NewReader(got.body))
	documentMu.Lock()
	defer documentMu.Unlock()
	valid, problems := document.ValidateHttpResponse(request, result)
	require.True(t, valid, "%s %s %d answered outside the document: %s\n%v", request.Method, request.URL, got.status, got.body, problems)
	if got.status < 400 && !s.odd {
		request.Body = io.NopCloser(strings.NewReader(body))
		valid, problems = document.ValidateHttpRequest(request)
		require.True(t, valid, "%s %s was accepted but is outside the document: %s\n%v", request.Method, request.URL, body, problems)
	}
}

var documentMu sync.Mutex // the validator compiles schemas as it meets them

var documentation = sync.OnceValue(func() validator.Validator {
	raw, err := json.Marshal(api.Document("test"))
	if err != nil {
		panic(err)
	}
	document, err := libopenapi.NewDocument(raw)
	if err != nil {
		panic(err)
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		panic(errs[0])
	}
	return v
})

func (s *service) want(status int, method, path, body string) answer {
	s.t.Helper()
	got := s.call(method, path, body)
	require.Equal(s.t, status, got.status, "%s %s: %s", method, path, got.body)
	return got
}

// object is the answer as a JSON object.
func (a answer) object(t testing.TB) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &o))
	return o
}

// list is the answer as a bare JSON array of objects.
func (a answer) list(t testing.TB) (all []map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), &all))
	return all
}

// data is the "data" of the answer's envelope.
func (a answer) data(t testing.TB) map[string]any {
	t.Helper()
	data, ok := a.object(t)["data"].(map[string]any)
	require.True(t, ok, a.body)
	return data
}

const aTool = `{"name":"get_order","description":"Looks up an order.","endpoint":"https://shop.example.com/{order_number}","method":"GET"}`

// anAssistant is a valid creation with these fields besides, as JSON members.
func anAssistant(more string) string {
	body := `{"assistant_name":"Front desk","voice_id":1,"language":"English","llm_model":"sandbox","calls_direction":"make","engine_type":"pipeline",` +
		`"timezone":"Europe/Berlin","initial_message":"Hello.","system_prompt":"Be brief."`
	if more != "" {
		body += "," + more
	}
	return body + "}"
}

func TestTheDocumentIsValid(t *testing.T) {
	t.Parallel()
	documentMu.Lock()
	defer documentMu.Unlock()
	valid, problems := documentation().ValidateDocument()
	require.True(t, valid, "%v", problems)
}

func TestEveryRouteIsDocumentedWithExamples(t *testing.T) {
	t.Parallel()
	for _, route := range api.Routes() {
		require.NotEmpty(t, route.Summary, route.Path)
		require.NotEmpty(t, route.Group, route.Path)
		require.NotZero(t, route.Answer.Status, route.Path)
		if strings.Contains(route.Path, "{id}") {
			require.Contains(t, statuses(route), http.StatusNotFound, "%s %s", route.Method, route.Path)
		}
	}
}

func statuses(route api.Route) (all []int) {
	for _, f := range route.Errors {
		all = append(all, f.Status)
	}
	return all
}

// The example request of each route must be one that Parley accepts.
func TestTheDocumentsExamplesWork(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.Open(t, storetest.SQLite(t)))
	s.want(201, "POST", "/user/tools", aTool)
	s.want(201, "POST", "/user/assistant", anAssistant(""))
	s.want(201, "POST", "/user/phone-numbers/sip-trunks", `{"sip_address":"sip.example.com"}`)
	s.want(200, "POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`)
	s.want(201, "POST", "/user/campaigns", `{"name":"Spring","assistant_id":1}`)
	s.want(200, "POST", "/user/lead", `{"campaign_id":1,"phone_number":"+12025550100","allow_dupplicate":true}`)
	raw, err := json.Marshal(api.Document("test"))
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &document))
	tried := 0
	for path, methods := range document.Paths {
		for method, operation := range methods {
			shown := operation.RequestBody.Content["application/json"].Example
			if shown == nil || strings.Contains(path, "phone-numbers/{id}") {
				continue
			}
			body := strings.NewReplacer(`"assistant_id":12`, `"assistant_id":1`, `"phone_number_id":3`, `"phone_number_id":null`,
				`"campaign_id":5`, `"allow_duplicate":true,"campaign_id":1`).Replace(string(shown))
			got := s.call(strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "1"), body)
			require.Less(t, got.status, 300, "%s %s %s: %s", method, path, body, got.body)
			tried++
		}
	}
	require.GreaterOrEqual(t, tried, 10)
}
