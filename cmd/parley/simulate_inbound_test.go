package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var sipLine = regexp.MustCompile(`(?m)^  SIP +(\S+)$`)

// sipAddress is where a server takes SIP.
func (n *node) sipAddress() string {
	n.t.Helper()
	found := sipLine.FindStringSubmatch(n.greeted)
	require.NotNil(n.t, found, n.greeted)
	return found[1]
}

// A simulated person calls a running server: a number that an assistant answers, and
// some that nobody does. The call is a row like any other.
func TestSimulatedInboundCall(t *testing.T) {
	t.Parallel()
	env := []string{"PARLEY_DATA=" + t.TempDir()}
	n := serves(t, env)
	n.want(201, "POST", "/api/user/assistant", `{"assistant_name":"Front desk","voice_id":1,"language":"English","llm_model":"sandbox","calls_direction":"receive","engine_type":"pipeline",
		"timezone":"UTC","initial_message":"Acme, good morning.","system_prompt":"Be kind.","phone_number_id":1}`)
	at := n.sipAddress()
	out := succeeds(t, env, "simulate", "inbound", "--sip", at, "--to", "+12025550180", "--from", "+12025550111")
	require.Contains(t, out, "+12025550111 calls +12025550180 at "+at+": a willing customer.")
	require.Regexp(t, `Heard: .*(morning|…)`, out)
	require.Regexp(t, "Ended by the (assistant|caller) after ", out)
	call := n.want(200, "GET", "/api/user/calls/1", "")
	require.Contains(t, call, `"type":"inbound"`)
	require.Contains(t, call, `"client_phone_number":"+12025550111"`)

	for _, c := range []struct{ flag, value, says string }{
		{"--to", "+12025550177", at + " refused the call with SIP 404 (no such number); is +12025550177 the number of an active inbound assistant?"},
		{"--to", "+12025550181", at + " refused the call with SIP 480"}, // a number that no assistant has
		{"--callee", "01", "callee 01 (busy) never picks up a telephone and cannot call"},
		{"--callee", "99", `there is no callee "99"; choose one of 00, 01,`},
		{"--sip", "127.0.0.1:9", "nothing takes SIP at 127.0.0.1:9; start parley serve, or say where it listens with --sip"},
	} {
		out, code := runs(t, env, "simulate", "inbound", "--sip", at, "--to", "+12025550180", "--from", "+12025550111", c.flag, c.value)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, c.says)
	}
}
