package sip

import (
	"sync"
	"time"

	"parley"
)

// limiter keeps each trunk's calls within its channels and its calls per second.
type limiter struct {
	now    func() time.Time
	mu     sync.Mutex
	trunks map[parley.ID]*trunkLoad
}

type trunkLoad struct {
	channels int
	starts   []time.Time // of the last second, oldest first
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, trunks: map[parley.ID]*trunkLoad{}}
}

// reserve takes a channel of the trunk, and one of its starts in this second when the
// call is ours to pace. The release may be called more than once; it counts once.
func (l *limiter) reserve(trunk parley.Trunk, paced bool) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	load := l.trunks[trunk.ID]
	if load == nil {
		load = &trunkLoad{}
		l.trunks[trunk.ID] = load
	}
	if trunk.MaxChannels > 0 && load.channels >= trunk.MaxChannels {
		return nil, false
	}
	if paced && trunk.CallsPerSecond > 0 && !load.start(l.now(), trunk.CallsPerSecond) {
		return nil, false
	}
	load.channels++
	return sync.OnceFunc(func() { l.release(trunk.ID) }), true
}

func (t *trunkLoad) start(now time.Time, limit int) bool {
	kept := 0
	for kept < len(t.starts) && now.Sub(t.starts[kept]) >= time.Second {
		kept++
	}
	t.starts = t.starts[kept:]
	if len(t.starts) >= limit {
		return false
	}
	t.starts = append(t.starts, now)
	return true
}

func (l *limiter) release(id parley.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if load := l.trunks[id]; load != nil {
		load.channels--
		if load.channels == 0 && len(load.starts) == 0 {
			delete(l.trunks, id)
		}
	}
}

// inUse is how many channels of a trunk are taken.
func (l *limiter) inUse(id parley.ID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if load := l.trunks[id]; load != nil {
		return load.channels
	}
	return 0
}
