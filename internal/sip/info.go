package sip

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// SendDigit sends a DTMF digit by INFO (application/dtmf-relay), for peers that did not
// agree on telephone-event.
func (c *Call) SendDigit(ctx context.Context, digit byte, length time.Duration) error {
	if !validDigit(digit) {
		return errors.New("sip: not a DTMF digit")
	}
	req := c.prepare(gosip.INFO)
	body := fmt.Sprintf("Signal=%c\r\nDuration=%d\r\n", digit, length.Milliseconds())
	setBody(req, "application/dtmf-relay", []byte(body))
	res, err := c.do(ctx, req)
	if err != nil {
		return err
	}
	if !res.IsSuccess() {
		return verdictOf(res)
	}
	return nil
}

func validDigit(d byte) bool {
	return d >= '0' && d <= '9' || d == '*' || d == '#' || d >= 'A' && d <= 'D'
}

// parseRelay reads an application/dtmf-relay or application/dtmf body.
func parseRelay(kind string, body []byte) (digit byte, length time.Duration, err error) {
	bad := errors.New("sip: not a DTMF relay")
	if len(body) > 1024 {
		return 0, 0, bad
	}
	signal, length := "", 100*time.Millisecond // the usual when none is said
	if strings.EqualFold(kind, "application/dtmf") {
		signal = strings.TrimSpace(string(body))
	}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "signal":
			signal = value
		case "duration":
			if ms, err := strconv.Atoi(value); err == nil && ms > 0 && ms <= 60000 {
				length = time.Duration(ms) * time.Millisecond
			}
		}
	}
	switch signal { // some send the event numbers of RFC 4733
	case "10":
		signal = "*"
	case "11":
		signal = "#"
	}
	signal = strings.ToUpper(signal)
	if len(signal) != 1 || !validDigit(signal[0]) {
		return 0, 0, bad
	}
	return signal[0], length, nil
}

// onInfo takes digits; any other INFO is refused (RFC 6086 section 4.2.2).
func (c *Call) onInfo(req *gosip.Request, tx *gosip.ServerTx) {
	kind := ""
	if h := req.ContentType(); h != nil {
		kind, _, _ = strings.Cut(h.Value(), ";")
		kind = strings.TrimSpace(kind)
	}
	switch {
	case len(req.Body()) == 0: // a keep-alive of old peers
		c.agent.respond(tx, req, 200, nil)
	case strings.EqualFold(kind, "application/dtmf-relay") || strings.EqualFold(kind, "application/dtmf"):
		digit, length, err := parseRelay(kind, req.Body())
		if err != nil {
			c.agent.respond(tx, req, 400, nil)
			return
		}
		c.agent.respond(tx, req, 200, nil)
		c.mu.Lock()
		tell := c.hooks.Digit
		c.mu.Unlock()
		if tell != nil {
			tell(digit, length)
		}
	default:
		c.agent.respond(tx, req, 415, func(res *gosip.Response) {
			res.AppendHeader(gosip.NewHeader("Accept", "application/dtmf-relay"))
		})
	}
}
