package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// EventSize is the length of one telephone event in a payload (RFC 4733 2.3).
const EventSize = 4

// ErrShortEvent means a telephone-event payload of less than four octets.
var ErrShortEvent = errors.New("audio: telephone-event payload shorter than 4 octets")

// Event is one telephone event as a packet carries it (RFC 4733 2.3).
type Event struct {
	Code     byte
	End      bool
	Volume   byte   // dB below 0 dBm0, 0 to 63
	Duration uint16 // since the packet's timestamp, in its clock
}

// ParseEvent reads the first event of a payload. What follows it is left to the
// caller; the reserved bit is ignored as section 2.3 wants.
func ParseEvent(payload []byte) (Event, error) {
	if len(payload) < EventSize {
		return Event{}, ErrShortEvent
	}
	return Event{
		Code:     payload[0],
		End:      payload[1]&0x80 != 0,
		Volume:   payload[1] & 0x3f,
		Duration: binary.BigEndian.Uint16(payload[2:]),
	}, nil
}

// Put writes the event to the first four octets of payload and returns how many
// it wrote: four, or none when there is no room.
func (e Event) Put(payload []byte) int {
	if len(payload) < EventSize {
		return 0
	}
	payload[0] = e.Code
	payload[1] = min(e.Volume, 0x3f)
	if e.End {
		payload[1] |= 0x80
	}
	binary.BigEndian.PutUint16(payload[2:], e.Duration)
	return EventSize
}

// EventPacket is what an EventSender wants sent now. The packet's timestamp is
// the start of the event and stays; only its sequence number moves on.
type EventPacket struct {
	Event
	Timestamp uint32
	Marker    bool // the first packet of the event (section 2.2.2)
}

const (
	// eventEnds is how often the last packet goes out (section 2.5.1.4): the end
	// of a digit then survives two losses in a row.
	eventEnds = 3

	eventVolume   = 8      // the level of the in-band digits, in -dBm0
	eventLongest  = 0xffff // an event that lasts longer needs segments (2.5.1.3), which no digit does
	eventUpdates  = 50     // per second: one packet per frame
	eventShortest = 1      // updates: an event of no duration would be a state (2.3.5)
)

// EventSender yields the packets of one digit after the other, one per 20 ms frame.
// The zero value sends nothing until Start.
type EventSender struct {
	packet EventPacket
	step   uint32 // clock ticks per frame
	total  uint32
	ends   int // end packets still to send
}

// Start begins a digit at this RTP timestamp, pressed for this long in a stream
// of this clock rate. An event that is still being sent is given up.
func (s *EventSender) Start(digit byte, clock Rate, timestamp uint32, length time.Duration) error {
	code, ok := DTMFEvent(digit)
	if !ok {
		return fmt.Errorf("audio: %q is no DTMF digit", digit)
	}
	step := uint32(clock) / eventUpdates
	total := uint32(min(max(int64(clock.Samples(min(length, time.Minute))), int64(step)*eventShortest), eventLongest))
	*s = EventSender{
		packet: EventPacket{Event: Event{Code: code, Volume: eventVolume}, Timestamp: timestamp, Marker: true},
		step:   step,
		total:  total,
		ends:   eventEnds,
	}
	return nil
}

// Active says that packets of a digit are still to come. Sound should not be
// sent meanwhile, or the digit is heard twice.
func (s *EventSender) Active() bool { return s.ends > 0 }

// Next is the packet for the next frame; ok is false when the digit is done.
func (s *EventSender) Next() (packet EventPacket, ok bool) {
	if s.ends == 0 {
		return EventPacket{}, false
	}
	duration := min(uint32(s.packet.Duration)+s.step, s.total)
	s.packet.Duration = uint16(duration)
	if duration == s.total {
		s.packet.End = true
		s.ends--
	}
	packet = s.packet
	s.packet.Marker = false
	return packet, true
}

// eventMemory is how many digits an EventReceiver remembers: more than three
// seconds of the fastest dialling (40 ms each with pauses of 40 ms), far beyond
// any delay a packet survives. Nothing is judged by the order of timestamps, so
// that one bogus packet cannot make all later ones look old.
const eventMemory = 32

// EventReceiver turns the packets of a telephone-event stream into digits, each
// exactly once. An event is its RTP timestamp (section 2.2.1): whichever of its
// packets arrives first gives the digit, and all others of that timestamp are
// repeats of it, whatever was lost, doubled or overtaken. It is not necessary, nor wise,
// to wait for the end packet: three losses would swallow the digit.
//
// The zero value is ready. A new SSRC is a new stream and needs a Reset.
type EventReceiver struct {
	seen [eventMemory]eventSeen
	next int
}

type eventSeen struct {
	used      bool
	timestamp uint32
	code      byte
	duration  uint16 // the longest heard of
	ended     bool
}

// Reset forgets the stream.
func (r *EventReceiver) Reset() { *r = EventReceiver{} }

// Receive takes a packet's timestamp, marker bit and payload, and appends the
// digits it brings to digits: mostly none or one, more only when a payload packs
// several events (section 2.5.1.5). Events that are no digits, and anything
// malformed, bring none.
func (r *EventReceiver) Receive(digits []byte, timestamp uint32, marker bool, payload []byte) []byte {
	for len(payload) >= EventSize {
		event, err := ParseEvent(payload)
		if err != nil {
			return digits
		}
		if digit, ok := DTMFDigit(event.Code); ok && r.isNew(timestamp, marker, event) {
			digits = append(digits, digit)
		}
		// The next packed event begins where this one ends. It is a new event and
		// not a segment, as if it had a marker of its own.
		timestamp += uint32(event.Duration)
		payload, marker = payload[EventSize:], true
	}
	return digits
}

// isNew says whether the event was not heard of before, and remembers it.
func (r *EventReceiver) isNew(timestamp uint32, marker bool, event Event) bool {
	for i := range r.seen {
		s := &r.seen[i]
		if !s.used || s.code != event.Code {
			continue
		}
		if s.timestamp == timestamp {
			s.duration, s.ended = max(s.duration, event.Duration), s.ended || event.End
			return false
		}
		if s.continuedBy(timestamp, marker) {
			r.remember(timestamp, event)
			return false
		}
	}
	r.remember(timestamp, event)
	return true
}

// continuedBy recognises the next segment of a long event (section 2.5.1.3): it
// starts where the last one stopped, without a marker, and the last had no end.
func (s *eventSeen) continuedBy(timestamp uint32, marker bool) bool {
	length := timestamp - s.timestamp
	return !marker && !s.ended && length > 0 &&
		(length == uint32(s.duration) || length == eventLongest)
}

func (r *EventReceiver) remember(timestamp uint32, event Event) {
	r.seen[r.next] = eventSeen{used: true, timestamp: timestamp, code: event.Code, duration: event.Duration, ended: event.End}
	r.next = (r.next + 1) % eventMemory
}
