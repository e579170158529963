// Package switchboard owns live calls: it joins a SIP dialog, its media and a
// conversation, and sees to it that all three end together. It must not know HTTP,
// SQL or how a vendor is spoken to.
package switchboard

import (
	"context"
	"net/netip"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip"
)

// Telephone is what a node calls with: its SIP agent and its media.
type Telephone struct {
	SIP   *sip.Agent
	Media *media.Engine
	Host  netip.Addr // where peers send media
}

// lineRate is the rate of every conversation on a telephone line. Wideband would
// cost several times as much a frame and most trunks do not carry it; where a peer
// has nothing but G.722, the media resamples.
const lineRate = audio.Rate8k

// farewell is how long a peer may take to agree that a call is over.
const farewell = 5 * time.Second

// Place dials a number and holds the conversation. It returns when the call is over
// and everything it took has been given back. The error is the *sip.Failure of a
// call that was not answered; the result then says so too.
func (t *Telephone) Place(ctx context.Context, trunk parley.Trunk, to, from string, config converse.Config) (converse.Result, error) {
	l, err := t.open(config)
	if err != nil {
		return converse.Result{}, err
	}
	defer l.session.Close()
	result := l.converse(ctx)
	// An assistant that has lost its voice while it rings must not be answered.
	dialling, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.over:
			cancel()
		case <-dialling.Done():
		}
	}()
	call, err := t.SIP.Dial(dialling, trunk, sip.Outgoing{To: to, From: from, Media: l.offer(trunk), Hooks: l.hooks()})
	if err == nil {
		err = l.connect(call)
	}
	if err != nil {
		l.conversation.Stop(converse.EndNotAnswered)
		return <-result, err
	}
	return l.finish(ctx, call, result), nil
}

// Answer takes a call that rings and holds the conversation. It returns when the
// call is over and everything it took has been given back.
func (t *Telephone) Answer(ctx context.Context, in *sip.Incoming, config converse.Config) (converse.Result, error) {
	l, err := t.open(config)
	if err != nil {
		return converse.Result{}, err
	}
	defer l.session.Close()
	result := l.converse(ctx)
	call, err := in.Answer(l.offer(in.Trunk), l.hooks())
	if err == nil {
		err = l.connect(call)
	}
	if err != nil {
		l.conversation.Stop(converse.EndNotAnswered)
		return <-result, err
	}
	return l.finish(ctx, call, result), nil
}

// open reserves the media of a call and makes its conversation.
func (t *Telephone) open(config converse.Config) (*line, error) {
	session, err := t.Media.Open(t.Host)
	if err != nil {
		return nil, err
	}
	l := &line{session: session, over: make(chan struct{})}
	config.Line, config.Rate = l, lineRate
	if l.conversation, err = converse.New(config); err != nil {
		session.Close()
		return nil, err
	}
	return l, nil
}
