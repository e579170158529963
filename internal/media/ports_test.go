package media

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPortsRestBeforeTheyAreUsedAgain(t *testing.T) {
	t.Parallel()
	p := portPool{quarantine: 30 * time.Second, free: []uint16{4000, 4002, 4004, 4006}, pick: randomBelow}
	last := map[uint16]time.Duration{}
	taken := 0
	for now := time.Duration(0); taken < 1000; now += time.Second {
		port, ok := p.take(now)
		if !ok {
			continue
		}
		taken++
		if released, used := last[port]; used {
			require.GreaterOrEqual(t, now-released, 30*time.Second)
		}
		p.rest(now+500*time.Millisecond, port)
		last[port] = now + 500*time.Millisecond
	}
	require.Len(t, last, 4, "and all are used")
}

func TestPortRangeIsEvenAndChecked(t *testing.T) {
	t.Parallel()
	p, err := newPorts(4001, 4006, time.Second)
	require.NoError(t, err)
	require.Equal(t, []uint16{4002, 4004}, p.pool.free, "4006 has no next port")
	for _, bad := range [][2]uint16{{0, 100}, {4001, 4002}, {5000, 4000}} {
		_, err := newPorts(bad[0], bad[1], time.Second)
		require.Error(t, err)
	}
	p, err = newPorts(65530, 65535, time.Second)
	require.NoError(t, err)
	require.Len(t, p.pool.free, 3)
}

func TestPortThatOthersHoldIsPassedOver(t *testing.T) {
	t.Parallel()
	first, _ := ownPorts(0)
	e := testEngine(t, Config{PortMin: first, PortMax: first + 3})
	held, err := bindPair(loopback(), first)
	require.NoError(t, err)
	defer held.close()
	s := open(t, e, loopback())
	require.Equal(t, first+2, s.Local().Port())
	_, err = e.Open(loopback())
	require.ErrorIs(t, err, ErrNoPort)
	_, err = e.Open(netip.Addr{})
	require.Error(t, err)
}
