package sip

import (
	"net/netip"
	"sync"
	"time"
)

// peers is the addresses we have called: while a call lives, and for a while after it,
// their requests are expected and do not count as a flood. It opens nothing else.
type peers struct {
	grace time.Duration
	mu    sync.Mutex
	known map[netip.Addr]*acquaintance
}

type acquaintance struct {
	calls int
	until time.Time
}

func newPeers(grace time.Duration) *peers {
	return &peers{grace: grace, known: map[netip.Addr]*acquaintance{}}
}

// meet notes a call to an address; the returned function notes its end.
func (p *peers) meet(address netip.Addr) (part func()) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, k := range p.known {
		if k.calls == 0 && now.After(k.until) {
			delete(p.known, a)
		}
	}
	k := p.known[address]
	if k == nil {
		k = &acquaintance{}
		p.known[address] = k
	}
	k.calls++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		k.calls--
		k.until = time.Now().Add(p.grace)
	})
}

func (p *peers) knows(address netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.known[address]
	return k != nil && (k.calls > 0 || time.Now().Before(k.until))
}
