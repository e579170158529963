package media

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func address(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// spray offers packets of a source at this pace and says how many were heard.
func spray(l *latch, source netip.AddrPort, from, pace time.Duration, packets int) (heard int) {
	for i := range packets {
		p := packet{ssrc: 7, sequence: uint16(65533 + i)}
		if l.mayBe(source) && l.hears(from+time.Duration(i)*pace, source, &p, false) {
			heard++
		}
	}
	return heard
}

func TestLatch(t *testing.T) {
	t.Parallel()
	sdp, moved := address("198.51.100.5:4000"), address("198.51.100.5:61000")
	stranger, signalling := address("203.0.113.9:4000"), address("192.0.2.1:5555")
	const frame = 20 * time.Millisecond

	t.Run("the address of the SDP is heard at once", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, nil)
		require.Equal(t, sdp, l.destination(), "we send before we hear")
		require.Equal(t, 1, spray(&l, sdp, 0, frame, 1))
	})
	t.Run("strangers are not heard, before or after", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, []netip.Addr{sdp.Addr(), signalling.Addr()})
		require.Zero(t, spray(&l, stranger, 0, frame, 1000))
		require.Equal(t, sdp, l.destination())
		spray(&l, sdp, time.Minute, frame, 1)
		require.Zero(t, spray(&l, stranger, time.Minute, frame, 1000))
		require.Zero(t, spray(&l, moved, time.Minute, frame, 1000), "not even on the peer's own host")
		require.Equal(t, sdp, l.destination())
	})
	t.Run("a NAT's port is heard after a trial", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		require.Zero(t, spray(&l, moved, 0, frame, latchPackets-1))
		require.Equal(t, sdp, l.destination())
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		require.Equal(t, 10-latchPackets+1, spray(&l, moved, 0, frame, 10))
		require.Equal(t, moved, l.destination())
	})
	t.Run("a burst is no trial", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		require.Zero(t, spray(&l, moved, 0, time.Millisecond, 50))
		require.Zero(t, spray(&l, moved, time.Second, time.Second, 50), "nor are stragglers")
	})
	t.Run("only hosts that were named may be a NAT's", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, nil)
		require.Zero(t, spray(&l, moved, 0, frame, 100))
		l.aim(sdp, []netip.Addr{signalling.Addr()})
		require.Zero(t, spray(&l, moved, 0, frame, 100))
		require.NotZero(t, spray(&l, signalling, 0, frame, 100))
	})
	t.Run("who holds the key needs no trial", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		require.True(t, l.hears(0, moved, &packet{}, true))
		require.False(t, l.hears(0, stranger, &packet{}, true), "a stranger's packet is not even decrypted")
	})
	t.Run("the SDP's own address wins over a NAT's", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		spray(&l, moved, 0, frame, 10)
		require.Equal(t, 1, spray(&l, sdp, time.Second, frame, 1))
		require.Equal(t, sdp, l.destination())
		require.Zero(t, spray(&l, moved, 2*time.Second, frame, 10), "for good")
	})
	t.Run("a re-INVITE moves it", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		spray(&l, moved, 0, frame, 10)
		l.aim(sdp, []netip.Addr{sdp.Addr()})
		require.Equal(t, moved, l.destination(), "hold does not cut the way to the peer")
		require.Equal(t, 10, spray(&l, moved, time.Second, frame, 10))
		l.aim(signalling, nil)
		require.Equal(t, signalling, l.destination())
		require.Zero(t, spray(&l, moved, 2*time.Second, frame, 10))
	})
	t.Run("an IPv4 address in IPv6 clothes is itself", func(t *testing.T) {
		t.Parallel()
		var l latch
		l.aim(address("[::ffff:198.51.100.5]:4000"), nil)
		require.Equal(t, 1, spray(&l, sdp, 0, frame, 1))
	})
}
