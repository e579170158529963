package media

import (
	"sync"
	"time"

	"parley/internal/audio"
)

const (
	// slots divide the 20 ms of a frame: calls are spread over them, so that a
	// thousand packets leave as ten groups of a hundred and no group waits long.
	slots        = 10
	slotDuration = audio.FrameDuration / slots
	// pacerPatience is how far behind the pacer still catches up on what it missed.
	// Beyond that (a suspended machine) the missed frames are left out: a burst
	// of seconds of sound helps nobody.
	pacerPatience = 100 * time.Millisecond
)

// paced is a call as the pacer sees it. What is heard is handed over one slot
// before what is said is sent, so that an answer to a frame need not wait for the
// next: 2 ms instead of 20 ms of delay.
type paced interface {
	hear(now time.Duration)
	// send is told which frame of the engine's time this is: every 20 ms is one,
	// also those that were left out.
	send(now time.Duration, frame int64)
}

// pacer calls every call every 20 ms. Its schedule is absolute: slot n is due at
// n times 2 ms, so that lateness never adds up to drift.
type pacer struct {
	clock    clock
	lateness lateness
	slots    [slots]pacerSlot

	quit chan struct{}
	done sync.WaitGroup
	once sync.Once
}

type pacerSlot struct {
	mu    sync.Mutex
	calls []paced
}

func newPacer(c clock) *pacer { return &pacer{clock: c, quit: make(chan struct{})} }

func (p *pacer) start() { p.done.Go(p.run) }

func (p *pacer) stop() {
	p.once.Do(func() { close(p.quit) })
	p.done.Wait()
}

// add puts a call into the emptiest slot and returns its number.
func (p *pacer) add(call paced) int {
	best, fewest := 0, -1
	for i := range p.slots {
		s := &p.slots[i]
		s.mu.Lock()
		n := len(s.calls)
		s.mu.Unlock()
		if fewest < 0 || n < fewest {
			best, fewest = i, n
		}
	}
	s := &p.slots[best]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	return best
}

// remove takes a call out; it is not called any more once remove has returned.
func (p *pacer) remove(slot int, call paced) {
	s := &p.slots[slot]
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.calls {
		if s.calls[i] == call {
			last := len(s.calls) - 1
			s.calls[i], s.calls[last] = s.calls[last], nil
			s.calls = s.calls[:last]
			return
		}
	}
}

func (p *pacer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := nextSlot(p.clock.now()); ; n++ {
		n += leftOut(p.clock.now() - slotTime(n))
		timer.Reset(slotTime(n) - p.clock.now())
		select {
		case <-p.quit:
			return
		case <-timer.C:
		}
		p.step(n)
	}
}

func slotTime(n int64) time.Duration { return time.Duration(n) * slotDuration }

func nextSlot(now time.Duration) int64 { return int64(now/slotDuration) + 1 }

// leftOut is how many slots to give up when the pacer is this far behind: whole
// rounds, so that every call loses the same.
func leftOut(behind time.Duration) int64 {
	if behind <= pacerPatience {
		return 0
	}
	return int64(behind/audio.FrameDuration) * slots
}

// step serves one slot: the calls of the last one send, those of this one hear.
func (p *pacer) step(n int64) {
	due := slotTime(n)
	if n > 0 {
		s := &p.slots[(n-1)%slots]
		s.mu.Lock()
		for _, call := range s.calls {
			call.send(due, (n-1)/slots)
			p.lateness.note(p.clock.now() - due)
		}
		s.mu.Unlock()
	}
	s := &p.slots[n%slots]
	s.mu.Lock()
	for _, call := range s.calls {
		call.hear(due)
	}
	s.mu.Unlock()
}
