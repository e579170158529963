// Package simulator is a telephone carrier with people behind it, over real SIP and
// RTP on loopback: what a newcomer calls without a trunk, what users test their
// assistants with, and what our own tests call. It is a peer like any other; it must
// not know the switchboard or the store.
package simulator

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/sip"
)

// loopback is the only address the carrier is ever at.
var loopback = netip.MustParseAddr("127.0.0.1")

// Carrier is a running simulated carrier.
type Carrier struct {
	agent   *sip.Agent
	media   *media.Engine
	voice   *sandbox.Provider
	sounds  *sounds
	callees map[string]Callee
	calls   atomic.Uint64
}

// Start opens a carrier on loopback. Callees of one's own come beside the others, or in
// the place of those with the same code.
func Start(own ...Callee) (*Carrier, error) {
	c := &Carrier{voice: sandbox.New(sandbox.Options{}), callees: maps.Clone(builtIn())}
	c.sounds = &sounds{voice: c.voice.Speaker(), manner: "tenor", ambience: audio.NewAmbience(1), said: map[string][]int16{}}
	for _, callee := range own {
		c.callees[callee.Code] = callee
	}
	var err error
	if c.media, err = media.New(media.Config{}); err != nil {
		return nil, err
	}
	c.agent, err = sip.New(sip.Settings{
		Listen: []sip.Listen{{Network: "udp", Address: netip.AddrPortFrom(loopback, 0).String()}},
		// It asks nobody whether they are there: its peers are on this machine.
		OptionsEvery: -1, Product: "Parley simulated carrier", Incoming: c.incoming,
		Ignores: func(number string) bool { return c.calleeOf(number).NoReply },
	})
	if err == nil {
		err = c.agent.Start()
	}
	if err != nil {
		c.media.Close()
		return nil, fmt.Errorf("the simulated carrier cannot start: %w", err)
	}
	// Whoever calls from this machine is its customer.
	customer := c.trunk(loopback.String())
	customer.ID, customer.AllowedInbound = 1, []string{loopback.String()}
	c.agent.SetTrunks([]parley.Trunk{customer})
	return c, nil
}

// SpeakWith gives the callees of the calls to come another voice than the sandbox's.
// It must render a line in much less than a line takes to say.
func (c *Carrier) SpeakWith(speaker converse.Speaker, voice string) {
	c.sounds.speakWith(speaker, voice)
}

// Trunk is how the carrier is reached.
func (c *Carrier) Trunk() parley.Trunk { return c.trunk(c.agent.Addr("udp").String()) }

func (c *Carrier) trunk(address string) parley.Trunk {
	return parley.Trunk{Address: address, Transport: "udp", CallingFormat: "+e164", MaxChannels: 10_000, CallsPerSecond: 1000}
}

// Close ends every call and the carrier.
func (c *Carrier) Close() error {
	err := c.agent.Close()
	c.media.Close()
	return err
}

// calleeOf is who answers a number: every number that chooses nobody is a willing
// customer's.
func (c *Carrier) calleeOf(number string) Callee {
	if len(number) >= 2 {
		if who, ok := c.callees[number[len(number)-2:]]; ok {
			return who
		}
	}
	return c.callees["00"]
}

// incoming puts a call through to the callee that the number's last digits choose.
func (c *Carrier) incoming(ctx context.Context, in *sip.Incoming) {
	who := c.calleeOf(in.To)
	if who.Refuses != 0 {
		_ = in.Refuse(who.Refuses, 0)
		return
	}
	if in.Ring() != nil {
		return
	}
	var pickUp <-chan time.Time
	if !who.NeverAnswers {
		rings := time.NewTimer(who.Rings)
		defer rings.Stop()
		pickUp = rings.C
	}
	select {
	case <-pickUp:
		c.answer(ctx, in, who)
	case <-ctx.Done():
	}
}
