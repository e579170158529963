package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
)

// TestPromiseT3 forces crossings: CANCEL with 200, BYE with BYE, offer with offer.
func TestPromiseT3(t *testing.T) {
	t.Parallel()
	n := promise.Figure(60, 500)
	calls := make(chan *Call, n)
	b := callee(t, quick(), func(_ context.Context, in *Incoming) {
		_ = in.Ring()
		c, err := in.Answer(media(4000), Hooks{})
		if err == nil {
			calls <- c
		} else if !errors.Is(err, ErrCancelled) {
			panic(err)
		}
	})
	a := start(t, quick())
	var all sync.WaitGroup
	slots := make(chan struct{}, promise.Figure(6, 20))
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			hooks := Hooks{}
			if i%3 == 0 { // give up at the very moment of the answer
				hooks.Progress = func(Progress) { cancel() }
			}
			c, err := a.Dial(ctx, trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000), Hooks: hooks})
			if err != nil {
				if failure(t, err).Outcome != Cancelled {
					t.Error(err)
				}
				return
			}
			theirs := get(t, calls)
			var both sync.WaitGroup
			if i%3 == 1 {
				both.Go(func() { _, _ = c.Hold(within(t)) })
				both.Go(func() { _, _ = theirs.Hold(within(t)) })
			}
			both.Go(func() {
				if err := c.Hangup(within(t)); err != nil {
					t.Error("our BYE was left alone: ", err)
				}
			})
			both.Go(func() {
				if err := theirs.Hangup(within(t)); err != nil {
					t.Error("their BYE was left alone: ", err)
				}
			})
			both.Wait()
		})
	}
	all.Wait()
	require.Eventually(t, func() bool {
		for len(calls) > 0 { // answered calls whose callers had given up are ended by them
			<-calls
		}
		return a.Counters().Active == 0 && b.Counters().Active == 0
	}, 5*time.Second, 5*time.Millisecond, "0 calls alive after 5 s")
}

// lossy is a proxy of datagrams between two agents that loses and doubles some.
type lossy struct {
	in, out *net.UDPConn
	to      atomic.Pointer[netip.AddrPort]
	loss    float64
	double  float64
	watch   func(message []byte, copies int) // 0 when it is lost
	work    sync.WaitGroup
}

// newLossy stands before an agent: what comes to its front leaves from its back.
func newLossy(t *testing.T, loss, double float64, watch func(message []byte, copies int)) *lossy {
	t.Helper()
	l := &lossy{loss: loss, double: double, watch: watch}
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		return c
	}
	l.in, l.out = listen(), listen()
	var mu sync.Mutex
	var back netip.AddrPort
	l.work.Go(func() {
		l.pump(l.in, l.out, func(from netip.AddrPort) netip.AddrPort { mu.Lock(); back = from; mu.Unlock(); return *l.to.Load() })
	})
	l.work.Go(func() {
		l.pump(l.out, l.in, func(netip.AddrPort) netip.AddrPort { mu.Lock(); defer mu.Unlock(); return back })
	})
	t.Cleanup(func() { _ = l.in.Close(); _ = l.out.Close(); l.work.Wait() })
	return l
}

func (l *lossy) pump(from, by *net.UDPConn, next func(netip.AddrPort) netip.AddrPort) {
	buffer := make([]byte, 65536)
	for {
		n, source, err := from.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		to, copies := next(source), 1
		switch chance := rand.Float64(); {
		case chance < l.loss:
			copies = 0
		case chance < l.loss+l.double:
			copies = 2
		}
		l.watch(buffer[:n], copies)
		for range copies {
			_, _ = by.WriteToUDPAddrPort(buffer[:n], to)
		}
	}
}

// ackCount holds the 2xx that reached a caller against the ACKs that it sent.
type ackCount struct {
	mu            sync.Mutex
	answers, acks map[string]int // by Call-ID
}

func newAckCount() *ackCount { return &ackCount{answers: map[string]int{}, acks: map[string]int{}} }

func (c *ackCount) note(message []byte, copies int) {
	m := string(message)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.HasPrefix(m, "SIP/2.0 200 ") && strings.HasSuffix(header(m, "CSeq"), "INVITE"):
		c.answers[header(m, "Call-ID")] += copies
	case strings.HasPrefix(m, "ACK "):
		c.acks[header(m, "Call-ID")]++
	}
}

// owed are the calls with fewer ACKs than answers.
func (c *ackCount) owed() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.answers {
		if c.acks[id] < n {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *ackCount) total() (answers, acks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.answers {
		answers, acks = answers+n, acks+c.acks[id]
	}
	return answers, acks
}

// TestPromiseT2 puts loss and duplication between two agents. The first INVITE goes
// through the proxy as an outbound proxy; in-dialog requests go through it as well,
// because each side names its proxy as its own address.
func TestPromiseT2(t *testing.T) {
	t.Parallel()
	n := promise.Figure(40, 200)
	var mu sync.Mutex
	rows := map[string]int{}
	calls := make(chan *Call, n)
	acks := newAckCount()
	toA, toB := newLossy(t, 0.05, 0.05, acks.note), newLossy(t, 0.05, 0.05, acks.note)
	sa, sb := quick(), quick()
	sa.External, sb.External = toA.in.LocalAddr().String(), toB.in.LocalAddr().String()
	b := callee(t, sb, func(ctx context.Context, in *Incoming) {
		mu.Lock()
		rows[in.ID()]++
		mu.Unlock()
		answering(calls, Hooks{})(ctx, in)
	})
	a := start(t, sa)
	atA, atB := a.Addr("udp"), b.Addr("udp")
	toA.to.Store(&atA)
	toB.to.Store(&atB)
	trunk := parley.Trunk{ID: 1, Address: toB.in.LocalAddr().String(), Transport: "udp"}
	var all sync.WaitGroup
	slots := make(chan struct{}, promise.Figure(6, 20))
	began := time.Now()
	for range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
			defer cancel()
			c, err := a.Dial(ctx, trunk, Outgoing{To: "+12025550123", Media: media(5000)})
			if err != nil {
				t.Error("not answered: ", err)
				return
			}
			theirs := get(t, calls)
			if err := c.Hangup(ctx); err != nil {
				t.Error("not ended: ", err)
			}
			_ = theirs
		})
	}
	all.Wait()
	eventually(t, "all are over", func() bool { return a.Counters().Active == 0 && b.Counters().Active == 0 })
	require.Less(t, time.Since(began), 40*time.Second)
	eventually(t, "every 2xx that came has its ACK", func() bool { return len(acks.owed()) == 0 })
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, rows, n)
	for id, count := range rows {
		require.Equal(t, 1, count, id)
	}
	answers, sent := acks.total()
	if promise.Full() { // among 40 calls there may be none
		require.Greater(t, answers, n, "some 2xx came again")
	}
	t.Logf("%d calls in %v: %d answers came, %d ACKs were sent", n, time.Since(began), answers, sent)
}

// What a carrier said before its answer is told before it, in its order, also when all
// of it arrives at once.
func TestProgressIsToldBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	a := start(t, quick())
	for range 100 {
		carrier := newPeer(t)
		var told []int
		dialled := make(chan error, 1)
		go func() {
			_, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", From: "+12025550100", Media: media(4000),
				Hooks: Hooks{Progress: func(p Progress) { told = append(told, p.Status) }}})
			dialled <- err
		}()
		invite := carrier.request("INVITE")
		for _, status := range []int{100, 180, 183} {
			carrier.answer(invite, status, nil)
		}
		answer, _, err := Answer(bodyOf(invite), media(5000))
		require.NoError(t, err)
		carrier.answer(invite, 200, answer)
		require.NoError(t, <-dialled)
		require.Equal(t, []int{180, 183}, told)
	}
}

// What a callee sends after its answer counts, also when it comes before it.
func TestRequestsThatOvertakeTheAnswer(t *testing.T) {
	t.Parallel()
	a := start(t, quick())
	for i := range 4 {
		rings, bye := i < 2, i%2 == 0
		carrier := newPeer(t)
		digits, calls := make(chan byte, 1), make(chan *Call, 1)
		go func() {
			if c, err := a.Dial(within(t), carrier.trunk(), Outgoing{To: "+12025550123", Media: media(5000),
				Hooks: Hooks{Digit: func(digit byte, _ time.Duration) { digits <- digit }}}); err == nil {
				calls <- c
			}
		}()
		invite := carrier.request("INVITE")
		if rings {
			carrier.answer(invite, 180, nil)
		}
		if bye {
			carrier.follows(invite, "BYE", 10, "")
		} else {
			carrier.follows(invite, "INFO", 10, "Signal=9\r\n", "Content-Type: application/dtmf-relay")
		}
		carrier.answer(invite, 200, Offer(media(4000)))
		call := get(t, calls)
		if bye {
			require.Equal(t, End{By: EndedByPeer, Reason: "bye"}, ended(t, call))
		} else {
			require.Equal(t, byte('9'), get(t, digits))
		}
	}
}
