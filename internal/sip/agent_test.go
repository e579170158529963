package sip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	gosip "github.com/emiago/sipgo/sip"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley"
)

// patience bounds every wait of a test; nothing in a good run comes near it.
const patience = 20 * time.Second

// The timers of tests: quicker than the RFC's, and slow enough that a busy machine does
// not drown in its own repetitions.
const (
	quickT1 = 100 * time.Millisecond
	quickT2 = 800 * time.Millisecond
)

func TestMain(m *testing.M) {
	gosip.SetTimers(quickT1, quickT2, quickT2) // before any agent reads them
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

func quick() Settings {
	return Settings{
		Listen: []Listen{{Network: "udp", Address: "127.0.0.1:0"}},
		T1:     quickT1, T2: quickT2, OptionsEvery: -1, Farewell: 2 * time.Second,
	}
}

func start(t testing.TB, s Settings) *Agent {
	t.Helper()
	a, err := New(s)
	require.NoError(t, err)
	require.NoError(t, a.Start())
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// trunkTo is a trunk whose carrier is another agent.
func trunkTo(a *Agent, network string) parley.Trunk {
	return parley.Trunk{ID: 1, Address: a.Addr(network).String(), Transport: network,
		AllowedInbound: []string{"127.0.0.0/8", "::1"}, CallingFormat: "+e164", MaxChannels: 10000, CallsPerSecond: 1000}
}

func media(port uint16) Media {
	return Media{Address: netip.MustParseAddr("127.0.0.1"), Port: port}
}

// callee is an agent that gives every incoming call to a function.
func callee(t testing.TB, s Settings, take func(context.Context, *Incoming)) *Agent {
	t.Helper()
	s.Incoming = take
	a := start(t, s)
	a.SetTrunks([]parley.Trunk{{ID: 7, Address: "192.0.2.1", AllowedInbound: []string{"127.0.0.1", "::1"}, MaxChannels: 10000}})
	return a
}

// answering answers at once and hands the calls over.
func answering(calls chan<- *Call, hooks Hooks) func(context.Context, *Incoming) {
	return func(_ context.Context, in *Incoming) {
		c, err := in.Answer(media(4000), hooks)
		if err == nil && calls != nil {
			calls <- c
		}
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func get[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func ended(t testing.TB, c *Call) End {
	t.Helper()
	get(t, c.Done())
	return c.End()
}

func failure(t testing.TB, err error) *Failure {
	t.Helper()
	var f *Failure
	require.ErrorAs(t, err, &f)
	return f
}

// eventually waits for a state that has no signal of its own.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 2*time.Millisecond, what)
}

func TestACallGoesBothWaysOverEveryTransport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ network, host string }{
		{"udp", "127.0.0.1"}, {"tcp", "127.0.0.1"}, {"tls", "127.0.0.1"}, {"udp", "[::1]"}, {"tcp", "[::1]"}, {"tls", "[::1]"},
	} {
		t.Run(c.network+c.host, func(t *testing.T) {
			t.Parallel()
			s := quick()
			s.Listen = []Listen{{Network: c.network, Address: c.host + ":0"}}
			s.TLS = selfSigned(t)
			calls := make(chan *Call, 1)
			b := callee(t, s, answering(calls, Hooks{}))
			a := start(t, s)
			trunk := trunkTo(b, c.network)

			ours, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", From: "+12025550100", Media: media(5000)})
			require.NoError(t, err)
			theirs := get(t, calls)
			require.Equal(t, netip.MustParseAddrPort("127.0.0.1:4000"), ours.Session().Remote)
			require.Equal(t, netip.MustParseAddrPort("127.0.0.1:5000"), theirs.Session().Remote)
			require.Equal(t, "PCMU", ours.Session().Codec.Name)

			require.NoError(t, ours.Hangup(within(t)))
			require.Equal(t, End{By: EndedByPeer, Reason: "bye"}, ended(t, theirs))
			require.Equal(t, EndedByUs, ended(t, ours).By)

			ours, err = a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
			require.NoError(t, err)
			theirs = get(t, calls)
			require.NoError(t, theirs.Hangup(within(t)))
			require.Equal(t, End{By: EndedByPeer, Reason: "bye"}, ended(t, ours))
			require.Zero(t, a.Counters().Active)
			require.Zero(t, a.limiter.inUse(1))
		})
	}
}

func TestAnIncomingCallSaysWhoCallsWhom(t *testing.T) {
	t.Parallel()
	seen := make(chan *Incoming, 1)
	b := callee(t, quick(), func(_ context.Context, in *Incoming) { seen <- in; _ = in.Refuse(404, 0) })
	a := start(t, quick())
	_, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", From: "+12025550100", Name: "Ann", Media: media(5000)})
	require.Equal(t, NoSuchNumber, failure(t, err).Outcome)
	in := get(t, seen)
	require.Equal(t, "+12025550123", in.To)
	require.Equal(t, "+12025550100", in.From)
	require.Equal(t, "Ann", in.Name)
	require.EqualValues(t, 7, in.Trunk.ID)
	require.Equal(t, "PCMU", in.Offer.Codec.Name)
}

func TestARefusalCarriesItsVerdict(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	status := 0
	b := callee(t, quick(), func(_ context.Context, in *Incoming) {
		mu.Lock()
		defer mu.Unlock()
		_ = in.Refuse(status, 7*time.Second)
	})
	a := start(t, quick())
	for _, c := range []struct {
		status  int
		outcome Outcome
		fault   Fault
	}{
		{486, Busy, FaultCallee}, {600, Busy, FaultCallee}, {480, NoAnswer, FaultCallee}, {408, NoAnswer, FaultCallee},
		{404, NoSuchNumber, FaultCallee}, {484, NoSuchNumber, FaultCallee}, {604, NoSuchNumber, FaultCallee},
		{603, Declined, FaultCallee}, {403, Forbidden, FaultCarrier}, {503, CarrierFailed, FaultCarrier},
		{500, CarrierFailed, FaultCarrier}, {488, NoMedia, FaultCarrier}, {400, Rejected, FaultUs}, {302, CarrierFailed, FaultCarrier},
	} {
		mu.Lock()
		status = c.status
		mu.Unlock()
		_, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
		f := failure(t, err)
		require.Equal(t, c.status, f.Status)
		require.Equal(t, c.outcome, f.Outcome, c.status)
		require.Equal(t, c.fault, f.Fault, c.status)
		require.Equal(t, 7*time.Second, f.RetryAfter)
		require.NotEmpty(t, f.Error())
	}
}

func TestNobodyThereIsTheCarriersFault(t *testing.T) {
	t.Parallel()
	a := start(t, quick())
	_, err := a.Dial(within(t), parley.Trunk{Address: "127.0.0.1:9", Transport: "udp"}, Outgoing{To: "+12025550123", Media: media(5000)})
	require.Equal(t, Unreachable, failure(t, err).Outcome)
	require.Equal(t, FaultCarrier, failure(t, err).Fault)
	_, err = a.Dial(within(t), parley.Trunk{Address: "127.0.0.1:9", Transport: "tcp"}, Outgoing{To: "+12025550123", Media: media(5000)})
	require.Equal(t, Unreachable, failure(t, err).Outcome)
}

func TestProgressComesInAnyOrder(t *testing.T) {
	t.Parallel()
	calls := make(chan *Call, 1)
	b := callee(t, quick(), func(_ context.Context, in *Incoming) {
		_, err := in.Early(media(4002))
		if err == nil {
			err = in.Ring()
		}
		if err != nil {
			panic(err)
		}
		answering(calls, Hooks{})(nil, in)
	})
	a := start(t, quick())
	progress := make(chan Progress, 8)
	c, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000),
		Hooks: Hooks{Progress: func(p Progress) { progress <- p }}})
	require.NoError(t, err)
	close(progress)
	for p := range progress {
		if p.Status == 183 {
			require.NotNil(t, p.Early)
			require.EqualValues(t, 4002, p.Early.Remote.Port())
		} else {
			require.Equal(t, 180, p.Status)
		}
	}
	require.NoError(t, c.Hangup(within(t)))
	ended(t, get(t, calls))
}

func TestTheRingTimeoutCancels(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	b := callee(t, quick(), func(ctx context.Context, in *Incoming) {
		_ = in.Ring()
		<-ctx.Done()
		if _, err := in.Answer(media(4000), Hooks{}); errors.Is(err, ErrCancelled) {
			close(gone)
		}
	})
	a := start(t, quick())
	_, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000), RingTimeout: 300 * time.Millisecond})
	require.Equal(t, NoAnswer, failure(t, err).Outcome)
	get(t, gone)
	eventually(t, "no call stays", func() bool { return b.Counters().Active == 0 })
}

func TestEndingTheContextCancels(t *testing.T) {
	t.Parallel()
	ringing := make(chan struct{})
	gone := make(chan struct{})
	b := callee(t, quick(), func(ctx context.Context, in *Incoming) {
		_ = in.Ring()
		<-ctx.Done()
		close(gone)
	})
	a := start(t, quick())
	ctx, cancel := context.WithCancel(within(t))
	go func() { <-ringing; cancel() }()
	_, err := a.Dial(ctx, trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000),
		Hooks: Hooks{Progress: func(Progress) { close(ringing) }}})
	require.Equal(t, Cancelled, failure(t, err).Outcome)
	get(t, gone)
}

func TestClosingEndsEverything(t *testing.T) {
	t.Parallel()
	calls := make(chan *Call, 4)
	b := callee(t, quick(), answering(calls, Hooks{}))
	s := quick()
	a, err := New(s)
	require.NoError(t, err)
	require.NoError(t, a.Start())
	_, err = a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
	require.NoError(t, err)
	theirs := get(t, calls)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.Equal(t, EndedByPeer, ended(t, theirs).By)
	_, err = a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
	require.Error(t, err)
}

func TestSettingsSayWhatToSet(t *testing.T) {
	t.Parallel()
	for _, s := range []Settings{
		{}, {Listen: []Listen{{Network: "udp", Address: "nowhere"}}},
		{Listen: []Listen{{Network: "sctp", Address: "127.0.0.1:0"}}}, {Listen: []Listen{{Network: "tls", Address: "127.0.0.1:0"}}},
	} {
		_, err := New(s)
		require.ErrorContains(t, err, "sip:", fmt.Sprint(s.Listen))
	}
}
