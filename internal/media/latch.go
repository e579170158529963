package media

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// latchPackets and latchTime are what a source other than the SDP's has to
	// show before it is believed: an unbroken run of packets at the pace of
	// speech, while the SDP's own address is silent. A sprayed port sees bursts
	// and strays, and the true peer, if it is not behind a NAT, has spoken by then.
	latchPackets = 5
	latchTime    = 80 * time.Millisecond
	latchPause   = 200 * time.Millisecond // between two packets of one run
)

// latch decides whose packets are heard and where ours go (symmetric RTP, RFC 4961).
// The address of the SDP is the expectation, and where we send until something is
// heard. Its packets latch at once. A packet from elsewhere is a stranger's, unless
// it comes from a host that a NAT may show; such a source latches after a trial.
// Once latched only a re-INVITE or the SDP's own address changes the source. We
// never send to anybody who has not latched: an attacker who sprays the port
// neither bleeds the call (AST-2017-005) nor gets into it.
type latch struct {
	expected netip.AddrPort
	hosts    []netip.Addr // where NATs may show the peer
	source   netip.AddrPort
	settled  bool // source is final until the next re-INVITE

	trial latchTrial
}

type latchTrial struct {
	source   netip.AddrPort
	ssrc     uint32
	sequence uint16
	packets  int
	began    time.Duration
	last     time.Duration
}

// aim takes the address and hosts of a new offer or answer. An unchanged address
// keeps what was latched until another source proves itself: holding a call must
// not cut it, and a NAT may have moved the peer.
func (l *latch) aim(expected netip.AddrPort, hosts []netip.Addr) {
	expected = plain(expected)
	l.hosts = l.hosts[:0]
	for _, host := range hosts {
		l.hosts = append(l.hosts, host.Unmap().WithZone(""))
	}
	if expected != l.expected {
		l.source = netip.AddrPort{}
	}
	l.expected = expected
	l.settled = false
	l.trial = latchTrial{}
}

// destination is where packets to the peer go.
func (l *latch) destination() netip.AddrPort {
	if l.source.IsValid() {
		return l.source
	}
	return l.expected
}

// mayBe says whether a source can be the peer at all. It is asked before anything
// is spent on a packet.
func (l *latch) mayBe(source netip.AddrPort) bool {
	if source == l.source || source == l.expected {
		return true
	}
	return !l.settled && slices.Contains(l.hosts, source.Addr())
}

// hears says whether this valid packet is the peer's. One that SRTP has proven to be
// needs no trial.
func (l *latch) hears(now time.Duration, source netip.AddrPort, p *packet, proven bool) bool {
	switch {
	case source == l.expected:
		l.source, l.settled = source, true
		return true
	case source == l.source:
		return true
	case l.settled || !slices.Contains(l.hosts, source.Addr()):
		return false
	}
	if !proven && !l.tries(now, source, p) {
		return false
	}
	l.source, l.settled = source, true
	return true
}

// tries counts an unbroken run of a source and says when it has proved itself.
func (l *latch) tries(now time.Duration, source netip.AddrPort, p *packet) bool {
	t := &l.trial
	follows := t.source == source && t.ssrc == p.ssrc && p.sequence == t.sequence+1 && now-t.last < latchPause
	if !follows {
		*t = latchTrial{source: source, ssrc: p.ssrc, began: now}
	}
	t.sequence, t.last = p.sequence, now
	t.packets++
	return t.packets >= latchPackets && now-t.began >= latchTime
}

// hearsRTCP says whether a report is the peer's: only its host is known, for its
// port behind a NAT is anybody's guess. Reports move nothing but figures.
func (l *latch) hearsRTCP(source netip.AddrPort) bool {
	return source.Addr() == l.destination().Addr()
}
