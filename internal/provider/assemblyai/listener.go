package assemblyai

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/converse"
)

const (
	// mostWaiting is how many messages may wait to be sent: five seconds of sound.
	// More means that the network does not carry the stream.
	mostWaiting = 85
	// sendLimit is how long one message may take: a half-open connection takes none.
	sendLimit = 5 * time.Second
	// partingLimit bounds the goodbye to a service that may not be there any more.
	partingLimit = 200 * time.Millisecond
)

// Messages to the service.
const (
	forceEndpoint = `{"type":"ForceEndpoint"}`
	terminate     = `{"type":"Terminate"}`
)

var (
	errClosed = errors.New(who + ": the stream is closed")
	errBehind = errors.New(who + ": the connection does not carry the sound")
)

// message is sound or a text on its way to the service.
type message struct {
	kind websocket.MessageType
	body []byte
}

// listener is one call's stream. One goroutine sends and one hears; Close waits for both.
type listener struct {
	p      *Provider
	socket *websocket.Conn
	cancel context.CancelFunc
	work   sync.WaitGroup
	out    chan message

	mu     sync.Mutex
	parcel *parcel
	asked  bool // for final words, which are then no opinion on the turn
	closed bool
	failed error
}

func newListener(ctx context.Context, p *Provider, socket *websocket.Conn, parcel *parcel, hear func(converse.Heard)) *listener {
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{p: p, socket: socket, cancel: cancel, parcel: parcel, out: make(chan message, mostWaiting)}
	l.work.Go(func() { l.send(ctx) })
	l.work.Go(func() { l.receive(ctx, hear) })
	return l
}

// Write sends a frame, together with others.
func (l *listener) Write(frame []int16) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.alive(); err != nil {
		return err
	}
	return l.post(websocket.MessageBinary, l.parcel.add(frame))
}

// Flush sends what has been gathered and asks for the final words.
func (l *listener) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.alive(); err != nil {
		return err
	}
	l.asked = true
	return errors.Join(l.post(websocket.MessageBinary, l.parcel.rest()), l.post(websocket.MessageText, []byte(forceEndpoint)))
}

// alive is why the stream takes nothing more, if it does not.
func (l *listener) alive() error {
	if l.closed {
		return errClosed
	}
	return l.failed
}

func (l *listener) post(kind websocket.MessageType, body []byte) error {
	if body == nil {
		return nil
	}
	select {
	case l.out <- message{kind, body}:
		return nil
	default:
		return errBehind
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
	for {
		var m message
		select {
		case <-ctx.Done():
		case m = <-l.out:
		}
		if ctx.Err() != nil {
			l.part()
			return
		}
		if l.write(ctx, m, sendLimit) != nil {
			_ = l.socket.CloseNow() // receive tells what happened
			return
		}
	}
}

func (l *listener) write(ctx context.Context, m message, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.socket.Write(ctx, m.kind, m.body)
}

// part says goodbye: the service bills a stream for as long as it believes it open.
func (l *listener) part() {
	_ = l.write(context.Background(), message{websocket.MessageText, []byte(terminate)}, partingLimit) // who has gone needs no goodbye
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
			hear(l.judge(heard))
		}
	}
}

// judge takes away the opinion on the turn from final words that we had asked for.
func (l *listener) judge(h converse.Heard) converse.Heard {
	if !h.Final {
		return h
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.EndTurn = !l.asked
	l.asked = false
	return h
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
