package main

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// peer is a carrier of the test's own: a SIP user agent in a few lines that answers as it
// is told and counts what reaches it. It shares no code with Parley's.
type peer struct {
	t    *testing.T
	conn *net.UDPConn
	does func(number string) treatment
	wait sync.WaitGroup
	over chan struct{}

	mu    sync.Mutex
	calls map[string]*peerCall // by Call-ID
	order []*peerCall
	up    int // from the INVITE to the end
	most  int
}

// treatment is what becomes of a call.
type treatment struct {
	rings  time.Duration
	status int           // 0: rings until it is cancelled
	talks  time.Duration // of one with status 200, until the peer hangs up
}

type peerCall struct {
	number             string
	invite             sipMessage
	from               *net.UDPAddr
	last               string // response, for a repeated INVITE
	invited, cancelled time.Time
	answered, heard    time.Time // the first sound that is none of silence
	acked, ended       bool
	endedByThem        bool
	rtp                *net.UDPConn
}

// sipMessage is a SIP message, read just as far as is needed.
type sipMessage struct {
	start   string
	headers [][2]string
}

func readSIP(raw string) (m sipMessage) {
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	m.start = lines[0]
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		m.headers = append(m.headers, [2]string{strings.ToLower(name), strings.TrimSpace(value)})
	}
	return m
}

func (m sipMessage) get(name string) string {
	for _, h := range m.headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// startPeer begins to take calls.
func startPeer(t *testing.T, does func(number string) treatment) *peer {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	p := &peer{t: t, conn: conn, does: does, over: make(chan struct{}), calls: map[string]*peerCall{}}
	p.wait.Go(p.read)
	t.Cleanup(func() {
		close(p.over)
		conn.Close()
		p.wait.Wait()
	})
	return p
}

// trunk is the setting that makes the peer the operator's trunk.
func (p *peer) trunk() []string {
	return []string{fmt.Sprintf("PARLEY_DEFAULT_TRUNK=sip:127.0.0.1:%d;register=false", p.conn.LocalAddr().(*net.UDPAddr).Port), "PARLEY_CALLEE_HOURS=false", "PARLEY_SIP=127.0.0.1:0"}
}

func (p *peer) read() {
	buffer := make([]byte, 65536)
	for {
		n, from, err := p.conn.ReadFromUDP(buffer)
		if err != nil {
			return
		}
		if m := readSIP(string(buffer[:n])); !strings.HasPrefix(m.start, "SIP/2.0") {
			p.take(m, from)
		}
	}
}

func (p *peer) take(m sipMessage, from *net.UDPAddr) {
	method, _, _ := strings.Cut(m.start, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[m.get("call-id")]
	switch {
	case method == "INVITE" && c == nil:
		p.begin(m, from)
	case method == "INVITE":
		p.send(c.last, from)
	case method == "ACK" && c != nil:
		c.acked = true
	case method == "BYE" && c != nil:
		c.endedByThem = !c.ended
		p.end(c)
		p.send(response(m, 200, "x", ""), from)
	case method == "CANCEL" && c != nil:
		c.cancelled = time.Now()
		p.send(response(m, 200, "x", ""), from)
		p.end(c)
		p.reply(c, 487, "")
	case method != "ACK":
		p.send(response(m, 200, "x", ""), from)
	}
}

// begin takes a new call.
func (p *peer) begin(m sipMessage, from *net.UDPAddr) {
	_, rest, _ := strings.Cut(m.start, "sip:")
	number, _, _ := strings.Cut(rest, "@")
	c := &peerCall{number: number, invite: m, from: from, invited: time.Now()}
	p.calls[m.get("call-id")] = c
	p.order = append(p.order, c)
	p.up++
	p.most = max(p.most, p.up)
	p.reply(c, 180, "")
	p.wait.Go(func() { p.treat(c, p.does(number)) })
}

// treat rings, answers or refuses, and hangs up.
func (p *peer) treat(c *peerCall, how treatment) {
	if how.status == 0 || !p.pause(how.rings) {
		return
	}
	p.mu.Lock()
	if c.ended {
		p.mu.Unlock()
		return
	}
	sdp := ""
	if how.status == 200 {
		sdp = p.listen(c)
		c.answered = time.Now()
	} else {
		p.end(c) // before the answer leaves: what follows it is another call's
	}
	p.reply(c, how.status, sdp)
	p.mu.Unlock()
	for range 8 { // RFC 3261 13.3.1.4: repeated until the ACK
		if !p.pause(500*time.Millisecond) || p.acknowledged(c, how.status, sdp) {
			break
		}
	}
	if how.status == 200 && p.pause(how.talks) {
		p.hangUp(c)
	}
}

func (p *peer) acknowledged(c *peerCall, status int, sdp string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.acked {
		p.reply(c, status, sdp)
	}
	return c.acked
}

func (p *peer) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.over:
		return false
	}
}

// end counts a call that is over. The caller holds the lock.
func (p *peer) end(c *peerCall) {
	if !c.ended {
		c.ended = true
		p.up--
	}
	if c.rtp != nil {
		c.rtp.Close()
	}
}

func (p *peer) hangUp(c *peerCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.ended {
		return
	}
	p.end(c)
	target := strings.Trim(c.invite.get("contact"), "<>")
	p.send(fmt.Sprintf("BYE %s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d\r\nFrom: %s;tag=peer\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: 1 BYE\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n",
		target, p.conn.LocalAddr(), time.Now().UnixNano(), c.invite.get("to"), c.invite.get("from"), c.invite.get("call-id")), c.from)
}

// listen opens a socket for a call's sound and notes when the first is heard.
func (p *peer) listen(c *peerCall) (sdp string) {
	rtp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		p.t.Error(err)
		return ""
	}
	c.rtp = rtp
	p.wait.Go(func() {
		packet, samples := make([]byte, 2048), make([]int16, 2048)
		for {
			n, _, err := rtp.ReadFromUDP(packet)
			if err != nil {
				return
			}
			if n <= 12 || packet[1]&0x7f != 0 {
				continue
			}
			if heard := samples[:audio.DecodeMuLaw(samples, packet[12:n])]; audio.Level(heard) > -50 {
				p.mu.Lock()
				if c.heard.IsZero() {
					c.heard = time.Now()
				}
				p.mu.Unlock()
			}
		}
	})
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio %d RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n", rtp.LocalAddr().(*net.UDPAddr).Port)
}

// reply answers a call's INVITE. The caller holds the lock.
func (p *peer) reply(c *peerCall, status int, sdp string) {
	c.last = response(c.invite, status, "peer", sdp, "Contact: <sip:peer@"+p.conn.LocalAddr().String()+">")
	p.send(c.last, c.from)
}

func (p *peer) send(text string, to *net.UDPAddr) { _, _ = p.conn.WriteToUDP([]byte(text), to) }

func response(m sipMessage, status int, tag, body string, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SIP/2.0 %d X\r\n", status)
	for _, h := range m.headers {
		switch h[0] {
		case "via", "from", "call-id", "cseq", "record-route":
			fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
		case "to":
			if !strings.Contains(h[1], "tag=") {
				h[1] += ";tag=" + tag
			}
			fmt.Fprintf(&b, "to: %s\r\n", h[1])
		}
	}
	if body != "" {
		more = append(more, "Content-Type: application/sdp")
	}
	for _, line := range more {
		b.WriteString(line + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.String()
}

// seen is what reached the peer so far, and the most calls at once.
func (p *peer) seen() (calls []peerCall, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.order {
		calls = append(calls, *c)
	}
	return calls, p.most
}
