package simulator

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of a thousand packets each way about one in twenty is lost, none is reordered, and
// they take as long as the jitter says.
func TestABadPathLosesAndDelays(t *testing.T) {
	t.Parallel()
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	caller, telephone := listen(), listen()
	const packets, jitter = 1000, 40 * time.Millisecond
	p, err := openPath(Line{Loss: 5, Jitter: jitter}, addressOf(telephone))
	require.NoError(t, err)
	p.aim(addressOf(caller))
	for _, way := range []struct {
		from, to *net.UDPConn
		entrance netip.AddrPort
	}{{caller, telephone, addressOf(p.outside)}, {telephone, caller, addressOf(p.inside)}} {
		lost := p.lost.Load()
		sent, arrived, held, latest := 0, 0, 0, -1
		times, buffer := make([]time.Time, packets), make([]byte, 16)
		for sent < packets || arrived+int(p.lost.Load()-lost) < packets {
			// Few enough are under way for any socket's buffer.
			if sent < packets && sent-arrived-int(p.lost.Load()-lost) < 50 {
				times[sent] = time.Now()
				_, err := way.from.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, uint32(sent)), way.entrance)
				require.NoError(t, err)
				sent++
			}
			require.NoError(t, way.to.SetReadDeadline(time.Now().Add(time.Millisecond)))
			n, err := way.to.Read(buffer)
			if err != nil {
				continue // nothing yet
			}
			require.Equal(t, 4, n)
			number := int(binary.BigEndian.Uint32(buffer))
			require.Greater(t, number, latest, "in order")
			latest = number
			arrived++
			if time.Since(times[number]) > jitter/2 {
				held++
			}
		}
		require.InDelta(t, packets*5/100, int(p.lost.Load()-lost), 25)
		require.Greater(t, held, packets/4, "many are held up")
	}
	p.close()
}
