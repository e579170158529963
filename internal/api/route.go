package api

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// Route is an endpoint: how it is called, what it does, and how it is documented.
// The router, the OpenAPI document, the reference page and the tests that go over
// every endpoint all read this one list.
type Route struct {
	Method  string
	Path    string // below /api
	Group   string
	Summary string
	Detail  string
	Query   []parley.FieldDoc
	Body    []parley.FieldDoc
	Updates bool // the body's fields are all optional
	Answer  Answer
	Errors  []Failure

	handle  func(context.Context, *request) (*reply, error)
	flagged bool   // its refusals carry success: false
	upload  bool   // its body is a table of leads
	failure string // the message when storage fails; "Server error" when empty
}

// Routes is every endpoint of the API.
func Routes() []Route {
	return slices.Concat(accountRoutes(), toolRoutes(), assistantRoutes(), webhookRoutes(), lookupRoutes(), numberRoutes(), trunkRoutes(), callRoutes(), deliveryRoutes(),
		campaignRoutes(), importRoutes(), leadRoutes(), doNotCallRoutes())
}

// request is a call of an endpoint by an authenticated user.
type request struct {
	*http.Request
	server *Server
	user   *parley.User
	tenant *store.Tenant
	input  parley.Input
	writer http.ResponseWriter // for its deadlines
}

// reply is an endpoint's answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	stream func(http.ResponseWriter, *http.Request) // instead of a body
}

// id is the id in the path. One that is no number is one that does not exist.
func (rq *request) id() parley.ID {
	id, ok := parley.ParseID(rq.PathValue("id"))
	if !ok {
		return -1
	}
	return id
}

// mountRoutes gives each path one handler that chooses by method, so that a wrong
// method is told which are right.
func (s *Server) mountRoutes(routes []Route) {
	byPath := map[string]map[string]Route{}
	for _, route := range routes {
		if byPath[route.Path] == nil {
			byPath[route.Path] = map[string]Route{}
		}
		byPath[route.Path][route.Method] = route
		if route.Method == http.MethodGet {
			byPath[route.Path][http.MethodHead] = route
		}
	}
	for pattern, methods := range byPath {
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		s.mux.HandleFunc("/api"+pattern, func(w http.ResponseWriter, r *http.Request) {
			route, ok := methods[r.Method]
			if !ok {
				w.Header().Set("Allow", allow)
				s.observe(w, r, pattern, func(w *answerWriter) {
					w.message(http.StatusMethodNotAllowed, "Method not allowed. Allowed: "+allow+".")
				})
				return
			}
			s.observe(w, r, pattern, func(w *answerWriter) { s.call(w, r, route) })
		})
	}
	s.mux.HandleFunc("/", s.unknownPath)
}

func (s *Server) unknownPath(w http.ResponseWriter, r *http.Request) {
	s.observe(w, r, "unknown", func(w *answerWriter) { w.message(http.StatusNotFound, "Not found") })
}

// cleanPath is the path the mux would serve without redirecting.
func cleanPath(p string) string {
	if p == "" || p[0] != '/' {
		return "/" + p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// call takes a request through limits, authentication and decoding to its endpoint.
func (s *Server) call(w *answerWriter, r *http.Request, route Route) {
	if !s.callers.admit(w, s.clientAddress(r)) {
		return
	}
	token, ok := bearer(r)
	if !ok {
		unauthenticated(w)
		return
	}
	if !s.tokens.admit(w, token) {
		return
	}
	user, err := s.db.System().Authenticate(r.Context(), token)
	switch {
	case parley.ErrorCode(err) == parley.NotFound:
		unauthenticated(w)
		return
	case err != nil:
		s.fail(w, r, route, err)
		return
	}
	rq := &request{Request: r, server: s, user: user, tenant: s.db.Tenant(user.ID), writer: w.ResponseWriter}
	if route.Body != nil {
		if rq.input, ok = readInput(w, r); !ok {
			return
		}
	}
	answer, err := route.handle(r.Context(), rq)
	if err != nil {
		s.fail(w, r, route, err)
		return
	}
	maps.Copy(w.Header(), answer.header)
	if answer.stream != nil {
		w.status = answer.status
		answer.stream(w.ResponseWriter, r)
		return
	}
	w.json(answer.status, answer.body)
}

// fail answers an error: the user's own with what to do about it, every other one
// with nothing but that it happened.
func (s *Server) fail(w *answerWriter, r *http.Request, route Route, err error) {
	if status, body, ok := problem(err); ok {
		if e, limited := errors.AsType[*parley.Error](err); limited && e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
		}
		w.json(status, body)
		return
	}
	if r.Context().Err() != nil {
		w.message(499, "The request was cancelled.") // nobody reads it; the metrics do
		return
	}
	s.log.Error("request failed", "route", route.Path, "method", route.Method, "request_id", w.id, "error", err)
	message := route.failure
	if message == "" {
		message = "Server error"
	}
	w.message(http.StatusInternalServerError, message)
}

// observe gives a request its id, counts it, and turns a panic into an answer.
func (s *Server) observe(w http.ResponseWriter, r *http.Request, pattern string, serve func(*answerWriter)) {
	start := time.Now()
	aw := newAnswerWriter(w, r)
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("request panicked", "route", pattern, "request_id", aw.id, "panic", p, "stack", string(debug.Stack()))
			if aw.status == 0 {
				aw.message(http.StatusInternalServerError, "Server error")
			}
		}
		took := time.Since(start)
		s.metrics.request(r.Method, pattern, aw.status, took)
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "request", slog.String("method", r.Method), slog.String("route", pattern),
			slog.String("status", strconv.Itoa(aw.status)), slog.Duration("took", took), slog.String("request_id", aw.id))
	}()
	serve(aw)
}
