package sip

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	gosip "github.com/emiago/sipgo/sip"
)

// ErrTransferPending says that a transfer is under way already.
var ErrTransferPending = errors.New("sip: a transfer is under way")

// Transfer asks the carrier to connect the peer to another number (REFER, RFC 3515:
// blind). It returns when the transfer target has answered or not; the call itself is
// the owner's to hang up. A *Failure says what became of the target.
func (c *Call) Transfer(ctx context.Context, to string) error {
	host, port := splitHostPort(c.trunk.Address)
	if host == "" {
		c.mu.Lock()
		host, port = c.dialog.target.Host, c.dialog.target.Port
		c.mu.Unlock()
	}
	target := gosip.Uri{Scheme: "sip", User: dialled(to, c.trunk.CallingFormat), Host: host, Port: port}
	news := make(chan int, 16)
	c.mu.Lock()
	if c.transfer != nil || c.state != up {
		defer c.mu.Unlock()
		if c.state != up {
			return ErrOver
		}
		return ErrTransferPending
	}
	c.transfer = news
	us := c.dialog.local.Address
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.transfer = nil
		c.mu.Unlock()
	}()
	req := c.prepare(gosip.REFER)
	req.AppendHeader(&gosip.ReferToHeader{Address: target})
	req.AppendHeader(&gosip.ReferredByHeader{Address: us})
	res, err := c.do(ctx, req)
	if err != nil {
		return err
	}
	if !res.IsSuccess() {
		return verdictOf(res)
	}
	return c.awaitTransfer(ctx, news)
}

// awaitTransfer follows the NOTIFYs to a final status (RFC 3515 section 2.4.5).
func (c *Call) awaitTransfer(ctx context.Context, news <-chan int) error {
	for {
		select {
		case status := <-news:
			switch {
			case status < 200:
			case status < 300:
				return nil
			default:
				return judge(status)
			}
		case <-c.done:
			// Many carriers hang up as soon as they have taken the peer over.
			select {
			case status := <-news:
				if status >= 300 {
					return judge(status)
				}
			default:
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// onNotify takes the news of a transfer. RFC 3515 section 2.4.4: the body is the first
// line of the response that the transferee got.
func (c *Call) onNotify(req *gosip.Request, tx *gosip.ServerTx) {
	event, _, _ := strings.Cut(headerValue(req, "Event", "o"), ";")
	c.mu.Lock()
	news, tell := c.transfer, c.hooks.Transfer
	c.mu.Unlock()
	if !strings.EqualFold(strings.TrimSpace(event), "refer") {
		c.agent.respond(tx, req, 489, nil)
		return
	}
	if news == nil {
		c.agent.respond(tx, req, 481, nil)
		return
	}
	status, ok := parseFragment(req.Body())
	if !ok {
		c.agent.respond(tx, req, 400, nil)
		return
	}
	c.agent.respond(tx, req, 200, nil)
	select {
	case news <- status:
	default: // a flood of provisionals: only the final one matters, and it is waited for
	}
	if tell != nil {
		tell(status)
	}
}

// parseFragment reads the status of a message/sipfrag body (RFC 3420).
func parseFragment(body []byte) (int, bool) {
	line, _, _ := bytes.Cut(body, []byte("\n"))
	rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "SIP/2.0 ")
	if !ok || len(rest) < 3 {
		return 0, false
	}
	status, err := strconv.Atoi(rest[:3])
	if err != nil || status < 100 || status > 699 || len(rest) > 3 && rest[3] != ' ' {
		return 0, false
	}
	return status, true
}
