package simulator

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip"
)

// Outcome is an answered call as the simulated person lived through it.
type Outcome struct {
	Heard  string // all that the assistant said
	Keys   string // and pressed
	Steps  int    // how many of the script were done
	HungUp bool   // the person ended the call
	// PutThrough is the number that the person was transferred to, if they were.
	PutThrough string
	Duration   time.Duration
}

// telephone is a person's end of a call: its media, its ears, and the network there.
type telephone struct {
	carrier *Carrier
	who     Callee
	person  *person
	session *media.Session
	ears    converse.Listener
	path    *path // nil where the network is good
	over    chan sip.End
	began   time.Time
}

// pickUp makes a telephone ready. It is closed in any case.
func (c *Carrier) pickUp(ctx context.Context, who Callee) (*telephone, error) {
	t := &telephone{carrier: c, who: who, over: make(chan sip.End, 1)}
	return t, t.open(ctx)
}

func (t *telephone) open(ctx context.Context) (err error) {
	c := t.carrier
	if t.person, err = newPerson(ctx, c.sounds, t.who, c.calls.Add(1)); err != nil {
		return err
	}
	if t.session, err = c.media.Open(loopback); err != nil {
		return err
	}
	t.person.press = t.session.SendDigits
	t.ears, err = c.voice.Transcriber().Listen(context.WithoutCancel(ctx), converse.ListenOptions{Language: "en", Rate: lineRate}, t.person.hear)
	if err != nil {
		return err
	}
	if t.who.Line.Loss > 0 || t.who.Line.Jitter > 0 {
		t.path, err = openPath(t.who.Line, t.session.Local())
	}
	return err
}

func (t *telephone) close() {
	if t.session != nil {
		t.session.Close()
	}
	if t.ears != nil {
		_ = t.ears.Close()
	}
	if t.path != nil {
		t.path.close()
	}
}

// offer is the telephone's side of the media.
func (t *telephone) offer() sip.Media {
	at := t.session.Local()
	if t.path != nil {
		at = addressOf(t.path.outside)
	}
	return sip.Media{Address: at.Addr(), Port: at.Port(), Codecs: []sip.Codec{sip.PCMU(), sip.TelephoneEvent()}}
}

func (t *telephone) hooks(ctx context.Context) sip.Hooks {
	return sip.Hooks{
		Refer: func(r *sip.Referral) { t.refer(context.WithoutCancel(ctx), r) },
		Digit: func(digit byte, _ time.Duration) { t.person.key(digit) },
		Ended: func(end sip.End) { t.over <- end },
	}
}

// start sets the sound going.
func (t *telephone) start(peer sip.Session) error {
	remote := peer.Remote
	if t.path != nil {
		t.path.aim(remote)
		remote = addressOf(t.path.inside)
	}
	params := media.Params{Codec: media.PCMU, Remote: remote, EventType: peer.Event.Payload, Mux: peer.RTCPMux}
	return t.session.Start(params, media.Callbacks{
		Frame: func(heard []int16) {
			_ = t.ears.Write(heard)
			t.session.Send(t.person.next(heard))
		},
		Digit: t.person.key,
	})
}

// live is the call from the answer to its end.
func (t *telephone) live(ctx context.Context, call *sip.Call) Outcome {
	t.began = time.Now()
	var leaving sync.WaitGroup
	hangUp := func() { leaving.Go(func() { _ = call.Hangup(context.WithoutCancel(ctx)) }) }
	t.person.connected(sync.OnceFunc(hangUp))
	var end sip.End
	select {
	case end = <-t.over:
	case <-ctx.Done():
		hangUp()
		end = <-t.over
	}
	// The script must not hang up any more while that is waited for.
	t.session.Close()
	leaving.Wait()
	o := t.person.outcome()
	o.HungUp, o.Duration = end.By == sip.EndedByUs, time.Since(t.began)
	if t.who.Ended != nil {
		t.who.Ended(o)
	}
	return o
}

// answer takes a call and lives through it.
func (c *Carrier) answer(ctx context.Context, in *sip.Incoming, who Callee) {
	t, err := c.pickUp(ctx, who)
	defer t.close()
	if err != nil || in.Offer == nil {
		_ = in.Refuse(503, 0)
		return
	}
	// A telephone listens before it says that it has been picked up.
	if t.start(*in.Offer) != nil {
		_ = in.Refuse(488, 0)
		return
	}
	call, err := in.Answer(t.offer(), t.hooks(ctx))
	if err != nil {
		return
	}
	t.live(ctx, call)
}

// Peer is whom the carrier's people call.
type Peer struct {
	Address            netip.AddrPort
	Username, Password string // for digest authentication; empty: by the address alone
}

// Call has somebody call a SIP peer, as a carrier brings an inbound call: from their
// number to one of the peer's. It returns when the call is over; a call that was not
// answered is a *sip.Failure. When ctx ends the caller hangs up.
func (c *Carrier) Call(ctx context.Context, peer Peer, from, to string, who Callee) (Outcome, error) {
	if !who.Calls() {
		return Outcome{}, fmt.Errorf("callee %s (%s) never picks up a telephone and cannot call", who.Code, who.About)
	}
	t, err := c.pickUp(ctx, who)
	defer t.close()
	if err != nil {
		return Outcome{}, err
	}
	trunk := c.trunk(peer.Address.String())
	trunk.Username, trunk.Password = peer.Username, peer.Password
	call, err := c.agent.Dial(ctx, trunk, sip.Outgoing{To: to, From: from, Media: t.offer(), Hooks: t.hooks(ctx)})
	if err != nil {
		return Outcome{}, err
	}
	if err := t.start(call.Session()); err != nil {
		return Outcome{}, errors.Join(err, call.Hangup(ctx))
	}
	return t.live(ctx, call), nil
}
