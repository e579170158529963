package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Request is what a fake service was asked.
type Request struct {
	Method string
	Path   string
	Query  string
	Header http.Header
	Body   []byte
}

// Server is a fake service on 127.0.0.1 that remembers what it was asked.
type Server struct {
	URL string

	server   *httptest.Server
	stop     context.CancelFunc
	handlers sync.WaitGroup
	mu       sync.Mutex
	requests []Request
}

// Handler answers a request. Its context ends with the request, or with the server:
// a handler that stalls waits for it.
type Handler func(ctx context.Context, w http.ResponseWriter, r *http.Request)

// Serve starts a fake service.
func Serve(handler Handler) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{stop: stop}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handlers.Add(1)
		defer s.handlers.Done()
		s.note(r)
		own, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		handler(own, w, r)
	}))
	s.URL = s.server.URL
	return s
}

// note remembers a request and leaves its body readable.
func (s *Server) note(r *http.Request) {
	var body []byte
	if r.Header.Get("Upgrade") == "" {
		body, _ = io.ReadAll(r.Body) // a body cut off is remembered as far as it came
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body})
}

// Requests are all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Close ends the handlers and waits for them.
func (s *Server) Close() {
	s.stop()
	s.server.CloseClientConnections()
	s.server.Close()
	s.handlers.Wait()
}

// Stall takes a request and never answers.
func Stall(ctx context.Context, _ http.ResponseWriter, _ *http.Request) { <-ctx.Done() }

// Refuse answers every request with a status, headers in pairs, and a body.
func Refuse(status int, body string, headers ...string) Handler {
	return func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // who has gone needs no answer
	}
}

// Events answers with server-sent events, each sent on its own.
func Events(events ...string) Handler {
	return func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		SendEvents(w, events...)
	}
}

// SendEvents writes server-sent events, for handlers that go on to do something else.
func SendEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for _, e := range events {
		if strings.HasPrefix(e, "event:") {
			_, _ = io.WriteString(w, e+"\n\n")
		} else {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
		_ = flush.Flush() // who has gone needs no answer
	}
}

// Sockets accepts WebSockets and hands them to a script; the socket is cut when the
// script returns, unless the script closed it properly.
func Sockets(script func(ctx context.Context, socket *websocket.Conn)) Handler {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = socket.CloseNow() }()
		script(ctx, socket)
	}
}

// Drain reads and forgets whatever comes until the socket ends.
func Drain(ctx context.Context, socket *websocket.Conn) {
	for {
		if _, _, err := socket.Read(ctx); err != nil {
			return
		}
	}
}

// SendText writes text messages to a socket.
func SendText(ctx context.Context, socket *websocket.Conn, messages ...string) {
	for _, m := range messages {
		if socket.Write(ctx, websocket.MessageText, []byte(m)) != nil {
			return
		}
	}
}

// Dialogue accepts WebSockets whose messages are JSON and answers each with what reply
// says to it; nil is asked once, before the first message. What was received is kept in
// got, unless that is nil.
func Dialogue(got chan<- map[string]any, reply func(message map[string]any) []string) Handler {
	return Sockets(func(ctx context.Context, socket *websocket.Conn) {
		SendText(ctx, socket, reply(nil)...)
		for {
			_, body, err := socket.Read(ctx)
			if err != nil {
				return
			}
			var message map[string]any
			if json.Unmarshal(body, &message) != nil {
				return
			}
			if got != nil {
				got <- message
			}
			SendText(ctx, socket, reply(message)...)
		}
	})
}

// On is a provider at its fake service, and how to take both down.
func On[P io.Closer](handler Handler, provider func(url string) (P, error)) (P, *Server, func()) {
	server := Serve(handler)
	p, err := provider(server.URL)
	if err != nil {
		panic(err) // the test's own settings are wrong
	}
	return p, server, func() {
		_ = p.Close() // what it still had to say is void
		server.Close()
	}
}

// Received is a message that a fake service got.
type Received struct {
	Kind websocket.MessageType
	Body string
}

// Record keeps every message of a socket, and closes got when the socket ends.
func Record(got chan<- Received) Handler {
	return Sockets(func(ctx context.Context, socket *websocket.Conn) {
		defer close(got)
		for {
			kind, body, err := socket.Read(ctx)
			if err != nil {
				return
			}
			got <- Received{kind, string(body)}
		}
	})
}

// Next is what comes next, if it comes soon.
func Next[T any](from <-chan T) (next T, err error) {
	timer := time.NewTimer(Soon)
	defer timer.Stop()
	select {
	case next = <-from:
		return next, nil
	case <-timer.C:
		return next, errors.New("nothing came")
	}
}
