package audio

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEventWireFormat(t *testing.T) {
	t.Parallel()
	// The last packet of RFC 4733 5.1's example: digit 9, ended, volume 7, 1600 ticks.
	wire := []byte{9, 0x87, 0x06, 0x40}
	event, err := ParseEvent(wire)
	require.NoError(t, err)
	require.Equal(t, Event{Code: 9, End: true, Volume: 7, Duration: 1600}, event)
	var back [4]byte
	require.Equal(t, 4, event.Put(back[:]))
	require.Equal(t, wire, back[:])

	_, err = ParseEvent(wire[:3])
	require.ErrorIs(t, err, ErrShortEvent)
	require.Zero(t, event.Put(back[:3]))
	event, err = ParseEvent([]byte{9, 0x47, 0, 0})
	require.NoError(t, err)
	require.Equal(t, byte(7), event.Volume, "the reserved bit is nothing")
}

func TestEventRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := Event{
			Code: rapid.Byte().Draw(t, "code"), End: rapid.Bool().Draw(t, "end"),
			Volume: rapid.ByteRange(0, 63).Draw(t, "volume"), Duration: rapid.Uint16().Draw(t, "duration"),
		}
		var wire [4]byte
		want.Put(wire[:])
		got, err := ParseEvent(wire[:])
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestEventCodesAndDigits(t *testing.T) {
	t.Parallel()
	for code, digit := range []byte("0123456789*#ABCD") {
		got, ok := DTMFEvent(digit)
		require.True(t, ok)
		require.Equal(t, byte(code), got)
		back, ok := DTMFDigit(byte(code))
		require.True(t, ok)
		require.Equal(t, digit, back)
	}
	small, ok := DTMFEvent('c')
	require.True(t, ok)
	require.Equal(t, byte(14), small)
	_, ok = DTMFEvent('x')
	require.False(t, ok)
	_, ok = DTMFDigit(16)
	require.False(t, ok)
}

func eventPackets(t require.TestingT, digit byte, timestamp uint32, length time.Duration) (packets []EventPacket) {
	var s EventSender
	require.NoError(t, s.Start(digit, Rate8k, timestamp, length))
	for s.Active() {
		p, ok := s.Next()
		require.True(t, ok)
		packets = append(packets, p)
	}
	_, ok := s.Next()
	require.False(t, ok)
	return packets
}

func TestEventSenderSequence(t *testing.T) {
	t.Parallel()
	packets := eventPackets(t, '7', 1000, 90*time.Millisecond)
	var durations []uint16
	ends := 0
	for i, p := range packets {
		require.Equal(t, uint32(1000), p.Timestamp, "one timestamp for the whole event")
		require.Equal(t, byte(7), p.Code)
		require.Equal(t, i == 0, p.Marker)
		durations = append(durations, p.Duration)
		if p.End {
			ends++
		}
	}
	require.Equal(t, []uint16{160, 320, 480, 640, 720, 720, 720}, durations)
	require.Equal(t, 3, ends, "RFC 4733 2.5.1.4")

	require.Len(t, eventPackets(t, '1', 0, 0), 3, "the shortest press is one packet time")
	long := eventPackets(t, '1', 0, time.Hour)
	require.Equal(t, uint16(0xffff), long[len(long)-1].Duration)

	var s EventSender
	require.Error(t, s.Start('x', Rate8k, 0, DTMFLength))
	require.False(t, s.Active())
}

// eventLine loses, doubles and reorders packets.
func eventLine(rng *rand.Rand, packets []EventPacket, loss, double, reorder float64) (out []EventPacket) {
	for _, p := range packets {
		if rng.Float64() >= loss {
			out = append(out, p)
			if rng.Float64() < double {
				out = append(out, p)
			}
		}
	}
	for i := range out {
		if rng.Float64() < reorder {
			j := min(len(out)-1, i+1+rng.IntN(3))
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// Promise T11: 1,000 digits at 10 % loss arrive, all of them and once.
func TestEventDigitsArriveOnceUnderLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		loss, double, reorder float64
	}{
		{"a good line", 0, 0, 0},
		{"10 % loss", 0.1, 0, 0},
		{"10 % loss, 5 % doubled, 5 % reordered", 0.1, 0.05, 0.05},
		{"everything doubled", 0, 1, 0.2},
	} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 17))
			var sent, got []byte
			var packets []EventPacket
			timestamp := uint32(0xffff0000) // wraps on the way
			for range 1000 {
				digit := dtmfDigits[rng.IntN(16)]
				sent = append(sent, digit)
				packets = append(packets, eventPackets(t, digit, timestamp, DTMFLength)...)
				timestamp += uint32(Rate8k.Samples(DTMFLength + DTMFGap))
			}
			var r EventReceiver
			for _, p := range eventLine(rng, packets, c.loss, c.double, c.reorder) {
				var wire [4]byte
				p.Put(wire[:])
				got = r.Receive(got, p.Timestamp, p.Marker, wire[:])
			}
			require.Equal(t, string(sent), string(got), c.name)
		}
		t.Logf("%s: 5,000 of 5,000 digits once", c.name)
	}
}

func TestEventReceiverSpecialCases(t *testing.T) {
	t.Parallel()
	wire := func(events ...Event) (out []byte) {
		for _, e := range events {
			var b [4]byte
			e.Put(b[:])
			out = append(out, b[:]...)
		}
		return out
	}
	type packet struct {
		timestamp uint32
		marker    bool
		payload   []byte
	}
	for name, c := range map[string]struct {
		want    string
		packets []packet
	}{
		"one event packed after another": {"12", []packet{
			{1000, true, wire(Event{Code: 1, End: true, Duration: 400}, Event{Code: 2, Duration: 160})},
			{1000, false, wire(Event{Code: 1, End: true, Duration: 400}, Event{Code: 2, Duration: 320})},
		}},
		"the same digit twice": {"55", []packet{
			{1000, true, wire(Event{Code: 5, End: true, Duration: 800})},
			{2440, true, wire(Event{Code: 5, End: true, Duration: 800})},
		}},
		"the same digit twice, first packet lost": {"55", []packet{
			{1000, true, wire(Event{Code: 5, Duration: 800})},
			{2440, false, wire(Event{Code: 5, Duration: 320})},
		}},
		"segments of a long press": {"5", []packet{
			{1000, true, wire(Event{Code: 5, Duration: 0xffff})},
			{1000 + 0xffff, false, wire(Event{Code: 5, Duration: 800})},
			{1000 + 0xffff, false, wire(Event{Code: 5, End: true, Duration: 960})},
		}},
		"only the end arrives":     {"#", []packet{{7, false, wire(Event{Code: 11, End: true, Duration: 800})}}},
		"flash is no digit":        {"", []packet{{7, true, wire(Event{Code: 16, Duration: 160})}}},
		"garbage":                  {"", []packet{{7, true, nil}, {7, true, []byte{1}}, {8, true, []byte{1, 2, 3}}, {9, true, []byte{200, 1, 2, 3, 4}}}},
		"a tail of less than four": {"1", []packet{{7, true, append(wire(Event{Code: 1}), 5, 5)}}},
		"one bogus timestamp": {"123", []packet{
			{1000, true, wire(Event{Code: 1})}, {0x70000000, true, wire(Event{Code: 2})}, {3000, true, wire(Event{Code: 3})},
		}},
	} {
		var r EventReceiver
		var got []byte
		for _, p := range c.packets {
			got = r.Receive(got, p.timestamp, p.marker, p.payload)
		}
		require.Equal(t, c.want, string(got), name)
	}
}

// Whatever arrives: no panic, only digits, and never more the second time.
func FuzzEventReceiver(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 5, 0x8a, 3, 0x20})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 5, 0x0a, 0xff, 0xff, 5, 0x8a, 0, 1})
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) < 5 || len(packet) > 5+4*eventMemory {
			return
		}
		timestamp := uint32(packet[0])<<24 | uint32(packet[1])<<16 | uint32(packet[2])<<8 | uint32(packet[3])
		var r EventReceiver
		digits := r.Receive(nil, timestamp, packet[4]&1 == 1, packet[5:])
		for _, d := range digits {
			_, ok := DTMFEvent(d)
			require.True(t, ok)
		}
		require.LessOrEqual(t, len(digits), (len(packet)-5)/EventSize)
		require.Empty(t, r.Receive(nil, timestamp, packet[4]&1 == 1, packet[5:]))
	})
}

func TestEventsAllocateNothing(t *testing.T) {
	var s EventSender
	var r EventReceiver
	digits := make([]byte, 0, 8)
	var wire [4]byte
	at := uint32(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		at += 1440
		_ = s.Start('5', Rate8k, at, DTMFLength)
		for s.Active() {
			p, _ := s.Next()
			p.Put(wire[:])
			digits = r.Receive(digits[:0], p.Timestamp, p.Marker, wire[:])
		}
	}))
}

func BenchmarkEventReceiver(b *testing.B) {
	var r EventReceiver
	digits, wire := make([]byte, 0, 8), []byte{5, 0x0a, 3, 0x20}
	at := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		at += 160
		digits = r.Receive(digits[:0], at, false, wire)
	}
}
