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
	client, release := providertest.InMemory(providertest.Sockets(script))
	t.Cleanup(release)
	s, err := wire.Open(t.Context(), wire.StreamOptions{
		Who: "vendor part", Address: "http://vendor", Client: client, OpenLimit: time.Second, Queue: 4,
		Refused: func([]byte, http.Header) string { return "" }, KeepAlive: 5 * time.Second, Staying: "still here", Goodbye: "goodbye",
	}, take, lost)
	require.NoError(t, err)
	return s
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
