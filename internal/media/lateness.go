package media

import (
	"sync/atomic"
	"time"
)

const (
	latenessStep  = 50 * time.Microsecond
	latenessSteps = 1000 // up to 50 ms; what is later is in the last
)

// Lateness is how long after its time a packet was handed to the system, over all
// packets since the engine started. Percentiles are exact to 50 microseconds.
type Lateness struct {
	Packets        uint64
	P50, P99, P999 time.Duration
	Max            time.Duration
	Total          time.Duration // of all packets together

	counts *[latenessSteps]uint64
}

// Within is how many packets were at most this late.
func (l Lateness) Within(bound time.Duration) (n uint64) {
	for _, count := range l.counts[:min(int(bound/latenessStep), latenessSteps)] {
		n += count
	}
	return n
}

// Since is the lateness of the packets after an earlier reading. Its Max is that of all.
func (l Lateness) Since(earlier Lateness) Lateness {
	counts := *l.counts
	for i := range counts {
		counts[i] -= earlier.counts[i]
	}
	return judged(&counts, l.Max, l.Total-earlier.Total)
}

// lateness counts. One goroutine notes, any may read.
type lateness struct {
	counts [latenessSteps]atomic.Uint64
	max    atomic.Int64
	total  atomic.Int64
}

func (l *lateness) note(late time.Duration) {
	late = max(late, 0)
	l.counts[min(int(late/latenessStep), latenessSteps-1)].Add(1)
	l.total.Add(int64(late))
	if int64(late) > l.max.Load() {
		l.max.Store(int64(late))
	}
}

func (l *lateness) read() Lateness {
	var counts [latenessSteps]uint64
	for i := range counts {
		counts[i] = l.counts[i].Load()
	}
	return judged(&counts, time.Duration(l.max.Load()), time.Duration(l.total.Load()))
}

// judged finds the percentiles of counts.
func judged(counts *[latenessSteps]uint64, longest, all time.Duration) Lateness {
	var total uint64
	for _, n := range counts {
		total += n
	}
	at := func(share float64) time.Duration {
		var sum uint64
		for i, n := range counts {
			if sum += n; n > 0 && float64(sum) >= share*float64(total) {
				return min(time.Duration(i+1)*latenessStep, longest)
			}
		}
		return longest
	}
	return Lateness{Packets: total, P50: at(0.5), P99: at(0.99), P999: at(0.999), Max: longest, Total: all, counts: counts}
}
