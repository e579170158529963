package media

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

func TestHoldAndResume(t *testing.T) {
	t.Parallel()
	ea, eb := testEngine(t, Config{}), testEngine(t, Config{})
	c := connect(t, ea, eb, loopback(), Params{Codec: PCMU}, 500, 900)
	eventually(t, "sound", c.tapeA.hears(900, 100*time.Millisecond))
	// They put us on hold: we hear nothing, and send nothing.
	held := Params{Codec: PCMU, Remote: c.b.Local(), Direction: Inactive}
	require.NoError(t, c.a.Update(held))
	silent := func(r *tape) func() bool {
		return func() bool { x := r.sound(); return len(x) >= 1600 && level(x[len(x)-1600:]) == 0 }
	}
	eventually(t, "a hears nothing", silent(c.tapeA))
	eventually(t, "b hears nothing", silent(c.tapeB))
	sent := c.a.Stats().Sent
	frames := len(c.tapeA.sound())
	eventually(t, "frames go on", func() bool { return len(c.tapeA.sound()) > frames+1600 })
	require.Equal(t, sent, c.a.Stats().Sent)
	held.Direction = SendReceive
	require.NoError(t, c.a.Update(held))
	eventually(t, "a hears again", c.tapeA.hears(900, 100*time.Millisecond))
	eventually(t, "b hears again", c.tapeB.hears(500, 100*time.Millisecond))
	require.Zero(t, c.b.Stats().Lost, "the pause is no loss to the peer")
}

func TestReinviteMovesTheCall(t *testing.T) {
	t.Parallel()
	e, other := testEngine(t, Config{}), testEngine(t, Config{})
	c := connect(t, e, other, loopback(), Params{Codec: PCMU}, 500, 900)
	eventually(t, "sound", c.tapeA.hears(900, 100*time.Millisecond))
	third := open(t, other, loopback())
	tape := newTape(audio.Rate16k, 1200)
	require.NoError(t, third.Start(Params{Codec: G722, Remote: c.a.Local()}, tape.callbacks(third)))
	require.NoError(t, c.a.Update(Params{Codec: G722, Remote: third.Local()}))
	eventually(t, "a hears the new peer, at its own rate", c.tapeA.hears(1200, 200*time.Millisecond))
	eventually(t, "the new peer hears a", tape.hears(500, 200*time.Millisecond))
	require.Equal(t, audio.Rate8k, c.a.Rate())
	strangers := c.a.Stats().Strangers
	eventually(t, "the old one is a stranger now", func() bool { return c.a.Stats().Strangers > strangers+5 })
	eventually(t, "and the new one is still heard", c.tapeA.hears(1200, 100*time.Millisecond))
}

func TestNATIsFollowed(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{})
	s := open(t, e, loopback())
	// The SDP names a port that the NAT has rewritten.
	mapped, tape := newPeer(t, loopback(), 700), newTape(audio.Rate8k, 500)
	params := Params{Codec: PCMU, Remote: address("127.0.0.1:9"), NATHosts: []netip.Addr{loopback()}}
	require.NoError(t, s.Start(params, tape.callbacks(s)))
	ticker := time.NewTicker(audio.FrameDuration)
	defer ticker.Stop()
	for range 60 {
		mapped.send(t, s.Local())
		<-ticker.C
	}
	packet, ok := mapped.read(t, time.Second)
	require.True(t, ok, "what we send follows")
	require.Len(t, packet.Payload, 160)
	require.True(t, slices.ContainsFunc(tape.sound(), func(v int16) bool { return v != 0 }))
	require.LessOrEqual(t, s.Stats().Strangers, uint64(2*latchPackets))
}

func TestDeadMediaIsToldOnce(t *testing.T) {
	t.Parallel()
	ea, eb := testEngine(t, Config{DeadAfter: 300 * time.Millisecond}), testEngine(t, Config{})
	c := connect(t, ea, eb, loopback(), Params{Codec: PCMU}, 500, 900)
	eventually(t, "sound", c.tapeA.hears(900, 400*time.Millisecond))
	deaths := func() int {
		c.tapeA.mu.Lock()
		defer c.tapeA.mu.Unlock()
		return c.tapeA.dead
	}
	require.Zero(t, deaths())
	c.b.Close()
	eventually(t, "dead", func() bool { return deaths() == 1 })
	eventually(t, "a while later", func() bool { return c.a.Stats().Quiet > 700*time.Millisecond })
	require.Equal(t, 1, deaths())
}

func TestBadParams(t *testing.T) {
	t.Parallel()
	remote := address("127.0.0.1:4000")
	for name, params := range map[string]Params{
		"codec":             {Codec: 3, Remote: remote},
		"no address":        {Codec: PCMU},
		"rate":              {Codec: PCMU, Remote: remote, Rate: 44100},
		"no port":           {Codec: PCMU, Remote: address("127.0.0.1:0")},
		"unspecified":       {Codec: PCMU, Remote: address("0.0.0.0:4000")},
		"multicast":         {Codec: PCMU, Remote: address("224.0.0.1:4000")},
		"event type":        {Codec: PCMU, Remote: remote, EventType: 8},
		"event type heard":  {Codec: PCMU, Remote: remote, EventType: 101, EventTypeHeard: 200},
		"direction":         {Codec: PCMU, Remote: remote, Direction: 9},
		"half a secret":     {Codec: PCMU, Remote: remote, SendKey: &Key{Suite: AESCM128HMACSHA1_80}},
		"no suite":          {Codec: PCMU, Remote: remote, SendKey: &Key{}, ReceiveKey: &Key{}},
		"unknown direction": {Codec: PCMU, Remote: remote, Direction: Inactive + 1},
	} {
		e := testEngine(t, Config{})
		s := open(t, e, loopback())
		require.Error(t, s.Start(params, Callbacks{}), name)
		require.Error(t, s.Update(params), name)
		require.Error(t, s.SendDigits("1"), "not started")
		s.Send(make([]int16, 160))
		require.Zero(t, s.Stats())
	}
}

// TestPromiseT4NothingLeaks: 1,000 sessions, cut at every stage.
func TestPromiseT4NothingLeaks(t *testing.T) {
	e := testEngine(t, Config{PortQuarantine: time.Nanosecond})
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 4))
			for range 100 {
				cutCall(t, e, random)
			}
		})
	}
	all.Wait()
	require.Zero(t, e.Sessions())
	require.LessOrEqual(t, runtime.NumGoroutine(), before+5)
	for i := range e.pacer.slots {
		require.Empty(t, e.pacer.slots[i].calls)
	}
	e.ports.pool.wake(time.Hour)
	require.Len(t, e.ports.pool.free, 5000, "every port is back")
}

func cutCall(t *testing.T, e *Engine, random *rand.Rand) {
	t.Helper()
	s, err := e.Open(loopback())
	if !assert.NoError(t, err) {
		return
	}
	defer s.Close()
	if random.IntN(4) == 0 {
		return
	}
	heard := make(chan struct{}, 1)
	params := Params{Codec: PCMU, EventType: 101, Remote: s.Local()} // hears itself
	assert.NoError(t, s.Start(params, Callbacks{Frame: func(frame []int16) {
		s.Send(frame)
		select {
		case heard <- struct{}{}:
		default:
		}
	}}))
	if random.IntN(2) == 0 {
		assert.NoError(t, s.SendDigits("123"))
		go s.Close() // twice at once
	}
	if random.IntN(4) == 0 {
		select {
		case <-heard:
		case <-s.quit:
		}
	}
}
