package switchboard

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"parley/internal/promise"
	"parley/internal/sip"
)

// sockets are those of the process.
func sockets(t *testing.T) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// TestPromiseT4CallsLeaveNothing: of 1,000 calls with media 30 % are cut at a random
// state, by either side or both, and nothing of them is left.
func TestPromiseT4CallsLeaveNothing(t *testing.T) {
	n := promise.Figure(100, 1000)
	var answered sync.WaitGroup // calls that the other side still holds
	var fates atomic.Int64
	b := newStation(t, "udp", nil, func(b *station, ctx context.Context, in *sip.Incoming) {
		fate := fates.Add(1) % 10
		if fate == 0 {
			_ = in.Refuse(486, 0)
			return
		}
		_ = in.Ring()
		if fate == 2 { // nobody comes to the telephone
			wait := time.NewTimer(30 * time.Millisecond)
			defer wait.Stop()
			select {
			case <-ctx.Done():
			case <-wait.C:
				_ = in.Refuse(480, 0)
			}
			return
		}
		k := b.open()
		defer k.session.Close()
		call, err := in.Answer(k.offer(in.Trunk), k.hooks())
		if err != nil {
			return
		}
		answered.Add(1)
		defer answered.Done()
		_ = k.play(call)
		if fate == 1 {
			_ = call.Hangup(b.within())
		}
		<-call.Done()
	})
	a := newStation(t, "udp", nil, nil)
	goroutines, open := runtime.NumGoroutine(), sockets(t)
	slots := make(chan struct{}, 20)
	var all sync.WaitGroup
	var cut, talked atomic.Int64
	for range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if oneCall(a, b) {
				talked.Add(1)
			} else {
				cut.Add(1)
			}
		})
	}
	all.Wait()
	answered.Wait()
	require.Eventually(t, func() bool {
		return a.agent.Counters().Active == 0 && b.agent.Counters().Active == 0 && a.engine.Sessions() == 0 && b.engine.Sessions() == 0 &&
			sockets(t) == open && runtime.NumGoroutine() <= goroutines+5
	}, 5*time.Second, 20*time.Millisecond, "goroutines %d, sockets %d before; %+v", goroutines, open, a.agent.Counters())
	t.Logf("%d calls talked, %d were cut; goroutines %d before and %d after, sockets %d and %d",
		talked.Load(), cut.Load(), goroutines, runtime.NumGoroutine(), open, sockets(t))
}

// oneCall places a call and says whether it came to talk.
func oneCall(a, b *station) bool {
	ctx, cancel := context.WithTimeout(context.Background(), peerPatience)
	defer cancel()
	if rand.IntN(4) == 0 { // gives up, at any time from before the INVITE to after the answer
		time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, cancel)
	}
	k, err := a.tryDial(ctx, b.trunk())
	if err != nil {
		return false
	}
	defer k.session.Close()
	frames := time.NewTimer(time.Duration(rand.IntN(200)) * time.Millisecond)
	defer frames.Stop()
	select {
	case <-k.call.Done():
		return false
	case <-frames.C:
	}
	return k.call.Hangup(a.within()) == nil
}

// TestPromiseT6OverloadIsRefused: with a cap of 20, 40 calls at 20 a second: exactly 20
// are answered, 20 get a 503 within 200 ms, and the calls that run lose nothing.
func TestPromiseT6OverloadIsRefused(t *testing.T) {
	b := newStation(t, "udp", nil, nil, func(s *sip.Settings) { s.MaxCalls = 20 })
	a := newStation(t, "udp", nil, nil)
	talks := make(chan *talk, 40)
	var refused atomic.Int64
	var all sync.WaitGroup
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 40 {
		all.Go(func() {
			began := time.Now()
			k, err := a.tryDial(a.within(), b.trunk())
			if err == nil {
				talks <- k
				return
			}
			var failure *sip.Failure
			if assert.ErrorAs(t, err, &failure) && assert.Equal(t, 503, failure.Status) {
				refused.Add(1)
			}
			assert.Less(t, time.Since(began), time.Duration(promise.Figure(2000, 200))*time.Millisecond)
		})
		<-tick.C
	}
	all.Wait()
	require.EqualValues(t, 20, refused.Load())
	require.Len(t, talks, 20)
	for range 20 {
		for _, k := range []*talk{<-talks, get(t, b.talks, "answered call")} {
			eventually(t, "it talks", func() bool { return k.session.Stats().Received > 20 })
			require.Zero(t, k.session.Stats().Lost)
			require.Zero(t, k.session.Stats().Unsent)
		}
	}
}

// TestPromiseT9GarbageBesideACall: 10,000 junk datagrams a second for 10 s, at the
// ports of SIP and of media, beside a call that runs: it loses nothing, and the process
// does not grow.
func TestPromiseT9GarbageBesideACall(t *testing.T) {
	length := time.Duration(promise.Figure(1, 10)) * time.Second
	a, b := newStation(t, "udp", nil, nil), newStation(t, "udp", nil, nil)
	ours := a.dial(b.trunk())
	theirs := get(t, b.talks, "call")
	eventually(t, "sound", theirs.hears(ourTone))
	debug.FreeOSMemory()
	before := residentBytes(t)

	junk, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 66)})
	require.NoError(t, err)
	defer junk.Close()
	targets := []net.Addr{net.UDPAddrFromAddrPort(b.agent.Addr("udp")), net.UDPAddrFromAddrPort(a.agent.Addr("udp")),
		net.UDPAddrFromAddrPort(ours.session.Local()), net.UDPAddrFromAddrPort(theirs.session.Local())}
	datagram, sent := make([]byte, 400), 0
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		for i := range 10 {
			_, _ = crand.Read(datagram)
			switch i % 3 {
			case 0: // like SIP
				copy(datagram, "INVITE sip:1@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.66;branch=z9hG4bK")
			case 1: // like RTP
				datagram[0], datagram[1] = 0x80, 0
			}
			if _, err := junk.WriteTo(datagram[:100+i*30], targets[sent%len(targets)]); err == nil {
				sent++
			}
		}
	}
	eventually(t, "the call goes on", theirs.hears(ourTone))
	for _, k := range []*talk{ours, theirs} {
		require.Zero(t, k.session.Stats().Lost)
		require.NotZero(t, k.session.Stats().Strangers)
	}
	debug.FreeOSMemory()
	after := residentBytes(t)
	t.Logf("%d datagrams in %v, resident %d MB before and %d MB after", sent, length, before>>20, after>>20)
	require.Less(t, after-before, int64(20<<20))
	require.NoError(t, ours.call.Hangup(a.within()))
}

// residentBytes is what the process holds in memory.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	fields := strings.Fields(string(text))
	require.Greater(t, len(fields), 1)
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
