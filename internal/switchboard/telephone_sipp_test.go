package switchboard

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/sip/siptest"
)

// echoingSipp is Debian's sipp, which sends all RTP back to where it came from: we hear
// our own tone and keys, by way of a peer that is not our own code.
func echoingSipp(t *testing.T, scenario string, arguments ...string) *siptest.Sipp {
	t.Helper()
	return siptest.StartSipp(t, filepath.Join("testdata", scenario+".xml"), append([]string{"-rtp_echo", "-m", "1", "-s", ourNumber}, arguments...)...)
}

func TestSippEchoes(t *testing.T) {
	t.Parallel()
	for _, ours := range []bool{true, false} {
		t.Run("we call: "+strconv.FormatBool(ours), func(t *testing.T) {
			t.Parallel()
			s := newStation(t, "udp", nil, nil)
			var k *talk
			var peer *siptest.Sipp
			if ours {
				peer = echoingSipp(t, "uas_echo")
				k = s.dial(parley.Trunk{ID: 2, Address: peer.Address(), Transport: "udp", CallingFormat: "+e164"})
			} else {
				peer = echoingSipp(t, "uac_echo", s.agent.Addr("udp").String())
				k = get(t, s.talks, "call of sipp")
			}
			require.Equal(t, "PCMA", k.call.Session().Codec.Name)
			eventually(t, "our tone comes back", k.hears(ourTone))
			require.NoError(t, k.session.SendDigits("15#"))
			eventually(t, "our keys come back", func() bool { return k.keys() == "15#" })
			if ours {
				require.NoError(t, k.call.Hangup(s.within()))
			}
			require.NoError(t, peer.Wait())
			stats := k.session.Stats()
			require.Zero(t, stats.Lost)
			require.Zero(t, stats.Invalid)
		})
	}
}
