package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// ErrCancelled says that the caller gave up before the answer.
var ErrCancelled = errors.New("sip: the caller gave up")

// Incoming is a call that rings at us.
type Incoming struct {
	Trunk  parley.Trunk   // the trunk it came by
	Trunks []parley.Trunk // all that share its source: several accounts of one carrier
	To     string         // the called number, in E.164 when it can be told
	From   string
	Name   string   // the caller's display name
	Offer  *Session // the peer's side of its offer; nil when it waits for ours

	call     *Call
	req      *gosip.Request
	tx       *gosip.ServerTx
	reliably bool
	fate     atomic.Int32
	ctx      context.Context //nolint:containedctx // the caller's patience
	cancel   context.CancelFunc
	decided  chan struct{} // closed by the final answer

	mu    sync.Mutex // keeps provisionals from following the final answer
	final bool
	rseq  uint32
}

// What can become of an undecided call. CANCEL is handled inside sipgo's transaction
// lock, so that the race with our answer is decided by this value and not by a mutex.
const (
	fateOpen int32 = iota
	fateOurs
	fateCancelled
)

// ID is the Call-ID.
func (in *Incoming) ID() string { return in.call.ID() }

// onInvite takes a request for a new call.
func (a *Agent) onInvite(req *gosip.Request, tx *gosip.ServerTx) {
	trunks, ok := a.identify(req, tx)
	if !ok {
		return
	}
	if status, add := a.refusal(req); status != 0 {
		a.respond(tx, req, status, add)
		return
	}
	in := &Incoming{Trunk: trunks[0], Trunks: trunks, req: req, tx: tx, decided: make(chan struct{})}
	in.name()
	release, ok := a.limiter.reserve(in.Trunk, false)
	if !ok {
		a.overload(req, tx)
		return
	}
	in.call = a.newCall(in.Trunk, false, Hooks{}, release)
	if !in.open() {
		release()
		a.overload(req, tx)
		return
	}
	a.counters.callsIn.Add(1)
	if !a.spawn(in.run) {
		_ = in.Refuse(503, 0)
	}
}

func (a *Agent) overload(req *gosip.Request, tx *gosip.ServerTx) {
	a.counters.overloaded.Add(1)
	a.respond(tx, req, 503, a.retryAfter)
}

// refusal is the status of an INVITE that cannot become a call, 0 for one that can.
func (a *Agent) refusal(req *gosip.Request) (int, func(*gosip.Response)) {
	if tagOf(req.From().Params) == "" || req.Contact() == nil {
		return 400, nil
	}
	for _, h := range req.GetHeaders("Require") {
		for option := range strings.SplitSeq(h.Value(), ",") {
			option = strings.TrimSpace(option)
			if option != "" && !strings.EqualFold(option, "100rel") && !strings.EqualFold(option, "timer") {
				return 420, func(res *gosip.Response) { res.AppendHeader(gosip.NewHeader("Unsupported", option)) }
			}
		}
	}
	if len(req.Body()) > 0 {
		if !isSDP(req) {
			return 415, func(res *gosip.Response) { res.AppendHeader(gosip.NewHeader("Accept", "application/sdp")) }
		}
		if _, err := Inspect(req.Body()); err != nil {
			return 488, nil
		}
	}
	if asked, ok := parseSeconds(headerValue(req, "Session-Expires", "x")); ok && asked < a.settings.MinSE {
		return 422, func(res *gosip.Response) {
			res.AppendHeader(gosip.NewHeader("Min-SE", formatSeconds(a.settings.MinSE)))
		}
	}
	if a.merged(req) {
		return 482, nil
	}
	return 0, nil
}

// merged says that the same request came another way already (RFC 3261 section 8.2.2.2).
func (a *Agent) merged(req *gosip.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, c := range a.calls {
		if key.callID == req.CallID().Value() && !c.outbound && c.peerTag == tagOf(req.From().Params) {
			return true
		}
	}
	return false
}

// name reads who calls whom.
func (in *Incoming) name() {
	called := userOf(in.req.Recipient)
	if id, ok := trunkOfContact(called); ok { // a registrar calls our Contact; To has the number
		called = userOf(in.req.To().Address)
		for _, t := range in.Trunks {
			if t.ID == id {
				in.Trunk = t
			}
		}
	}
	in.To = received(called, in.Trunk.CallingFormat)
	in.From = received(userOf(in.req.From().Address), in.Trunk.CallingFormat)
	in.Name = in.req.From().DisplayName
	in.reliably = requires(in.req, "100rel")
	if len(in.req.Body()) > 0 {
		if s, err := Inspect(in.req.Body()); err == nil {
			in.Offer = &s
		}
	}
}

// open makes the early dialog and watches for CANCEL.
func (in *Incoming) open() bool {
	c, tag := in.call, tagOf(in.req.To().Params)
	c.dialog = dialogFromRequest(in.req, tag)
	c.name, c.peerTag = dialogKey{c.dialog.callID, tag}, c.dialog.remoteTag
	c.dialog.hop.network = gosip.NetworkToLower(in.req.Transport())
	c.remoteCSeq = in.req.CSeq().SeqNo
	c.invite = in.req
	c.updates = listed(in.req, "UPDATE", "Allow")
	in.ctx, in.cancel = context.WithCancel(c.agent.ctx)
	c.abort = func(status int) { _ = in.Refuse(status, 0); in.cancel() }
	if !c.agent.admit(c) {
		in.cancel()
		return false
	}
	gone := func() {
		if in.fate.CompareAndSwap(fateOpen, fateCancelled) {
			in.cancel()
		}
	}
	if !in.tx.OnCancel(func(*gosip.Request) { gone() }) || !in.tx.OnTerminate(func(string, error) { gone() }) {
		gone()
	}
	_ = in.tx.Respond(c.agent.response(in.req, 100))
	return true
}

// run finds the way back to the caller and lets the owner decide.
func (in *Incoming) run() {
	c := in.call
	defer in.cancel()
	source := sourceOf(in.req.Source())
	c.mu.Lock()
	d := c.dialog
	c.mu.Unlock()
	if err := c.agent.locate(in.ctx, &d, source); err != nil {
		if h, ok := c.agent.hopVia(d.hop.network, source); ok {
			d.hop = h
		}
	}
	c.mu.Lock()
	c.dialog.hop = d.hop
	c.mu.Unlock()
	if c.agent.settings.Incoming != nil {
		c.agent.settings.Incoming(in.ctx, in)
	}
	_ = in.Refuse(480, 0) // undecided, or nothing when it was decided
	if in.fate.Load() == fateCancelled {
		c.finish(End{By: EndedByPeer, Reason: "cancelled"})
	}
}

// Ring tells the caller that it rings (180).
func (in *Incoming) Ring() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.final || in.fate.Load() != fateOpen {
		return ErrCancelled
	}
	return in.sendProvisional(in.dialogResponse(180))
}

// Early answers the offer before the call is answered (183), for early media.
func (in *Incoming) Early(media Media) (Session, error) {
	if in.Offer == nil {
		return Session{}, ErrNoAudio
	}
	body, session, err := Answer(in.req.Body(), media)
	if err != nil {
		return Session{}, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.final || in.fate.Load() != fateOpen {
		return Session{}, ErrCancelled
	}
	res := in.dialogResponse(183)
	setBody(res, "application/sdp", body)
	return session, in.sendProvisional(res)
}

// Refuse ends the call without an answer. Nothing happens when it was decided before.
func (in *Incoming) Refuse(status int, retryAfter time.Duration) error {
	if !in.fate.CompareAndSwap(fateOpen, fateOurs) {
		return ErrCancelled
	}
	in.mu.Lock()
	in.final = true
	res := in.call.agent.response(in.req, status)
	if retryAfter > 0 {
		res.AppendHeader(gosip.NewHeader("Retry-After", strconv.Itoa(max(1, int(retryAfter.Seconds())))))
	}
	err := in.tx.Respond(res)
	in.mu.Unlock()
	close(in.decided)
	in.call.finish(End{By: EndedByUs, Reason: "refused"})
	return err
}

// Answer takes the call. With a delayed offer (an INVITE without a description) it
// returns when the caller's ACK has brought the answer.
func (in *Incoming) Answer(media Media, hooks Hooks) (*Call, error) {
	c := in.call
	if media.ID == 0 {
		media.ID = rand.Uint64() >> 2
	}
	body, session := Offer(media), Session{}
	if in.Offer != nil {
		var err error
		if body, session, err = Answer(in.req.Body(), media); err != nil {
			_ = in.Refuse(488, 0)
			return nil, err
		}
	}
	if !in.fate.CompareAndSwap(fateOpen, fateOurs) {
		return nil, ErrCancelled
	}
	res := in.dialogResponse(200)
	setBody(res, "application/sdp", body)
	c.mu.Lock()
	c.hooks, c.local, c.session = hooks, media, session
	c.state = up
	if in.Offer != nil {
		c.local = media.settle(session)
	}
	c.mu.Unlock()
	c.negotiateTimer(in.req, res)
	acked, err := in.sendAnswer(res)
	if err != nil {
		return nil, err
	}
	c.agent.counters.answered.Add(1)
	if in.Offer != nil {
		return c, nil
	}
	return c, c.takeDelayed(in.ctx, media, acked)
}

// sendAnswer sends the 2xx and keeps sending it until the ACK. If a CANCEL came between
// the decision and the sending, sipgo has answered 487 and the call is off.
func (in *Incoming) sendAnswer(res *gosip.Response) (<-chan []byte, error) {
	c := in.call
	acked := c.expectAck(in.req.CSeq().SeqNo)
	in.mu.Lock()
	in.final = true
	err := in.tx.Respond(res)
	if err != nil {
		// The 200 now stands in the transaction as its last answer, though it was not
		// sent; a repeated INVITE must get the 487.
		_ = in.tx.Respond(c.agent.response(in.req, 487))
	}
	in.mu.Unlock()
	close(in.decided)
	if err != nil {
		c.mu.Lock()
		c.hooks.Ended = nil
		c.mu.Unlock()
		c.finish(End{By: EndedByPeer, Reason: "cancelled"})
		return nil, errors.Join(ErrCancelled, err)
	}
	c.keepSending(in.tx, res, in.req.CSeq().SeqNo)
	return acked, nil
}

// dialogResponse makes an answer that opens the dialog (RFC 3261 section 12.1.1).
func (in *Incoming) dialogResponse(status int) *gosip.Response {
	c := in.call
	res := c.agent.response(in.req, status)
	contact := c.hop().contact(c.contactUser())
	res.AppendHeader(&contact)
	res.AppendHeader(gosip.NewHeader("Allow", allow))
	res.AppendHeader(gosip.NewHeader("Supported", "100rel, timer"))
	return res
}
