package switchboard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"parley"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip"
)

// line is a call's telephone: what the conversation says goes out by it, and what
// happens on it reaches the conversation.
type line struct {
	session      *media.Session
	host         netip.Addr // where the peer is told to send its media
	signals      Signals
	conversation *converse.Conversation
	over         chan struct{} // closed when the conversation has hung up
	hangUp       sync.Once
	keys         keys

	mu     sync.Mutex
	call   *sip.Call      // nil before the answer
	gone   bool           // the peer ended the call before we had connected it
	remote netip.AddrPort // where the peer last wanted its media
}

// converse runs the conversation beside the ringing: its first words are rendered
// before anybody answers.
func (l *line) converse(ctx context.Context) <-chan converse.Result {
	result := make(chan converse.Result, 1)
	go func() { result <- l.conversation.Run(ctx) }()
	return result
}

// hold carries a call through once it has been answered; err is that of one that was not.
func (l *line) hold(ctx context.Context, call *sip.Call, err error, result <-chan converse.Result) (Result, error) {
	if err == nil {
		err = l.connect(call)
	}
	if err != nil {
		l.conversation.Stop(converse.EndNotAnswered)
		return Result{Result: <-result}, err
	}
	return Result{Result: l.finish(ctx, call, result), Line: l.session.Stats()}, nil
}

// connect gives an answered call its media and begins the conversation.
func (l *line) connect(call *sip.Call) error {
	err := l.start(call)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	return errors.Join(err, call.Hangup(ctx))
}

// start sets the media going. A peer may hang up in the very moment it answers: that
// is told after the answer.
func (l *line) start(call *sip.Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	params, err := l.params(call)
	if err != nil {
		return err
	}
	if err = l.session.Start(params, media.Callbacks{
		Frame: l.conversation.Frame,
		Digit: l.keys.press,
		Dead:  func() { l.conversation.Stop(converse.EndMediaFailure) },
	}); err != nil {
		return err
	}
	l.call = call
	if l.signals.Answered != nil {
		l.signals.Answered()
	}
	l.conversation.Answered()
	l.keys.open(l.conversation.Digit)
	if l.gone {
		l.conversation.HungUp()
	}
	return nil
}

// finish waits for the end and says goodbye. The BYE leaves when the conversation
// hangs up, not when the last of its workers has ended.
func (l *line) finish(ctx context.Context, call *sip.Call, result <-chan converse.Result) converse.Result {
	<-l.over
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	// A peer that does not answer the BYE is gone all the same.
	_ = call.Hangup(ctx)
	return <-result
}

// offer is our side of the media. A trunk that keeps its signalling secret keeps the
// sound secret too: the keys of SRTP travel in the signalling (RFC 4568), so only there
// are they worth anything. What a peer offers is answered in kind on every trunk.
func (l *line) offer(trunk parley.Trunk) sip.Media {
	m := sip.Media{Address: l.host, Port: l.session.Local().Port()}
	if trunk.Transport == "tls" {
		m.Crypto = []sip.Crypto{sip.NewCrypto(1, sip.AESCM128SHA180)}
	}
	return m
}

// hooks bring what happens in the dialog to the conversation.
func (l *line) hooks() sip.Hooks {
	return sip.Hooks{
		Progress: func(p sip.Progress) {
			if l.signals.Progress != nil {
				l.signals.Progress(p.Status)
			}
		},
		Media: l.renegotiated,
		Digit: func(digit byte, _ time.Duration) { l.keys.press(digit) },
		Ended: l.ended,
	}
}

// keys are those that were pressed. The media and the dialog bring them as soon as they
// are up themselves: what comes before the conversation knows of the answer waits for
// that. It has a lock of its own, for the pacer of all calls takes it.
type keys struct {
	mu    sync.Mutex
	early []byte
	to    func(byte) // nil before the answer
}

// mostEarly bounds the keys that wait.
const mostEarly = 32

func (k *keys) press(digit byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.to != nil:
		k.to(digit)
	case len(k.early) < mostEarly:
		k.early = append(k.early, digit)
	}
}

// open hands the keys on from now on.
func (k *keys) open(to func(byte)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = to
	for _, digit := range k.early {
		to(digit)
	}
	k.early = nil
}

// renegotiated follows a re-INVITE. What the media cannot follow ends the call:
// neither side would hear the other. One that comes before the media has started is
// found by connect.
func (l *line) renegotiated(sip.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.call == nil {
		return
	}
	params, err := l.params(l.call)
	if err == nil {
		err = l.session.Update(params)
	}
	if err != nil && !errors.Is(err, media.ErrClosed) {
		l.conversation.Stop(converse.EndMediaFailure)
	}
}

func (l *line) ended(end sip.End) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.call == nil:
		l.gone = true
	case end.By == sip.EndedBySystem:
		l.conversation.Stop(converse.EndMediaFailure)
	default:
		l.conversation.HungUp() // our own BYE comes after the conversation's end, which stays
	}
}

// Send plays a frame.
func (l *line) Send(frame []int16) { l.session.Send(frame) }

// SendDigits plays keys.
func (l *line) SendDigits(digits string) error { return l.session.SendDigits(digits) }

// Transfer hands the customer over to another number.
func (l *line) Transfer(ctx context.Context, number string) error {
	l.mu.Lock()
	call := l.call
	l.mu.Unlock()
	if call == nil {
		return errors.New("the call has not been answered")
	}
	if l.signals.MayTransfer != nil {
		if err := l.signals.MayTransfer(number); err != nil {
			return err
		}
	}
	return call.Transfer(ctx, number)
}

// HangUp ends the call without waiting for the peer.
func (l *line) HangUp() { l.hangUp.Do(func() { close(l.over) }) }

// params is what a call agreed on, for this line. The hold of RFC 2543 names no
// address: the last one stays.
func (l *line) params(call *sip.Call) (media.Params, error) {
	p, err := mediaParams(call.Session(), call.Peer())
	if p.Remote.IsValid() {
		l.remote = p.Remote
	} else {
		p.Remote, p.Direction = l.remote, media.Inactive
	}
	return p, err
}

// mediaParams is what a dialog agreed on, in the words of media. A NAT may show the
// peer's media where its description or its signalling says it is.
func mediaParams(s sip.Session, signalling netip.Addr) (media.Params, error) {
	p := media.Params{Rate: lineRate, Remote: s.Remote, RemoteRTCP: s.RTCP, Mux: s.RTCPMux,
		EventType: s.Event.Payload, EventTypeHeard: s.EventHeard, NATHosts: []netip.Addr{signalling}}
	switch s.Codec.Name {
	case sip.PCMU().Name:
		p.Codec = media.PCMU
	case sip.PCMA().Name:
		p.Codec = media.PCMA
	case sip.G722().Name:
		p.Codec = media.G722
	default:
		return p, fmt.Errorf("the codec %s was not offered", s.Codec.Name)
	}
	if s.Remote.IsValid() {
		p.NATHosts = append(p.NATHosts, s.Remote.Addr())
	}
	switch s.Direction {
	case sip.SendOnly:
		p.Direction = media.SendOnly
	case sip.RecvOnly:
		p.Direction = media.ReceiveOnly
	case sip.Inactive:
		p.Direction = media.Inactive
	case sip.SendRecv:
	}
	return p, mediaKeys(s, &p)
}

// mediaKeys takes the SRTP keys over: on the wire the master key and its salt are one.
func mediaKeys(s sip.Session, p *media.Params) (err error) {
	if s.SendKey == nil || s.RecvKey == nil {
		return nil
	}
	if p.SendKey, err = mediaKey(*s.SendKey); err != nil {
		return err
	}
	p.ReceiveKey, err = mediaKey(*s.RecvKey)
	return err
}

func mediaKey(c sip.Crypto) (*media.Key, error) {
	key := &media.Key{}
	switch c.Suite {
	case sip.AESCM128SHA180:
		key.Suite = media.AESCM128HMACSHA1_80
	case sip.AESCM128SHA132:
		key.Suite = media.AESCM128HMACSHA1_32
	default:
		return nil, fmt.Errorf("the crypto suite %s is not supported", c.Suite)
	}
	if len(c.Key) != len(key.Key)+len(key.Salt) {
		return nil, errors.New("the SRTP key has the wrong length")
	}
	copy(key.Key[:], c.Key)
	copy(key.Salt[:], c.Key[len(key.Key):])
	return key, nil
}
