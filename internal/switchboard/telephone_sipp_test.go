package switchboard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// echoingSipp is Debian's sipp, which sends all RTP back to where it came from: we hear
// our own tone and keys, by way of a peer that is not our own code.
func echoingSipp(t *testing.T, scenario string, port int, arguments ...string) (wait func()) {
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	command := exec.CommandContext(ctx, program, append([]string{"-sf", path, "-i", "127.0.0.1", "-p", strconv.Itoa(port), "-mp", strconv.Itoa(freeMedia(t)),
		"-rtp_echo", "-nostdin", "-m", "1", "-timeout", "40s", "-timeout_error", "-s", ourNumber}, arguments...)...)
	command.Dir = t.TempDir()
	var out strings.Builder
	command.Stdout, command.Stderr = &out, &out
	require.NoError(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(cancel)
	return func() {
		t.Helper()
		require.NoError(t, get(t, ended, "end of sipp"), "%s", &out)
	}
}

// freeMedia is a UDP port that is free, with those after it that sipp takes for RTCP
// and video.
func freeMedia(t *testing.T) int {
	t.Helper()
	for range 100 {
		port, free := 42000+8*rand.IntN(2000), true
		for i := range 4 {
			c, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port+i))
			if err != nil {
				free = false
				break
			}
			_ = c.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no port for sipp's media")
	return 0
}

func TestSippEchoes(t *testing.T) {
	t.Parallel()
	for _, ours := range []bool{true, false} {
		t.Run("we call: "+strconv.FormatBool(ours), func(t *testing.T) {
			t.Parallel()
			s, port := newStation(t, "udp", nil, nil), freePorts(t)
			var k *talk
			var wait func()
			if ours {
				wait = echoingSipp(t, "uas_echo", port)
				k = s.dial(parley.Trunk{ID: 2, Address: "127.0.0.1:" + strconv.Itoa(port), Transport: "udp", CallingFormat: "+e164"})
			} else {
				wait = echoingSipp(t, "uac_echo", port, s.agent.Addr("udp").String())
				k = get(t, s.talks, "call of sipp")
			}
			require.Equal(t, "PCMA", k.call.Session().Codec.Name)
			eventually(t, "our tone comes back", k.hears(ourTone))
			require.NoError(t, k.session.SendDigits("15#"))
			eventually(t, "our keys come back", func() bool { return k.keys() == "15#" })
			if ours {
				require.NoError(t, k.call.Hangup(s.within()))
			}
			wait()
			stats := k.session.Stats()
			require.Zero(t, stats.Lost)
			require.Zero(t, stats.Invalid)
		})
	}
}
