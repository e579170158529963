package switchboard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/media"
	"parley/internal/sip"
	"parley/internal/switchboard"
)

// A conversation over a TLS trunk is SRTP from the first word to the last.
func TestATLSTrunkCarriesSRTP(t *testing.T) {
	t.Parallel()
	identity, _ := switchboard.Identity(t)
	offers := make(chan sip.Session, 1)
	answered := make(chan switchboard.Result, 1)
	node := func(incoming func(*switchboard.Telephone, context.Context, *sip.Incoming)) *switchboard.Telephone {
		phone := &switchboard.Telephone{Host: loopback}
		var err error
		phone.Media, err = media.New(media.Config{})
		require.NoError(t, err)
		t.Cleanup(phone.Media.Close)
		phone.SIP, err = sip.New(sip.Settings{
			Listen: []sip.Listen{{Network: "tls", Address: "127.0.0.1:0"}}, TLS: identity, OptionsEvery: -1,
			Incoming: func(ctx context.Context, in *sip.Incoming) { incoming(phone, ctx, in) },
		})
		require.NoError(t, err)
		require.NoError(t, phone.SIP.Start())
		t.Cleanup(func() { require.NoError(t, phone.SIP.Close()) })
		return phone
	}
	callee := node(func(phone *switchboard.Telephone, ctx context.Context, in *sip.Incoming) {
		offers <- *in.Offer
		result, err := phone.Answer(ctx, in, switchboard.Signals{}, assistant(t, func(a *parley.Assistant) {
			a.Type, a.InitialMessage = parley.Inbound, "Acme, good morning."
		}))
		if err != nil {
			t.Errorf("answer: %v", err)
		}
		answered <- result
	})
	caller := node(nobody)
	trunk := parley.Trunk{ID: 2, Address: callee.SIP.Addr("tls").String(), Transport: "tls", CallingFormat: "+e164", MaxChannels: 10, CallsPerSecond: 100}
	callee.SIP.SetTrunks([]parley.Trunk{{ID: 1, Address: "192.0.2.1", Transport: "tls", AllowedInbound: []string{"127.0.0.1"}, MaxChannels: 10}})
	_, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunk, To: "+12025550180", From: "+12025550100"}, assistant(t, func(a *parley.Assistant) {
		a.WaitForCustomer, a.InitialMessage = true, "Goodbye then."
	}))
	require.NoError(t, err)
	require.NotNil(t, (<-offers).RecvKey, "the offer carries a key")
	result := <-answered
	require.True(t, result.Answered)
	require.Regexp(t, `Customer: .*(Goodbye|then|…)`, result.Transcript, "what was encrypted was understood")
}
