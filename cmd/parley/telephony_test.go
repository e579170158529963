package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
)

// What cannot work is refused before anything starts, with what to set instead.
func TestTelephonySettings(t *testing.T) {
	t.Parallel()
	rates := filepath.Join(t.TempDir(), "rates.json")
	require.NoError(t, os.WriteFile(rates, []byte(`{"carrier": {"49": 0.1}}`), 0o600))
	for _, c := range []struct{ setting, says string }{
		{"PARLEY_SIP=5060", `PARLEY_SIP "5060" must be an IP address and a port`},
		{"PARLEY_SIP_TLS=0.0.0.0:5061", "PARLEY_SIP_TLS needs PARLEY_TLS_CERT and PARLEY_TLS_KEY"},
		{"PARLEY_EXTERNAL_ADDRESS=here", `PARLEY_EXTERNAL_ADDRESS "here" must be an IP address`},
		{"PARLEY_RTP_PORTS=80-90", `PARLEY_RTP_PORTS "80-90" must be a range above 1023`},
		{"PARLEY_MAX_CALLS=0", "PARLEY_MAX_CALLS must be 1 or more"},
		{"PARLEY_BLOCKED_PREFIXES=0900", `the prefix "0900"`},
		{"PARLEY_OPT_OUT_KEY=A", `PARLEY_OPT_OUT_KEY "A" must be one key`},
		{"PARLEY_DEFAULT_TRUNK=carrier.example.com", "PARLEY_DEFAULT_TRUNK must look like sip:USER:PASSWORD@HOST:PORT"},
		{"PARLEY_DEFAULT_TRUNK=sip:a:b@carrier.example.com;codec=opus", `"codec=opus" is not known`},
		{"PARLEY_RATES=" + rates, `the carrier's prefix "49" must be + and digits`},
		{"PARLEY_RATES=/nowhere/rates.json", "PARLEY_RATES: open /nowhere/rates.json"},
	} {
		out, code := runs(t, []string{"PARLEY_DATA=" + t.TempDir(), c.setting}, "serve")
		require.Equal(t, 2, code, out)
		require.Contains(t, out, c.says)
	}
}

func TestTheOperatorsTrunk(t *testing.T) {
	t.Parallel()
	trunk, err := parseTrunk("sip:parley:s3cret@sip.carrier.example.com:5061;transport=tls")
	require.NoError(t, err)
	require.Equal(t, parley.Trunk{ID: defaultTrunkID, Address: "sip.carrier.example.com:5061", Transport: "tls", Username: "parley", Password: "s3cret", Register: true, CallingFormat: "+e164", MaxChannels: 1000, CallsPerSecond: 50}, *trunk)
	trunk, err = parseTrunk("sip:sip.carrier.example.com")
	require.NoError(t, err)
	require.False(t, trunk.Register, "without a password there is nothing to register with")
	trunk, err = parseTrunk("sip:a:b@10.0.0.1;register=false")
	require.NoError(t, err)
	require.False(t, trunk.Register)
}
