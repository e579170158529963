package cartesia

import (
	"sync"

	"github.com/coder/websocket"
)

// mostIdle is how many connections are kept for the next sentences.
const mostIdle = 64

// pool keeps connections between sentences: opening one costs three round trips,
// which would be heard before every sentence. The service closes those that are idle
// for long; whoever takes one must be ready to open another.
type pool struct {
	mu     sync.Mutex
	idle   []*websocket.Conn // the latest used last: it is the likeliest to be alive
	closed bool
}

// take is an idle connection, or nil.
func (p *pool) take() *websocket.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	socket := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return socket
}

// give keeps a connection whose sentence is over.
func (p *pool) give(socket *websocket.Conn) {
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < mostIdle
	if keep {
		p.idle = append(p.idle, socket)
	}
	p.mu.Unlock()
	if !keep {
		_ = socket.CloseNow()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, socket := range idle {
		_ = socket.CloseNow()
	}
}
