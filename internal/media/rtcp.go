package media

import (
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"time"

	"github.com/pion/rtcp"
)

const (
	// reportInterval is the time between reports, varied by half so that the calls
	// of a peer do not report in step (RFC 3550 6.2, 6.3.1).
	reportInterval = 5 * time.Second
	// roundTripMost is more than any network takes; what claims more is a mistake.
	roundTripMost = 10 * time.Second
	// ntpEpoch is 1900 in the seconds of 1970 (RFC 3550 4).
	ntpEpoch = 2208988800
)

// reports keeps the RTCP of a call: when to report, and what the peer reported.
type reports struct {
	cname string
	due   time.Duration

	theirReport   uint32 // middle 32 bits of the NTP time of their last sender report
	theirReportAt time.Duration

	roundTrip    time.Duration
	remoteLost   int64
	remoteJitter time.Duration
	bye          bool
}

// newReports begins with half the interval (RFC 3550 6.2). The name is random and
// good for this call only, so that it tells nobody who we are (RFC 7022 4.1).
func newReports(now time.Duration) *reports {
	var name [12]byte
	_, _ = rand.Read(name[:]) // it ends the process rather than fail
	return &reports{cname: hex.EncodeToString(name[:]), due: now + varied(reportInterval/2)}
}

func varied(d time.Duration) time.Duration {
	return d/2 + mathrand.N(d)
}

// isDue says whether it is time for a report, and if so sets the next time.
func (r *reports) isDue(now time.Duration) bool {
	if now < r.due {
		return false
	}
	r.due = now + varied(reportInterval)
	return true
}

// receive takes an RTCP datagram. What is malformed or about others is ignored.
func (r *reports) receive(now time.Duration, wall time.Time, ourSSRC uint32, datagram []byte) {
	packets, err := rtcp.Unmarshal(datagram)
	if err != nil {
		return
	}
	for _, packet := range packets {
		switch p := packet.(type) {
		case *rtcp.SenderReport:
			r.theirReport, r.theirReportAt = uint32(p.NTPTime>>16), now
			r.learn(wall, ourSSRC, p.Reports)
		case *rtcp.ReceiverReport:
			r.learn(wall, ourSSRC, p.Reports)
		case *rtcp.Goodbye:
			r.bye = true
		}
	}
}

// learn reads what the peer says about our stream. The round trip is the time
// since our report less the time the peer held it (RFC 3550 6.4.1).
func (r *reports) learn(wall time.Time, ourSSRC uint32, blocks []rtcp.ReceptionReport) {
	for _, block := range blocks {
		if block.SSRC != ourSSRC {
			continue
		}
		// 24 bits with a sign: duplicates can make it negative.
		r.remoteLost = int64(int32(block.TotalLost<<8) >> 8)
		r.remoteJitter = tickTime(int64(block.Jitter))
		if block.LastSenderReport == 0 {
			continue
		}
		away := int32(middle(ntp(wall)) - block.LastSenderReport - block.Delay)
		trip := time.Duration(away) * time.Second / (1 << 16)
		if trip >= 0 && trip < roundTripMost {
			r.roundTrip = trip
		}
	}
}

// about is our report about the peer's stream (RFC 3550 6.4.1).
func (r *reports) about(now time.Duration, s *sequence) []rtcp.ReceptionReport {
	if !s.started {
		return nil
	}
	block := rtcp.ReceptionReport{
		SSRC:               s.ssrc,
		FractionLost:       s.fraction(),
		TotalLost:          uint32(min(max(0, s.expected()-int64(s.received)), 1<<23-1)),
		LastSequenceNumber: uint32(s.highest),
		Jitter:             uint32(s.jitter),
	}
	if r.theirReport != 0 {
		block.LastSenderReport = r.theirReport
		block.Delay = uint32((now - r.theirReportAt) * (1 << 16) / time.Second)
	}
	return []rtcp.ReceptionReport{block}
}

// compound is a whole report: of a sender when packets went out since the last one
// and of a receiver when not, with our name, and a goodbye at the end of the call
// (RFC 3550 6.1, 6.4, 6.6).
func (r *reports) compound(now time.Duration, wall time.Time, in *inbound, out *outbound, bye bool) ([]byte, error) {
	ssrc, blocks := out.packet.ssrc, r.about(now, &in.sequence)
	var report rtcp.Packet = &rtcp.ReceiverReport{SSRC: ssrc, Reports: blocks}
	if out.sinceReport {
		report = &rtcp.SenderReport{
			SSRC:        ssrc,
			NTPTime:     ntp(wall),
			RTPTime:     out.packet.timestamp + uint32(ticks(now-out.at)),
			PacketCount: uint32(out.packets),
			OctetCount:  uint32(out.octets),
			Reports:     blocks,
		}
		out.sinceReport = false
	}
	packets := []rtcp.Packet{report, &rtcp.SourceDescription{Chunks: []rtcp.SourceDescriptionChunk{{
		Source: ssrc,
		Items:  []rtcp.SourceDescriptionItem{{Type: rtcp.SDESCNAME, Text: r.cname}},
	}}}}
	if bye {
		packets = append(packets, &rtcp.Goodbye{Sources: []uint32{ssrc}})
	}
	return rtcp.Marshal(packets)
}

// ntp is a time of day in the 64-bit format of NTP (RFC 3550 4).
func ntp(t time.Time) uint64 {
	seconds := uint64(t.Unix() + ntpEpoch)
	return seconds<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}

// middle is the short form of an NTP time that reports echo.
func middle(ntp uint64) uint32 { return uint32(ntp >> 16) }
