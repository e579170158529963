package wire_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"parley/internal/provider/providertest"
	"parley/internal/provider/wire"
)

// open opens a stream to a service in memory.
func open(t *testing.T, script func(ctx context.Context, socket *websocket.Conn), take func([]byte) error, lost func(error)) *wire.Stream {
	t.Helper()
	s, err := tryToOpen(t, providertest.Sockets(script), take, lost)
	require.NoError(t, err)
	return s
}

func tryToOpen(t *testing.T, handler providertest.Handler, take func([]byte) error, lost func(error)) (*wire.Stream, error) {
	t.Helper()
	client, release := providertest.InMemory(handler)
	t.Cleanup(release)
	return wire.Open(t.Context(), wire.StreamOptions{
		Who: "vendor part", Key: "s3cret", Address: "http://vendor", Client: client, OpenLimit: time.Second, Queue: 4,
		Refused: func(body []byte, _ http.Header) string { return string(body) }, KeepAlive: 5 * time.Second, Staying: "still here", Goodbye: "goodbye",
	}, take, lost)
}

func TestAStreamThatIsNotOpened(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":   {providertest.Refuse(401, "s3cret"), "the key was refused (401)"},
		"no credit":   {providertest.Refuse(402, "x"), "no credit left (402)"},
		"forbidden":   {providertest.Refuse(403, "x"), "the key does not allow this (403)"},
		"bad request": {providertest.Refuse(400, "no\nmodel s3cret"), "the request was refused (400): no model ***"},
		"too many":    {providertest.Refuse(429, "later", "Retry-After", "3"), "too many requests or no credit left (429), to be tried again after 3 s: later"},
		"failure":     {providertest.Refuse(500, ""), "the service failed (500)"},
		"overloaded":  {providertest.Refuse(503, ""), "the service is overloaded (503)"},
		"so as well":  {providertest.Refuse(529, ""), "the service is overloaded (529)"},
		"no socket":   {func(_ context.Context, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }, "the request was refused (200)"},
		"cut":         {func(context.Context, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the service cannot be reached"},
		"slow":        {providertest.Stall, "no stream within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := tryToOpen(t, c.handler, nil, nil)
				require.EqualError(t, err, "vendor part: "+c.want)
			})
		})
	}
}

func TestANetworkThatDoesNotCarryTheSoundDoesNotHoldUpTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, func(ctx context.Context, _ *websocket.Conn) { <-ctx.Done() }, func([]byte) error { return nil }, func(error) {})
		var err error
		for range 10 {
			if err = s.SendSound(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		require.EqualError(t, err, "vendor part: the connection does not carry the sound")
		began := time.Now()
		require.NoError(t, s.Close())
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestClosingWaitsForWhoIsStillCalledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := open(t, func(ctx context.Context, socket *websocket.Conn) {
			providertest.SendText(ctx, socket, "hello")
			providertest.Drain(ctx, socket)
		}, func([]byte) error { <-release; return nil }, func(error) {})
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			_ = s.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			require.Fail(t, "closed while somebody was called back")
		default:
		}
		close(release)
		<-closed
	})
}

func TestAStreamIsKeptAndTakenLeaveOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var at []time.Duration
		began := time.Now()
		done := make(chan struct{})
		s := open(t, func(ctx context.Context, socket *websocket.Conn) {
			defer close(done)
			for {
				_, body, err := socket.Read(ctx)
				if err != nil {
					return
				}
				got, at = append(got, string(body)), append(at, time.Since(began))
			}
		}, func([]byte) error { return nil }, func(error) {})
		time.Sleep(2 * time.Second)
		require.NoError(t, s.SendText("sound"))
		time.Sleep(6 * time.Second)
		require.NoError(t, s.Close())
		<-done
		require.Equal(t, []string{"sound", "still here", "goodbye"}, got)
		require.Equal(t, []time.Duration{2 * time.Second, 7 * time.Second, 8 * time.Second}, at)
		require.EqualError(t, s.SendText("more"), "vendor part: the stream is closed")
	})
}

func TestAHalfOpenConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan error, 1)
		s := open(t, func(ctx context.Context, _ *websocket.Conn) { <-ctx.Done() }, func([]byte) error { return nil }, func(err error) { lost <- err })
		defer s.Close()
		began := time.Now()
		require.NoError(t, s.SendSound(make([]byte, 1<<20)))
		require.EqualError(t, <-lost, "vendor part: the connection was lost")
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Error(t, s.Alive())
	})
}

// The end of a call does not break off the message that is on its way, or there would be
// no goodbye; a service that takes nothing is not waited for.
func TestTheEndOfACallBreaksNoMessageOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ idle, closing time.Duration }{{150 * time.Millisecond, 50 * time.Millisecond}, {time.Minute, 200 * time.Millisecond}} {
			var got []int
			done := make(chan struct{})
			s := open(t, func(ctx context.Context, socket *websocket.Conn) {
				defer close(done)
				socket.SetReadLimit(2 << 20)
				time.Sleep(tt.idle)
				for {
					_, body, err := socket.Read(ctx)
					if err != nil {
						return
					}
					got = append(got, len(body))
				}
			}, func([]byte) error { return nil }, func(error) {})
			require.NoError(t, s.SendSound(make([]byte, 1<<20)))
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			require.NoError(t, s.Close())
			require.Equal(t, tt.closing, time.Since(began))
			<-done
			if tt.idle < time.Second {
				require.Equal(t, []int{1 << 20, len("goodbye")}, got)
			}
		}
	})
}
