package media

import "time"

const (
	delayBin    = 5 * time.Millisecond
	delayBins   = 64 // up to 320 ms
	delayMemory = 256
	// delayMiss is the share of packets that may come too late, one in so many.
	// Waiting for the very last would make every word of the call later for the
	// sake of one stall.
	delayMiss = 100
)

const delayBinTicks = int64(delayBin) * clockRate / int64(time.Second)

// delayMeter learns how unevenly packets arrive. The transit of a packet is its
// arrival less its timestamp; the smallest of the last seconds is the base, which
// follows drifting clocks, and what exceeds it is delay. The window of delays
// gives the wait that all but one in a hundred packets keep.
type delayMeter struct {
	bins   [delayMemory]uint8 // of the last packets, in a ring
	counts [delayBins]uint16
	at     int
	full   bool

	lowest, lowestBefore int64 // transits in this window and the last
	begun                bool
}

func (m *delayMeter) observe(transit int64) {
	if !m.begun {
		m.begun, m.lowest, m.lowestBefore = true, transit, transit
	}
	m.lowest = min(m.lowest, transit)
	bin := min((transit-m.base())/delayBinTicks, delayBins-1)
	if m.full {
		m.counts[m.bins[m.at]]--
	}
	m.bins[m.at] = uint8(bin)
	m.counts[bin]++
	if m.at++; m.at == delayMemory {
		m.at, m.full = 0, true
		m.lowest, m.lowestBefore = transit, m.lowest
	}
}

// base is the transit of the fastest packets.
func (m *delayMeter) base() int64 { return min(m.lowest, m.lowestBefore) }

// wait is the delay, in ticks, that nearly all packets keep.
func (m *delayMeter) wait() int64 {
	n := m.at
	if m.full {
		n = delayMemory
	}
	missed := n / delayMiss
	for bin := delayBins - 1; bin > 0; bin-- {
		if missed -= int(m.counts[bin]); missed < 0 {
			return int64(bin+1) * delayBinTicks
		}
	}
	return 0
}
