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
}

// lateness counts. One goroutine notes, any may read.
type lateness struct {
	counts [latenessSteps]atomic.Uint64
	max    atomic.Int64
}

func (l *lateness) note(late time.Duration) {
	late = max(late, 0)
	l.counts[min(int(late/latenessStep), latenessSteps-1)].Add(1)
	if int64(late) > l.max.Load() {
		l.max.Store(int64(late))
	}
}

func (l *lateness) read() Lateness {
	var counts [latenessSteps]uint64
	var total uint64
	for i := range counts {
		counts[i] = l.counts[i].Load()
		total += counts[i]
	}
	longest := time.Duration(l.max.Load())
	at := func(share float64) time.Duration {
		var sum uint64
		for i, n := range counts {
			if sum += n; n > 0 && float64(sum) >= share*float64(total) {
				return min(time.Duration(i+1)*latenessStep, longest)
			}
		}
		return longest
	}
	return Lateness{Packets: total, P50: at(0.5), P99: at(0.99), P999: at(0.999), Max: longest}
}
