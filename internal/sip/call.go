package sip

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// Hooks are how a call tells its owner what happens. They run on the agent's
// goroutines, also at the same time, and must not block for long.
type Hooks struct {
	Progress func(Progress)                         // before the answer of a call we place
	Media    func(Session)                          // the peer or we changed the media
	Digit    func(digit byte, length time.Duration) // DTMF by SIP INFO
	Transfer func(status int)                       // progress of a transfer, as NOTIFY told
	Refer    func(*Referral)                        // the peer wants its partner here transferred, and may wait for it; nil: refused
	Ended    func(End)                              // once, whatever happened
}

// Progress is what a carrier said before the answer.
type Progress struct {
	Status int
	Early  *Session // early media, when the answer to our offer came with it
}

// Ender is who ended a call.
type Ender string

// Who can end a call.
const (
	EndedByPeer   Ender = "peer"
	EndedByUs     Ender = "us"
	EndedBySystem Ender = "system" // nobody: a timer or a lost peer
)

// End is how an answered call ended.
type End struct {
	By     Ender
	Reason string // bye, no_ack, session_expired, peer_lost, transport_lost, closed
}

type callState int

const (
	early callState = iota
	up
	over
)

// Call is one call: the dialog, its media, and what is under way in it.
type Call struct {
	agent    *Agent
	trunk    parley.Trunk
	outbound bool
	name     dialogKey
	peerTag  string // of a call to us
	hooks    Hooks
	release  func()
	part     func()           // ends the acquaintance with the peer's address
	abort    func(status int) // gives up a call that is not answered yet
	cseq     atomic.Uint32
	taken    chan struct{} // closed when the answer of a call we place has been
	done     chan struct{}
	offers   chan struct{} // holds a token while an offer of ours is under way

	mu         sync.Mutex
	dialog     dialog
	state      callState
	remoteCSeq uint32
	local      Media
	session    Session
	invite     *gosip.Request            // the last INVITE, ours or theirs
	sent       map[uint32]*gosip.Request // our ACKs of 2xx, by CSeq
	owed       map[uint32]int            // 2xx that came again before their ACK was made
	forks      map[string]*gosip.Request // ACKs of other branches, by their tag
	branches   map[string]*earlyDialog   // that ring, by remote tag
	acks       map[uint32]chan []byte    // 2xx we sent, by CSeq; given the ACK's body
	reliable   *reliable                 // provisional that waits for PRACK
	offering   bool
	answering  bool
	updates    bool // the peer allows UPDATE
	timers     sessionTimer
	transfer   chan int
	end        End
}

func (a *Agent) newCall(trunk parley.Trunk, outbound bool, hooks Hooks, release func()) *Call {
	return &Call{agent: a, trunk: trunk, outbound: outbound, hooks: hooks, release: release,
		part: func() {}, taken: make(chan struct{}), done: make(chan struct{}), offers: make(chan struct{}, 1),
		forks: map[string]*gosip.Request{}, branches: map[string]*earlyDialog{}, acks: map[uint32]chan []byte{},
		sent: map[uint32]*gosip.Request{}, owed: map[uint32]int{}}
}

func (c *Call) key() dialogKey { return c.name }

// ID is the Call-ID.
func (c *Call) ID() string { return c.name.callID }

// Trunk is the trunk that carries the call.
func (c *Call) Trunk() parley.Trunk { return c.trunk }

// Peer is the host that the call's signalling goes to.
func (c *Call) Peer() netip.Addr { return c.hop().remote.Addr() }

// Session is the media as last agreed.
func (c *Call) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Done is closed when the call is over.
func (c *Call) Done() <-chan struct{} { return c.done }

// End is how the call ended; meaningful once Done is closed.
func (c *Call) End() End {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// hop is where the dialog's requests go now.
func (c *Call) hop() hop {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialog.hop
}

func (c *Call) contactUser() string {
	if c.trunk.ID != 0 {
		return contactUser(c.trunk.ID)
	}
	return "parley"
}

// Hangup ends the call with BYE and returns when the peer has agreed or ctx ends. A
// call that is over already is no error.
func (c *Call) Hangup(ctx context.Context) error {
	return c.hangup(ctx, End{By: EndedByUs, Reason: "bye"})
}

func (c *Call) hangup(ctx context.Context, end End) error {
	if !c.finish(end) {
		return nil
	}
	_, err := c.do(ctx, c.prepare(gosip.BYE))
	return err
}

// close ends the call because the agent closes.
func (c *Call) close(ctx context.Context) {
	c.mu.Lock()
	answered := c.state == up
	c.mu.Unlock()
	if answered {
		_ = c.hangup(ctx, End{By: EndedByUs, Reason: "closed"})
		return
	}
	c.abort(503)
	select {
	case <-c.done:
	case <-ctx.Done():
	}
}

// drop ends the call on a goroutine of the agent, because of something that happened.
func (c *Call) drop(end End) {
	c.agent.spawn(func() {
		ctx, cancel := context.WithTimeout(c.agent.ctx, 64*c.agent.settings.T1)
		defer cancel()
		_ = c.hangup(ctx, end)
	})
}

// finish brings the call to its one end; it says false when another was first.
func (c *Call) finish(end End) bool {
	c.mu.Lock()
	if c.state == over {
		c.mu.Unlock()
		return false
	}
	answered := c.state == up
	c.state, c.end = over, end
	c.timers.stop()
	tell := c.hooks.Ended
	c.mu.Unlock()
	c.agent.forget(c)
	c.release()
	c.part()
	close(c.done)
	if answered && tell != nil {
		tell(end)
	}
	return true
}

// prepare makes the next in-dialog request.
func (c *Call) prepare(method gosip.RequestMethod) *gosip.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialog.request(c.agent, method, c.cseq.Add(1), c.contactUser())
}

// do sends an in-dialog request. RFC 3261 section 12.2.1.2: 481 or no answer at all
// means that the peer no longer has the call.
func (c *Call) do(ctx context.Context, req *gosip.Request) (*gosip.Response, error) {
	res, err := c.agent.roundTripAuthorized(ctx, c.hop(), req, c.trunk, func() uint32 { return c.cseq.Add(1) })
	switch {
	case err != nil && ctx.Err() == nil:
		c.finish(End{By: EndedBySystem, Reason: "peer_lost"})
	case err == nil && (res.StatusCode == 481 || res.StatusCode == 408):
		c.finish(End{By: EndedBySystem, Reason: "peer_lost"})
	}
	return res, err
}

// acknowledge sends and keeps the ACK of a 2xx; the same 2xx again gets the same ACK.
func (c *Call) acknowledge(invite *gosip.Request) {
	number := invite.CSeq().SeqNo
	c.mu.Lock()
	ack := c.dialog.ack(c.agent, invite, c.contactUser(), nil)
	c.sent[number] = ack
	for old := range c.sent { // an answer is repeated for 64*T1; a call has few offers in that time
		if old+keptAcks < number {
			delete(c.sent, old)
		}
	}
	again := c.owed[number]
	delete(c.owed, number)
	c.mu.Unlock()
	for range 1 + again {
		_ = c.agent.write(ack.Clone()) // sending writes into a message; what is kept is only read
	}
}

// keptAcks is how many numbers back a repeated 2xx is still acknowledged.
const keptAcks = 32

// acknowledgeAgain answers a repeated 2xx. A 2xx of another branch of a fork gets its
// own ACK and a BYE (RFC 3261 section 13.2.2.4). It says false while no ACK exists: what
// comes again while the first is being taken is owed one, when its transaction lives.
func (c *Call) acknowledgeAgain(res *gosip.Response, owe bool) bool {
	c.mu.Lock()
	tag := ""
	if to := res.To(); to != nil {
		tag = tagOf(to.Params)
	}
	number := uint32(0)
	if cseq := res.CSeq(); cseq != nil {
		number = cseq.SeqNo
	}
	ack := c.sent[number]
	switch {
	case tag != c.dialog.remoteTag && c.state != early:
		c.mu.Unlock()
		c.endFork(tag, res)
		return true
	case ack == nil:
		if owe {
			c.owed[number]++
		}
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()
	c.agent.counters.repeatedAnswers.Add(1)
	_ = c.agent.write(ack.Clone())
	return true
}

// endFork ends another branch's dialog once, and acknowledges its 2xx every time.
func (c *Call) endFork(tag string, res *gosip.Response) {
	c.mu.Lock()
	ack, known := c.forks[tag]
	if !known && len(c.forks) < 16 { // a carrier that forks wider than this is attacking
		c.forks[tag] = nil
	}
	c.mu.Unlock()
	if known && ack != nil {
		_ = c.agent.write(ack.Clone())
	}
	if known {
		return
	}
	c.agent.counters.forkedAnswers.Add(1)
	c.agent.spawn(func() {
		ctx, cancel := context.WithTimeout(c.agent.ctx, 64*c.agent.settings.T1)
		defer cancel()
		d := dialogFromResponse(res, c.hop())
		if c.agent.locate(ctx, &d, sourceOf(res.Source())) != nil {
			return
		}
		c.mu.Lock()
		ack := d.ack(c.agent, c.invite, c.contactUser(), nil)
		c.forks[tag] = ack
		c.mu.Unlock()
		if c.agent.write(ack.Clone()) != nil { // sending writes into a message; what is kept is only read
			return
		}
		bye := d.request(c.agent, gosip.BYE, c.cseq.Add(1), c.contactUser())
		_, _ = c.agent.roundTripAuthorized(ctx, d.hop, bye, c.trunk, func() uint32 { return c.cseq.Add(1) })
	})
}
