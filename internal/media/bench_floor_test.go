package media

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bareCall sends the same 172 octets to itself and throws away what it reads: what
// sockets, goroutines and the pacer cost without any media.
type bareCall struct {
	pair   socketPair
	to     *net.UDPAddr
	packet [headerSize + frameTicks]byte
}

func (c *bareCall) hear(time.Duration) {}

func (c *bareCall) send(time.Duration, int64) {
	_, _ = c.pair.rtp.WriteToUDPAddrPort(c.packet[:], c.to.AddrPort())
}

// BenchmarkFloor is what BenchmarkCalls/1000 cannot be below on the same machine.
func BenchmarkFloor(b *testing.B) {
	const calls = 1000
	ports, err := newPorts(10000, 60000, time.Second)
	require.NoError(b, err)
	p := newPacer(newClock())
	var readers sync.WaitGroup
	defer readers.Wait()
	for range calls {
		pair, err := ports.open(0, loopback())
		require.NoError(b, err)
		defer pair.close()
		to, _ := pair.rtp.LocalAddr().(*net.UDPAddr)
		p.add(&bareCall{pair: pair, to: to})
		readers.Go(func() {
			buffer := make([]byte, packetMost)
			for {
				if _, _, err := pair.rtp.ReadFromUDPAddrPort(buffer); err != nil {
					return
				}
			}
		})
	}
	p.start()
	defer p.stop()
	cpu, begin := cpuTime(b), time.Now()
	for b.Loop() {
		<-time.After(2 * time.Second)
	}
	used, took := cpuTime(b)-cpu, time.Since(begin)
	late := p.lateness.read()
	b.ReportMetric(100*used.Seconds()/took.Seconds(), "%core")
	b.ReportMetric(float64(used.Microseconds())/took.Seconds()/50/calls, "µs/frame")
	b.ReportMetric(float64(late.P99.Microseconds()), "µs-late-p99")
}
