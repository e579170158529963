package media

import (
	"cmp"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley/internal/audio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

// testEngine has a port range of its own, for tests run beside each other.
func testEngine(t testing.TB, config Config) *Engine {
	t.Helper()
	if config.PortMin == 0 {
		config.PortMin, config.PortMax = 20000, 29999
	}
	e, err := New(config)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// ownPorts are 64 that no other run of these tests on the machine is likely to use,
// for tests that must know their ports.
func ownPorts(test uint16) (first, last uint16) {
	first = 30000 + uint16(os.Getpid()%20)*128 + test*64
	return first, first + 63
}

func open(t testing.TB, e *Engine, host netip.Addr) *Session {
	t.Helper()
	s, err := e.Open(host)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// tape records what a session hears and plays a tone in turn.
type tape struct {
	mu     sync.Mutex
	heard  []int16
	digits []byte
	dead   int
	tone   *audio.ToneGenerator
	frame  []int16
}

func newTape(rate audio.Rate, hertz float64) *tape {
	return &tape{tone: audio.NewSine(rate, hertz, -12), frame: make([]int16, rate.FrameSamples()), heard: make([]int16, 0, int(rate)*4)}
}

func (r *tape) callbacks(s *Session) Callbacks {
	return Callbacks{
		Frame: func(frame []int16) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.heard = append(r.heard, frame...)
			r.tone.Fill(r.frame)
			s.Send(r.frame)
		},
		Digit: func(key byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.digits = append(r.digits, key)
		},
		Dead: func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.dead++
		},
	}
}

func (r *tape) sound() []int16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard)
}

func (r *tape) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heard)
}

func (r *tape) keys() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.digits)
}

// call is two sessions that talk to each other.
type call struct {
	a, b         *Session
	tapeA, tapeB *tape
}

func connect(t testing.TB, ea, eb *Engine, host netip.Addr, params Params, toneA, toneB float64) *call {
	t.Helper()
	c := &call{a: open(t, ea, host), b: open(t, eb, host)}
	rate := cmp.Or(params.Rate, params.Codec.Rate())
	c.tapeA, c.tapeB = newTape(rate, toneA), newTape(rate, toneB)
	forA, forB := params, params
	forA.Remote, forB.Remote = c.b.Local(), c.a.Local()
	forB.SendKey, forB.ReceiveKey = forA.ReceiveKey, forA.SendKey
	require.NoError(t, c.a.Start(forA, c.tapeA.callbacks(c.a)))
	require.NoError(t, c.b.Start(forB, c.tapeB.callbacks(c.b)))
	return c
}

// eventually waits for a condition of the real network.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, 5*time.Millisecond, what)
}

func (r *tape) hears(hertz float64, length time.Duration) func() bool {
	return func() bool {
		x, rate := r.sound(), audio.Rate(len(r.frame)*50)
		n := rate.Samples(length)
		return len(x) >= n && power(x[len(x)-n:], rate, hertz) > 0.9
	}
}

func TestTwoSessionsHearEachOther(t *testing.T) {
	t.Parallel()
	key := func(fill byte, suite Suite) *Key {
		k := &Key{Suite: suite}
		for i := range k.Key {
			k.Key[i] = fill + byte(i)
		}
		return k
	}
	v6 := netip.IPv6Loopback()
	tests := map[string]struct {
		host   netip.Addr
		params Params
	}{
		"PCMU":              {loopback(), Params{Codec: PCMU, EventType: 101}},
		"PCMA over IPv6":    {v6, Params{Codec: PCMA, EventType: 96, Mux: true}},
		"G722":              {loopback(), Params{Codec: G722, EventType: 101}},
		"G722 at 8 kHz":     {loopback(), Params{Codec: G722, Rate: audio.Rate8k, EventType: 101}},
		"SRTP, 80-bit tag":  {loopback(), Params{Codec: PCMU, EventType: 101, SendKey: key(1, AESCM128HMACSHA1_80), ReceiveKey: key(7, AESCM128HMACSHA1_80)}},
		"SRTP, 32-bit tag":  {loopback(), Params{Codec: G722, EventType: 101, Mux: true, SendKey: key(2, AESCM128HMACSHA1_32), ReceiveKey: key(9, AESCM128HMACSHA1_32)}},
		"no events, inband": {loopback(), Params{Codec: PCMA}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ea, eb := testEngine(t, Config{}), testEngine(t, Config{})
			c := connect(t, ea, eb, test.host, test.params, 500, 900)
			eventually(t, "a hears b", c.tapeA.hears(900, 200*time.Millisecond))
			eventually(t, "b hears a", c.tapeB.hears(500, 200*time.Millisecond))
			require.NoError(t, c.a.SendDigits("15#"))
			require.Error(t, c.a.SendDigits("1x"))
			if test.params.EventType != 0 {
				eventually(t, "digits", func() bool { return c.tapeB.keys() == "15#" })
			} else {
				detector, err := audio.NewDTMFDetector(audio.Rate8k)
				require.NoError(t, err)
				var found []byte
				heard := 0
				eventually(t, "inband digits", func() bool {
					x := c.tapeB.sound()
					for ; heard+160 <= len(x); heard += 160 {
						if digit, ok := detector.Detect(x[heard : heard+160]); ok {
							found = append(found, digit)
						}
					}
					return string(found) == "15#"
				})
			}
			eventually(t, "sound goes on after digits", c.tapeB.hears(500, 200*time.Millisecond))
			c.a.Close()
			eventually(t, "goodbye", func() bool { return c.b.Stats().Bye })
			stats := c.b.Stats()
			require.Zero(t, stats.Lost)
			require.Zero(t, stats.Strangers)
			require.Zero(t, stats.Invalid)
		})
	}
}

func TestCloseFreesEverything(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{})
	s, err := e.Open(loopback())
	require.NoError(t, err)
	local := s.Local()
	require.Equal(t, 1, e.Sessions())
	s.Close()
	s.Close()
	require.Zero(t, e.Sessions())
	require.ErrorIs(t, s.Start(Params{Remote: local}, Callbacks{}), ErrClosed)
	require.ErrorIs(t, s.Update(Params{Remote: local}), ErrClosed)
	pair, err := bindPair(local.Addr(), local.Port())
	require.NoError(t, err, "the port is free again for the system")
	pair.close()
	e.Close()
	_, err = e.Open(loopback())
	require.ErrorIs(t, err, ErrClosed)
}
