package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// Outgoing is a call to place.
type Outgoing struct {
	To          string // E.164
	From        string // caller ID in E.164; empty takes the trunk's username
	Name        string // display name of the caller
	Media       Media
	RingTimeout time.Duration // default the settings'
	Hooks       Hooks
}

// Dial places a call and returns when it is answered. The error is always a *Failure.
// When ctx ends first the call is cancelled; an answer that crosses the cancellation is
// acknowledged and ended.
func (a *Agent) Dial(ctx context.Context, trunk parley.Trunk, out Outgoing) (*Call, error) {
	release, ok := a.limiter.reserve(trunk, true)
	if !ok {
		a.counters.failed.Add(1)
		return nil, &Failure{Outcome: Limited, Fault: FaultPolicy, RetryAfter: time.Second}
	}
	c := a.newCall(trunk, true, out.Hooks, release)
	c.local = out.Media
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.abort = func(int) { cancel() }
	a.counters.callsOut.Add(1)
	failure := c.dial(ctx, out)
	if failure != nil {
		c.finish(End{By: EndedBySystem, Reason: string(failure.Outcome)})
		release()
		a.counters.failed.Add(1)
		return nil, failure
	}
	a.counters.answered.Add(1)
	return c, nil
}

func (c *Call) dial(ctx context.Context, out Outgoing) *Failure {
	if c.local.ID == 0 {
		c.local.ID = rand.Uint64() >> 2
	}
	invite, err := c.firstInvite(ctx, out)
	if err != nil {
		return &Failure{Outcome: Unreachable, Fault: FaultCarrier, Err: err}
	}
	c.part = c.agent.peers.meet(c.hop().remote.Addr())
	if !c.agent.admit(c) {
		return &Failure{Outcome: Limited, Fault: FaultPolicy, RetryAfter: c.agent.settings.RetryAfter}
	}
	ring := out.RingTimeout
	if ring == 0 {
		ring = c.agent.settings.RingTimeout
	}
	deadline := time.Now().Add(ring)
	for range 4 { // challenge, stale nonce, interval too small
		c.mu.Lock()
		c.invite = invite
		c.mu.Unlock()
		i := invitation{agent: c.agent, hop: c.hop(), req: invite, ring: max(time.Until(deadline), time.Millisecond),
			provisional: c.progress, repeated: func(res *gosip.Response) { c.acknowledgeAgain(res, true) }}
		res, heard, err := i.send(ctx)
		if err != nil {
			return c.unanswered(res, heard, err)
		}
		if res.IsSuccess() {
			return c.answered(ctx, invite, res)
		}
		next := c.retry(invite, res)
		if next == nil {
			return verdictOf(res)
		}
		invite = next
	}
	return &Failure{Outcome: Unauthorized, Fault: FaultUs}
}

func verdictOf(res *gosip.Response) *Failure {
	f := judge(res.StatusCode)
	if seconds, err := strconv.Atoi(headerValue(res, "Retry-After")); err == nil && seconds > 0 {
		f.RetryAfter = time.Duration(seconds) * time.Second
	}
	return f
}

// unanswered is the end of an attempt that was given up or lost.
func (c *Call) unanswered(res *gosip.Response, heard bool, err error) *Failure {
	if res != nil && res.IsSuccess() && res.To() != nil && res.From() != nil && res.CallID() != nil { // the answer crossed our CANCEL
		c.endFork(tagOf(res.To().Params), res)
	}
	switch {
	case errors.Is(err, errRang) && heard:
		return &Failure{Outcome: NoAnswer, Fault: FaultCallee, Err: err}
	case errors.Is(err, errRang):
		return &Failure{Outcome: Unreachable, Fault: FaultCarrier, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Failure{Outcome: Cancelled, Fault: FaultUs, Err: err}
	default:
		return judgeLoss(err, heard)
	}
}

// retry makes the next INVITE of the same attempt, or nil when the answer is final.
func (c *Call) retry(invite *gosip.Request, res *gosip.Response) *gosip.Request {
	switch res.StatusCode {
	case 401, 407:
		next := invite.Clone()
		if authorize(next, res, c.trunk) != nil {
			return nil
		}
		return again(next, c.hop(), c.cseq.Add(1))
	case 422: // RFC 4028 section 7.2: the interval was too small
		least, ok := parseSeconds(headerValue(res, "Min-SE"))
		if !ok {
			return nil
		}
		next := again(invite, c.hop(), c.cseq.Add(1))
		next.RemoveHeader("Session-Expires")
		next.RemoveHeader("Min-SE")
		next.AppendHeader(gosip.NewHeader("Session-Expires", formatSeconds(least)))
		next.AppendHeader(gosip.NewHeader("Min-SE", formatSeconds(least)))
		return next
	default:
		return nil
	}
}

// firstInvite opens the dialog (RFC 3261 section 13.2.1).
func (c *Call) firstInvite(ctx context.Context, out Outgoing) (*gosip.Request, error) {
	a, t := c.agent, c.trunk
	network := t.Transport
	if network == "" {
		network = "udp"
	}
	host, port := splitHostPort(t.Address)
	nextHost, nextPort := host, port
	proxied := t.OutboundProxy != nil && *t.OutboundProxy != ""
	if proxied {
		nextHost, nextPort = splitHostPort(*t.OutboundProxy)
	}
	h, err := a.hopTo(ctx, network, nextHost, nextPort)
	if err != nil {
		return nil, err
	}
	target := gosip.Uri{Scheme: "sip", User: dialled(out.To, t.CallingFormat), Host: host, Port: port}
	if network != "udp" {
		target.UriParams.Add("transport", network)
	}
	caller := dialled(out.From, t.CallingFormat)
	if caller == "" {
		caller = t.Username
	}
	d := dialog{callID: a.newCallID(), localTag: newTag(), target: target, hop: h}
	d.local = gosip.FromHeader{DisplayName: out.Name, Address: gosip.Uri{Scheme: "sip", User: caller, Host: host}}
	d.local.Params.Add("tag", d.localTag)
	d.remote = gosip.ToHeader{Address: gosip.Uri{Scheme: "sip", User: target.User, Host: host}}
	if proxied { // RFC 3261 section 8.1.2: an outbound proxy is a route set of one
		route := gosip.Uri{Scheme: "sip", Host: nextHost, Port: nextPort}
		route.UriParams.Add("lr", "")
		if network != "udp" {
			route.UriParams.Add("transport", network)
		}
		d.routes = []gosip.Uri{route}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialog = d
	c.name = dialogKey{d.callID, d.localTag}
	c.cseq.Store(1)
	invite := d.request(a, gosip.INVITE, 1, c.contactUser())
	c.decorate(invite)
	setBody(invite, "application/sdp", Offer(c.local))
	return invite, nil
}

// decorate says what we can do (RFC 3261 section 13.2.1, RFC 4028 section 7.1).
func (c *Call) decorate(invite *gosip.Request) {
	invite.AppendHeader(gosip.NewHeader("Allow", allow))
	s := c.agent.settings
	if s.SessionExpires < 0 {
		invite.AppendHeader(gosip.NewHeader("Supported", "100rel"))
		return
	}
	invite.AppendHeader(gosip.NewHeader("Supported", "100rel, timer"))
	invite.AppendHeader(gosip.NewHeader("Session-Expires", formatSeconds(s.SessionExpires)))
	invite.AppendHeader(gosip.NewHeader("Min-SE", formatSeconds(s.MinSE)))
}

// answered takes the first 2xx: it becomes the dialog, and is acknowledged even when
// the call cannot go on.
func (c *Call) answered(ctx context.Context, invite *gosip.Request, res *gosip.Response) *Failure {
	if res.From() == nil || res.To() == nil || res.CallID() == nil {
		return &Failure{Status: res.StatusCode, Outcome: CarrierFailed, Fault: FaultCarrier}
	}
	d := dialogFromResponse(res, c.hop())
	if err := c.agent.locate(ctx, &d, sourceOf(res.Source())); err != nil {
		d.hop = c.hop() // a Contact that leads nowhere: try where the INVITE went
	}
	session, err := c.answerOf(res, d.remoteTag)
	c.mu.Lock()
	c.dialog = d
	c.state = up
	c.session = session
	c.local = c.local.settle(session)
	c.updates = listed(res, "UPDATE", "Allow")
	c.mu.Unlock()
	close(c.taken)
	c.acknowledge(invite)
	if err != nil {
		c.leave()
		return &Failure{Status: res.StatusCode, Outcome: NoMedia, Fault: FaultCarrier, Err: err}
	}
	c.startTimer(res, true)
	return nil
}

// leave says BYE to a peer whose answer has no media for us. It never was a call to its
// owner: Dial ends it with the failure.
func (c *Call) leave() {
	c.mu.Lock()
	c.hooks.Ended = nil
	c.mu.Unlock()
	bye := c.prepare(gosip.BYE)
	c.agent.spawn(func() {
		ctx, cancel := context.WithTimeout(c.agent.ctx, 64*c.agent.settings.T1)
		defer cancel()
		_, _ = c.do(ctx, bye)
	})
}

// answerOf is the media of a 2xx: in its own body, or in the reliable provisional that
// came before from the same branch (RFC 3262 section 5).
func (c *Call) answerOf(res *gosip.Response, tag string) (Session, error) {
	if len(res.Body()) > 0 && isSDP(res) {
		return Accept(res.Body(), c.local)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.branches[tag]; e != nil && e.session != nil {
		return *e.session, nil
	}
	return Session{}, ErrNoAudio
}
