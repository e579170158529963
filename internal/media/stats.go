package media

import "time"

// Stats are the figures of a call so far.
type Stats struct {
	Sent     uint64 // packets
	Unsent   uint64 // packets that the system refused
	Overrun  uint64 // frames given to Send that did not fit
	Received uint64 // packets of the peer, repeats left out
	Lost     uint64 // packets of the peer that never came

	Duplicates uint64 // packets that came again
	Late       uint64 // packets that came too late to be played
	Concealed  uint64 // frames that were made up, wholly or in part
	Discarded  time.Duration
	Strangers  uint64 // packets from anybody else
	Invalid    uint64 // packets that were no RTP, failed authentication or had a type never agreed on

	Jitter time.Duration // of arrival (RFC 3550 6.4.1)
	Delay  time.Duration // that the jitter buffer adds now

	// What the peer reported, zero until it did.
	RoundTrip    time.Duration
	RemoteLost   int64
	RemoteJitter time.Duration

	Bye bool // it has said goodbye (RFC 3550 6.6)

	Heard bool // a packet has come at all
	// Quiet is how long ago the last packet came, or the last agreement when none
	// has come since.
	Quiet time.Duration
}

// Stats reads the figures. They stay readable after Close.
func (s *Session) Stats() Stats {
	now := s.engine.clock.now()
	s.inMu.Lock()
	defer s.inMu.Unlock()
	if s.in == nil {
		return Stats{}
	}
	in, p := s.in, s.in.playout
	stats := Stats{
		Unsent:       s.unsent.Load(),
		Received:     in.packets,
		Lost:         uint64(in.sequence.lost()),
		Duplicates:   in.duplicates,
		Late:         p.late,
		Concealed:    p.concealed,
		Discarded:    tickTime(int64(p.discarded)),
		Strangers:    in.strangers,
		Invalid:      in.invalid,
		Jitter:       tickTime(int64(in.sequence.jitter)),
		Delay:        p.delay(now),
		RoundTrip:    s.reports.roundTrip,
		RemoteLost:   s.reports.remoteLost,
		RemoteJitter: s.reports.remoteJitter,
		Bye:          s.reports.bye,
		Heard:        in.watch.heard,
		Quiet:        now - in.watch.last,
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	stats.Sent, stats.Overrun = s.out.packets, s.out.overrun
	return stats
}
