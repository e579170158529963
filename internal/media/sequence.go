package media

import "time"

// clockRate is the RTP clock of all codecs here and of telephone-events.
const clockRate = 8000

// ticks is a time in the RTP clock.
func ticks(d time.Duration) int64 { return int64(d) * clockRate / int64(time.Second) }

// tickTime is the length of n ticks.
func tickTime(n int64) time.Duration { return time.Duration(n) * time.Second / clockRate }

const (
	// sequenceWindow is how far back a packet can still be new; more than a second
	// of 20 ms packets, beyond any jitter buffer.
	sequenceWindow = 64
	// sequenceDropout and sequenceMisorder bound what is the same stream with
	// losses rather than a new beginning (RFC 3550 A.1).
	sequenceDropout  = 3000
	sequenceMisorder = 100
)

// standing is what the sequence says of a packet.
type standing uint8

const (
	fresh     standing = iota
	restarted          // fresh, and the first of a new stream
	repeated           // was here before
	stale              // too old to matter
	unproven           // of a stream that has yet to show a second packet
)

// sequence follows the SSRC and sequence numbers of what the peer sends, and keeps
// the figures of a reception report (RFC 3550 6.4, A.1, A.3, A.8).
type sequence struct {
	started bool
	ssrc    uint32
	first   int64 // extended numbers
	highest int64
	seen    uint64 // bit i: highest-i was here

	received   uint64 // of this stream, repeats left out
	lostBefore int64  // by streams that have ended

	trialSSRC uint32 // the stream on trial
	trialNext uint16
	onTrial   bool

	transit int64 // of the last packet, in ticks
	timed   bool
	jitter  float64 // in ticks

	expectedPrior, receivedPrior int64 // at the last report
}

// accept places a packet. The first stream is believed at once; another SSRC or a
// leap in the numbers only when two packets follow each other, so that one stray
// cannot tear a call's stream apart.
func (s *sequence) accept(p *packet) standing {
	if !s.started {
		s.begin(p)
		return restarted
	}
	if p.ssrc != s.ssrc {
		return s.tryOut(p)
	}
	ahead := int64(int16(p.sequence - uint16(s.highest)))
	switch {
	case ahead > sequenceDropout || ahead < -sequenceMisorder:
		return s.tryOut(p)
	case ahead > 0:
		s.highest += ahead
		s.seen = s.seen<<min(uint64(ahead), sequenceWindow) | 1
	case -ahead >= sequenceWindow:
		return stale
	case s.seen>>uint64(-ahead)&1 != 0:
		return repeated
	default:
		s.seen |= 1 << uint64(-ahead)
	}
	s.received++
	s.onTrial = false
	return fresh
}

func (s *sequence) tryOut(p *packet) standing {
	if s.onTrial && s.trialSSRC == p.ssrc && s.trialNext == p.sequence {
		s.begin(p)
		return restarted
	}
	s.onTrial, s.trialSSRC, s.trialNext = true, p.ssrc, p.sequence+1
	return unproven
}

func (s *sequence) begin(p *packet) {
	*s = sequence{
		started:    true,
		ssrc:       p.ssrc,
		first:      int64(p.sequence),
		highest:    int64(p.sequence),
		seen:       1,
		received:   1,
		lostBefore: s.lost(),
		jitter:     s.jitter,
	}
}

// time takes the arrival of a packet of sound for the jitter of RFC 3550 A.8. The
// packets of one telephone-event share a timestamp and say nothing about jitter.
func (s *sequence) time(now time.Duration, timestamp uint32) {
	transit := ticks(now) - int64(timestamp)
	if s.timed {
		// As 32-bit numbers the difference survives a wrap of the timestamp.
		d := int64(int32(transit - s.transit))
		s.jitter += (float64(max(d, -d)) - s.jitter) / 16
	}
	s.transit, s.timed = transit, true
}

func (s *sequence) expected() int64 {
	if !s.started {
		return 0
	}
	return s.highest - s.first + 1
}

// lost is the number of packets that never came, over all streams of the call.
func (s *sequence) lost() int64 { return s.lostBefore + max(0, s.expected()-int64(s.received)) }

// fraction is the share of packets lost since the last report, in 256ths
// (RFC 3550 A.3).
func (s *sequence) fraction() uint8 {
	expected, received := s.expected(), int64(s.received)
	expectedNow, receivedNow := expected-s.expectedPrior, received-s.receivedPrior
	s.expectedPrior, s.receivedPrior = expected, received
	lost := expectedNow - receivedNow
	if expectedNow <= 0 || lost <= 0 {
		return 0
	}
	return uint8(min(255, lost<<8/expectedNow))
}
