package deepgram

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/converse"
)

const (
	// mostWaiting is how many frames may wait to be sent: five seconds. More means
	// that the network does not carry the stream.
	mostWaiting = 250
	// sendLimit is how long one message may take: a half-open connection takes none.
	sendLimit = 5 * time.Second
	// partingLimit bounds the goodbye to a service that may not be there any more.
	partingLimit = 200 * time.Millisecond
)

// Messages to the service.
const (
	finalize    = `{"type":"Finalize"}`
	staying     = `{"type":"KeepAlive"}`
	closeStream = `{"type":"CloseStream"}`
)

var errClosed = errors.New(who + ": the stream is closed")

// message is sound or a text on its way to the service.
type message struct {
	kind websocket.MessageType
	body []byte
}

// listener is one call's stream. One goroutine sends and one hears; Close waits for both.
type listener struct {
	p      *Provider
	socket *websocket.Conn
	encode func(frame []int16) []byte
	cancel context.CancelFunc
	work   sync.WaitGroup
	out    chan message

	mu     sync.Mutex
	closed bool
	failed error
}

func newListener(ctx context.Context, p *Provider, socket *websocket.Conn, encode func([]int16) []byte, hear func(converse.Heard)) *listener {
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{p: p, socket: socket, encode: encode, cancel: cancel, out: make(chan message, mostWaiting)}
	l.work.Go(func() { l.send(ctx) })
	l.work.Go(func() { l.receive(ctx, hear) })
	return l
}

// Write sends a frame.
func (l *listener) Write(frame []int16) error {
	return l.post(message{websocket.MessageBinary, l.encode(frame)})
}

// Flush asks for the final words now.
func (l *listener) Flush() error {
	return l.post(message{websocket.MessageText, []byte(finalize)})
}

func (l *listener) post(m message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errClosed
	case l.failed != nil:
		return l.failed
	}
	select {
	case l.out <- m:
		return nil
	default:
		return errors.New(who + ": the connection does not carry the sound")
	}
}

// Close ends the stream and waits until nothing of it runs any more.
func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.work.Wait()
	return nil
}

// send is the goroutine that writes to the service.
func (l *listener) send(ctx context.Context) {
	idle := time.NewTimer(l.p.options.KeepAlive)
	defer idle.Stop()
	for {
		m := message{websocket.MessageText, []byte(staying)}
		select {
		case <-ctx.Done():
			l.part()
			return
		case m = <-l.out:
		case <-idle.C:
		}
		if ctx.Err() != nil {
			l.part()
			return
		}
		if l.write(ctx, m, sendLimit) != nil {
			_ = l.socket.CloseNow() // receive tells what happened
			return
		}
		idle.Reset(l.p.options.KeepAlive)
	}
}

func (l *listener) write(ctx context.Context, m message, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.socket.Write(ctx, m.kind, m.body)
}

// part says goodbye, so that the service does not bill a stream that it believes open.
func (l *listener) part() {
	_ = l.write(context.Background(), message{websocket.MessageText, []byte(closeStream)}, partingLimit) // who has gone needs no goodbye
	_ = l.socket.CloseNow()
}

// receive is the goroutine that hears the service. It alone calls hear, and not once
// the call is over.
func (l *listener) receive(ctx context.Context, hear func(converse.Heard)) {
	for {
		_, body, err := l.socket.Read(context.Background()) // send closes the socket when the call is over
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.fail(ctx, l.p.broken(err), hear)
			return
		}
		heard, ok, err := l.p.understand(body)
		if err != nil {
			l.fail(ctx, err, hear)
			return
		}
		if ok {
			hear(heard)
		}
	}
}

// fail tells that the stream is lost, unless somebody has already closed it.
func (l *listener) fail(ctx context.Context, err error, hear func(converse.Heard)) {
	l.mu.Lock()
	l.failed = err
	l.mu.Unlock()
	_ = l.socket.CloseNow() // the sending goroutine notices, or waits for Close
	if ctx.Err() == nil {
		hear(converse.Heard{Err: err})
	}
}
