package sip

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// guard looks at raw bytes before they are parsed: what it refuses costs neither a
// transaction nor a reply.
type guard struct {
	limit    int
	window   time.Duration
	ban      time.Duration
	now      func() time.Time
	trusted  func(netip.Addr) bool
	ignores  func(to string) bool
	counters *counters
	shut     atomic.Bool // the agent is closing: nothing more comes in

	mu      sync.Mutex
	sources map[netip.Addr]*source
	swept   time.Time
}

// source counts like Kamailio's pike: the requests of the window that is running.
type source struct {
	since  time.Time
	count  int
	banned time.Time // until when
}

// maxSources bounds the memory that spoofed addresses can take.
const maxSources = 65536

func newGuard(s Settings, trusted func(netip.Addr) bool, c *counters) *guard {
	return &guard{limit: s.FloodRequests, window: s.FloodWindow, ban: s.BanFor, now: s.Now,
		trusted: trusted, ignores: s.Ignores, counters: c, sources: map[netip.Addr]*source{}}
}

// filter is sipgo's read filter. It must never return an error: that would close the
// listening socket.
func (g *guard) filter(from gosip.TransportReadProps, data []byte) ([]byte, error) {
	if !g.shut.Load() && g.admits(addrOf(from.RemoteAddr), from.Transport == "UDP", data) {
		return data, nil
	}
	g.counters.dropped.Add(1)
	return nil, nil
}

func (g *guard) admits(from netip.Addr, datagram bool, data []byte) bool {
	response := bytes.HasPrefix(data, []byte("SIP/2.0 "))
	request := looksLikeRequest(data)
	if datagram && !response && !request {
		return false // also spares sipgo's table of peers, which junk would grow without end
	}
	if scanner(data) || request && g.ignores != nil && g.ignores(called(data)) {
		return false
	}
	if g.trusted(from) {
		return true
	}
	return response || !g.floods(from, request)
}

// floods counts a request of an unknown source and says whether it is too many.
func (g *guard) floods(from netip.Addr, request bool) bool {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	s := g.sources[from]
	if s == nil {
		if len(g.sources) >= maxSources {
			return true
		}
		s = &source{since: now}
		g.sources[from] = s
	}
	if now.Before(s.banned) {
		return true
	}
	if now.Sub(s.since) >= g.window {
		s.since, s.count = now, 0
	}
	if request {
		s.count++
	}
	if s.count > g.limit {
		s.banned, s.count = now.Add(g.ban), 0
		g.counters.banned.Add(1)
		return true
	}
	return false
}

// sweep forgets sources that are neither banned nor counting, once a window.
func (g *guard) sweep(now time.Time) {
	if now.Sub(g.swept) < g.window {
		return
	}
	g.swept = now
	for address, s := range g.sources {
		if !now.Before(s.banned) && now.Sub(s.since) >= g.window {
			delete(g.sources, address)
		}
	}
}

// looksLikeRequest says whether data begins as "METHOD uri SIP/2.0".
func looksLikeRequest(data []byte) bool {
	data = bytes.TrimLeft(data, "\r\n") // RFC 3261 section 7.5
	line, _, _ := bytes.Cut(data, []byte("\n"))
	method, _, found := bytes.Cut(line, []byte(" "))
	if !found || len(method) == 0 || len(method) > 32 {
		return false
	}
	for _, c := range method {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return bytes.HasSuffix(bytes.TrimRight(line, "\r "), []byte("SIP/2.0"))
}

// called is the user part of a request line's URI.
func called(data []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimLeft(data, "\r\n"), []byte("\n"))
	_, uri, _ := bytes.Cut(line, []byte(" "))
	_, user, _ := bytes.Cut(uri, []byte(":"))
	user, _, _ = bytes.Cut(user, []byte("@"))
	return string(user)
}

// scanner knows the tools that probe the internet by the name they give themselves.
// They are only the honest ones; the others meet the flood guard and the digest.
func scanner(data []byte) bool {
	header, _, _ := bytes.Cut(data, []byte("\r\n\r\n"))
	for line := range bytes.Lines(header) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		name = bytes.TrimSpace(name)
		if !bytes.EqualFold(name, []byte("User-Agent")) && !bytes.EqualFold(name, []byte("Server")) {
			continue
		}
		value = bytes.ToLower(value)
		for _, tool := range scannerNames() {
			if bytes.Contains(value, []byte(tool)) {
				return true
			}
		}
	}
	return false
}

// scannerNames is the drop list that public proxies share.
func scannerNames() []string {
	return []string{
		"friendly-scanner", "friendly-request", "sipvicious", "sipcli", "sip-scan", "sipsak", "sundayddr", "iwar",
		"vaxsipuseragent", "vaxasip", "smap", "pplsip", "siparmyknife", "sipptk", "sip-ninja", "scanner",
	}
}

func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	default:
		return netip.Addr{}
	}
}

// sourceOf is the address a message came from, as the socket saw it.
func sourceOf(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
