package simulator

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// path is a stretch of bad network between a person's telephone and the caller's: two
// sockets, and between them packets are lost and held up, each way. Packets keep their
// order, as they do on nearly every real path.
type path struct {
	line    Line
	outside *net.UDPConn // towards the caller
	inside  *net.UDPConn // towards the person's telephone
	caller  atomic.Pointer[netip.AddrPort]
	passed  atomic.Uint64
	lost    atomic.Uint64
	work    sync.WaitGroup
}

// openPath opens a path that ends at a telephone.
func openPath(line Line, telephone netip.AddrPort) (*path, error) {
	p := &path{line: line}
	var err error
	if p.outside, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0))); err != nil {
		return nil, err
	}
	if p.inside, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0))); err != nil {
		_ = p.outside.Close()
		return nil, err
	}
	p.work.Go(func() { p.carry(1, p.outside, p.inside, func() *netip.AddrPort { return &telephone }) })
	p.work.Go(func() { p.carry(2, p.inside, p.outside, p.caller.Load) })
	return p, nil
}

// aim says where the caller's telephone is.
func (p *path) aim(caller netip.AddrPort) { p.caller.Store(&caller) }

func addressOf(c *net.UDPConn) netip.AddrPort {
	address, _ := c.LocalAddr().(*net.UDPAddr)
	return address.AddrPort()
}

// packet is on its way.
type packet struct {
	data   []byte
	to     netip.AddrPort
	leaves time.Time
}

// carry takes packets from one socket to the other until they close. What happens to
// which packet is the same in every call.
func (p *path) carry(way uint64, from, to *net.UDPConn, target func() *netip.AddrPort) {
	random := rand.New(rand.NewPCG(12, way))
	queue := make(chan packet, 1024)
	defer close(queue)
	p.work.Go(func() { p.release(queue, to) })
	buffer := make([]byte, 2048)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		lost, delay := random.Float64()*100 < p.line.Loss, time.Duration(random.Float64()*float64(p.line.Jitter))
		at := target()
		if lost || at == nil {
			p.lost.Add(1)
			continue
		}
		queue <- packet{append([]byte(nil), buffer[:n]...), *at, time.Now().Add(delay)}
	}
}

// release sends packets on when their time has come. One that has to wait holds up
// those behind it.
func (p *path) release(queue <-chan packet, to *net.UDPConn) {
	for held := range queue {
		time.Sleep(time.Until(held.leaves))
		if _, err := to.WriteToUDPAddrPort(held.data, held.to); err == nil {
			p.passed.Add(1)
		}
	}
}

// close ends the path and returns when no packet is on its way any more.
func (p *path) close() {
	_ = p.outside.Close()
	_ = p.inside.Close()
	p.work.Wait()
}
