package sip

import (
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// sipp starts Debian's sipp with a scenario of ours. Without it the test is skipped, in
// CI it fails: a peer that is not our own code is the point.
func sipp(t *testing.T, scenario string, port int, arguments ...string) (wait func() error, folder string) {
	t.Helper()
	program, err := exec.LookPath("sipp")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("sipp is missing: apt-get install sip-tester")
		}
		t.Skip("SKIPPED, NOT TESTED: sipp is missing: apt-get install sip-tester")
	}
	path, err := filepath.Abs(filepath.Join("testdata", scenario+".xml"))
	require.NoError(t, err)
	folder = t.TempDir()
	common := []string{"-sf", path, "-i", "127.0.0.1", "-p", strconv.Itoa(port), "-nostdin", "-timeout", "90s", "-timeout_error",
		"-trace_err", "-error_file", filepath.Join(folder, "errors"), "-s", "+12025550123"}
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	command := exec.CommandContext(ctx, program, append(common, arguments...)...)
	command.Dir = folder
	var out strings.Builder
	command.Stdout, command.Stderr = &out, &out
	require.NoError(t, command.Start())
	return func() error {
		defer cancel()
		err := command.Wait()
		if err != nil {
			errors, _ := os.ReadFile(filepath.Join(folder, "errors"))
			err = fmt.Errorf("sipp %s: %w\n%s\n%s", scenario, err, errors, tail(out.String(), 3000))
		}
		return err
	}, folder
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func freePort(t *testing.T) int {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
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
			wait, _ := sipp(t, scenario, freePort(t), "-m", "3", "-r", "10", b.Addr("udp").String())
			require.NoError(t, wait())
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
		wait, _ := sipp(t, "uac_call", freePort(t), "-t", mode, "-max_socket", "100", "-m", "3", "-r", "10", b.Addr("tcp").String())
		require.NoError(t, wait(), mode)
		eventually(t, "no call stays", func() bool { return b.Counters().Active == 0 })
	}
}

func TestWeCallSippOverTCP(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Listen = []Listen{{Network: "tcp", Address: "127.0.0.1:0"}}
	a, port := start(t, s), freePort(t)
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	wait, _ := sipp(t, "uas_call", port, "-t", "t1", "-m", "1")
	var c *Call
	eventually(t, "sipp listens", func() (answered bool) { // TCP is refused until then
		var err error
		c, err = a.Dial(within(t), parley.Trunk{ID: 1, Address: at, Transport: "tcp"}, Outgoing{To: "+12025550123", Media: media(5000)})
		return err == nil
	})
	_ = c.Hangup(within(t)) // sipp answers and closes the connection in one go
	require.NoError(t, wait())
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
			port := freePort(t)
			wait, _ := sipp(t, scenario, port, "-m", "1")
			trunk := parley.Trunk{ID: 1, Address: "127.0.0.1:" + strconv.Itoa(port), Transport: "udp", Username: "parley", Password: "secret-of-sipp"}
			ring := 10 * time.Second
			if scenario == "uas_cancel" {
				ring = time.Second
			}
			c, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000), RingTimeout: ring})
			if outcome != "" {
				require.Equal(t, outcome, failure(t, err).Outcome)
				require.NoError(t, wait())
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
			require.NoError(t, wait())
		})
	}
}

// TestPromiseT1 has sipp place calls at us: 1,000 at 50 a second for the promise.
func TestPromiseT1(t *testing.T) {
	t.Parallel()
	n := sample(50, 1000)
	var terminal atomic.Int64
	b := callee(t, quick(), func(_ context.Context, in *Incoming) {
		_ = in.Ring()
		_, _ = in.Answer(media(4000), Hooks{Ended: func(End) { terminal.Add(1) }})
	})
	wait, folder := sipp(t, "uac_call", freePort(t), "-m", strconv.Itoa(n), "-r", "50", "-trace_rtt", "-rtt_freq", "1", b.Addr("udp").String())
	require.NoError(t, wait(), "0 failed, 0 unexpected messages")
	eventually(t, "every call has its end", func() bool { return terminal.Load() == int64(n) })
	require.Zero(t, b.Counters().Active)
	times := answerTimes(t, folder)
	require.NotEmpty(t, times)
	p99 := times[len(times)*99/100]
	t.Logf("%d calls, INVITE to 200: p50 %.1f ms, p99 %.1f ms, max %.1f ms", n, times[len(times)/2], p99, times[len(times)-1])
	if full() {
		require.LessOrEqual(t, p99, 100.0)
	}
}

// TestSetUpRate is the set-up rate a node must bear: 200 calls a second, none failed.
func TestSetUpRate(t *testing.T) {
	t.Parallel()
	if !full() {
		t.Skip("runs with PARLEY_PROMISES=full")
	}
	b := callee(t, quick(), answering(nil, Hooks{}))
	wait, folder := sipp(t, "uac_call", freePort(t), "-m", "4000", "-r", "200", "-l", "1000", "-trace_rtt", "-rtt_freq", "1", b.Addr("udp").String())
	require.NoError(t, wait())
	times := answerTimes(t, folder)
	t.Logf("200 calls a second: INVITE to 200 p50 %.1f ms, p99 %.1f ms", times[len(times)/2], times[len(times)*99/100])
}

// answerTimes reads sipp's response times in milliseconds, in rising order.
func answerTimes(t *testing.T, folder string) (times []float64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*rtt.csv"))
	require.NoError(t, err)
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		r := csv.NewReader(f)
		r.Comma, r.FieldsPerRecord = ';', -1
		rows, err := r.ReadAll()
		_ = f.Close()
		require.NoError(t, err)
		for _, row := range rows {
			if len(row) > 1 {
				if ms, err := strconv.ParseFloat(strings.TrimSpace(row[1]), 64); err == nil {
					times = append(times, ms)
				}
			}
		}
	}
	slices.Sort(times)
	return times
}
