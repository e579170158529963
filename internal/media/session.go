package media

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/audio"
)

// Session is the media of one call. Its methods are safe for concurrent use.
type Session struct {
	engine *Engine
	pair   socketPair

	life    sync.Mutex // Start, Update and Close, one at a time
	started bool
	closed  bool
	slot    int
	readers sync.WaitGroup
	quit    chan struct{}

	// What arrives and what leaves have a lock each: the reader, the call and the
	// pacer seldom meet.
	inMu    sync.Mutex
	in      *inbound // nil until Start
	early   held     // what may be keys, until then
	reports *reports
	outMu   sync.Mutex
	out     *outbound

	// The pacer's own.
	calls       Callbacks
	frame       []int16
	digits      []byte
	destination netip.AddrPort

	unsent atomic.Uint64
}

func newSession(e *Engine, pair socketPair) *Session {
	return &Session{engine: e, pair: pair, quit: make(chan struct{})}
}

// Local is where the peer should send RTP; RTCP goes to the next port.
func (s *Session) Local() netip.AddrPort {
	address, _ := s.pair.rtp.LocalAddr().(*net.UDPAddr)
	return plain(address.AddrPort())
}

// Start sets the sound going: from now on there is a Frame every 20 ms, and a packet
// of what Send was given, or of silence.
func (s *Session) Start(params Params, calls Callbacks) error {
	if err := params.validate(); err != nil {
		return err
	}
	s.life.Lock()
	defer s.life.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.started:
		return errors.New("media: the session has started before")
	}
	now, rate := s.engine.clock.now(), cmp.Or(params.Rate, params.Codec.Rate())
	in, out := newInbound(rate, s.engine.config.DeadAfter), newOutbound(rate)
	if err := errors.Join(in.configure(now, params), out.configure(params)); err != nil {
		return err
	}
	s.calls = calls.orNothing()
	s.frame, s.digits = make([]int16, rate.FrameSamples()), make([]byte, 0, digitsMost)
	s.inMu.Lock()
	in.recall(now, &s.early)
	s.in, s.reports = in, newReports(now)
	s.inMu.Unlock()
	s.outMu.Lock()
	s.out = out
	s.outMu.Unlock()
	s.started = true
	s.slot = s.engine.pacer.add(s)
	return nil
}

// Update takes what a re-INVITE agreed on: hold, another codec, another address,
// other keys. The streams go on, and frames keep the session's rate.
func (s *Session) Update(params Params) error {
	if err := params.validate(); err != nil {
		return err
	}
	s.life.Lock()
	defer s.life.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case !s.started:
		return errors.New("media: the session has not started")
	}
	s.inMu.Lock()
	err := s.in.configure(s.engine.clock.now(), params)
	s.inMu.Unlock()
	if err != nil {
		return err
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	return s.out.configure(params)
}

// Rate is that of all frames, 0 before Start.
func (s *Session) Rate() audio.Rate {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if s.out == nil {
		return 0
	}
	return s.out.rate
}

// Send plays a 20 ms frame as soon as those before it have been; the frame may be
// reused afterwards. It never blocks. A call that sends one frame for each it hears
// keeps the queue short; of one that pours, the oldest frames are dropped.
func (s *Session) Send(frame []int16) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if s.out != nil {
		s.out.push(frame)
	}
}

// SendDigits plays keys (0 to 9, *, #, A to D) one after another, as telephone-events
// where they were agreed on and as tones where not. What Send is given meanwhile is
// not heard.
func (s *Session) SendDigits(digits string) error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if s.out == nil {
		return errors.New("media: the session has not started")
	}
	return s.out.dialer.dial(digits)
}

// Close says goodbye, stops the callbacks and puts the ports to rest. It returns
// when the session's goroutines have ended; closing twice is harmless.
func (s *Session) Close() {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.started {
		s.engine.pacer.remove(s.slot, s)
		s.report(s.engine.clock.now(), true)
	}
	close(s.quit)
	s.pair.close()
	s.readers.Wait()
	s.engine.forget(s)
}

// hear is the pacer's: hands the next 20 ms to the call.
func (s *Session) hear(now time.Duration) {
	s.inMu.Lock()
	digits, dead := s.in.hear(now, s.frame, s.digits[:0])
	s.destination = s.in.latch.destination()
	s.inMu.Unlock()
	s.digits = digits
	for _, digit := range digits {
		s.calls.Digit(digit)
	}
	s.calls.Frame(s.frame)
	if dead {
		s.calls.Dead()
	}
}

// send is the pacer's: sends the next 20 ms, and a report when one is due.
func (s *Session) send(now time.Duration, frame int64) {
	if !s.destination.IsValid() {
		return // started between the two slots
	}
	s.outMu.Lock()
	// The packet is the outbound's memory, which nobody else touches: only the
	// pacer asks for packets.
	packet := s.out.next(now, frame)
	s.outMu.Unlock()
	if packet != nil {
		// A write waits only when the socket's buffer is full, which takes seconds of
		// packets that no device took: a deadline per packet would cost more.
		if _, err := s.pair.rtp.WriteToUDPAddrPort(packet, s.destination); err != nil {
			s.unsent.Add(1)
		}
	}
	if s.reports.isDue(now) {
		s.report(now, false)
	}
}

// report sends RTCP. Only the pacer calls it, or Close after the pacer has let go.
func (s *Session) report(now time.Duration, bye bool) {
	s.inMu.Lock()
	s.outMu.Lock()
	compound, err := s.reports.compound(now, s.engine.clock.wall(now), s.in, s.out, bye)
	sealed, ok := compound, false
	if err == nil {
		sealed, ok = s.out.cipher.sealReport(compound)
	}
	target := reportTarget(&s.in.params, s.in.latch.destination())
	mux := s.in.params.Mux
	s.outMu.Unlock()
	s.inMu.Unlock()
	if !ok {
		return
	}
	socket := s.pair.rtcp
	if mux {
		socket = s.pair.rtp
	}
	if _, err := socket.WriteToUDPAddrPort(sealed, target); err != nil {
		s.unsent.Add(1)
	}
}

// reportTarget is where RTCP goes: beside wherever the RTP goes.
func reportTarget(p *Params, rtp netip.AddrPort) netip.AddrPort {
	switch {
	case p.Mux:
		return rtp
	case p.RemoteRTCP.IsValid() && rtp == plain(p.Remote):
		return plain(p.RemoteRTCP)
	}
	return netip.AddrPortFrom(rtp.Addr(), rtp.Port()+1)
}

// listen starts the readers. They run from the beginning, so that sound that comes
// before Start does not wait in the socket to be heard after it.
func (s *Session) listen() {
	s.readers.Go(func() { s.read(s.pair.rtp, s.receive) })
	s.readers.Go(func() { s.read(s.pair.rtcp, s.receiveReport) })
}

// readPause is the wait after a read that failed for any other reason than Close.
const readPause = 10 * time.Millisecond

func (s *Session) read(socket *net.UDPConn, take func(time.Duration, netip.AddrPort, []byte)) {
	buffer := make([]byte, packetMost+1)
	for {
		n, source, err := socket.ReadFromUDPAddrPort(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-s.quit:
				return
			case <-time.After(readPause):
			}
		case n <= packetMost:
			take(s.engine.clock.now(), source, buffer[:n])
		}
	}
}

func (s *Session) receive(now time.Duration, source netip.AddrPort, datagram []byte) {
	if isRTCP(datagram) {
		s.receiveReport(now, source, datagram)
		return
	}
	s.inMu.Lock()
	defer s.inMu.Unlock()
	if s.in == nil {
		s.early.keep(now, source, datagram)
		return
	}
	s.in.receive(now, source, datagram)
}

func (s *Session) receiveReport(now time.Duration, source netip.AddrPort, datagram []byte) {
	s.inMu.Lock()
	defer s.inMu.Unlock()
	switch {
	case s.in == nil:
		return
	case !s.in.latch.hearsRTCP(plain(source)):
		s.in.strangers++
		return
	}
	opened, ok := s.in.cipher.openReport(datagram)
	if !ok {
		s.in.invalid++
		return
	}
	s.outMu.Lock()
	ssrc := s.out.packet.ssrc
	s.outMu.Unlock()
	s.reports.receive(now, s.engine.clock.wall(now), ssrc, opened)
}
