package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"time"

	gosip "github.com/emiago/sipgo/sip"

	"parley"
)

// Health is what is known of a trunk.
type Health struct {
	Reachable  bool // it answered the last keep-alive
	Registered bool
	Until      time.Time // when the registration runs out
	Status     int       // of the last answer, 0 when none came
	Since      time.Time // of the last change of Reachable or Registered
}

// watch keeps one trunk registered and knows whether it answers.
type watch struct {
	agent  *Agent
	trunk  parley.Trunk
	cancel context.CancelFunc
	ended  chan struct{}
	callID string
	tag    string
	cseq   uint32

	mu     sync.Mutex
	health Health
}

// SetTrunks replaces the trunks: new ones are registered and watched, gone ones
// unregistered, unchanged ones left alone. It does not wait for the network.
func (a *Agent) SetTrunks(trunks []parley.Trunk) {
	a.trunks.replace(trunks)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return
	}
	wanted := map[parley.ID]parley.Trunk{}
	for _, t := range trunks {
		wanted[t.ID] = t
	}
	for id, w := range a.watches {
		if t, ok := wanted[id]; ok && sameConnection(t, w.trunk) {
			delete(wanted, id)
			continue
		}
		delete(a.watches, id)
		a.work.Go(func() {
			ctx, cancel := context.WithTimeout(a.ctx, a.settings.Farewell)
			defer cancel()
			w.stop(ctx)
		})
	}
	for id, t := range wanted {
		w := &watch{agent: a, trunk: t, ended: make(chan struct{}), callID: a.newCallID(), tag: newTag()}
		ctx, cancel := context.WithCancel(a.ctx)
		w.cancel = cancel
		a.watches[id] = w
		a.work.Go(func() { w.run(ctx) })
	}
}

func sameConnection(a, b parley.Trunk) bool {
	proxy := func(t parley.Trunk) string {
		if t.OutboundProxy == nil {
			return ""
		}
		return *t.OutboundProxy
	}
	return a.Address == b.Address && a.Transport == b.Transport && a.Username == b.Username &&
		a.Password == b.Password && a.Register == b.Register && proxy(a) == proxy(b)
}

// Health is what is known of a trunk; false when the agent does not have it.
func (a *Agent) Health(id parley.ID) (Health, bool) {
	a.mu.Lock()
	w := a.watches[id]
	a.mu.Unlock()
	if w == nil {
		return Health{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health, true
}

// run registers and probes until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer close(w.ended)
	backOff := w.agent.settings.RegisterRetry
	var register, probe <-chan time.Time
	soon := func() <-chan time.Time { c := make(chan time.Time, 1); c <- time.Time{}; return c }
	if w.trunk.Register {
		register = soon()
	}
	if w.agent.settings.OptionsEvery > 0 {
		probe = soon()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-register:
			wait, err := w.register(ctx, w.agent.settings.RegisterFor)
			if err != nil {
				wait = jitter(backOff)
				backOff = min(2*backOff, 5*time.Minute)
			} else {
				backOff = w.agent.settings.RegisterRetry
			}
			register = time.After(wait)
		case <-probe:
			w.probe(ctx)
			probe = time.After(jitter(w.agent.settings.OptionsEvery))
		}
	}
}

// jitter keeps many trunks from asking at the same instant.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1))
}

// stop ends the watching and takes the registration back.
func (w *watch) stop(ctx context.Context) {
	w.cancel()
	<-w.ended
	w.mu.Lock()
	registered := w.health.Registered
	w.mu.Unlock()
	if registered {
		_, _ = w.register(ctx, 0)
	}
}

// register asks the registrar to bind our Contact (RFC 3261 section 10.2) and says when
// to ask again: well before what the server granted runs out.
func (w *watch) register(ctx context.Context, expires time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 64*w.agent.settings.T1)
	defer cancel()
	for range 2 {
		res, err := w.ask(ctx, gosip.REGISTER, expires)
		if err != nil {
			w.note(func(h *Health) { h.Registered, h.Status = false, 0 })
			return 0, err
		}
		if res.StatusCode == 423 { // RFC 3261 section 10.2.8: longer is wanted
			if least, ok := parseSeconds(headerValue(res, "Min-Expires")); ok && least > expires && expires > 0 {
				expires = least
				continue
			}
		}
		if !res.IsSuccess() {
			w.note(func(h *Health) { h.Registered, h.Status = false, res.StatusCode })
			return 0, verdictOf(res)
		}
		granted := w.granted(res, expires)
		w.note(func(h *Health) {
			h.Registered, h.Status = expires > 0, res.StatusCode
			h.Until = time.Now().Add(granted)
		})
		return max(granted-min(granted/4, 30*time.Second), granted/2), nil
	}
	return 0, errors.New("sip: the registrar wants ever longer intervals")
}

// granted is the time the server gave to our Contact: its expires parameter, else the
// Expires header, else what we asked for (RFC 3261 section 10.2.4).
func (w *watch) granted(res *gosip.Response, asked time.Duration) time.Duration {
	for _, h := range res.GetHeaders("Contact") {
		c, ok := h.(*gosip.ContactHeader)
		if !ok || c.Address.User != contactUser(w.trunk.ID) {
			continue
		}
		if value, ok := c.Params.Get("expires"); ok {
			if d, ok := parseSeconds(value); ok {
				return d
			}
		}
	}
	if d, ok := parseSeconds(headerValue(res, "Expires")); ok {
		return d
	}
	return max(asked, time.Second)
}

// probe asks OPTIONS: any answer but silence or 5xx means that the carrier is there.
func (w *watch) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, min(64*w.agent.settings.T1, w.agent.settings.OptionsEvery*2))
	defer cancel()
	res, err := w.ask(ctx, gosip.OPTIONS, -1)
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	w.note(func(h *Health) {
		h.Reachable, h.Status = false, 0
		if err == nil {
			h.Status = res.StatusCode
			h.Reachable = res.StatusCode < 500 || res.StatusCode >= 600
		}
	})
}

func (w *watch) note(change func(*Health)) {
	w.mu.Lock()
	before := w.health
	change(&w.health)
	after := w.health
	changed := before.Reachable != after.Reachable || before.Registered != after.Registered || before.Since.IsZero()
	if changed {
		w.health.Since = time.Now()
	}
	w.mu.Unlock()
	if changed {
		w.agent.log.Info("sip trunk", "trunk", w.trunk.ID, "reachable", after.Reachable, "registered", after.Registered, "status", after.Status)
	}
}

// ask sends REGISTER or OPTIONS to the carrier. expires is sent when not negative.
func (w *watch) ask(ctx context.Context, method gosip.RequestMethod, expires time.Duration) (*gosip.Response, error) {
	a, t := w.agent, w.trunk
	network := strings.ToLower(t.Transport)
	if network == "" {
		network = "udp"
	}
	host, port := splitHostPort(t.Address)
	next, nextPort := host, port
	if t.OutboundProxy != nil && *t.OutboundProxy != "" {
		next, nextPort = splitHostPort(*t.OutboundProxy)
	}
	if found, err := a.resolve(ctx, network, host, port); err == nil {
		a.trunks.resolved(t.ID, addressesOf(found))
	}
	h, err := a.hopTo(ctx, network, next, nextPort)
	if err != nil {
		return nil, err
	}
	user := t.Username
	if user == "" {
		user = contactUser(t.ID)
	}
	us := gosip.Uri{Scheme: "sip", User: user, Host: host}
	d := dialog{callID: w.callID, target: gosip.Uri{Scheme: "sip", Host: host, Port: port}, hop: h}
	d.local = gosip.FromHeader{Address: us}
	d.local.Params.Add("tag", w.tag)
	d.remote = gosip.ToHeader{Address: us}
	if method == gosip.OPTIONS {
		d.remote.Address = d.target
	}
	w.cseq++
	req := d.request(a, method, w.cseq, contactUser(t.ID))
	if expires >= 0 {
		req.AppendHeader(gosip.NewHeader("Expires", formatSeconds(expires)))
	}
	res, err := a.roundTripAuthorized(ctx, h, req, t, func() uint32 { w.cseq++; return w.cseq })
	if err == nil {
		a.learn(h, res)
	}
	return res, err
}

func addressesOf(found []place) (addresses []netip.Addr) {
	for _, f := range found {
		addresses = append(addresses, f.at.Addr())
	}
	return addresses
}
