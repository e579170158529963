package sip

import (
	"strconv"
	"strings"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// serve takes every request that sipgo's transactions let through, on a goroutine of
// its own.
func (a *Agent) serve(req *gosip.Request, tx *gosip.ServerTx) {
	if !a.begin() {
		tx.Terminate()
		// For a request that was on its way when the sockets closed, sipgo opened another.
		_ = a.transport.Close()
		return
	}
	defer a.work.Done()
	a.counters.requests.Add(1)
	if req.From() == nil || req.To() == nil || req.CallID() == nil || req.CSeq() == nil || req.CSeq().MethodName != req.Method {
		a.malformed(req, tx)
		return
	}
	switch {
	case req.Method == gosip.ACK:
		a.onAck(req)
		tx.Terminate()
	case tagOf(req.To().Params) != "" && !a.opens(req):
		a.inDialog(req, tx)
	default:
		a.outOfDialog(req, tx)
	}
}

// tag gives every INVITE that opens a dialog its To tag before a transaction exists:
// sipgo makes 100 and the 487 of a CANCEL from the request itself, and all answers must
// carry one tag (RFC 3261 section 8.2.6.2). It is made from the request under our seal,
// so that a repetition and a stateless challenge get the same (section 8.2.7).
func (a *Agent) tag(msg gosip.Message) {
	req, ok := msg.(*gosip.Request)
	if !ok || req.Method != gosip.INVITE || req.To() == nil || tagOf(req.To().Params) != "" {
		return
	}
	req.To().Params.Add("tag", a.openingTag(req))
}

func (a *Agent) openingTag(req *gosip.Request) string {
	id := ""
	if h := req.CallID(); h != nil {
		id = h.Value()
	}
	return a.sealCallID(branchOf(req) + " " + id)
}

// opens says that a request's To tag is the one we just gave it.
func (a *Agent) opens(req *gosip.Request) bool {
	return req.Method == gosip.INVITE && tagOf(req.To().Params) == a.openingTag(req)
}

// drop answers nothing at all.
func (a *Agent) drop(tx *gosip.ServerTx) {
	a.counters.dropped.Add(1)
	tx.Terminate()
}

func (a *Agent) malformed(req *gosip.Request, tx *gosip.ServerTx) {
	if req.Method == gosip.ACK || !a.trunks.trusted(sourceOf(req.Source()).Addr()) {
		a.drop(tx)
		return
	}
	a.respond(tx, req, 400, nil)
}

// outOfDialog takes requests that belong to no call. Only INVITE can be challenged:
// nothing else does anything for a stranger, so a stranger hears nothing.
func (a *Agent) outOfDialog(req *gosip.Request, tx *gosip.ServerTx) {
	if req.Method == gosip.INVITE {
		a.onInvite(req, tx)
		return
	}
	if !a.trunks.trusted(sourceOf(req.Source()).Addr()) {
		a.drop(tx)
		return
	}
	switch req.Method {
	case gosip.OPTIONS:
		a.respond(tx, req, a.availability(), func(res *gosip.Response) {
			res.AppendHeader(gosip.NewHeader("Allow", allow))
			res.AppendHeader(gosip.NewHeader("Accept", "application/sdp"))
			res.AppendHeader(gosip.NewHeader("Supported", "100rel, timer"))
		})
	case gosip.CANCEL: // its INVITE is unknown (RFC 3261 section 9.2)
		a.respond(tx, req, 481, nil)
	case gosip.NOTIFY, gosip.BYE, gosip.UPDATE, gosip.INFO, gosip.PRACK:
		a.respond(tx, req, 481, nil)
	default:
		a.respond(tx, req, 405, func(res *gosip.Response) { res.AppendHeader(gosip.NewHeader("Allow", allow)) })
	}
}

func (a *Agent) availability() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return 503
	}
	return 200
}

// inDialog gives a request to its call. Wrong tags are 481 and old numbers 500 (RFC
// 3261 section 12.2.2), and neither changes anything.
func (a *Agent) inDialog(req *gosip.Request, tx *gosip.ServerTx) {
	c, ended := a.find(dialogKey{req.CallID().Value(), tagOf(req.To().Params)})
	if c == nil {
		switch {
		case ended && req.Method == gosip.BYE: // it crossed ours
			a.respond(tx, req, 200, nil)
		case ended || a.knowsCall(req.CallID().Value()) || a.trunks.trusted(sourceOf(req.Source()).Addr()):
			a.respond(tx, req, 481, nil)
		default:
			a.drop(tx)
		}
		return
	}
	if c.overtakes(req) {
		c.awaitAnswer()
	}
	switch c.accepts(req) {
	case 481:
		a.respond(tx, req, 481, nil)
	case 500:
		a.respond(tx, req, 500, nil)
	default:
		c.take(req, tx)
	}
}

// knowsCall says whether a live call has this Call-ID, whatever the tags.
func (a *Agent) knowsCall(callID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.calls {
		if key.callID == callID {
			return true
		}
	}
	return false
}

// overtakes says that a request follows an answer which has not been taken yet: of a
// branch that never rang, or a BYE, which a callee sends in no other dialog (RFC 3261
// section 15). The network may turn the two around, and so may sipgo, which takes every
// message up on a goroutine of its own.
func (c *Call) overtakes(req *gosip.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outbound && c.state == early && (req.Method == gosip.BYE || c.branches[tagOf(req.From().Params)] == nil)
}

// awaitAnswer gives the answer the time in which it would be repeated.
func (c *Call) awaitAnswer() {
	limit := time.NewTimer(c.agent.settings.T1)
	defer limit.Stop()
	select {
	case <-c.taken:
	case <-c.done:
	case <-c.agent.ctx.Done():
	case <-limit.C:
	}
}

// accepts checks the peer's tag and number, and notes the number of a good request.
func (c *Call) accepts(req *gosip.Request) int {
	tag := tagOf(req.From().Params)
	c.mu.Lock()
	defer c.mu.Unlock()
	if tag != c.dialog.remoteTag && (c.state != early || c.branches[tag] == nil) {
		return 481
	}
	if req.CSeq().SeqNo <= c.remoteCSeq {
		return 500
	}
	c.remoteCSeq = req.CSeq().SeqNo
	return 0
}

// take dispatches an accepted in-dialog request.
func (c *Call) take(req *gosip.Request, tx *gosip.ServerTx) {
	a := c.agent
	switch req.Method {
	case gosip.BYE:
		a.respond(tx, req, 200, nil)
		c.onBye()
	case gosip.INVITE:
		c.onReinvite(req, tx)
	case gosip.UPDATE:
		c.onUpdate(req, tx)
	case gosip.INFO:
		c.onInfo(req, tx)
	case gosip.NOTIFY:
		c.onNotify(req, tx)
	case gosip.PRACK:
		c.onPrack(req, tx)
	case gosip.OPTIONS:
		a.respond(tx, req, 200, func(res *gosip.Response) { res.AppendHeader(gosip.NewHeader("Allow", allow)) })
	case gosip.REFER:
		c.onRefer(req, tx)
	default:
		a.respond(tx, req, 405, func(res *gosip.Response) { res.AppendHeader(gosip.NewHeader("Allow", allow)) })
	}
}

// onBye ends the call. Before the answer it stands for CANCEL (RFC 3261 section 15.1.2).
func (c *Call) onBye() {
	c.mu.Lock()
	unanswered := c.state == early
	c.mu.Unlock()
	if unanswered {
		c.abort(487)
		return
	}
	c.finish(End{By: EndedByPeer, Reason: "bye"})
}

// onAck brings the ACK of a 2xx to the call that waits for it.
func (a *Agent) onAck(req *gosip.Request) {
	if c, _ := a.find(dialogKey{req.CallID().Value(), tagOf(req.To().Params)}); c != nil {
		c.onAck(req)
	}
}

// identify finds the trunks a request comes from: by its source, else by digest. It has
// answered, or dropped, when it says false.
func (a *Agent) identify(req *gosip.Request, tx *gosip.ServerTx) ([]parley.Trunk, bool) {
	if found := a.trunks.from(sourceOf(req.Source()).Addr()); len(found) > 0 {
		return found, true
	}
	if !a.trunks.challengeable() {
		a.drop(tx)
		return nil, false
	}
	outdated := false
	if header := headerValue(req, "Authorization"); header != "" {
		var trunk parley.Trunk
		user, v := a.challenge.check(header, req.Method.String(), func(user string) (string, bool) {
			t, ok := a.trunks.byUser(user)
			trunk = t
			return t.Password, ok
		})
		if v == right && user != "" {
			return []parley.Trunk{trunk}, true
		}
		outdated = v == stale
		a.counters.authFailed.Add(1)
	}
	a.ask(req, tx, outdated)
	return nil, false
}

// ask challenges without keeping state (RFC 3261 section 8.2.7): a transaction would
// repeat its 401 ten times to whatever address a stranger made up. Known and unknown
// extensions and users all get the same words.
func (a *Agent) ask(req *gosip.Request, tx *gosip.ServerTx, outdated bool) {
	a.counters.challenged.Add(1)
	res := a.response(req, 401)
	for _, value := range a.challenge.challenges(outdated) {
		res.AppendHeader(gosip.NewHeader("WWW-Authenticate", value))
	}
	_ = tx.Connection().WriteMsg(res)
	tx.Terminate()
}

// response makes an answer that names us.
func (a *Agent) response(req *gosip.Request, status int) *gosip.Response {
	res := gosip.NewResponseFromRequest(req, status, reason(status), nil)
	res.AppendHeader(gosip.NewHeader("Server", a.settings.Product))
	return res
}

// respond answers a request.
func (a *Agent) respond(tx *gosip.ServerTx, req *gosip.Request, status int, add func(*gosip.Response)) {
	res := a.response(req, status)
	if add != nil {
		add(res)
	}
	_ = tx.Respond(res)
}

// retryAfter tells the caller when to come again (RFC 3261 section 20.33).
func (a *Agent) retryAfter(res *gosip.Response) {
	res.AppendHeader(gosip.NewHeader("Retry-After", strconv.Itoa(max(1, int(a.settings.RetryAfter.Seconds())))))
}

// reason is the words beside a status (RFC 3261 section 21).
func reason(status int) string {
	words := map[int]string{
		100: "Trying", 180: "Ringing", 183: "Session Progress", 200: "OK", 202: "Accepted", 400: "Bad Request",
		401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
		415: "Unsupported Media Type", 420: "Bad Extension", 422: "Session Interval Too Small",
		480: "Temporarily Unavailable", 481: "Call/Transaction Does Not Exist", 482: "Loop Detected", 484: "Address Incomplete",
		486: "Busy Here", 487: "Request Terminated", 488: "Not Acceptable Here", 489: "Bad Event", 491: "Request Pending",
		500: "Server Internal Error", 501: "Not Implemented", 503: "Service Unavailable", 504: "Server Time-out",
		600: "Busy Everywhere", 603: "Decline", 604: "Does Not Exist Anywhere", 606: "Not Acceptable",
	}
	if text, ok := words[status]; ok {
		return text
	}
	return "Refused"
}

// userOf is the user part of a URI, whatever its scheme: tel numbers come as the host
// or the user, depending on the parser's mood.
func userOf(uri gosip.Uri) string {
	if uri.User == "" && strings.EqualFold(uri.Scheme, "tel") {
		return uri.Host
	}
	return uri.User
}
