package providertest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// InMemory is a client whose every connection leads to a fake service in memory: what
// is done over it runs in virtual time. The second value takes the service down.
func InMemory(handler Handler) (*http.Client, func()) {
	network := &pipes{accepted: make(chan net.Conn, callers), closed: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // nobody but the test is at the other end
		work.Add(1)
		defer work.Done()
		handler(ctx, w, r)
	})}
	work.Go(func() { _ = server.Serve(network) }) // until it is closed
	client := &http.Client{Transport: &http.Transport{DialContext: network.dial}}
	return client, func() {
		client.CloseIdleConnections()
		stop()
		_ = server.Close()
		work.Wait()
	}
}

// pipes is a network in memory.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept waits for a connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the network.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is nowhere.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.accepted <- there
	return here, nil
}
