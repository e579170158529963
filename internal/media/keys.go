package media

import (
	"net/netip"
	"time"
)

// Keys are worth more than sound: one that comes too early to be understood, or from a
// source that has yet to prove itself, waits until it can be told whose it is.

const (
	// heldSize bounds a packet that may be a telephone-event, with some header extension
	// and SRTP's tag. Sound is longer.
	heldSize = 64
	// heldMost is how many wait: a dozen keys.
	heldMost = 64
	// heldFor is how far a key may be ahead of the answer that it follows: one that was
	// lost three times is repeated after 3.5 s (RFC 3261 13.3.1.4).
	heldFor = 4 * time.Second
)

// held are packets that wait, oldest first.
type held struct{ packets []heldPacket }

type heldPacket struct {
	at     time.Duration
	source netip.AddrPort
	size   int
	octets [heldSize]byte
}

// keep holds a datagram if it may be a key; the oldest make room.
func (h *held) keep(now time.Duration, source netip.AddrPort, datagram []byte) {
	if len(datagram) < headerSize || len(datagram) > heldSize {
		return
	}
	if len(h.packets) == heldMost {
		h.packets = h.packets[:copy(h.packets, h.packets[1:])]
	}
	p := heldPacket{at: now, source: source, size: len(datagram)}
	copy(p.octets[:], datagram)
	h.packets = append(h.packets, p)
}

// release hands the packets over and forgets them.
func (h *held) release(take func(at time.Duration, source netip.AddrPort, datagram []byte)) {
	for i := range h.packets {
		p := &h.packets[i]
		take(p.at, p.source, p.octets[:p.size])
	}
	h.packets = nil
}

// recall takes the keys that came before the start. Of the stream they were in, the
// beginning is what comes next: what was thrown away meanwhile was not lost.
func (in *inbound) recall(now time.Duration, early *held) {
	early.release(func(at time.Duration, source netip.AddrPort, datagram []byte) {
		if now-at <= heldFor {
			in.receive(at, source, datagram)
		}
	})
	in.sequence = sequence{}
}

// proved takes the keys that a source pressed during its trial.
func (in *inbound) proved(source netip.AddrPort) {
	in.trial.release(func(_ time.Duration, from netip.AddrPort, datagram []byte) {
		if p, ok := parsePacket(datagram); ok && from == source {
			in.key(&p)
		}
	})
}

// key takes a telephone-event of the peer's. A new SSRC is a new stream of them.
func (in *inbound) key(p *packet) {
	if p.ssrc != in.eventSSRC {
		in.events.Reset()
		in.eventSSRC = p.ssrc
	}
	if len(in.digits) < digitsMost && in.params.Direction.receives() {
		in.digits = in.events.Receive(in.digits, p.timestamp, p.marker, p.payload)
	}
}

// aside is a stream of telephone-events beside the sound, under an SSRC of its own, as
// some gateways send them. Like any other it is believed once two packets follow each
// other, and it does not tear the sound's apart.
type aside struct {
	ssrc   uint32
	next   uint16
	begun  bool
	proven bool
}

func (a *aside) hears(p *packet) bool {
	if a.begun && a.ssrc == p.ssrc && (a.proven || a.next == p.sequence) {
		a.proven = true
		return true
	}
	*a = aside{ssrc: p.ssrc, next: p.sequence + 1, begun: true}
	return false
}
