package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
)

// TestPromiseE2FailuresTellNothingInternal: blocked, refused, silent and unknown
// targets get the same words at the same time.
func TestPromiseE2FailuresTellNothingInternal(t *testing.T) { // alone: it measures time
	const reach, bucket = 600 * time.Millisecond, 250 * time.Millisecond
	allowed, err := ParseAllowed([]string{"127.0.0.1"})
	require.NoError(t, err)
	c := newClient(Config{Allowed: allowed}, reach, names(t, func(name string) []netip.Addr {
		switch name {
		case "blocked.example":
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
		case "silent.example":
			return []netip.Addr{{}}
		}
		return nil
	}))
	t.Cleanup(c.Close)
	targets := map[string]string{
		"blocked": "127.0.0.2", "blocked on another port": "127.0.0.2:6379", "metadata": "169.254.169.254", "blocked name": "blocked.example", "a port not of the web": "1.1.1.1:22",
		"refused": refusing(t), "timed out": silent(t), "unknown name": "unknown.example", "silent name server": "silent.example",
	}
	var wait sync.WaitGroup
	for name, target := range targets {
		for range promise.Figure(2, 20) {
			wait.Go(func() {
				e := run(t, c, aTool("GET", "http://"+target+"/"), nil)
				a := c.Deliver(context.Background(), Delivery{ID: "msg_1", URL: "http://" + target + "/", Body: []byte("{}"), Secrets: []string{NewSecret()}})
				want := parley.Failure{Kind: parley.Unreachable, Message: "the address could not be reached; it must be public and on port 80 or 443"}
				if *e.Failure != want || *a.Failure != want || e.Status != 0 || a.Status != 0 || a.Answer != "" {
					t.Errorf("%s: %+v %+v", name, e, a)
				}
				for _, took := range []time.Duration{time.Duration(e.DurationMS) * time.Millisecond, a.Duration} {
					if took < reach-time.Millisecond || took > reach+bucket {
						t.Errorf("%s took %s", name, took)
					}
				}
			})
		}
	}
	wait.Wait()
}

// A tool whose own limit is shorter than the reach: the same, at its limit.
func TestPromiseE2HoldsForShortLimits(t *testing.T) { // alone: it measures time
	allowed, err := ParseAllowed([]string{"127.0.0.1"})
	require.NoError(t, err)
	c := newClient(Config{Allowed: allowed}, reach, nobody(t))
	t.Cleanup(c.Close)
	var wait sync.WaitGroup
	for _, target := range []string{"10.0.0.1", refusing(t), silent(t)} {
		wait.Go(func() {
			e := run(t, c, aTool("GET", "http://"+target+"/"), nil)
			if e.Failure.Kind != parley.Unreachable || e.DurationMS < 999 || e.DurationMS > 1250 {
				t.Errorf("%s: %s after %d ms", target, e.Failure.Kind, e.DurationMS)
			}
		})
	}
	wait.Wait()
}

// hangs never answers; it ends with its client, whose leaving is seen once the body
// has been read.
func hangs(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// drips sends a byte at a time, for ever.
func drips(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte("x")); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// floods sends 100 MB.
func floods(w http.ResponseWriter, _ *http.Request) {
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for range 1600 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// bomb is small until it is unpacked.
var bomb = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(make([]byte, 4<<20))
	z.Close()
	return packed.Bytes()
})

func explodes(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(bomb())
}

// says is a server that writes these bytes and closes.
func says(t testing.TB, text string) string {
	t.Helper()
	return raw(t, func(conn net.Conn) { fmt.Fprint(conn, text) })
}

// Receivers that do not do as they should, seen by a tool and by a webhook.
func TestBadReceivers(t *testing.T) { // alone: it measures time
	c := home(t)
	c.deliver = time.Second
	bomb()
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) })
	for name, r := range map[string]struct {
		url    string
		tool   parley.FailureKind // "" for an answer
		hook   parley.FailureKind
		status int
	}{
		"hangs":                  {serve(t, hangs), parley.TimedOut, parley.TimedOut, 0},
		"drips":                  {serve(t, drips), parley.TimedOut, "", 200},
		"redirects for ever":     {loop, parley.Moved, parley.Moved, 302},
		"100 MB":                 {serve(t, floods), "", "", 200},
		"a bomb":                 {serve(t, explodes), parley.Unreadable, "", 200},
		"not HTTP":               {says(t, "\x16\x03\x01\x02garbage"), parley.Unreadable, parley.Unreadable, 0},
		"says nothing":           {says(t, ""), parley.Unreadable, parley.Unreadable, 0},
		"endless header":         {says(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 200<<10)+"\r\n\r\n"), parley.Unreadable, parley.Unreadable, 0},
		"many headers":           {says(t, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Y: zzzzzzzz\r\n", 10_000)+"\r\n"), parley.Unreadable, parley.Unreadable, 0},
		"closes early":           {says(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), parley.Unreadable, "", 200},
		"closes in a chunk":      {says(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"), parley.Unreadable, "", 200},
		"closes in the header":   {says(t, "HTTP/1.1 200 OK\r\nContent-"), parley.Unreadable, parley.Unreadable, 0},
		"absurd length":          {says(t, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), parley.Unreadable, parley.Unreadable, 0},
		"upgrades":               {says(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), parley.BadStatus, parley.BadStatus, 101},
		"answers 500":            {says(t, "HTTP/1.1 500 Oh No\r\nContent-Length: 0\r\n\r\n"), parley.BadStatus, parley.BadStatus, 500},
		"answers 204":            {says(t, "HTTP/1.1 204 No Content\r\n\r\n"), "", "", 204},
		"answers status 999":     {says(t, "HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n"), parley.BadStatus, parley.BadStatus, 999},
		"answers binary":         {says(t, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x00\xff\xfe\x01"), parley.Unreadable, "", 200},
		"answers HTML":           {says(t, "HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n\n<!DOCTYPE html><p>Log in</p>"), parley.Unreadable, "", 200},
		"answers broken JSON":    {says(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"open\": "), "", "", 200},
		"HTTPS of another's key": {serveTLS(t), parley.Untrusted, parley.Untrusted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			e := run(t, c, aTool("POST", r.url), nil)
			require.Less(t, time.Since(began), prompt)
			require.Equal(t, r.tool, kindOf(e.Failure), "%+v", e.Failure)
			require.LessOrEqual(t, e.Size, 64<<10)
			require.LessOrEqual(t, len(e.Answer), 64<<10)
			require.Equal(t, r.status, e.Status)
			c.Close() // a kept connection may be one that the receiver has just closed
			began = time.Now()
			a := c.Deliver(t.Context(), Delivery{ID: "msg_1", URL: r.url, Body: []byte("{}"), Secrets: []string{NewSecret()}})
			require.Less(t, time.Since(began), prompt)
			require.Equal(t, r.hook, kindOf(a.Failure), "%+v", a.Failure)
			require.Equal(t, r.status, a.Status)
			require.LessOrEqual(t, len(a.Answer), 20_000)
			require.NotContains(t, a.Answer, "\x00")
		})
	}
}

func kindOf(f *parley.Failure) parley.FailureKind {
	if f == nil {
		return ""
	}
	return f.Kind
}

// serveTLS has a certificate that nobody signed.
func serveTLS(t testing.TB) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.ErrorLog = discard
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// A request that nobody waits for any more ends at once, and says so.
func TestCancelling(t *testing.T) {
	t.Parallel()
	c := home(t)
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hangs(w, r)
	})
	a := c.Deliver(ctx, Delivery{ID: "msg_1", URL: url, Secrets: []string{NewSecret()}})
	require.Equal(t, parley.Cancelled, a.Failure.Kind)
	require.Less(t, a.Duration, 10*time.Second)
}

// TestPromiseW6Bounded: whatever a receiver sends, little is kept, in little time and
// memory, and no redirect is followed.
func TestPromiseW6Bounded(t *testing.T) { // alone: it measures memory
	c := home(t)
	c.deliver = time.Duration(promise.Figure(1, 15)) * time.Second
	deliver := func(url string) Attempt {
		return c.Deliver(t.Context(), Delivery{ID: "msg_1", URL: url, Body: []byte("{}"), Secrets: []string{NewSecret()}})
	}
	_, elsewhere := listen(t, "127.0.0.1:0", echo)
	big, slow := serve(t, floods), serve(t, drips)
	port, hops := listen(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	})
	deliver(big)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const times = 10
	for range times {
		a := deliver(big)
		require.True(t, a.Delivered())
		require.Len(t, a.Answer, 20_000)
	}
	runtime.ReadMemStats(&after)
	// All that was ever allocated, by the server too: what is held at once is less.
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5<<20), "bytes allocated by %d answers of 100 MB", times)
	t.Logf("%d answers of 100 MB: %d KB allocated", times, (after.TotalAlloc-before.TotalAlloc)>>10)
	a := deliver(slow)
	require.InDelta(t, c.deliver.Seconds(), a.Duration.Seconds(), 0.25)
	require.LessOrEqual(t, len(a.Answer), 20_000)
	require.Equal(t, parley.Moved, deliver("http://127.0.0.1:"+port).Failure.Kind)
	require.EqualValues(t, 1, hops.Load(), "no redirect is followed")
	require.Zero(t, elsewhere.Load())
}
