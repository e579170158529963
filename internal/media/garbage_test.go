package media

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/promise"
)

func validPacket(payloadType uint8, payload []byte) []byte {
	b := make([]byte, headerSize+len(payload))
	p := packet{payloadType: payloadType, sequence: 65535, timestamp: 1 << 31, ssrc: 7}
	p.putHeader(b)
	copy(b[headerSize:], payload)
	return b
}

// FuzzRTP gives an established call a datagram as its peer's, several times with
// the sequence and time going on, and looks whether we read it as pion does.
func FuzzRTP(f *testing.F) {
	f.Add(validPacket(0, make([]byte, 160)), uint16(1), uint32(160))
	f.Add(validPacket(9, make([]byte, 1400)), uint16(3000), uint32(1<<31))
	f.Add(validPacket(101, []byte{5, 0x80, 3, 32}), uint16(0), uint32(0))
	f.Add([]byte{0xbf, 0x80, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xbe, 0xde, 0xff, 0xff}, uint16(9), uint32(9))
	f.Fuzz(func(t *testing.T, datagram []byte, step uint16, leap uint32) {
		remote := address("192.0.2.1:4000")
		in := newInbound(audio.Rate8k, time.Minute)
		require.NoError(t, in.configure(0, Params{Codec: PCMU, EventType: 101, Remote: remote}))
		frame := make([]int16, frameTicks)
		for n := range 20 {
			now := time.Duration(n) * audio.FrameDuration
			in.receive(now, remote, datagram)
			in.hear(now, frame, nil)
			if len(datagram) >= headerSize {
				binary.BigEndian.PutUint16(datagram[2:], binary.BigEndian.Uint16(datagram[2:])+step)
				binary.BigEndian.PutUint32(datagram[4:], binary.BigEndian.Uint32(datagram[4:])+leap)
			}
			require.LessOrEqual(t, in.playout.line.to-in.playout.line.from, int64(timelineOctets))
		}
		ours, ok := parsePacket(datagram)
		var theirs rtp.Packet
		if ok && theirs.Unmarshal(datagram) == nil {
			require.Equal(t, theirs.SequenceNumber, ours.sequence)
			require.Equal(t, theirs.Timestamp, ours.timestamp)
			require.Equal(t, theirs.SSRC, ours.ssrc)
			require.Equal(t, theirs.PayloadType, ours.payloadType)
			require.Equal(t, string(theirs.Payload), string(ours.payload))
		}
	})
}

// FuzzSRTP gives the same to a call with keys: nothing forged is ever heard.
func FuzzSRTP(f *testing.F) {
	f.Add(validPacket(0, make([]byte, 170)))
	f.Add(validPacket(0, nil))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		remote, key := address("192.0.2.1:4000"), &Key{Suite: AESCM128HMACSHA1_80}
		in := newInbound(audio.Rate8k, time.Minute)
		require.NoError(t, in.configure(0, Params{Codec: PCMU, Remote: remote, SendKey: key, ReceiveKey: key}))
		in.receive(0, remote, datagram)
		in.cipher.openReport(datagram)
		require.Zero(t, in.packets)
	})
}

// FuzzRTCP gives a call a report.
func FuzzRTCP(f *testing.F) {
	report, err := rtcp.Marshal([]rtcp.Packet{
		&rtcp.SenderReport{SSRC: 7, NTPTime: 1 << 40, Reports: []rtcp.ReceptionReport{{SSRC: 7, TotalLost: 1 << 23, LastSenderReport: 9, Delay: 1 << 31}}},
		&rtcp.Goodbye{Sources: []uint32{7}},
	})
	require.NoError(f, err)
	f.Add(report)
	f.Add([]byte{0x80, 200, 0, 0})
	f.Fuzz(func(t *testing.T, datagram []byte) {
		r := newReports(0)
		r.receive(time.Second, time.Unix(1_790_000_000, 0), 7, datagram)
		require.GreaterOrEqual(t, r.roundTrip, time.Duration(0))
		require.Less(t, r.roundTrip, roundTripMost)
	})
}

// FuzzEvents gives a call a telephone-event payload, whole and repeated: no more
// digits come than it can hold.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{5, 0x80, 3, 32}, uint32(160))
	f.Add([]byte{1, 2, 3}, uint32(0))
	f.Fuzz(func(t *testing.T, payload []byte, leap uint32) {
		remote := address("192.0.2.1:4000")
		in := newInbound(audio.Rate8k, time.Minute)
		require.NoError(t, in.configure(0, Params{Codec: PCMU, EventType: 101, Remote: remote}))
		for n := range uint32(100) {
			p := packet{payloadType: 101, sequence: uint16(n), timestamp: n * leap, payload: payload}
			in.accept(0, &p)
		}
		digits, _ := in.hear(0, make([]int16, frameTicks), nil)
		require.LessOrEqual(t, len(digits), digitsMost+len(payload)/audio.EventSize)
	})
}

// TestPromiseT9GarbageNeverHurts floods a call's ports with junk, from strangers and
// from its own peer, while it talks.
func TestPromiseT9GarbageNeverHurts(t *testing.T) {
	length := promise.Figure(time.Second, 10*time.Second)
	ea, eb := testEngine(t, Config{}), testEngine(t, Config{})
	c := connect(t, ea, eb, loopback(), Params{Codec: PCMU, EventType: 101}, 500, 900)
	eventually(t, "sound", c.tapeA.hears(900, 100*time.Millisecond))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := len(c.tapeA.sound())

	junk := newPeer(t, loopback(), 0)
	rtcpPort := netip.AddrPortFrom(loopback(), c.a.Local().Port()+1)
	var flood sync.WaitGroup
	flood.Go(func() {
		datagram := make([]byte, 200)
		for end := time.Now().Add(length); time.Now().Before(end); <-time.After(time.Millisecond) {
			for i := range 10 { // 10,000 a second
				_, _ = rand.Read(datagram)
				if i%2 == 0 {
					datagram[0], datagram[1] = 0x80, 0 // like RTP
				}
				to := c.a.Local()
				if i%5 == 0 {
					to = rtcpPort
				}
				_, _ = junk.socket.WriteToUDPAddrPort(datagram, to)
				// The peer's own socket sends junk too, but nothing that passes for its stream.
				datagram[0] = byte(i)
				_, _ = c.b.pair.rtp.WriteToUDPAddrPort(datagram[:i*20], c.a.Local())
			}
		}
	})
	flood.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	stats := c.a.Stats()
	require.Zero(t, stats.Lost)
	require.NotZero(t, stats.Strangers)
	require.NotZero(t, stats.Invalid)
	sound := c.tapeA.sound()[start:]
	require.Greater(t, share(sound, audio.Rate8k, 900), 0.8, "the call goes on")
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(20<<20))
	t.Logf("%d strangers and %d invalid packets refused, %d lost, %d late", stats.Strangers, stats.Invalid, stats.Lost, stats.Late)
}
