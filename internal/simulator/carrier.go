// Package simulator is a telephone carrier with people behind it, over real SIP and
// RTP on loopback: what a newcomer calls without a trunk, and what our own tests
// call. It is a peer like any other; it must not know the switchboard or the store.
package simulator

import (
	"context"
	"fmt"
	"net/netip"

	"parley"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/sip"
)

// loopback is the only address the carrier is ever at.
var loopback = netip.MustParseAddr("127.0.0.1")

// Carrier is a running simulated carrier.
type Carrier struct {
	agent *sip.Agent
	media *media.Engine
	voice *sandbox.Provider

	speaker converse.Speaker // the callees'
	manner  string           // which of its voices
}

// Start opens a carrier on loopback.
func Start() (*Carrier, error) {
	c := &Carrier{voice: sandbox.New(sandbox.Options{})}
	c.SpeakWith(c.voice.Speaker(), "tenor")
	var err error
	if c.media, err = media.New(media.Config{}); err != nil {
		return nil, err
	}
	c.agent, err = sip.New(sip.Settings{
		Listen: []sip.Listen{{Network: "udp", Address: netip.AddrPortFrom(loopback, 0).String()}},
		// It asks nobody whether they are there: its one peer is this process.
		OptionsEvery: -1, Product: "Parley simulated carrier", Incoming: c.incoming,
	})
	if err == nil {
		err = c.agent.Start()
	}
	if err != nil {
		c.media.Close()
		return nil, fmt.Errorf("the simulated carrier cannot start: %w", err)
	}
	// Whoever calls from this machine is its customer.
	c.agent.SetTrunks([]parley.Trunk{{ID: 1, Address: loopback.String(), Transport: "udp", AllowedInbound: []string{loopback.String()}, CallingFormat: "+e164", MaxChannels: 10_000, CallsPerSecond: 1000}})
	return c, nil
}

// SpeakWith gives the callees of the calls to come another voice than the sandbox's.
// It must render a line in much less than a line takes to say.
func (c *Carrier) SpeakWith(speaker converse.Speaker, voice string) {
	c.speaker, c.manner = speaker, voice
}

// Trunk is how the carrier is reached.
func (c *Carrier) Trunk() parley.Trunk {
	return parley.Trunk{Address: c.agent.Addr("udp").String(), Transport: "udp", CallingFormat: "+e164", MaxChannels: 10_000, CallsPerSecond: 1000}
}

// Close ends every call and the carrier.
func (c *Carrier) Close() error {
	err := c.agent.Close()
	c.media.Close()
	return err
}

// incoming puts a call through to the callee that the number's last digits choose.
func (c *Carrier) incoming(ctx context.Context, in *sip.Incoming) {
	who := calleeOf(in.To)
	switch {
	case who.refuses != 0:
		_ = in.Refuse(who.refuses, 0)
	case who.neverAnswers:
		_ = in.Ring()
		<-ctx.Done()
	default:
		_ = in.Ring()
		c.live(ctx, in, who)
	}
}
