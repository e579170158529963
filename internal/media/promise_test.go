package media

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/promise"
)

// TestPromiseT10SteadyAudio: 50 calls, each with tones of its own in both
// directions: each hears its own and no other, and nothing is lost.
func TestPromiseT10SteadyAudio(t *testing.T) {
	const calls = 50
	length := promise.Figure(3*time.Second, time.Minute)
	ea, eb := testEngine(t, Config{}), testEngine(t, Config{})
	hertz := func(i int) float64 { return 300 + 60*float64(i) }
	all := make([]*call, calls)
	for i := range all {
		all[i] = connect(t, ea, eb, loopback(), Params{Codec: PCMU}, hertz(i), hertz(calls-1-i))
	}
	begin, heardBefore := time.Now(), len(all[0].tapeA.sound())
	<-time.After(length)
	took, heardNow := time.Since(begin), len(all[0].tapeA.sound())
	for _, c := range all {
		eventually(t, "enough to judge", func() bool { return min(c.tapeA.length(), c.tapeB.length()) >= 16000 })
	}
	for _, c := range all {
		c.a.engine.pacer.remove(c.a.slot, c.a)
		c.b.engine.pacer.remove(c.b.slot, c.b)
	}
	drift := audio.Rate8k.Duration(heardNow-heardBefore) - took
	late := ea.Lateness()
	t.Logf("lateness p50 %v, p99 %v, p99.9 %v, max %v over %d packets; drift %v in %v", late.P50, late.P99, late.P999, late.Max, late.Packets, drift, took)
	for i, c := range all {
		requireOwnTone(t, c.tapeA.sound()[4000:], hertz(calls-1-i), hertz, calls)
		requireOwnTone(t, c.tapeB.sound()[4000:], hertz(i), hertz, calls)
		for _, s := range []*Session{c.a, c.b} {
			require.Zero(t, s.Stats().Lost)
			require.Zero(t, s.Stats().Strangers)
			require.Zero(t, s.Stats().Unsent)
		}
	}
	if promise.Full() {
		require.LessOrEqual(t, late.P99, 5*time.Millisecond)
		require.LessOrEqual(t, drift.Abs(), 20*time.Millisecond)
	}
}

// requireOwnTone looks at each second for the tone and for all others: at the last one
// only, and with patience for a busy machine, when the promise is not on trial.
func requireOwnTone(t *testing.T, x []int16, own float64, hertz func(int) float64, calls int) {
	t.Helper()
	require.GreaterOrEqual(t, len(x), 8000)
	enough, others := 0.8, 0.05
	if !promise.Full() {
		x, enough, others = x[len(x)-8000:], 0.2, 0.1
	}
	for ; len(x) >= 8000; x = x[8000:] {
		require.Greater(t, share(x[:8000], audio.Rate8k, own), enough)
		for i := range calls {
			if other := hertz(i); other != own {
				require.Less(t, share(x[:8000], audio.Rate8k, other), others)
			}
		}
	}
}

// TestPromiseT11DigitsSurviveLoss: 1,000 digits at 10 % loss, each once.
func TestPromiseT11DigitsSurviveLoss(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 4733))
	params := Params{Codec: PCMU, EventType: 101, Remote: address("192.0.2.1:4000")}
	in, out := newInbound(audio.Rate8k, DefaultDeadAfter), newOutbound(audio.Rate8k)
	require.NoError(t, in.configure(0, params))
	require.NoError(t, out.configure(params))
	var sent, heard []byte
	frame := make([]int16, frameTicks)
	for n := int64(0); len(sent) < 1000 || n%1000 != 0; n++ {
		now := time.Duration(n) * audio.FrameDuration
		if len(sent) < 1000 && len(out.dialer.digits) < 10 {
			digit := "0123456789*#ABCD"[random.IntN(16)]
			require.NoError(t, out.dialer.dial(string(digit)))
			sent = append(sent, digit)
		}
		if packet := out.next(now, n); random.Float64() >= 0.10 {
			in.receive(now, params.Remote, packet)
		}
		heard, _ = in.hear(now, frame, heard)
	}
	require.Equal(t, string(sent), string(heard))
}

// TestPromiseT12OldPacketsNeverEnterANewCall: 1,000 calls share a few ports with no
// rest at all, while the peer of an old call still sends to each of them.
func TestPromiseT12OldPacketsNeverEnterANewCall(t *testing.T) {
	const workers, calls, listen = 25, 40, 4
	first, last := ownPorts(1)
	e := testEngine(t, Config{PortMin: first, PortMax: last, PortQuarantine: time.Nanosecond})
	late := newPeer(t, loopback(), 1000)
	stop := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			for port := first; port <= last; port += 2 {
				_, _ = late.socket.WriteToUDPAddrPort(late.next(), netip.AddrPortFrom(loopback(), port))
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	var frames, foreign, strangers atomic.Uint64
	oneCall := func() {
		s, err := e.Open(loopback())
		if !assert.NoError(t, err) {
			return
		}
		defer s.Close()
		heard, mine := make(chan struct{}, 1), 0
		params := Params{Codec: PCMU, Remote: address("127.0.0.1:9")}
		assert.NoError(t, s.Start(params, Callbacks{Frame: func(frame []int16) {
			frames.Add(1)
			mine++
			if slices.ContainsFunc(frame, func(v int16) bool { return v != 0 }) {
				foreign.Add(1)
			}
			if mine >= listen && s.Stats().Strangers > 0 {
				select {
				case heard <- struct{}{}:
				default:
				}
			}
		}}))
		<-heard
		strangers.Add(s.Stats().Strangers)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range calls {
				oneCall()
			}
		})
	}
	all.Wait()
	close(stop)
	sender.Wait()
	require.Zero(t, foreign.Load())
	require.GreaterOrEqual(t, strangers.Load(), uint64(workers*calls), "every call was tried")
	t.Logf("%d frames heard, %d packets of old calls refused", frames.Load(), strangers.Load())
}

// TestPromiseS6RTPCannotBeBledOrInjected: an attacker sprays the port before and
// after the peer is heard.
func TestPromiseS6RTPCannotBeBledOrInjected(t *testing.T) {
	length := promise.Figure(time.Second, 10*time.Second)
	e := testEngine(t, Config{})
	s := open(t, e, loopback())
	victim, attacker := newPeer(t, loopback(), 500), newPeer(t, netip.AddrFrom4([4]byte{127, 0, 0, 66}), 1500)
	beside := newPeer(t, loopback(), 1500) // even on the victim's own host
	heard := newTape(audio.Rate8k, 800)
	require.NoError(t, s.Start(Params{Codec: PCMU, Remote: victim.address()}, heard.callbacks(s)))

	// An attack lasts until the call has heard this much, or should have.
	attack := func(length time.Duration) {
		end := heard.length() + audio.Rate8k.Samples(length)
		for begin := time.Now(); heard.length() < end && time.Since(begin) < 10*length; <-time.After(2 * time.Millisecond) {
			for range 10 { // with pauses of some 3 ms, more than 5,000 packets a second
				attacker.send(t, s.Local())
				beside.send(t, s.Local())
			}
		}
	}
	attack(length)
	require.Zero(t, level(heard.sound()), "nothing of it is heard before the peer speaks")

	start := heard.length()
	over := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		ticker := time.NewTicker(audio.FrameDuration)
		defer ticker.Stop()
		for {
			victim.send(t, s.Local())
			select {
			case <-over:
				return
			case <-ticker.C:
			}
		}
	})
	attack(length)
	close(over)
	both.Wait()
	s.Close()
	sound := heard.sound()[start:]
	require.Greater(t, len(sound), 4000)
	sound = sound[2400:]
	require.Greater(t, share(sound, audio.Rate8k, 500), 0.8, "the call's tone is unbroken")
	require.Less(t, share(sound, audio.Rate8k, 1500), 0.005, "and nothing of the attack is in it")
	for _, bad := range []*peer{attacker, beside} {
		_, bled := bad.read(t, 20*time.Millisecond)
		require.False(t, bled, "no packet goes to an attacker")
	}
	require.NotZero(t, s.Stats().Strangers)
	late := e.Lateness()
	t.Logf("%d packets of strangers refused; lateness p50 %v, p99 %v, max %v over %d packets", s.Stats().Strangers, late.P50, late.P99, late.Max, late.Packets)
	_, ok := victim.read(t, time.Second)
	require.True(t, ok, "the peer gets ours")
}

// TestPromiseS6PortsAreUnpredictable: no step of 2 in 100 calls, and no order.
func TestPromiseS6PortsAreUnpredictable(t *testing.T) {
	t.Parallel()
	ports, err := newPorts(DefaultPortMin, DefaultPortMax, time.Minute)
	require.NoError(t, err)
	last, rising, seen := uint16(0), 0, map[uint16]bool{}
	for range 1000 {
		port, ok := ports.pool.take(0)
		require.True(t, ok)
		require.False(t, seen[port])
		require.NotEqual(t, 2, max(int(port)-int(last), int(last)-int(port)))
		if port > last {
			rising++
		}
		last, seen[port] = port, true
	}
	require.InDelta(t, 500, rising, 100)
}

// TestPromiseT5DeadMedia: no packets are dead after 15 s, packets of silence never.
func TestPromiseT5DeadMedia(t *testing.T) {
	t.Parallel()
	params := Params{Codec: PCMU, Remote: address("192.0.2.1:4000")}
	run := func(length time.Duration, params Params, sends func(now time.Duration) bool) (dead []time.Duration) {
		in, out := newInbound(audio.Rate8k, DefaultDeadAfter), newOutbound(audio.Rate8k)
		require.NoError(t, in.configure(0, params))
		require.NoError(t, out.configure(params))
		frame := make([]int16, frameTicks)
		for n := range int64(length / audio.FrameDuration) {
			now := time.Duration(n) * audio.FrameDuration
			packet := out.next(now, n)
			if sends(now) {
				in.receive(now, params.Remote, packet)
			}
			if _, dies := in.hear(now, frame, nil); dies {
				dead = append(dead, now)
			}
		}
		return dead
	}
	never := func(time.Duration) bool { return false }
	always := func(time.Duration) bool { return true }
	until := func(end time.Duration) func(time.Duration) bool {
		return func(now time.Duration) bool { return now < end }
	}
	require.Equal(t, []time.Duration{15 * time.Second}, run(2*time.Minute, params, never), "once")
	require.Empty(t, run(2*time.Minute, params, always), "silence is alive")
	dead := run(2*time.Minute, params, until(30*time.Second))
	require.Len(t, dead, 1)
	require.InDelta(t, 45, dead[0].Seconds(), 0.1)
	held := params
	held.Direction = SendOnly
	require.Empty(t, run(2*time.Minute, held, never), "a peer on hold owes nothing")
}
