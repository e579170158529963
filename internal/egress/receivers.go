package egress

import (
	"sync"
	"time"

	"parley"
)

// Receivers keeps one receiver from taking what belongs to all: a receiver has so many
// deliveries on the way at once, more while it answers well, fewer while it fails, and
// one that only hangs is left alone for a while.
//
// It never waits. Who is not admitted comes back later, and its worker serves somebody
// else meanwhile.
type Receivers struct {
	mu  sync.Mutex
	all map[string]*receiver
}

// receiver is how one receiver has been doing. One that does well and has nothing on
// the way is forgotten: it is as good as new.
type receiver struct {
	room     int // deliveries at once
	onTheWay int
	strain   int       // tries in a row that held a worker for nothing
	moved    time.Time // when last one began with none on the way, or ended
	resume   time.Time // nothing is sent before
}

const (
	// firstRoom is for a receiver of which nothing is known: if it hangs, this is
	// all that it holds.
	firstRoom = 2
	mostRoom  = 32
	// slow is what a failure must take to be a burden on others.
	slow = time.Second
	// longestPause is shorter than the schedule's third delay: a receiver's single
	// delivery is never late for its own failures.
	longestPause = time.Minute
	leastWait    = 250 * time.Millisecond
	mostWait     = 15 * time.Second
	// manyReceivers is when those that failed long ago are forgotten too.
	manyReceivers = 4096
)

// NewReceivers knows of no receiver yet.
func NewReceivers() *Receivers { return &Receivers{all: map[string]*receiver{}} }

// Admit asks to send to a receiver; the name is the caller's, such as a user and a
// host. If it may, done must be called with the attempt. If not, done is nil, and it
// asks again after wait.
func (r *Receivers) Admit(name string) (done func(Attempt), wait time.Duration) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.all[name]
	if x == nil {
		r.forget(now)
		x = &receiver{room: firstRoom, moved: now}
		r.all[name] = x
	}
	if pause := x.resume.Sub(now); pause > 0 {
		return nil, pause
	}
	if x.onTheWay >= x.room {
		// The longer nothing has moved, the less it helps to ask often.
		return nil, min(max(now.Sub(x.moved), leastWait<<min(x.strain, 4)), mostWait)
	}
	if x.onTheWay == 0 {
		x.moved = now
	}
	x.onTheWay++
	return func(a Attempt) { r.done(name, x, a) }, 0
}

func (r *Receivers) done(name string, x *receiver, a Attempt) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	x.onTheWay--
	x.moved = now
	switch {
	case a.Failure != nil && a.Failure.Kind == parley.Cancelled: // it says nothing of the receiver
		if x.onTheWay == 0 && x.room >= firstRoom && x.strain == 0 {
			delete(r.all, name)
		}
	case a.Delivered():
		x.room = min(x.room+1, mostRoom)
		x.strain = 0
		if x.onTheWay == 0 {
			delete(r.all, name)
		}
	case a.Duration >= slow || overloaded(a.Status):
		x.room = max(x.room/2, 1)
		x.strain++
		x.resume = now.Add(pause(x.strain))
	default:
		x.room = max(x.room/2, 1)
	}
}

// pause is none for a single failure, and doubles with each further one in a row.
func pause(strain int) time.Duration {
	if strain < 2 {
		return 0
	}
	return min(time.Second<<min(strain-2, 10), longestPause)
}

// forget drops receivers that failed and were not asked for again.
func (r *Receivers) forget(now time.Time) {
	if len(r.all) < manyReceivers {
		return
	}
	for name, x := range r.all {
		if x.onTheWay == 0 && now.Sub(x.moved) > 2*longestPause {
			delete(r.all, name)
		}
	}
}
