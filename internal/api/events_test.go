package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/api"
	"parley/internal/store"
)

// listener follows a call over a real connection.
type listener struct {
	t        testing.TB
	response *http.Response
	lines    *bufio.Scanner
}

func (s *service) listens(address, last string) *listener {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), "GET", address+"/api/user/calls/1/events", nil)
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { response.Body.Close() })
	require.Equal(s.t, 200, response.StatusCode)
	require.Equal(s.t, "text/event-stream", response.Header.Get("Content-Type"))
	return &listener{s.t, response, bufio.NewScanner(response.Body)}
}

// hears is the next event: its id, its kind and its detail.
func (l *listener) hears() (id, kind string, detail map[string]any) {
	l.t.Helper()
	var e struct {
		Event  string
		Detail map[string]any
	}
	for l.lines.Scan() {
		switch name, value, _ := strings.Cut(l.lines.Text(), ": "); name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			require.NoError(l.t, json.Unmarshal([]byte(value), &e))
			require.Equal(l.t, kind, e.Event)
		case "":
			return id, kind, e.Detail
		}
	}
	require.Fail(l.t, "the stream ended")
	return "", "", nil
}

func (l *listener) over() {
	l.t.Helper()
	rest, err := io.ReadAll(l.response.Body)
	require.NoError(l.t, err)
	require.Empty(l.t, rest)
	require.False(l.t, l.lines.Scan(), "%q came after the end", l.lines.Text())
}

func TestFollowingACall(t *testing.T) {
	each(t, func(s *service) {
		t := s.t
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(200, "POST", "/user/make_call", aCall)
		server := httptest.NewServer(s.handler)
		t.Cleanup(server.Close)
		system := s.db.System()
		claimed, err := system.ClaimCall(t.Context(), 1, "node")
		require.NoError(t, err)
		require.True(t, claimed)
		step := func(kind string, status parley.CallStatus, detail parley.Object) {
			require.NoError(t, system.Advance(t.Context(), "node", []store.Step{{Status: status, Event: parley.CallEvent{CallID: 1, At: time.Now(), Event: kind, Detail: detail}}}))
		}
		step(parley.EventStatus, parley.CallRinging, parley.Object{"status": "ringing"})

		first := s.listens(server.URL, "")
		_, kind, detail := first.hears() // what has been comes first
		require.Equal(t, "status", kind)
		require.Equal(t, "initiated", detail["status"])
		seen, _, detail := first.hears()
		require.Equal(t, "ringing", detail["status"])
		step(parley.EventStatus, parley.CallInProgress, parley.Object{"status": "in-progress"})
		step(parley.EventTurn, "", parley.Object{"text": "Hello <b>", "sender": "bot"})
		_, _, detail = first.hears()
		require.Equal(t, "in-progress", detail["status"])
		_, kind, detail = first.hears()
		require.Equal(t, "transcript", kind)
		require.Equal(t, "Hello <b>", detail["text"])

		second := s.listens(server.URL, seen)
		_, _, detail = second.hears()
		require.Equal(t, "in-progress", detail["status"], "it goes on after the event it had seen")
		_, _, _ = second.hears()

		head, err := http.NewRequestWithContext(t.Context(), "HEAD", server.URL+"/api/user/calls/1/events", nil)
		require.NoError(t, err)
		head.Header.Set("Authorization", "Bearer "+s.token)
		response, err := http.DefaultClient.Do(head)
		require.NoError(t, err, "it does not wait for the end of the call")
		response.Body.Close()

		call, err := system.Call(t.Context(), 1)
		require.NoError(t, err)
		call.Status = parley.CallEndedByAssistant
		// As the switchboard does: a status and its step commit together.
		require.NoError(t, system.Tx(t.Context(), func(s *store.System) error { return s.EndCall(t.Context(), "node", call) }))
		_, _, detail = first.hears()
		require.Equal(t, "ended_by_assistant", detail["status"])
		require.NoError(t, system.Tx(t.Context(), func(s *store.System) error {
			_, err := s.CompleteCall(t.Context(), call)
			return err
		}))
		for _, l := range []*listener{first, second} {
			for status := ""; status != "completed"; {
				_, _, detail = l.hears()
				status, _ = detail["status"].(string)
			}
			l.over()
		}
		late := s.listens(server.URL, "")
		for range 6 {
			late.hears()
		}
		late.over() // all of it, and at once the end
	})
}

// A server that stops does not wait for those who listen.
func TestListenersLeaveWithTheServer(t *testing.T) {
	each(t, func(s *service) {
		s.want(201, "POST", "/user/assistant", anAssistant(""))
		s.want(200, "POST", "/user/make_call", aCall)
		server := httptest.NewServer(s.handler)
		s.t.Cleanup(server.Close)
		l := s.listens(server.URL, "")
		l.hears()
		s.handler.(*api.Server).Stop()
		l.over()
	})
}
