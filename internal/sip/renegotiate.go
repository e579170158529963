package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// ErrOver says that the call has ended.
var ErrOver = errors.New("sip: the call is over")

// Hold asks the peer to stop sending and says that we play to it only.
func (c *Call) Hold(ctx context.Context) (Session, error) { return c.turn(ctx, SendOnly) }

// Resume undoes Hold.
func (c *Call) Resume(ctx context.Context) (Session, error) { return c.turn(ctx, SendRecv) }

func (c *Call) turn(ctx context.Context, d Direction) (Session, error) {
	c.mu.Lock()
	media := c.local
	c.mu.Unlock()
	media.Direction = d
	return c.Reoffer(ctx, media)
}

// Reoffer changes our side of the media by re-INVITE (RFC 3261 section 14.1): address,
// codecs or direction. When both sides offer at once (491) it waits and tries again.
func (c *Call) Reoffer(ctx context.Context, media Media) (Session, error) {
	select {
	case c.offers <- struct{}{}:
		defer func() { <-c.offers }()
	case <-c.done:
		return Session{}, ErrOver
	case <-ctx.Done():
		return Session{}, ctx.Err()
	}
	for range 8 {
		session, retry, err := c.reinvite(ctx, &media)
		if !retry {
			return session, err
		}
		c.agent.counters.glare.Add(1)
		if err := c.waitGlare(ctx); err != nil {
			return Session{}, err
		}
	}
	return Session{}, &Failure{Status: 491, Outcome: Rejected, Fault: FaultCarrier}
}

// waitGlare waits before an offer is made again (RFC 3261 section 14.1): the owner of
// the Call-ID 2.1 to 4 s, the other side 0 to 2 s, so that they do not meet again. The
// times are counted in T1, whose default makes them the RFC's.
func (c *Call) waitGlare(ctx context.Context) error {
	unit := c.agent.settings.T1 / 50
	wait := time.Duration(rand.IntN(200)) * unit
	if c.outbound {
		wait = time.Duration(210+rand.IntN(190)) * unit
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.done:
		return ErrOver
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reinvite makes one try; retry says that the peer's offer was in the way.
func (c *Call) reinvite(ctx context.Context, media *Media) (s Session, retry bool, err error) {
	c.mu.Lock()
	if c.state != up {
		c.mu.Unlock()
		return s, false, ErrOver
	}
	if c.answering || c.offering {
		c.mu.Unlock()
		return s, true, nil
	}
	c.offering = true
	media.ID, media.Version = c.local.ID, c.local.Version+1
	d := c.dialog
	invite := d.request(c.agent, gosip.INVITE, c.cseq.Add(1), c.contactUser())
	c.decorate(invite)
	setBody(invite, "application/sdp", Offer(*media))
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.offering = false
		c.mu.Unlock()
	}()
	res, err := c.sendReinvite(ctx, d.hop, invite)
	if err != nil {
		return s, false, err
	}
	if !res.IsSuccess() {
		// 500 with Retry-After: the peer is still busy with our last one (section 14.2).
		if res.StatusCode == 491 || res.StatusCode == 500 && headerValue(res, "Retry-After") != "" {
			return s, true, nil
		}
		if res.StatusCode == 481 || res.StatusCode == 408 { // RFC 3261 section 14.1
			c.finish(End{By: EndedBySystem, Reason: "peer_lost"})
		}
		return s, false, verdictOf(res)
	}
	s, err = Accept(res.Body(), *media)
	if err != nil {
		return s, false, err
	}
	c.adopt(media, s)
	return s, false, nil
}

// sendReinvite sends an in-dialog INVITE, answers challenges, and acknowledges.
func (c *Call) sendReinvite(ctx context.Context, h hop, invite *gosip.Request) (*gosip.Response, error) {
	for range 3 {
		i := invitation{agent: c.agent, hop: h, req: invite, repeated: func(res *gosip.Response) { c.acknowledgeAgain(res, true) }}
		res, _, err := i.send(ctx)
		switch {
		case res != nil && res.IsSuccess():
			c.mu.Lock()
			if contact := res.Contact(); contact != nil { // target refresh
				c.dialog.target = *contact.Address.Clone()
			}
			c.mu.Unlock()
			c.acknowledge(invite)
			c.startTimer(res, true)
			return res, err
		case err != nil:
			if ctx.Err() == nil {
				c.finish(End{By: EndedBySystem, Reason: "peer_lost"})
			}
			return nil, err
		case res.StatusCode != 401 && res.StatusCode != 407 && res.StatusCode != 422:
			return res, nil
		}
		next := c.retry(invite, res)
		if next == nil {
			return res, nil
		}
		invite = next
	}
	return nil, errNoCredentials
}

// adopt makes a negotiated session the call's own and tells the owner.
func (c *Call) adopt(media *Media, s Session) {
	c.keep(media, s)
	c.tell(s)
}

func (c *Call) tell(s Session) {
	c.mu.Lock()
	tell := c.hooks.Media
	c.mu.Unlock()
	if tell != nil {
		tell(s)
	}
}

func (c *Call) keep(media *Media, s Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local, c.session = media.settle(s), s
}

// claim reserves the right to answer an offer, or gives the status that refuses it:
// 491 when ours is under way, 500 when an earlier one of theirs is (RFC 3261 section
// 14.2, RFC 3311 section 5.2).
func (c *Call) claim() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state != up:
		return 481
	case c.offering:
		return 491
	case c.answering:
		return 500
	}
	c.answering = true
	return 0
}

// unclaim ends the answering. It comes before the final answer is sent: with that in
// its hands the peer may offer again at once.
func (c *Call) unclaim() {
	c.mu.Lock()
	c.answering = false
	c.mu.Unlock()
}

// owe turns the claim into an offer of ours, which the peer's ACK will answer.
func (c *Call) owe(offering bool) {
	c.mu.Lock()
	c.answering, c.offering = false, offering
	c.mu.Unlock()
}

// onReinvite answers the peer's new offer: hold, another codec, another address.
func (c *Call) onReinvite(req *gosip.Request, tx *gosip.ServerTx) {
	a := c.agent
	if status := c.claim(); status != 0 {
		a.counters.glare.Add(1)
		a.respond(tx, req, status, func(res *gosip.Response) {
			if status == 500 {
				res.AppendHeader(gosip.NewHeader("Retry-After", "1"))
			}
		})
		return
	}
	body, session, media, status := c.answerOffer(req)
	if status != 0 {
		c.unclaim()
		a.respond(tx, req, status, nil)
		return
	}
	c.retarget(req)
	res := c.refreshed(req)
	setBody(res, "application/sdp", body)
	acked := c.expectAck(req.CSeq().SeqNo)
	if session != nil {
		c.keep(&media, *session)
		c.unclaim()
	} else {
		c.owe(true)
	}
	err := tx.Respond(res)
	if err == nil {
		c.keepSending(tx, res, req.CSeq().SeqNo)
	}
	if session != nil {
		c.tell(*session)
		return
	}
	begun := err == nil && a.spawn(func() { // the answer to our offer is in the ACK
		err := c.takeDelayed(a.ctx, media, acked)
		if err == nil {
			c.keep(&media, c.Session())
		}
		c.owe(false)
		if err == nil {
			c.tell(c.Session())
		}
	})
	if !begun {
		c.owe(false)
	}
}

// answerOffer answers the offer in a request, or makes one when there is none.
func (c *Call) answerOffer(req *gosip.Request) (body []byte, s *Session, media Media, status int) {
	c.mu.Lock()
	media = c.local
	c.mu.Unlock()
	if len(req.Body()) == 0 {
		media.Version++
		return Offer(media), nil, media, 0
	}
	if !isSDP(req) {
		return nil, nil, media, 415
	}
	media.Version++
	body, session, err := Answer(req.Body(), media)
	if err != nil {
		return nil, nil, media, 488
	}
	return body, &session, media, 0
}

// retarget follows the peer's Contact (RFC 3261 section 12.2.2).
func (c *Call) retarget(req *gosip.Request) {
	contact := req.Contact()
	if contact == nil {
		return
	}
	c.mu.Lock()
	d := c.dialog
	c.mu.Unlock()
	d.target = *contact.Address.Clone()
	ctx, cancel := context.WithTimeout(c.agent.ctx, c.agent.settings.T2)
	defer cancel()
	if c.agent.locate(ctx, &d, sourceOf(req.Source())) != nil {
		return
	}
	c.mu.Lock()
	c.dialog.target, c.dialog.hop = d.target, d.hop
	c.mu.Unlock()
}

// refreshed makes the 200 of a request that refreshes the session.
func (c *Call) refreshed(req *gosip.Request) *gosip.Response {
	res := c.agent.response(req, 200)
	contact := c.hop().contact(c.contactUser())
	res.AppendHeader(&contact)
	res.AppendHeader(gosip.NewHeader("Allow", allow))
	res.AppendHeader(gosip.NewHeader("Supported", "100rel, timer"))
	c.negotiateTimer(req, res)
	return res
}

// onUpdate answers UPDATE (RFC 3311): a refresh without a body, an offer with one.
func (c *Call) onUpdate(req *gosip.Request, tx *gosip.ServerTx) {
	if len(req.Body()) == 0 {
		c.retarget(req)
		_ = tx.Respond(c.refreshed(req))
		return
	}
	if status := c.claim(); status != 0 {
		c.agent.counters.glare.Add(1)
		c.agent.respond(tx, req, status, nil)
		return
	}
	body, session, media, status := c.answerOffer(req)
	if status != 0 {
		c.unclaim()
		c.agent.respond(tx, req, status, nil)
		return
	}
	c.retarget(req)
	res := c.refreshed(req)
	setBody(res, "application/sdp", body)
	c.keep(&media, *session)
	c.unclaim()
	_ = tx.Respond(res)
	c.tell(*session)
}
