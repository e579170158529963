// Package media carries the sound of calls: RTP and SRTP over UDP, a socket per
// call, one pacer for all of them.
//
// An Engine owns the port range and the pacer. Open reserves a port for a call
// before anything is known of the other side, so that an offer can name it; Start
// gives the Session what was negotiated and sets the sound going; Update follows a
// re-INVITE; Close says goodbye and frees the port. In between the Session calls
// Frame with 20 ms of what was heard every 20 ms, whatever the network does, and
// plays what Send is given in the same rhythm.
//
// It must not know SIP, SDP text, conversations or records: negotiated parameters
// come as plain values, and what a key, a dead line or a bad figure means is for
// others to decide.
//
// The cost decides the shape. A ticker per call costs twice what one pacer does,
// batched system calls gain too little for their complexity, and nothing on the
// way of a packet allocates.
package media

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Defaults of a Config.
const (
	DefaultPortMin        = 16384
	DefaultPortMax        = 32767
	DefaultPortQuarantine = 30 * time.Second
	DefaultDeadAfter      = 15 * time.Second
)

// Config is what an operator may set. Zero values are the defaults.
type Config struct {
	// PortMin and PortMax bound the UDP ports, both included. A call takes an
	// even port for RTP and the next one for RTCP (RFC 3550 11).
	PortMin, PortMax uint16
	// PortQuarantine is how long the ports of a finished call rest: whatever its
	// peer still sends has died down before another call gets them.
	PortQuarantine time.Duration
	// DeadAfter is how long a peer that should send may send nothing at all.
	DeadAfter time.Duration
}

// Engine owns the ports and the pacer of all calls of a process.
type Engine struct {
	config Config
	ports  *ports
	pacer  *pacer
	clock  clock

	mu       sync.Mutex
	sessions map[*Session]struct{}
	closed   bool
}

// ErrClosed means an Engine or a Session that has been closed.
var ErrClosed = errors.New("media: closed")

// New starts an engine.
func New(config Config) (*Engine, error) {
	config.PortMin = cmp.Or(config.PortMin, DefaultPortMin)
	config.PortMax = cmp.Or(config.PortMax, DefaultPortMax)
	config.PortQuarantine = cmp.Or(config.PortQuarantine, DefaultPortQuarantine)
	config.DeadAfter = cmp.Or(config.DeadAfter, DefaultDeadAfter)
	ports, err := newPorts(config.PortMin, config.PortMax, config.PortQuarantine)
	if err != nil {
		return nil, err
	}
	clock := newClock()
	e := &Engine{
		config:   config,
		ports:    ports,
		clock:    clock,
		pacer:    newPacer(clock),
		sessions: map[*Session]struct{}{},
	}
	e.pacer.start()
	return e, nil
}

// Open reserves a port of this host, an IPv4 or IPv6 address of the machine.
// Whatever arrives there before Start is thrown away, but for keys: the peer may press
// one before its answer has found its way here.
func (e *Engine) Open(host netip.Addr) (*Session, error) {
	if !host.IsValid() {
		return nil, errors.New("media: the host to listen on is not set")
	}
	pair, err := e.ports.open(e.clock.now(), host.Unmap())
	if err != nil {
		return nil, fmt.Errorf("media: open a port on %s: %w", host, err)
	}
	s := newSession(e, pair)
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.sessions[s] = struct{}{}
	}
	e.mu.Unlock()
	if closed {
		pair.close()
		e.ports.release(e.clock.now(), pair.port)
		return nil, ErrClosed
	}
	s.listen()
	return s, nil
}

// Lateness says how late the pacer has been so far.
func (e *Engine) Lateness() Lateness { return e.pacer.lateness.read() }

// Sessions is how many calls are open.
func (e *Engine) Sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions)
}

// Close ends all sessions and the pacer, and returns when all their goroutines
// have ended.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	open := make([]*Session, 0, len(e.sessions))
	for s := range e.sessions {
		open = append(open, s)
	}
	e.mu.Unlock()
	for _, s := range open {
		s.Close()
	}
	e.pacer.stop()
}

func (e *Engine) forget(s *Session) {
	e.mu.Lock()
	delete(e.sessions, s)
	e.mu.Unlock()
	e.ports.release(e.clock.now(), s.pair.port)
}

// clock counts from the start of the engine: one monotonic line of time for
// packets, slots, quarantines and reports.
type clock struct{ start time.Time }

func newClock() clock { return clock{start: time.Now()} }

func (c clock) now() time.Duration { return time.Since(c.start) }

// wall is the time of day at a moment of this clock.
func (c clock) wall(at time.Duration) time.Time { return c.start.Add(at) }
