package sip

import (
	"sync"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// arrivalTime is more than sipgo takes from reading a request to handing it over. One
// that is not handed over by then repeats an earlier one, and its transaction took it.
const arrivalTime = time.Second

// arrivals are the requests between sipgo's reader and the agent. Each is on a goroutine
// of sipgo that nobody waits for, and that opens a new socket for the answer when the one
// the request came by is closed: Close must know when they have all come through.
type arrivals struct {
	mu     sync.Mutex
	since  map[*gosip.Request]time.Time
	forget int // when there are so many, the old ones go
}

func newArrivals() *arrivals { return &arrivals{since: map[*gosip.Request]time.Time{}} }

func (r *arrivals) note(req *gosip.Request) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.since) >= r.forget {
		r.drop(now)
		r.forget = 2*len(r.since) + 64
	}
	r.since[req] = now
}

func (r *arrivals) drop(now time.Time) {
	for req, at := range r.since {
		if now.Sub(at) > arrivalTime {
			delete(r.since, req)
		}
	}
}

func (r *arrivals) taken(req *gosip.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, req)
}

// settle waits until none is on its way. Nothing may arrive any more.
func (r *arrivals) settle() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		r.mu.Lock()
		r.drop(time.Now())
		settled := len(r.since) == 0
		r.mu.Unlock()
		if settled {
			return
		}
		<-tick.C
	}
}
