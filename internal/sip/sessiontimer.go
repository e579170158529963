package sip

import (
	"context"
	"strconv"
	"strings"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// sessionTimer is the one pending timer of RFC 4028: our next refresh, or the end of
// our patience with the peer's.
type sessionTimer struct {
	timer *time.Timer
	epoch int // a timer that fires late must find that it was replaced
}

func (t *sessionTimer) stop() {
	t.epoch++
	if t.timer != nil {
		t.timer.Stop()
	}
}

// parseSeconds reads delta-seconds with or without parameters, as in Session-Expires.
func parseSeconds(value string) (time.Duration, bool) {
	digits, _, _ := strings.Cut(value, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 31)
	return time.Duration(n) * time.Second, err == nil && n > 0
}

// formatSeconds rounds up: an interval is never made shorter than what was set.
func formatSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func refresherOf(value string) string {
	for part := range strings.SplitSeq(value, ";") {
		if who, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(part)), "refresher="); ok {
			return who
		}
	}
	return ""
}

// startTimer follows a 2xx to our INVITE or UPDATE. Without Session-Expires in it the
// session has no timer (RFC 4028 section 7.2).
func (c *Call) startTimer(res *gosip.Response, uac bool) {
	value := headerValue(res, "Session-Expires", "x")
	interval, ok := parseSeconds(value)
	if !ok || c.agent.settings.SessionExpires < 0 {
		c.mu.Lock()
		c.timers.stop()
		c.mu.Unlock()
		return
	}
	who := refresherOf(value)
	c.schedule(interval, uac == (who == "uac" || who == ""))
}

// negotiateTimer answers the timer part of a request (RFC 4028 section 9).
func (c *Call) negotiateTimer(req *gosip.Request, res *gosip.Response) {
	s := c.agent.settings
	asked := headerValue(req, "Session-Expires", "x")
	interval, ok := parseSeconds(asked)
	able := supports(req, "timer") || requires(req, "timer")
	if s.SessionExpires < 0 || !ok && !able {
		return
	}
	if !ok {
		interval = s.SessionExpires
	}
	if least, ok := parseSeconds(headerValue(req, "Min-SE")); ok {
		interval = max(interval, least)
	}
	interval = max(interval, s.MinSE)
	who := refresherOf(asked)
	if who == "" || !able {
		who = "uas"
	}
	res.AppendHeader(gosip.NewHeader("Session-Expires", formatSeconds(interval)+";refresher="+who))
	if who == "uac" {
		res.AppendHeader(gosip.NewHeader("Require", "timer"))
	}
	c.schedule(interval, who == "uas")
}

// schedule sets the next step: half the interval for our refresh, all of it less a
// margin for the peer's (RFC 4028 section 10).
func (c *Call) schedule(interval time.Duration, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == over {
		return
	}
	c.timers.stop()
	epoch := c.timers.epoch
	wait := interval - min(32*time.Second, interval/3)
	step := func() { c.drop(End{By: EndedBySystem, Reason: "session_expired"}) }
	if ours {
		wait, step = interval/2, func() { c.agent.spawn(c.refresh) }
	}
	c.timers.timer = time.AfterFunc(wait, func() {
		c.mu.Lock()
		current := c.timers.epoch == epoch && c.state == up
		c.mu.Unlock()
		if current {
			step()
		}
	})
}

// refresh keeps the session alive, by UPDATE when the peer has it (it needs no offer),
// else by re-INVITE with the media as it is.
func (c *Call) refresh() {
	ctx, cancel := context.WithTimeout(c.agent.ctx, 64*c.agent.settings.T1)
	defer cancel()
	c.mu.Lock()
	updates, media := c.updates, c.local
	c.mu.Unlock()
	if !updates {
		_, _ = c.Reoffer(ctx, media)
		return
	}
	req := c.prepare(gosip.UPDATE)
	req.AppendHeader(gosip.NewHeader("Supported", "timer"))
	req.AppendHeader(gosip.NewHeader("Session-Expires", formatSeconds(c.agent.settings.SessionExpires)+";refresher=uac"))
	req.AppendHeader(gosip.NewHeader("Min-SE", formatSeconds(c.agent.settings.MinSE)))
	res, err := c.do(ctx, req)
	switch {
	case err != nil:
	case res.IsSuccess():
		c.startTimer(res, true)
	case res.StatusCode == 405 || res.StatusCode == 501:
		c.mu.Lock()
		c.updates = false
		c.mu.Unlock()
		_, _ = c.Reoffer(ctx, media)
	}
}
