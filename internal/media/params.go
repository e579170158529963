package media

import (
	"errors"
	"fmt"
	"net/netip"

	"parley/internal/audio"
)

// Codec is a way to write sound. Each takes one octet per tick of an 8 kHz RTP
// clock, which the jitter buffer builds on.
type Codec uint8

// The codecs. Their payload types are fixed (RFC 3551 6).
const (
	PCMU Codec = 0
	PCMA Codec = 8
	// G722 is sampled at 16 kHz, but its RTP clock says 8 kHz, by an error that
	// became the rule (RFC 3551 4.5.2).
	G722 Codec = 9
)

// Rate is the codec's sampling rate.
func (c Codec) Rate() audio.Rate {
	if c == G722 {
		return audio.Rate16k
	}
	return audio.Rate8k
}

func (c Codec) String() string {
	switch c {
	case PCMU:
		return "PCMU"
	case PCMA:
		return "PCMA"
	case G722:
		return "G722"
	}
	return fmt.Sprintf("payload type %d", uint8(c))
}

func (c Codec) known() bool { return c == PCMU || c == PCMA || c == G722 }

// Direction says who may send, as seen from here (RFC 3264 6.1).
type Direction uint8

// The directions.
const (
	SendReceive Direction = iota
	SendOnly
	ReceiveOnly
	Inactive
)

func (d Direction) sends() bool    { return d == SendReceive || d == SendOnly }
func (d Direction) receives() bool { return d == SendReceive || d == ReceiveOnly }

// Suite is an SRTP crypto suite of SDES (RFC 4568 6.2).
type Suite uint8

// The suites.
const (
	AESCM128HMACSHA1_80 Suite = 1 + iota
	AESCM128HMACSHA1_32
)

// Key is the master key and salt of one direction, as an SDES inline key holds
// them (RFC 4568 6.1).
type Key struct {
	Suite Suite
	Key   [16]byte
	Salt  [14]byte
}

// Params are what an offer and its answer agreed on.
type Params struct {
	Codec Codec
	// Rate is that of the session's frames, set at its start for good; 0 means the
	// codec's own.
	Rate audio.Rate
	// EventType is the payload type of the telephone-events we send, 0 when none
	// were agreed on. EventTypeHeard is that of theirs when it is another.
	EventType, EventTypeHeard uint8

	// Remote is where their SDP wants RTP. An offer of 0.0.0.0, the hold of RFC 2543,
	// is Inactive with the address as it was (RFC 3264 8.4).
	Remote netip.AddrPort
	// RemoteRTCP is where it wants RTCP when that is not the next port (a=rtcp, RFC
	// 3605). Mux puts both on Remote (RFC 5761).
	RemoteRTCP netip.AddrPort
	Mux        bool
	// NATHosts are hosts whose packets may be theirs though they do not come from
	// Remote, as those from behind a NAT do: the host of the SDP, when only ports
	// are rewritten, and the host their signalling came from. Empty means that
	// only Remote itself is heard.
	NATHosts []netip.Addr

	Direction Direction

	// SendKey and ReceiveKey make it SRTP; both are set or none.
	SendKey, ReceiveKey *Key
}

// Callbacks are how a session speaks to its call. All are called by the pacer, in
// order, one at a time. They must not block, for every other call waits for them,
// and of the session's methods may use all but Start, Update and Close, which wait
// for the pacer.
type Callbacks struct {
	// Frame takes 20 ms of what was heard, at the session's rate: concealment where
	// packets are missing, silence where nobody sends. It is reused afterwards.
	Frame func(frame []int16)
	// Digit takes a key that was pressed, once.
	Digit func(key byte)
	// Dead says, once per silence, that a peer that should send has not sent a
	// packet for Config.DeadAfter. Packets of silence are packets.
	Dead func()
}

func (c Callbacks) orNothing() Callbacks {
	if c.Frame == nil {
		c.Frame = func([]int16) {}
	}
	if c.Digit == nil {
		c.Digit = func(byte) {}
	}
	if c.Dead == nil {
		c.Dead = func() {}
	}
	return c
}

// firstDynamic is where payload types are free to agree on (RFC 3551 6); below
// it a telephone-event type would clash with a codec's.
const (
	firstDynamic = 96
	lastType     = 127
)

func (p *Params) validate() error {
	switch {
	case !p.Codec.known():
		return fmt.Errorf("media: %v is no codec of ours", p.Codec)
	case p.EventType != 0 && (p.EventType < firstDynamic || p.EventType > lastType):
		return fmt.Errorf("media: telephone-event payload type %d is not dynamic", p.EventType)
	case p.EventTypeHeard != 0 && (p.EventTypeHeard < firstDynamic || p.EventTypeHeard > lastType):
		return fmt.Errorf("media: telephone-event payload type %d is not dynamic", p.EventTypeHeard)
	case !p.Remote.IsValid() || p.Remote.Port() == 0 || p.Remote.Addr().IsUnspecified() || p.Remote.Addr().IsMulticast():
		return fmt.Errorf("media: nothing can be sent to %s", p.Remote)
	case p.Rate != 0 && p.Rate != audio.Rate8k && p.Rate != audio.Rate16k:
		return fmt.Errorf("media: frames cannot have %d Hz; set 8000 or 16000", p.Rate)
	case p.Direction > Inactive:
		return fmt.Errorf("media: no direction %d", p.Direction)
	case (p.SendKey == nil) != (p.ReceiveKey == nil):
		return errors.New("media: SRTP needs a key for each direction")
	}
	for _, key := range []*Key{p.SendKey, p.ReceiveKey} {
		if key != nil && key.Suite != AESCM128HMACSHA1_80 && key.Suite != AESCM128HMACSHA1_32 {
			return fmt.Errorf("media: no crypto suite %d", key.Suite)
		}
	}
	return nil
}

// eventHeard is the payload type of their telephone-events.
func (p *Params) eventHeard() uint8 {
	if p.EventTypeHeard != 0 {
		return p.EventTypeHeard
	}
	return p.EventType
}

// plain makes addresses comparable: an IPv4 address in IPv6 clothes is itself,
// and a zone names an interface of ours, not of theirs.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
