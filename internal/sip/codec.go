package sip

import "strings"

// Codec is one RTP payload format (RFC 4566 section 6, rtpmap).
type Codec struct {
	Payload byte
	Name    string
	Rate    int // RTP clock; 8000 for G722 as well (RFC 3551 section 4.5.2)
}

// PCMU is G.711 mu-law.
func PCMU() Codec { return Codec{Payload: 0, Name: "PCMU", Rate: 8000} }

// PCMA is G.711 A-law.
func PCMA() Codec { return Codec{Payload: 8, Name: "PCMA", Rate: 8000} }

// G722 is wideband speech.
func G722() Codec { return Codec{Payload: 9, Name: "G722", Rate: 8000} }

// TelephoneEvent carries DTMF (RFC 4733).
func TelephoneEvent() Codec { return Codec{Payload: 101, Name: "telephone-event", Rate: 8000} }

// Codecs is everything Parley speaks, cheapest first: G.722 costs several times what
// G.711 does, and is there for peers that have nothing else.
func Codecs() []Codec { return []Codec{PCMU(), PCMA(), G722(), TelephoneEvent()} }

// same says whether two entries mean one format; payload numbers may differ.
func (c Codec) same(other Codec) bool {
	return strings.EqualFold(c.Name, other.Name) && c.Rate == other.Rate
}

// find is the entry of a list that means the same format.
func find(codecs []Codec, wanted Codec) (Codec, bool) {
	for _, c := range codecs {
		if c.same(wanted) {
			return c, true
		}
	}
	return Codec{}, false
}

func (c Codec) isEvent() bool { return strings.EqualFold(c.Name, "telephone-event") }

// staticCodec is the meaning of a payload number that has no rtpmap (RFC 3551 section 6).
func staticCodec(payload byte) (Codec, bool) {
	for _, c := range []Codec{PCMU(), PCMA(), G722()} {
		if c.Payload == payload {
			return c, true
		}
	}
	return Codec{}, false
}

// Direction is which way audio flows, seen from our side (RFC 4566 section 6).
type Direction string

// The directions.
const (
	SendRecv Direction = "sendrecv"
	SendOnly Direction = "sendonly"
	RecvOnly Direction = "recvonly"
	Inactive Direction = "inactive"
)

// Sends says whether we may send audio.
func (d Direction) Sends() bool { return d == SendRecv || d == SendOnly || d == "" }

// Receives says whether audio may come to us.
func (d Direction) Receives() bool { return d == SendRecv || d == RecvOnly || d == "" }

func directionOf(sends, receives bool) Direction {
	switch {
	case sends && receives:
		return SendRecv
	case sends:
		return SendOnly
	case receives:
		return RecvOnly
	default:
		return Inactive
	}
}

// reversed is the same flow seen from the other side.
func (d Direction) reversed() Direction { return directionOf(d.Receives(), d.Sends()) }

// within limits what we want to what the other side takes (RFC 3264 section 6.1).
func (d Direction) within(other Direction) Direction {
	return directionOf(d.Sends() && other.Sends(), d.Receives() && other.Receives())
}
