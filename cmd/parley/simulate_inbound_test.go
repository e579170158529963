package main

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/media"
	"parley/internal/sip"
	"parley/internal/switchboard"
)

// A simulated person calls a SIP port that an assistant answers, and one that refuses.
func TestSimulatedInboundCall(t *testing.T) {
	t.Parallel()
	a := parley.Assistant{Name: "Front desk", Type: parley.Inbound, Mode: parley.Pipeline}
	parley.AssistantForm.SetDefaults(&a)
	a.Language, a.Timezone, a.InitialMessage = "English", "UTC", "Acme, good morning."
	engine, err := media.New(media.Config{})
	require.NoError(t, err)
	defer engine.Close()
	phone := &switchboard.Telephone{Media: engine, Host: netip.MustParseAddr("127.0.0.1")}
	phone.SIP, err = sip.New(sip.Settings{Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1, Incoming: func(ctx context.Context, in *sip.Incoming) {
		if in.To != "+12025550180" || in.From != "+12025550111" {
			_ = in.Refuse(404, 0)
			return
		}
		if _, err := phone.Answer(ctx, in, sandboxed(&a, &parley.Voice{Key: "alto"}, &parley.Model{Key: "instant"})); err != nil {
			t.Errorf("answer: %v", err)
		}
	}})
	require.NoError(t, err)
	require.NoError(t, phone.SIP.Start())
	defer phone.SIP.Close()
	at := phone.SIP.Addr("udp").String()
	phone.SIP.SetTrunks([]parley.Trunk{{ID: 1, Address: "127.0.0.1", Transport: "udp", AllowedInbound: []string{"127.0.0.1"}, CallingFormat: "+e164", MaxChannels: 10, CallsPerSecond: 10}})

	out := succeeds(t, nil, "simulate", "inbound", "--sip", at, "--to", "+12025550180", "--from", "+12025550111")
	require.Contains(t, out, "+12025550111 calls +12025550180 at "+at+": a willing customer.")
	require.Regexp(t, `Heard: .*(morning|…)`, out)
	require.Contains(t, out, "Ended by the assistant after ")

	for _, c := range []struct{ flag, value, says string }{
		{"--to", "+12025550181", at + " refused the call with SIP 404 (no such number); is +12025550181 the number of an active inbound assistant?"},
		{"--callee", "01", "callee 01 (busy) never picks up a telephone and cannot call"},
		{"--callee", "99", `there is no callee "99"; choose one of 00, 01,`},
		{"--sip", "nowhere", `--sip "nowhere" is not an address and a port, such as 127.0.0.1:5060`},
		{"--sip", "127.0.0.1:9", "nothing takes SIP at 127.0.0.1:9; start parley serve, or say where it listens with --sip"},
	} {
		out, code := runs(t, nil, "simulate", "inbound", "--sip", at, "--to", "+12025550180", "--from", "+12025550111", c.flag, c.value)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, c.says)
	}
}
