package sip

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	gosip "github.com/emiago/sipgo/sip"
	"github.com/stretchr/testify/require"

	"parley"
)

// connected is two agents with a call between them.
type connected struct {
	a, b         *Agent
	ours, theirs *Call
}

func connect(t *testing.T, s Settings, ours, theirs Hooks) connected {
	t.Helper()
	calls := make(chan *Call, 1)
	b := callee(t, s, answering(calls, theirs))
	a := start(t, s)
	c, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", From: "+12025550100", Media: media(5000), Hooks: ours})
	require.NoError(t, err)
	return connected{a, b, c, get(t, calls)}
}

func TestHoldAndResumeReachThePeer(t *testing.T) {
	t.Parallel()
	heard := make(chan Session, 8)
	p := connect(t, quick(), Hooks{}, Hooks{Media: func(s Session) { heard <- s }})
	s, err := p.ours.Hold(within(t))
	require.NoError(t, err)
	require.Equal(t, SendOnly, s.Direction)
	require.Equal(t, RecvOnly, get(t, heard).Direction)
	require.True(t, p.theirs.Session().Held())
	s, err = p.ours.Resume(within(t))
	require.NoError(t, err)
	require.Equal(t, SendRecv, s.Direction)
	require.Equal(t, SendRecv, get(t, heard).Direction)
	require.NoError(t, p.theirs.Hangup(within(t)))
}

func TestAReofferMovesTheMedia(t *testing.T) {
	t.Parallel()
	heard := make(chan Session, 8)
	p := connect(t, quick(), Hooks{Media: func(s Session) { heard <- s }}, Hooks{})
	m := media(6000)
	m.Codecs = []Codec{PCMA(), TelephoneEvent()}
	s, err := p.theirs.Reoffer(within(t), m)
	require.NoError(t, err)
	require.Equal(t, "PCMA", s.Codec.Name)
	got := get(t, heard)
	require.Equal(t, "PCMA", got.Codec.Name)
	require.EqualValues(t, 6000, got.Remote.Port())
}

func TestGlareIsResolved(t *testing.T) {
	t.Parallel()
	p := connect(t, quick(), Hooks{}, Hooks{})
	for range 3 {
		var both sync.WaitGroup
		errs := make(chan error, 2)
		for _, c := range []*Call{p.ours, p.theirs} {
			both.Go(func() { _, err := c.Resume(within(t)); errs <- err })
		}
		both.Wait()
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
	}
	require.Zero(t, p.ours.End())
}

func TestDigitsTravelByInfo(t *testing.T) {
	t.Parallel()
	digits := make(chan byte, 16)
	p := connect(t, quick(), Hooks{}, Hooks{Digit: func(d byte, length time.Duration) {
		if length == 160*time.Millisecond {
			digits <- d
		}
	}})
	for _, d := range []byte("0*#D9") {
		require.NoError(t, p.ours.SendDigit(within(t), d, 160*time.Millisecond))
		require.Equal(t, d, get(t, digits))
	}
	require.Error(t, p.ours.SendDigit(within(t), 'x', time.Second))
}

func TestInDialogRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	p := connect(t, quick(), Hooks{}, Hooks{})
	for method, status := range map[gosip.RequestMethod]int{
		gosip.OPTIONS: 200, gosip.UPDATE: 200, gosip.REFER: 603, gosip.MESSAGE: 405, gosip.NOTIFY: 489, gosip.PRACK: 481, gosip.INFO: 200,
	} {
		res, err := p.a.roundTrip(within(t), p.ours.prepare(method))
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode, method)
	}
	odd := p.ours.prepare(gosip.INFO)
	setBody(odd, "text/plain", []byte("hello"))
	res, err := p.a.roundTrip(within(t), odd)
	require.NoError(t, err)
	require.Equal(t, 415, res.StatusCode)
	update := p.ours.prepare(gosip.UPDATE)
	setBody(update, "application/sdp", Offer(media(7000)))
	res, err = p.a.roundTrip(within(t), update)
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	require.EqualValues(t, 7000, p.theirs.Session().Remote.Port())
	for body, status := range map[string]int{"v=0\r\n": 488, "": 200} { // an empty re-INVITE asks for our offer
		bad := p.ours.prepare(gosip.INVITE)
		setBody(bad, "application/sdp", []byte(body))
		i := invitation{agent: p.a, hop: p.ours.dialog.hop, req: bad, repeated: func(*gosip.Response) {}}
		res, _, err := i.send(within(t))
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode)
		if status == 200 {
			answer, _, err := Answer(res.Body(), media(7002))
			require.NoError(t, err)
			require.NoError(t, p.a.transport.WriteMsg(p.ours.dialog.ack(p.a, bad, "x", answer)))
			eventually(t, "the ACK's answer is taken", func() bool { return p.theirs.Session().Remote.Port() == 7002 })
		}
	}
}

func TestABlindTransferIsFollowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fragments []string
		outcome   Outcome
	}{
		{[]string{"SIP/2.0 100 Trying", "SIP/2.0 180 Ringing", "SIP/2.0 200 OK"}, ""},
		{[]string{"SIP/2.0 100 Trying", "SIP/2.0 486 Busy Here"}, Busy},
	} {
		carrier := newPeer(t)
		a := start(t, quick())
		statuses := make(chan int, 8)
		call := make(chan *Call, 1)
		go func() {
			got, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000),
				Hooks: Hooks{Transfer: func(status int) { statuses <- status }}})
			if err == nil {
				call <- got
			}
		}()
		invite := carrier.request("INVITE")
		carrier.answer(invite, 200, Offer(media(4000)))
		carrier.request("ACK")
		ours := get(t, call)
		result := make(chan error, 1)
		go func() { result <- ours.Transfer(within(t), "+12025550177") }()
		refer := carrier.request("REFER")
		require.Contains(t, refer, "Refer-To: <sip:+12025550177@127.0.0.1")
		carrier.answer(refer, 202, nil)
		for i, fragment := range c.fragments {
			carrier.notify(invite, 100+i, fragment)
			require.Equal(t, 200, carrier.status("NOTIFY"))
			get(t, statuses)
		}
		if err := get(t, result); c.outcome == "" {
			require.NoError(t, err)
		} else {
			require.Equal(t, c.outcome, failure(t, err).Outcome)
		}
	}
}

func TestSessionTimersRefreshBothWays(t *testing.T) {
	t.Parallel()
	s := quick()
	s.SessionExpires, s.MinSE = 4*time.Second, time.Second
	p := connect(t, s, Hooks{}, Hooks{})
	before := p.b.Counters().Requests
	// Our refresh is due after two seconds, the peer's patience ends after two thirds more.
	eventually(t, "three refreshes", func() bool { return p.b.Counters().Requests+p.a.Counters().Requests >= before+3 })
	require.Zero(t, p.ours.End())
	require.Zero(t, p.theirs.End())
}

func TestAPeerThatNeverRefreshesIsLetGo(t *testing.T) {
	t.Parallel()
	s := quick()
	s.SessionExpires, s.MinSE = time.Second, time.Second
	carrier := newPeer(t)
	a := start(t, s)
	call := make(chan *Call, 1)
	go func() {
		c, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000)})
		if err == nil {
			call <- c
		}
	}()
	carrier.answer(carrier.request("INVITE"), 200, Offer(media(4000)), "Session-Expires: 1;refresher=uas", "Require: timer")
	carrier.request("ACK")
	carrier.answer(carrier.request("BYE"), 200, nil)
	require.Equal(t, End{By: EndedBySystem, Reason: "session_expired"}, ended(t, get(t, call)))
}

func TestATooSmallIntervalIsRaised(t *testing.T) {
	t.Parallel()
	strict := quick()
	strict.MinSE = 1000 * time.Second
	strict.SessionExpires = 2000 * time.Second
	calls := make(chan *Call, 1)
	b := callee(t, strict, answering(calls, Hooks{}))
	s := quick()
	s.SessionExpires = 100 * time.Second
	a := start(t, s)
	c, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
	require.NoError(t, err)
	require.NoError(t, c.Hangup(within(t)))
}

func TestReliableProvisionalsAreAcknowledged(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	a := start(t, quick())
	statuses := make(chan Progress, 8)
	call := make(chan *Call, 1)
	go func() {
		c, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000),
			Hooks: Hooks{Progress: func(p Progress) { statuses <- p }}})
		if err == nil {
			call <- c
		}
	}()
	invite := carrier.request("INVITE")
	for range 2 { // the second is a repetition
		carrier.answer(invite, 183, Offer(media(4000)), "Require: 100rel", "RSeq: 41")
	}
	prack := carrier.request("PRACK")
	require.Contains(t, prack, "RAck: 41 1 INVITE")
	carrier.answer(prack, 200, nil)
	require.NotNil(t, get(t, statuses).Early)
	carrier.answer(invite, 200, nil) // the answer came with the 183
	carrier.request("ACK")
	require.EqualValues(t, 4000, get(t, call).Session().Remote.Port())
	require.Empty(t, statuses)
}

func TestACallerThatRequiresReliabilityGetsIt(t *testing.T) {
	t.Parallel()
	decide := make(chan struct{})
	b := callee(t, quick(), func(ctx context.Context, in *Incoming) {
		_ = in.Ring()
		select {
		case <-decide:
			_, _ = in.Answer(media(4000), Hooks{})
		case <-ctx.Done():
		}
	})
	caller := newPeer(t)
	caller.send(b, caller.invite(b, 1, "Require: 100rel"))
	ringing := caller.response(180)
	require.Contains(t, ringing, "RSeq: 1")
	require.Contains(t, caller.response(180), "RSeq: 1", "it is repeated until it is acknowledged")
	caller.send(b, caller.inDialog(b, ringing, "PRACK", 2, "RAck: 9 1 INVITE"))
	caller.response(481)
	caller.send(b, caller.inDialog(b, ringing, "PRACK", 3, "RAck: 1 1 INVITE"))
	caller.responseTo("PRACK", 200)
	close(decide)
	caller.responseTo("INVITE", 200)
	caller.send(b, caller.inDialog(b, ringing, "ACK", 1))
	caller.send(b, caller.inDialog(b, ringing, "BYE", 4))
	caller.responseTo("BYE", 200)
}

func TestADelayedOfferIsAnsweredInTheACK(t *testing.T) {
	t.Parallel()
	calls := make(chan *Call, 1)
	b := callee(t, quick(), answering(calls, Hooks{}))
	caller := newPeer(t)
	caller.send(b, caller.inviteBody(b, 1, nil))
	ok := caller.response(200)
	answer, _, err := Answer(bodyOf(ok), media(5000))
	require.NoError(t, err)
	caller.send(b, caller.inDialogBody(b, ok, "ACK", 1, answer))
	require.Equal(t, netip.MustParseAddrPort("127.0.0.1:5000"), get(t, calls).Session().Remote)
}

func TestAnAnswerNobodyAcknowledgesEnds(t *testing.T) {
	t.Parallel()
	s := quick()
	s.T1 = 5 * time.Millisecond
	calls := make(chan *Call, 1)
	b := callee(t, s, answering(calls, Hooks{}))
	caller := newPeer(t)
	caller.send(b, caller.invite(b, 1))
	caller.response(200)
	caller.response(200)
	bye := caller.request("BYE")
	caller.answer(bye, 200, nil)
	require.Equal(t, End{By: EndedBySystem, Reason: "no_ack"}, ended(t, get(t, calls)))
}

func TestForkedAndRepeatedAnswers(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	a := start(t, quick())
	call := make(chan *Call, 1)
	go func() {
		c, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000)})
		if err == nil {
			call <- c
		}
	}()
	invite := carrier.request("INVITE")
	carrier.answer(invite, 200, Offer(media(4000)))
	carrier.request("ACK")
	get(t, call)
	for range 5 {
		carrier.answer(invite, 200, Offer(media(4000)))
		require.Contains(t, carrier.request("ACK"), "tag="+carrier.tag)
	}
	carrier.tag = "fork"
	carrier.answer(invite, 200, Offer(media(4100)))
	require.Contains(t, carrier.request("ACK"), "tag=fork")
	bye := carrier.request("BYE")
	require.Contains(t, bye, "tag=fork")
	carrier.answer(bye, 200, nil)
	require.EqualValues(t, 5, a.Counters().RepeatedAnswers)
	require.EqualValues(t, 1, a.Counters().ForkedAnswers)
}

// An ACK may be lost while the next offer is already agreed on: the answer that comes
// again is an old one, and gets its own ACK.
func TestAnOldAnswerIsAcknowledgedAgain(t *testing.T) {
	t.Parallel()
	a, carrier := start(t, quick()), newPeer(t)
	calls := make(chan *Call, 1)
	go func() {
		c, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000)})
		if err == nil {
			calls <- c
		}
	}()
	first := carrier.request("INVITE")
	answer, _, err := Answer(bodyOf(first), media(4000))
	require.NoError(t, err)
	carrier.answer(first, 200, answer)
	require.Equal(t, "1 ACK", header(carrier.request("ACK"), "CSeq"))
	c := get(t, calls)
	held := make(chan error, 1)
	go func() {
		_, err := c.Hold(within(t))
		held <- err
	}()
	second := carrier.request("INVITE")
	carrier.answer(second, 200, answer)
	require.Equal(t, "2 ACK", header(carrier.request("ACK"), "CSeq"))
	require.NoError(t, get(t, held))
	carrier.answer(first, 200, answer)
	require.Equal(t, "1 ACK", header(carrier.request("ACK"), "CSeq"))
	carrier.answer(second, 200, answer)
	require.Equal(t, "2 ACK", header(carrier.request("ACK"), "CSeq"))
	require.EqualValues(t, 1, a.Counters().Active)
	go func() { _ = c.Hangup(within(t)) }()
	carrier.answer(carrier.request("BYE"), 200, nil)
	ended(t, c)
}

func TestRouteSetsAreFollowed(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	a := start(t, quick())
	call := make(chan *Call, 1)
	proxy := carrier.addr.String()
	trunk := parley.Trunk{ID: 3, Address: "carrier.example.com", Transport: "udp", OutboundProxy: &proxy, CallingFormat: "national"}
	go func() {
		c, err := a.Dial(within(t), trunk, Outgoing{To: "+442079460123", From: "+442079460999", Media: media(5000)})
		if err == nil {
			call <- c
		}
	}()
	invite := carrier.request("INVITE")
	require.Contains(t, invite, "INVITE sip:02079460123@carrier.example.com SIP/2.0")
	require.Contains(t, invite, "Route: <sip:"+proxy+";lr>")
	require.Contains(t, invite, "Max-Forwards: 70")
	require.Contains(t, invite, ";rport")
	carrier.answer(invite, 200, Offer(media(4000)),
		"Record-Route: <sip:near.example.com;lr>, <sip:"+proxy+";lr>")
	ack := carrier.request("ACK")
	require.Regexp(t, `(?s)Route: <sip:`+proxy+`;lr>.*Route: <sip:near.example.com;lr>`, ack)
	require.Contains(t, ack, "ACK sip:carrier@"+proxy)
	require.NotNil(t, get(t, call))
}
