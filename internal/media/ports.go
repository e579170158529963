package media

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"time"
)

// ErrNoPort means that every port of the range is taken or resting.
var ErrNoPort = errors.New("no UDP port is free; widen the port range")

// portAttempts is how many ports are tried when others on the machine hold some.
const portAttempts = 32

// portPool says which even ports may be used when. It opens nothing and takes the
// time as given.
type portPool struct {
	quarantine time.Duration
	free       []uint16
	resting    []restingPort // in the order in which they become free
	last       uint16
	pick       func(n int) int
}

type restingPort struct {
	port  uint16
	until time.Duration
}

// take gives a free port that nobody can foresee. An attacker who guesses the port
// of the next call from those of others would be there first, so the choice is the
// system's randomness, and a port beside the last one is not taken while there are
// others.
func (p *portPool) take(now time.Duration) (uint16, bool) {
	p.wake(now)
	if len(p.free) == 0 {
		return 0, false
	}
	i := p.pick(len(p.free))
	for tries := 0; p.besideLast(p.free[i]) && tries < portAttempts && len(p.free) > 2; tries++ {
		i = p.pick(len(p.free))
	}
	port := p.free[i]
	p.free[i] = p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.last = port
	return port, true
}

func (p *portPool) besideLast(port uint16) bool { return port == p.last+2 || port == p.last-2 }

// rest puts a used port aside until late packets to it have died down.
func (p *portPool) rest(now time.Duration, port uint16) {
	p.resting = append(p.resting, restingPort{port: port, until: now + p.quarantine})
}

func (p *portPool) wake(now time.Duration) {
	woken := 0
	for woken < len(p.resting) && p.resting[woken].until <= now {
		p.free = append(p.free, p.resting[woken].port)
		woken++
	}
	p.resting = append(p.resting[:0], p.resting[woken:]...)
}

// ports is the pool with its sockets.
type ports struct {
	mu   sync.Mutex
	pool portPool
}

func newPorts(lowest, highest uint16, quarantine time.Duration) (*ports, error) {
	p := &ports{pool: portPool{quarantine: quarantine, pick: randomBelow}}
	for port := uint32(lowest) + uint32(lowest&1); port+1 <= uint32(highest); port += 2 {
		p.pool.free = append(p.pool.free, uint16(port))
	}
	if lowest == 0 || len(p.pool.free) == 0 {
		return nil, fmt.Errorf("media: the port range %d to %d holds no even port and its next", lowest, highest)
	}
	return p, nil
}

// randomBelow is a number that cannot be foreseen. crypto/rand does not fail: it
// ends the process when the system has no randomness.
func randomBelow(n int) int {
	v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		return 0
	}
	return int(v.Int64())
}

// open binds a free port and the next one. A port that somebody else on the
// machine holds rests like a used one.
func (p *ports) open(now time.Duration, host netip.Addr) (socketPair, error) {
	var failed error
	for range portAttempts {
		p.mu.Lock()
		port, ok := p.pool.take(now)
		p.mu.Unlock()
		if !ok {
			return socketPair{}, errors.Join(ErrNoPort, failed)
		}
		pair, err := bindPair(host, port)
		if err == nil {
			return pair, nil
		}
		failed = err
		p.release(now, port)
	}
	return socketPair{}, failed
}

func (p *ports) release(now time.Duration, port uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool.rest(now, port)
}

// socketPair is a call's two sockets.
type socketPair struct {
	port      uint16
	rtp, rtcp *net.UDPConn
}

func bindPair(host netip.Addr, port uint16) (socketPair, error) {
	// Naming the family keeps an IPv6 socket from taking the port of IPv4 too.
	network := "udp4"
	if host.Is6() {
		network = "udp6"
	}
	rtp, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(host, port)))
	if err != nil {
		return socketPair{}, err
	}
	rtcp, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(host, port+1)))
	if err != nil {
		_ = rtp.Close()
		return socketPair{}, err
	}
	return socketPair{port: port, rtp: rtp, rtcp: rtcp}, nil
}

func (s socketPair) close() {
	_ = s.rtp.Close()
	_ = s.rtcp.Close()
}
