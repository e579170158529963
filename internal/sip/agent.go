package sip

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// Agent is the SIP user agent of one node.
type Agent struct {
	settings  Settings
	log       *slog.Logger
	seal      [32]byte
	transport *gosip.TransportLayer
	txl       *gosip.TransactionLayer
	listeners []listener
	guard     *guard
	challenge *challenger
	trunks    *trunkSet
	limiter   *limiter
	peers     *peers
	arrivals  *arrivals
	counters  counters

	ctx    context.Context //nolint:containedctx // the agent's own life, ended by Close
	cancel context.CancelFunc
	work   sync.WaitGroup // everything spawn has started

	mu       sync.Mutex
	closing  bool // nothing new is taken
	closed   bool // nothing more is begun
	draining bool
	calls    map[dialogKey]*Call
	ended    map[dialogKey]time.Time // forgotten at that time
	order    []dialogKey             // of ended, oldest first
	watches  map[parley.ID]*watch
	learned  map[netip.Addr]netip.AddrPort // how carriers see us, by their address
}

// dialogKey is our half of a dialog's name: the other half is checked by the call.
type dialogKey struct{ callID, localTag string }

// tameSipgo sets what sipgo keeps in package variables, once, before the first agent
// has a goroutine that reads them. Its limit of 1300 bytes for UDP goes: it applies even
// to responses, and while RFC 3261 section 18.1.1 wants larger requests on TCP, carriers
// that take only UDP take them in fragments. Its default log goes: it holds messages.
var tameSipgo = sync.OnceFunc(func() {
	gosip.UDPMTUSize = 65000
	gosip.SetDefaultLogger(slog.New(slog.DiscardHandler))
})

// New makes an agent; Start opens its sockets.
func New(s Settings) (*Agent, error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	tameSipgo()
	a := &Agent{settings: s, log: s.Log, challenge: newChallenger(s), trunks: newTrunkSet(), limiter: newLimiter(s.Now), peers: newPeers(64 * s.T1), arrivals: newArrivals(),
		calls: map[dialogKey]*Call{}, ended: map[dialogKey]time.Time{}, watches: map[parley.ID]*watch{}, learned: map[netip.Addr]netip.AddrPort{}}
	_, _ = rand.Read(a.seal[:])
	a.guard = newGuard(s, func(from netip.Addr) bool { return a.trunks.trusted(from) || a.peers.knows(from) }, &a.counters)
	a.ctx, a.cancel = context.WithCancel(context.Background())
	// sipgo logs whole messages when they do not parse: people's numbers. It gets no log.
	silent := slog.New(slog.DiscardHandler)
	a.transport = gosip.NewTransportLayer(s.Resolver, gosip.NewParser(), s.TLS,
		gosip.WithTransportLayerLogger(silent), gosip.WithTransportLayerReadFilter(a.guard.filter))
	a.transport.OnMessage(a.tag) // before the transactions see it
	a.transport.OnMessage(a.arrivals.note)
	a.txl = gosip.NewTransactionLayer(a.transport, gosip.WithTransactionLayerLogger(silent),
		gosip.WithTransactionLayerUnhandledResponseHandler(a.strayResponse), gosip.WithTransactionLayerTerminateOnConnClose())
	a.txl.OnRequest(a.serve)
	return a, nil
}

// Start opens the listening sockets and returns when requests can be sent and taken.
func (a *Agent) Start() error {
	var serves []func() error
	for _, l := range a.settings.Listen { // all are known before the first is served
		serve, err := a.listen(l)
		if err != nil {
			return errors.Join(err, a.Close())
		}
		serves = append(serves, serve)
	}
	for i, serve := range serves {
		a.work.Go(func() { _ = serve() })
		if a.listeners[i].network != "udp" {
			continue
		}
		if err := a.awaitSocket(a.listeners[i].address); err != nil {
			return errors.Join(err, a.Close())
		}
	}
	return nil
}

// listen opens one socket and says how to serve it.
func (a *Agent) listen(l Listen) (serve func() error, err error) {
	at := netip.MustParseAddrPort(l.Address) // checked by Settings
	family := "4"
	if at.Addr().Is6() {
		family = "6"
	}
	if l.Network == "udp" {
		conn, err := net.ListenUDP("udp"+family, net.UDPAddrFromAddrPort(at))
		if err != nil {
			return nil, fmt.Errorf("sip: listen on %s: %w", l.Address, err)
		}
		// A burst of calls must not overflow the socket while one is being parsed.
		_ = conn.SetReadBuffer(4 << 20)
		a.listeners = append(a.listeners, listener{l.Network, sourceOf(conn.LocalAddr().String()), conn.Close})
		return func() error { return a.transport.ServeUDP(conn) }, nil
	}
	conn, err := (&net.ListenConfig{}).Listen(a.ctx, "tcp"+family, l.Address)
	if err != nil {
		return nil, fmt.Errorf("sip: listen on %s: %w", l.Address, err)
	}
	a.listeners = append(a.listeners, listener{l.Network, sourceOf(conn.Addr().String()), conn.Close})
	if l.Network == "tls" {
		secured := tls.NewListener(conn, a.settings.TLS)
		return func() error { return a.transport.ServeTLS(secured) }, nil
	}
	return func() error { return a.transport.ServeTCP(conn) }, nil
}

// awaitSocket waits until sipgo has taken the socket up: a request sent earlier would
// open a second socket on the same port.
func (a *Agent) awaitSocket(at netip.AddrPort) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 5000 {
		if c, err := a.transport.GetConnection("udp", at.String()); err == nil {
			_, _ = c.TryClose()
			return nil
		}
		<-tick.C
	}
	return errors.New("sip: the socket was not taken up")
}

// Addr is where the agent listens on a network, for peers and tests.
func (a *Agent) Addr(network string) netip.AddrPort {
	for _, l := range a.listeners {
		if l.network == network {
			return l.address
		}
	}
	return netip.AddrPort{}
}

// Drain refuses new calls with 503 from now on and lets the running ones go on.
func (a *Agent) Drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
}

// Close hangs up, unregisters, closes the sockets, and returns when all has stopped.
func (a *Agent) Close() error {
	a.mu.Lock()
	if a.closing {
		a.mu.Unlock()
		a.work.Wait()
		return nil
	}
	a.closing = true
	calls := make([]*Call, 0, len(a.calls))
	for _, c := range a.calls {
		calls = append(calls, c)
	}
	watches := a.watches
	a.watches = map[parley.ID]*watch{}
	a.mu.Unlock()

	a.farewell(calls, watches)
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.guard.shut.Store(true)
	a.cancel()
	a.txl.Close()
	var err error
	for _, l := range a.listeners {
		err = errors.Join(err, l.close())
	}
	_ = a.transport.Close() // of sockets that are closed already
	a.work.Wait()
	// A message that was being taken while the sockets closed may have opened another.
	a.txl.Close()
	_ = a.transport.Close()
	if errors.Is(err, net.ErrClosed) { // sipgo may have closed a listener first
		return nil
	}
	return err
}

// farewell tells peers and registrars, within the time the settings give.
func (a *Agent) farewell(calls []*Call, watches map[parley.ID]*watch) {
	ctx, cancel := context.WithTimeout(a.ctx, a.settings.Farewell)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range calls {
		all.Go(func() { c.close(ctx) })
	}
	for _, w := range watches {
		all.Go(func() { w.stop(ctx) })
	}
	all.Wait()
}

// spawn runs work that Close waits for. It says false once the agent is closed.
func (a *Agent) spawn(f func()) bool {
	if !a.begin() {
		return false
	}
	go func() {
		defer a.work.Done()
		f()
	}()
	return true
}

// begin announces work that Close waits for; whoever hears true calls work.Done. It says
// false once the agent is closed.
func (a *Agent) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.work.Add(1)
	return true
}

// admit takes a new call into the table unless the agent is full, closing or draining.
func (a *Agent) admit(c *Call) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing || a.draining || len(a.calls) >= a.settings.MaxCalls {
		return false
	}
	a.calls[c.key()] = c
	return true
}

// forget takes a call out of the table. For 64*T1 its name is kept, so that a BYE that
// crossed ours is answered with 200 and not with 481.
func (a *Agent) forget(c *Call) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.calls, c.key())
	for len(a.order) > 0 && now.After(a.ended[a.order[0]]) {
		delete(a.ended, a.order[0])
		a.order = a.order[1:]
	}
	if _, ok := a.ended[c.key()]; !ok {
		a.ended[c.key()] = now.Add(64 * a.settings.T1)
		a.order = append(a.order, c.key())
	}
}

func (a *Agent) find(key dialogKey) (c *Call, ended bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ended = a.ended[key]
	return a.calls[key], ended
}
