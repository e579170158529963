package sip

import (
	"bufio"
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// TestAPeerThatVanishesWhileRingingIsIndeterminate: the carrier had begun, then the
// connection broke. Nobody can know what became of the call, and we say so.
func TestAPeerThatVanishesWhileRingingIsIndeterminate(t *testing.T) {
	t.Parallel()
	carrier, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = carrier.Close() })
	ringing, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		c, err := carrier.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r, invite := bufio.NewReader(c), ""
		for !strings.HasSuffix(invite, "\r\n\r\n") {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			invite += line
		}
		lines := append([]string{"SIP/2.0 180 Ringing"}, headers(invite, "Via")...)
		lines = append(lines, "From: "+header(invite, "From"), "To: "+header(invite, "To")+";tag=x",
			"Call-ID: "+header(invite, "Call-ID"), "CSeq: "+header(invite, "CSeq"))
		_, _ = c.Write([]byte(write(lines, nil)))
		<-ringing
	}()
	s := quick()
	s.Listen = append(s.Listen, Listen{"tcp", "127.0.0.1:0"})
	a := start(t, s)
	trunk := parley.Trunk{ID: 1, Address: carrier.Addr().String(), Transport: "tcp"}
	_, err = a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000),
		Hooks: Hooks{Progress: func(Progress) { close(ringing) }}})
	require.Equal(t, Indeterminate, failure(t, err).Outcome)
	get(t, gone)
}

func TestDuplicatesGiveOneCall(t *testing.T) {
	t.Parallel()
	var started atomic.Int64
	calls := make(chan *Call, 8)
	b := callee(t, quick(), func(ctx context.Context, in *Incoming) {
		started.Add(1)
		answering(calls, Hooks{})(ctx, in)
	})
	caller := newPeer(t)
	invite := caller.invite(b, 1)
	for range 5 {
		caller.send(b, invite)
	}
	ok := caller.response(200)
	caller.send(b, caller.inDialog(b, ok, "ACK", 1))
	caller.send(b, caller.invite(b, 1)) // the same request another way
	caller.response(482)
	get(t, calls)
	require.EqualValues(t, 1, started.Load())
	require.EqualValues(t, 1, b.Counters().CallsIn)
}

func TestClosingCancelsWhatRings(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	a, err := New(quick())
	require.NoError(t, err)
	require.NoError(t, a.Start())
	ringing := make(chan struct{}, 4)
	result := make(chan error, 1)
	go func() {
		_, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000),
			Hooks: Hooks{Progress: func(Progress) { ringing <- struct{}{} }}})
		result <- err
	}()
	invite := carrier.request("INVITE")
	carrier.answer(invite, 180, nil)
	get(t, ringing)
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	carrier.answer(carrier.request("CANCEL"), 200, nil)
	carrier.answer(invite, 487, nil)
	require.Equal(t, Cancelled, failure(t, get(t, result)).Outcome)
	require.NoError(t, get(t, closed))
}

func TestALateAnswerIsEnded(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	s := quick()
	s.T1 = time.Millisecond // we give up quickly after our CANCEL
	a := start(t, s)
	result := make(chan error, 1)
	go func() {
		_, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000), RingTimeout: 50 * time.Millisecond})
		result <- err
	}()
	invite := carrier.request("INVITE")
	carrier.answer(invite, 180, nil)
	carrier.request("CANCEL") // and never a word more, until much later
	require.Equal(t, NoAnswer, failure(t, get(t, result)).Outcome)
	carrier.answer(invite, 200, Offer(media(4000)))
	carrier.request("ACK")
	carrier.request("BYE")
	require.EqualValues(t, 1, a.Counters().LateAnswers)
	// A forged answer starts nothing.
	carrier.answer(strings.ReplaceAll(invite, header(invite, "Call-ID"), "forged"), 200, Offer(media(4000)))
	carrier.pending = nil
	require.Empty(t, carrier.next(300*time.Millisecond, func(m string) bool { return strings.HasPrefix(m, "ACK") && strings.Contains(m, "forged") }))
}

func TestTheNATsAddressIsLearned(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	s := quick()
	s.OptionsEvery = time.Second // the answer may take twice that
	a := start(t, s)
	a.SetTrunks([]parley.Trunk{carrier.trunk()})
	first := carrier.request("OPTIONS")
	own := a.Addr("udp").String()
	require.Contains(t, header(first, "Contact"), own)
	answered := strings.Replace(first, ";rport", ";received=203.0.113.9;rport=7777", 1)
	carrier.answer(answered, 200, nil)
	eventually(t, "it is learned", func() bool { _, ok := a.seenBy(netip.MustParseAddr("127.0.0.1")); return ok })
	carrier.pending = nil
	for range 20 {
		next := carrier.request("OPTIONS")
		if strings.Contains(header(next, "Contact"), "203.0.113.9:7777") {
			return
		}
	}
	t.Fatal("the Contact still leads nowhere")
}

func TestPrivateContactsAreReachedWhereTheySpeakFrom(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Listen = []Listen{{"udp", "127.0.0.1:0"}}
	a := start(t, s)
	d := dialog{hop: hop{network: "udp"}}
	d.target.Host, d.target.Port = "10.0.0.5", 5060
	require.NoError(t, a.locate(within(t), &d, netip.MustParseAddrPort("203.0.113.5:40000")))
	require.Equal(t, "203.0.113.5:40000", d.hop.remote.String())
	require.NoError(t, a.locate(within(t), &d, netip.MustParseAddrPort("10.0.0.9:40000")))
	require.Equal(t, "10.0.0.5:5060", d.hop.remote.String())
}

func TestAnAnswerWithoutMediaIsAcknowledgedAndEnded(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	a := start(t, quick())
	result := make(chan error, 1)
	go func() {
		_, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000),
			Hooks: Hooks{Ended: func(End) { panic("it never was a call") }}})
		result <- err
	}()
	invite := carrier.request("INVITE")
	carrier.answer(invite, 200, desc(here, "audio 4000 RTP/AVP 18"))
	carrier.request("ACK")
	carrier.answer(carrier.request("BYE"), 200, nil)
	require.Equal(t, NoMedia, failure(t, get(t, result)).Outcome)
	require.Zero(t, a.Counters().Active)
}

func TestAByeBeforeTheAnswerStandsForCancel(t *testing.T) {
	t.Parallel()
	gone := make(chan error, 1)
	b := callee(t, quick(), func(ctx context.Context, in *Incoming) {
		_ = in.Ring()
		<-ctx.Done()
		_, err := in.Answer(media(4000), Hooks{})
		gone <- err
	})
	caller := newPeer(t)
	caller.send(b, caller.invite(b, 1))
	ringing := caller.response(180)
	caller.send(b, caller.inDialog(b, ringing, "BYE", 2))
	caller.responseTo("BYE", 200)
	require.Contains(t, caller.responseTo("INVITE", 487), "tag="+tagIn(header(ringing, "To")))
	require.ErrorIs(t, get(t, gone), ErrCancelled)
	eventually(t, "no call stays", func() bool { return b.Counters().Active == 0 })
}

func tagIn(h string) string {
	_, tag, _ := strings.Cut(h, "tag=")
	return tag
}
