package sip

import (
	"context"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/sip/siptest"
)

// sipp starts Debian's sipp with a scenario of ours.
func sipp(t *testing.T, scenario string, arguments ...string) *siptest.Sipp {
	t.Helper()
	return siptest.StartSipp(t, filepath.Join("testdata", scenario+".xml"), append([]string{"-s", "+12025550123"}, arguments...)...)
}

func TestSippCallsUs(t *testing.T) {
	t.Parallel()
	digits := make(chan byte, 8)
	for scenario, take := range map[string]func(context.Context, *Incoming){
		"uac_info":     answering(nil, Hooks{Digit: func(digit byte, _ time.Duration) { digits <- digit }}),
		"uac_transfer": answering(nil, Hooks{}),
		"uac_call":     answering(nil, Hooks{}),
		"uac_repeat":   answering(nil, Hooks{}),
		"uac_hold":     answering(nil, Hooks{}),
		"uac_busy":     func(_ context.Context, in *Incoming) { _ = in.Refuse(486, 0) },
		"uac_cancel":   func(ctx context.Context, in *Incoming) { _ = in.Ring(); <-ctx.Done() },
		"uac_digest":   answering(nil, Hooks{}),
		"uac_100rel": func(ctx context.Context, in *Incoming) {
			_ = in.Ring()
			in.call.mu.Lock()
			r := in.call.reliable
			in.call.mu.Unlock()
			if r != nil {
				select {
				case <-r.got:
				case <-ctx.Done():
				}
			}
			_, _ = in.Answer(media(4000), Hooks{})
		},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			s := quick()
			s.Incoming = take
			s.Digests = []string{"MD5"} // all that sipp has
			b := start(t, s)
			trunk := parley.Trunk{ID: 7, Address: "192.0.2.1", AllowedInbound: []string{"127.0.0.1"}, MaxChannels: 1000}
			if scenario == "uac_digest" {
				trunk.AllowedInbound = nil
				trunk.Username, trunk.Password = "parley", "secret-of-sipp"
			}
			b.SetTrunks([]parley.Trunk{trunk})
			peer := sipp(t, scenario, "-m", "3", "-r", "10", b.Addr("udp").String())
			require.NoError(t, peer.Wait())
			if scenario == "uac_info" {
				require.Equal(t, byte('7'), get(t, digits))
			}
			eventually(t, "no call stays", func() bool { return b.Counters().Active == 0 })
		})
	}
}

// The same over TCP: a connection for all calls, and one for each.
func TestSippCallsUsOverTCP(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"t1", "tn"} {
		s := quick()
		s.Listen = []Listen{{Network: "tcp", Address: "127.0.0.1:0"}}
		b := callee(t, s, answering(nil, Hooks{}))
		peer := sipp(t, "uac_call", "-t", mode, "-max_socket", "100", "-m", "3", "-r", "10", b.Addr("tcp").String())
		require.NoError(t, peer.Wait(), mode)
		eventually(t, "no call stays", func() bool { return b.Counters().Active == 0 })
	}
}

func TestWeCallSippOverTCP(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Listen = []Listen{{Network: "tcp", Address: "127.0.0.1:0"}}
	a, peer := start(t, s), sipp(t, "uas_call", "-t", "t1", "-m", "1")
	var c *Call
	eventually(t, "sipp listens", func() (answered bool) { // TCP is refused until then
		var err error
		c, err = a.Dial(within(t), parley.Trunk{ID: 1, Address: peer.Address(), Transport: "tcp"}, Outgoing{To: "+12025550123", Media: media(5000)})
		return err == nil
	})
	_ = c.Hangup(within(t)) // sipp answers and closes the connection in one go
	require.NoError(t, peer.Wait())
}

func TestWeCallSipp(t *testing.T) {
	t.Parallel()
	for scenario, outcome := range map[string]Outcome{
		"uas_call": "", "uas_busy": Busy, "uas_cancel": NoAnswer, "uas_digest": "", "uas_hold": "", "uas_100rel": "",
		"uas_info": "", "uas_transfer": "",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			a := start(t, quick())
			peer := sipp(t, scenario, "-m", "1")
			trunk := parley.Trunk{ID: 1, Address: peer.Address(), Transport: "udp", Username: "parley", Password: "secret-of-sipp"}
			ring := 10 * time.Second
			if scenario == "uas_cancel" {
				ring = time.Second
			}
			c, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000), RingTimeout: ring})
			if outcome != "" {
				require.Equal(t, outcome, failure(t, err).Outcome)
				require.NoError(t, peer.Wait())
				return
			}
			require.NoError(t, err)
			require.Equal(t, "PCMA", c.Session().Codec.Name)
			switch scenario {
			case "uas_hold":
				s, err := c.Hold(within(t))
				require.NoError(t, err)
				require.Equal(t, SendOnly, s.Direction)
			case "uas_info":
				require.NoError(t, c.SendDigit(within(t), '7', 100*time.Millisecond))
			case "uas_transfer":
				require.NoError(t, c.Transfer(within(t), "+12025550199"))
			}
			require.NoError(t, c.Hangup(within(t)))
			require.NoError(t, peer.Wait())
		})
	}
}

// TestPromiseT1 has sipp place calls at us: 1,000 at 50 a second for the promise.
func TestPromiseT1(t *testing.T) {
	t.Parallel()
	n := promise.Figure(50, 1000)
	var terminal atomic.Int64
	b := callee(t, quick(), func(_ context.Context, in *Incoming) {
		_ = in.Ring()
		_, _ = in.Answer(media(4000), Hooks{Ended: func(End) { terminal.Add(1) }})
	})
	peer := sipp(t, "uac_call", "-m", strconv.Itoa(n), "-r", "50", b.Addr("udp").String())
	require.NoError(t, peer.Wait(), "0 failed, 0 unexpected messages")
	eventually(t, "every call has its end", func() bool { return terminal.Load() == int64(n) })
	require.Zero(t, b.Counters().Active)
	times := peer.AnswerTimes()
	require.NotEmpty(t, times)
	p99 := times[len(times)*99/100]
	t.Logf("%d calls, INVITE to 200: p50 %s, p99 %s, max %s", n, times[len(times)/2], p99, times[len(times)-1])
	if promise.Full() {
		require.LessOrEqual(t, p99, 100*time.Millisecond)
	}
}

// TestSetUpRate is the set-up rate a node must bear: 200 calls a second, none failed.
func TestSetUpRate(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("runs with PARLEY_PROMISES=full")
	}
	b := callee(t, quick(), answering(nil, Hooks{}))
	peer := sipp(t, "uac_call", "-m", "4000", "-r", "200", "-l", "1000", b.Addr("udp").String())
	require.NoError(t, peer.Wait())
	times := peer.AnswerTimes()
	t.Logf("200 calls a second: INVITE to 200 p50 %s, p99 %s", times[len(times)/2], times[len(times)*99/100])
}
