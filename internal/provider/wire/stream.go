package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	mostMessage = 4 << 20 // bytes of one event
	// sendLimit is how long one message may take: a half-open connection takes none.
	sendLimit = 5 * time.Second
	// partingLimit bounds the last message and the goodbye, to a service that may not be
	// there any more.
	partingLimit = 200 * time.Millisecond
)

// StreamOptions say where a stream goes and how it is kept.
type StreamOptions struct {
	Who       string // what its errors begin with
	Key       string // which they never show
	Address   string
	Header    http.Header
	Client    *http.Client
	OpenLimit time.Duration
	Queue     int // how many messages may wait to be sent; more means that the network does not carry the stream

	// Refused finds the vendor's words in the answer to an opening that was refused.
	Refused func(body []byte, header http.Header) string
	// Closed is what a vendor means by closing the stream; empty for no special meaning.
	Closed func(code int, reason string) string

	KeepAlive time.Duration // how long nothing may be sent; 0 for any time
	Staying   string        // what is sent then
	Goodbye   string        // what is sent last, to a vendor who bills for open streams
}

// Stream is one call's WebSocket. One goroutine sends and one receives; Close waits
// for both.
type Stream struct {
	options StreamOptions
	socket  *websocket.Conn
	cancel  context.CancelFunc
	work    sync.WaitGroup
	out     chan message
	lost    chan struct{} // closed when the stream has failed

	mu     sync.Mutex
	closed bool
	failed error
}

// message is sound or a text on its way to the service.
type message struct {
	kind websocket.MessageType
	body []byte
}

// Open opens a stream. What the service says goes to take, and why the stream was
// lost goes to lost, both from one goroutine and not once the call is over. An error
// of take ends the stream as well.
func Open(ctx context.Context, o StreamOptions, take func(body []byte) error, lost func(error)) (*Stream, error) {
	opening, stop := context.WithTimeout(ctx, o.OpenLimit)
	defer stop()
	//nolint:bodyclose // the library has closed it, and left the beginning of it to be read
	socket, response, err := websocket.Dial(opening, o.Address, &websocket.DialOptions{HTTPClient: o.Client, HTTPHeader: o.Header})
	if err != nil {
		return nil, o.refused(ctx, response, err)
	}
	socket.SetReadLimit(mostMessage)
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { time.AfterFunc(partingLimit, func() { _ = socket.CloseNow() }) })
	s := &Stream{options: o, socket: socket, cancel: cancel, out: make(chan message, o.Queue), lost: make(chan struct{})}
	s.work.Go(func() { s.send(ctx) })
	s.work.Go(func() { s.receive(ctx, take, lost) })
	return s, nil
}

// refused says why a stream was not opened.
func (o *StreamOptions) refused(ctx context.Context, response *http.Response, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", o.Who, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no stream within %v", o.Who, o.OpenLimit)
	case response == nil:
		return fmt.Errorf("%s: the service cannot be reached", o.Who)
	}
	refusal := ReadRefusal(response, func(body []byte) string { return o.Refused(body, response.Header) })
	return fmt.Errorf("%s: %s", o.Who, refusal.Words(o.Key))
}

// Await waits until ready is closed: some services must take the settings before the
// stream is of use. If they do not, the stream is closed.
func (s *Stream) Await(ctx context.Context, ready <-chan struct{}) error {
	timer := time.NewTimer(s.options.OpenLimit)
	defer timer.Stop()
	var err error
	select {
	case <-ready:
		return nil
	case <-s.lost:
		s.mu.Lock()
		err = s.failed
		s.mu.Unlock()
	case <-ctx.Done():
		err = fmt.Errorf("%s: %w", s.options.Who, ctx.Err())
	case <-timer.C:
		err = fmt.Errorf("%s: no session within %v", s.options.Who, s.options.OpenLimit)
	}
	return errors.Join(err, s.Close())
}

// SendSound sends sound as bytes.
func (s *Stream) SendSound(sound []byte) error {
	return s.post(message{websocket.MessageBinary, sound})
}

// SendText sends a text.
func (s *Stream) SendText(text string) error {
	return s.post(message{websocket.MessageText, []byte(text)})
}

// SendJSON sends a value as JSON.
func (s *Stream) SendJSON(value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: what was to be sent is not JSON", s.options.Who)
	}
	return s.post(message{websocket.MessageText, body})
}

// Alive is why the stream takes nothing more, if it does not.
func (s *Stream) Alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive()
}

func (s *Stream) alive() error {
	if s.closed {
		return errors.New(s.options.Who + ": the stream is closed")
	}
	return s.failed
}

// post hands a message to the sending goroutine. It never waits.
func (s *Stream) post(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return err
	}
	select {
	case s.out <- m:
		return nil
	default:
		return errors.New(s.options.Who + ": the connection does not carry the sound")
	}
}

// Close ends the stream and waits until nothing of it runs any more.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
	return nil
}

// send is the goroutine that writes to the service.
func (s *Stream) send(ctx context.Context) {
	var idle <-chan time.Time // never, unless the service wants to be told
	reset := func() {}
	if s.options.KeepAlive > 0 {
		timer := time.NewTimer(s.options.KeepAlive)
		defer timer.Stop()
		idle, reset = timer.C, func() { timer.Reset(s.options.KeepAlive) }
	}
	for {
		m := message{websocket.MessageText, []byte(s.options.Staying)}
		select {
		case <-ctx.Done():
		case m = <-s.out:
		case <-idle:
		}
		if ctx.Err() != nil {
			s.part()
			return
		}
		if s.write(m, sendLimit) != nil {
			_ = s.socket.CloseNow() // receive tells what happened
			return
		}
		reset()
	}
}

// write sends a message. The end of the call does not break it off, for half a message
// would be the end of the connection, and the goodbye could not be said.
func (s *Stream) write(m message, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.socket.Write(ctx, m.kind, m.body)
}

// part says goodbye.
func (s *Stream) part() {
	if s.options.Goodbye != "" {
		_ = s.write(message{websocket.MessageText, []byte(s.options.Goodbye)}, partingLimit) // who has gone needs no goodbye
	}
	_ = s.socket.CloseNow()
}

// receive is the goroutine that hears the service.
func (s *Stream) receive(ctx context.Context, take func([]byte) error, lost func(error)) {
	for {
		_, body, err := s.socket.Read(context.Background()) // send closes the socket when the call is over
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			err = s.broken(err)
		} else {
			err = take(body)
		}
		if err != nil {
			s.fail(ctx, err, lost)
			return
		}
	}
}

// broken says why a stream ended that should not have.
func (s *Stream) broken(err error) error {
	closed, ok := errors.AsType[websocket.CloseError](err)
	if !ok {
		return fmt.Errorf("%s: the connection was lost", s.options.Who)
	}
	reason := Clean(closed.Reason, s.options.Key)
	if s.options.Closed != nil {
		if meaning := s.options.Closed(int(closed.Code), reason); meaning != "" {
			return fmt.Errorf("%s: %s", s.options.Who, meaning)
		}
	}
	if reason == "" {
		return fmt.Errorf("%s: the service ended the stream (%d)", s.options.Who, int(closed.Code))
	}
	return fmt.Errorf("%s: the service ended the stream: %s", s.options.Who, reason)
}

// fail tells that the stream is lost, unless somebody has already closed it.
func (s *Stream) fail(ctx context.Context, err error, lost func(error)) {
	s.mu.Lock()
	s.failed = err
	s.mu.Unlock()
	close(s.lost)
	_ = s.socket.CloseNow() // the sending goroutine notices, or waits for Close
	if ctx.Err() == nil {
		lost(err)
	}
}
