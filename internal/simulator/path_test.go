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
		sent := make(chan []time.Time)
		go func() { // at a pace that no socket's buffer overflows by
			pace := time.NewTicker(time.Millisecond)
			defer pace.Stop()
			times := make([]time.Time, packets)
			for i := range times {
				<-pace.C
				times[i] = time.Now()
				_, _ = way.from.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, uint32(i)), way.entrance)
			}
			sent <- times
		}()
		arrived, latest := map[int]time.Time{}, -1
		buffer := make([]byte, 16)
		for latest < packets-1 {
			require.NoError(t, way.to.SetReadDeadline(time.Now().Add(2*time.Second)))
			n, err := way.to.Read(buffer)
			if err != nil {
				break // the last packets were lost
			}
			require.Equal(t, 4, n)
			number := int(binary.BigEndian.Uint32(buffer))
			require.Greater(t, number, latest, "in order")
			latest = number
			arrived[number] = time.Now()
		}
		times := <-sent
		require.InDelta(t, packets*95/100, len(arrived), 25)
		held := 0
		for number, at := range arrived {
			if at.Sub(times[number]) > jitter/2 {
				held++
			}
		}
		require.Greater(t, held, packets/4, "many are held up")
	}
	p.close()
	require.InDelta(t, 2*packets*5/100, int(p.lost.Load()), 50)
	require.Equal(t, uint64(2*packets), p.lost.Load()+p.passed.Load())
}
