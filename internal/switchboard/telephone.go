// Package switchboard owns live calls: it joins a SIP dialog, its media and a
// conversation, and sees to it that all three end together. It must not know HTTP,
// SQL or how a vendor is spoken to.
package switchboard

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip"
)

// Telephone is what a node calls with: its SIP agent and its media.
type Telephone struct {
	SIP   *sip.Agent
	Media *media.Engine
	Host  netip.Addr // where media is taken; unspecified: on every address of this machine
	// External is the address that peers are told to send media to, behind a NAT. Unset:
	// the one that this machine reaches the peer from.
	External netip.Addr
}

// Attempt is a call to place.
type Attempt struct {
	Trunk    parley.Trunk
	To, From string
	Signals
}

// Signals tell whoever keeps the record how a call comes about. They must not block.
type Signals struct {
	Progress func(status int) // the carrier said so, before the answer
	Answered func()
	// MayTransfer is asked before the customer is handed over to another number; nil: to
	// every one.
	MayTransfer func(number string) error
}

// Result is what remains of a call: of its conversation, and of its line.
type Result struct {
	converse.Result
	Line media.Stats
}

// lineRate is the rate of every conversation on a telephone line. Wideband would
// cost several times as much a frame and most trunks do not carry it; where a peer
// has nothing but G.722, the media resamples.
const lineRate = audio.Rate8k

// farewell is how long a peer may take to agree that a call is over.
const farewell = 5 * time.Second

// Place dials a number and holds the conversation. It returns when the call is over
// and everything it took has been given back. The error is the *sip.Failure of a
// call that was not answered; the result then says so too.
func (t *Telephone) Place(ctx context.Context, a Attempt, config converse.Config) (Result, error) {
	peer, _, err := net.SplitHostPort(a.Trunk.Address)
	if err != nil {
		peer = a.Trunk.Address
	}
	l, err := t.open(ctx, peer, a.Signals, config)
	if err != nil {
		return Result{}, err
	}
	defer l.session.Close()
	result := l.converse(ctx)
	// An assistant that has lost its voice while it rings must not be answered.
	dialling, cancel := context.WithCancel(ctx)
	defer cancel()
	dialled := make(chan struct{})
	go func() {
		select {
		case <-l.over:
			cancel()
		case <-dialled:
		}
	}()
	call, err := t.SIP.Dial(dialling, a.Trunk, sip.Outgoing{To: a.To, From: a.From, Media: l.offer(a.Trunk), Hooks: l.hooks()})
	close(dialled)
	return l.hold(ctx, call, err, result)
}

// Answer takes a call that rings and holds the conversation. It returns when the
// call is over and everything it took has been given back.
func (t *Telephone) Answer(ctx context.Context, in *sip.Incoming, signals Signals, config converse.Config) (Result, error) {
	peer := ""
	if in.Offer != nil && in.Offer.Remote.IsValid() {
		peer = in.Offer.Remote.Addr().String()
	}
	l, err := t.open(ctx, peer, signals, config)
	if err != nil {
		return Result{}, err
	}
	defer l.session.Close()
	result := l.converse(ctx)
	call, err := in.Answer(l.offer(in.Trunk), l.hooks())
	return l.hold(ctx, call, err, result)
}

// open reserves the media of a call and makes its conversation. Its errors are our own: nothing
// has been sent.
func (t *Telephone) open(ctx context.Context, peer string, signals Signals, config converse.Config) (*line, error) {
	bind, told := t.address(ctx, peer)
	session, err := t.Media.Open(bind)
	if err != nil {
		return nil, failed(parley.EndNoCapacity, err)
	}
	l := &line{session: session, host: told, signals: signals, over: make(chan struct{})}
	config.Line, config.Rate = l, lineRate
	if l.conversation, err = converse.New(config); err != nil {
		session.Close()
		return nil, failed(parley.EndInternal, err)
	}
	return l, nil
}

// address is where a call's media is taken, and where its peer is told to send it. A
// peer on this machine is met on loopback, whatever the world outside is told.
func (t *Telephone) address(ctx context.Context, peer string) (bind, told netip.Addr) {
	if remote, err := netip.ParseAddr(strings.Trim(peer, "[]")); err == nil && remote.IsLoopback() {
		return remote, remote
	}
	if t.External.IsValid() {
		return t.Host, t.External
	}
	if !t.Host.IsUnspecified() {
		return t.Host, t.Host
	}
	// Connecting a datagram socket sends nothing; it only asks for the way.
	probe, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(strings.Trim(peer, "[]"), "5060"))
	if err != nil {
		return t.Host, t.Host
	}
	defer probe.Close()
	if local, ok := probe.LocalAddr().(*net.UDPAddr); ok {
		if address, ok := netip.AddrFromSlice(local.IP); ok {
			return t.Host, address.Unmap()
		}
	}
	return t.Host, t.Host
}
