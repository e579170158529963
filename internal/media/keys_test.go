package media

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// typist makes the packets of a stream with keys in it.
type typist struct {
	t        *testing.T
	ssrc     uint32
	sequence uint16
	stamp    uint32
}

func (k *typist) packet(kind uint8, stamp uint32, payload []byte) []byte {
	k.sequence++
	datagram := make([]byte, headerSize, headerSize+len(payload))
	(&packet{payloadType: kind, sequence: k.sequence, timestamp: stamp, ssrc: k.ssrc}).putHeader(datagram)
	return append(datagram, payload...)
}

func (k *typist) sound() []byte {
	k.stamp += frameTicks
	return k.packet(uint8(PCMU), k.stamp, make([]byte, frameTicks))
}

// key are the packets of a key of 40 ms.
func (k *typist) key(digit byte) (packets [][]byte) {
	code, ok := audio.DTMFEvent(digit)
	require.True(k.t, ok)
	k.stamp += frameTicks
	for i := range 4 {
		payload := make([]byte, audio.EventSize)
		audio.Event{Code: code, End: i > 0, Duration: uint16(frameTicks * min(i+1, 2))}.Put(payload)
		packets = append(packets, k.packet(101, k.stamp, payload))
	}
	k.stamp += 2 * frameTicks
	return packets
}

// stage is an inbound whose peer is at sdp, with a clock of 20 ms.
type stage struct {
	in   *inbound
	now  time.Duration
	keys []byte
}

func (s *stage) hears(source netip.AddrPort, packets ...[]byte) {
	for _, p := range packets {
		s.now += audio.FrameDuration
		s.in.receive(s.now, source, p)
		s.keys, _ = s.in.hear(s.now, make([]int16, frameTicks), s.keys)
	}
}

// begins gives a stage what came before its start.
func begins(t *testing.T, early *held, hosts ...netip.Addr) *stage {
	t.Helper()
	s := &stage{in: newInbound(audio.Rate8k, DefaultDeadAfter), now: 10 * time.Second}
	require.NoError(t, s.in.configure(s.now, Params{Codec: PCMU, EventType: 101, Remote: keySource, NATHosts: hosts}))
	s.in.recall(s.now, early)
	return s
}

var (
	keySource   = address("192.0.2.1:4000")
	keyMapped   = address("192.0.2.1:61000")
	keyStranger = address("203.0.113.9:4000")
)

func TestKeysBeforeTheStartCount(t *testing.T) {
	t.Parallel()
	k := &typist{t: t, ssrc: 7}
	early := func(from netip.AddrPort, ago time.Duration, packets ...[]byte) *held {
		h := &held{}
		for i, p := range packets {
			h.keep(10*time.Second-ago+time.Duration(i)*audio.FrameDuration, from, p)
		}
		return h
	}
	sound := k.sound()
	first, straddling := k.key('1'), k.key('2')
	before := append(append([][]byte{sound}, first...), straddling[:2]...)
	s := begins(t, early(keySource, 200*time.Millisecond, before...))
	s.hears(keySource, straddling[2:]...)
	require.Equal(t, "12", string(s.keys), "in order, and each once")

	s = begins(t, early(keySource, 200*time.Millisecond, first...))
	for range 50 {
		k.sound()
	}
	s.hears(keySource, k.sound(), k.sound())
	require.Equal(t, "1", string(s.keys))
	require.Zero(t, s.in.sequence.lost(), "what was thrown away before the start was not lost")

	s = begins(t, early(keyStranger, 200*time.Millisecond, first...))
	s.hears(keySource, k.sound())
	require.Empty(t, s.keys, "a stranger's")
	s = begins(t, early(keySource, heldFor+time.Second, first...))
	s.hears(keySource, k.sound())
	require.Empty(t, s.keys, "long before the answer")

	flood := &held{}
	for range 10 * heldMost {
		flood.keep(10*time.Second, keyStranger, k.key('5')[0])
	}
	require.Len(t, flood.packets, heldMost)
	flood.keep(10*time.Second, keySource, k.key('3')[0])
	s = begins(t, flood)
	s.hears(keySource, k.sound())
	require.Equal(t, "3", string(s.keys), "the newest are kept")
}

func TestKeysOfATrialCountOnceItIsPassed(t *testing.T) {
	t.Parallel()
	k := &typist{t: t, ssrc: 7}
	s := begins(t, &held{}, keySource.Addr())
	s.hears(keyMapped, k.key('4')...)
	require.Empty(t, s.keys, "it could be anybody's")
	s.hears(keyMapped, k.sound(), k.sound())
	require.Equal(t, "4", string(s.keys))

	s = begins(t, &held{}, keySource.Addr())
	s.hears(keyMapped, k.key('4')...)
	s.hears(keySource, k.sound())
	s.hears(keyMapped, k.sound(), k.sound())
	require.Empty(t, s.keys, "the peer spoke from where it said it would")
}

func TestKeysBesideTheSound(t *testing.T) {
	t.Parallel()
	k, gateway := &typist{t: t, ssrc: 7}, &typist{t: t, ssrc: 8, sequence: 900, stamp: 5000}
	s := begins(t, &held{})
	s.hears(keySource, k.sound())
	for range 3 {
		for _, p := range gateway.key('6') {
			s.hears(keySource, p, k.sound())
		}
	}
	require.Equal(t, "666", string(s.keys))
	require.Equal(t, k.ssrc, s.in.sequence.ssrc, "the sound's stream goes on")
	require.Zero(t, s.in.sequence.lost())
	stray := &typist{t: t, ssrc: 9}
	s.hears(keySource, stray.key('1')[0], k.sound())
	require.Equal(t, "666", string(s.keys), "one packet proves nothing")
}
