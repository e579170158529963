package sip

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// peer is a SIP endpoint of bare datagrams: it says exactly what a test wants said.
type peer struct {
	t       testing.TB
	conn    *net.UDPConn
	addr    netip.AddrPort
	tag     string
	callID  string
	pending []string
	seen    map[string]bool
}

func newPeer(t testing.TB) *peer { return newPeerAt(t, "127.0.0.1") }

func newPeerAt(t testing.TB, ip string) *peer {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(ip)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t: t, conn: conn, addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(), tag: randomHex(4), callID: randomHex(6), seen: map[string]bool{}}
}

func (p *peer) trunk() parley.Trunk {
	return parley.Trunk{ID: 2, Address: p.addr.String(), Transport: "udp", CallingFormat: "+e164"}
}

// next is the next message that fits, or "" after the wait. Others are kept.
func (p *peer) next(wait time.Duration, fits func(string) bool) string {
	for i, m := range p.pending {
		if fits(m) {
			p.pending = append(p.pending[:i:i], p.pending[i+1:]...)
			return m
		}
	}
	deadline := time.Now().Add(wait)
	buffer := make([]byte, 65536)
	for {
		_ = p.conn.SetReadDeadline(deadline)
		n, _, err := p.conn.ReadFromUDP(buffer)
		if err != nil {
			return ""
		}
		m := string(buffer[:n])
		if p.repeats(m) {
			continue
		}
		if fits(m) {
			return m
		} else if !strings.HasPrefix(m, "SIP/2.0 100") {
			p.pending = append(p.pending, m)
		}
	}
}

// repeats says that a request came before: on a busy machine transactions repeat what a
// test has not got round to answering. Repeated ACKs mean something and are kept.
func (p *peer) repeats(m string) bool {
	if strings.HasPrefix(m, "SIP/2.0") || strings.HasPrefix(m, "ACK ") {
		return false
	}
	before := p.seen[m]
	p.seen[m] = true
	return before
}

func (p *peer) must(what string, fits func(string) bool) string {
	p.t.Helper()
	m := p.next(patience, fits)
	require.NotEmpty(p.t, m, "no "+what)
	return m
}

func (p *peer) request(method string) string {
	p.t.Helper()
	return p.must(method, func(m string) bool { return strings.HasPrefix(m, method+" ") })
}

func (p *peer) response(status int) string {
	p.t.Helper()
	return p.must(strconv.Itoa(status), func(m string) bool { return strings.HasPrefix(m, fmt.Sprintf("SIP/2.0 %d ", status)) })
}

func (p *peer) responseTo(method string, status int) string {
	p.t.Helper()
	return p.must(strconv.Itoa(status)+" to "+method, func(m string) bool {
		return strings.HasPrefix(m, fmt.Sprintf("SIP/2.0 %d ", status)) && strings.HasSuffix(header(m, "CSeq"), method)
	})
}

// status is the status of the next final answer to a method.
func (p *peer) status(method string) int {
	p.t.Helper()
	m := p.must("answer to "+method, func(m string) bool {
		return strings.HasPrefix(m, "SIP/2.0 ") && m[8] > '1' && strings.HasSuffix(header(m, "CSeq"), method)
	})
	n, err := strconv.Atoi(m[8:11])
	require.NoError(p.t, err)
	return n
}

// silent says that nothing comes for a while.
func (p *peer) silent(wait time.Duration) bool {
	return p.next(wait, func(string) bool { return true }) == ""
}

func (p *peer) send(a *Agent, message string) { p.sendTo(a.Addr("udp"), message) }

func (p *peer) sendTo(to netip.AddrPort, message string) {
	_, err := p.conn.WriteToUDPAddrPort([]byte(message), to)
	require.NoError(p.t, err)
}

func header(m, name string) string {
	found := regexp.MustCompile(`(?mi)^` + name + `:\s*(.*?)\r?$`).FindStringSubmatch(m)
	if found == nil {
		return ""
	}
	return found[1]
}

func headers(m, name string) (all []string) {
	for line := range strings.SplitSeq(m, "\r\n") {
		if strings.HasPrefix(strings.ToLower(line), strings.ToLower(name)+":") {
			all = append(all, line)
		}
	}
	return all
}

func bodyOf(m string) []byte {
	_, body, _ := bytes.Cut([]byte(m), []byte("\r\n\r\n"))
	return body
}

func write(lines []string, body []byte) string {
	kept := lines[:0:0]
	for _, l := range lines {
		if l != "" {
			kept = append(kept, l)
		}
	}
	if len(body) > 0 {
		kept = append(kept, "Content-Type: application/sdp")
	}
	kept = append(kept, "Content-Length: "+strconv.Itoa(len(body)))
	return strings.Join(kept, "\r\n") + "\r\n\r\n" + string(body)
}

// answer answers a request that the agent sent.
func (p *peer) answer(request string, status int, body []byte, more ...string) {
	p.t.Helper()
	to := header(request, "To")
	if !strings.Contains(to, "tag=") {
		to += ";tag=" + p.tag
	}
	lines := append([]string{fmt.Sprintf("SIP/2.0 %d %s", status, reason(status))}, headers(request, "Via")...)
	lines = append(lines, "From: "+header(request, "From"), "To: "+to, "Call-ID: "+header(request, "Call-ID"),
		"CSeq: "+header(request, "CSeq"), "Contact: <sip:carrier@"+p.addr.String()+">")
	sent := regexp.MustCompile(`UDP ([^;]+)`).FindStringSubmatch(header(request, "Via"))
	require.NotNil(p.t, sent)
	p.sendTo(netip.MustParseAddrPort(sent[1]), write(append(lines, more...), body))
}

// notify tells the news of a transfer in the dialog of an INVITE that was answered.
func (p *peer) notify(invite string, cseq int, fragment string) {
	p.follows(invite, "NOTIFY", cseq, fragment, "Event: refer", "Subscription-State: active", "Content-Type: message/sipfrag")
}

// follows sends a request in the dialog of an INVITE that was answered.
func (p *peer) follows(invite, method string, cseq int, body string, more ...string) {
	contact := regexp.MustCompile(`<sip:([^@]+@([^>;]+))`).FindStringSubmatch(header(invite, "Contact"))
	require.NotNil(p.t, contact)
	lines := append([]string{method + " sip:" + contact[1] + " SIP/2.0", p.via(), "From: " + header(invite, "To") + ";tag=" + p.tag,
		"To: " + header(invite, "From"), "Call-ID: " + header(invite, "Call-ID"), fmt.Sprintf("CSeq: %d %s", cseq, method),
		"Max-Forwards: 70", "Content-Length: " + strconv.Itoa(len(body))}, more...)
	p.sendTo(netip.MustParseAddrPort(contact[2]), strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
}

func (p *peer) via() string {
	return "Via: SIP/2.0/UDP " + p.addr.String() + ";branch=z9hG4bK" + randomHex(8) + ";rport"
}

func (p *peer) invite(a *Agent, cseq int, more ...string) string {
	return p.inviteBody(a, cseq, Offer(media(5000)), more...)
}

func (p *peer) inviteBody(a *Agent, cseq int, body []byte, more ...string) string {
	return p.outside(a, "INVITE", "+12025550123", cseq, body, append(more, "Contact: <sip:caller@"+p.addr.String()+">")...)
}

// outside is a request that belongs to no dialog.
func (p *peer) outside(a *Agent, method, user string, cseq int, body []byte, more ...string) string {
	at := a.Addr("udp").String()
	return write(append([]string{method + " sip:" + user + "@" + at + " SIP/2.0", p.via(),
		"From: <sip:+12025550100@" + p.addr.String() + ">;tag=" + p.tag, "To: <sip:" + user + "@" + at + ">",
		"Call-ID: " + p.callID, fmt.Sprintf("CSeq: %d %s", cseq, method), "Max-Forwards: 70"}, more...), body)
}

func (p *peer) inDialog(a *Agent, answer, method string, cseq int, more ...string) string {
	return p.inDialogBody(a, answer, method, cseq, nil, more...)
}

// inDialogBody is a request in the dialog that an answer opened.
func (p *peer) inDialogBody(a *Agent, answer, method string, cseq int, body []byte, more ...string) string {
	return write(append([]string{method + " sip:parley@" + a.Addr("udp").String() + " SIP/2.0", p.via(),
		"From: " + header(answer, "From"), "To: " + header(answer, "To"), "Call-ID: " + header(answer, "Call-ID"),
		fmt.Sprintf("CSeq: %d %s", cseq, method), "Max-Forwards: 70",
		"Contact: <sip:caller@" + p.addr.String() + ">"}, more...), body)
}
