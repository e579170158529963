package converse

import "sync"

// inbox is the one way into a conversation. Anybody may put something in, nobody
// ever waits: a provider's callback and the media's clock must not be held up by a
// conversation that is busy.
type inbox struct {
	mu     sync.Mutex
	items  []item
	spare  []item // the batch before, whose memory is used again
	frames [][]int16
	used   int // frames that are waiting or being handled
	next   int
	lost   int
	wake   chan struct{}
}

// item is something that happened: an action, or with none the frame in a slot.
type item struct {
	do   func()
	slot int
}

// backlog is how many frames may wait. An engine that is a third of a second late
// skips sound rather than lag behind the customer for the rest of the call.
const backlog = 16

func newInbox(samples int) *inbox {
	in := &inbox{wake: make(chan struct{}, 1), frames: make([][]int16, backlog)}
	memory := make([]int16, backlog*samples)
	for i := range in.frames {
		in.frames[i] = memory[i*samples : (i+1)*samples]
	}
	in.items = make([]item, 0, 2*backlog)
	in.spare = make([]item, 0, 2*backlog)
	return in
}

// post puts an action in.
func (in *inbox) post(do func()) {
	in.mu.Lock()
	in.items = append(in.items, item{do: do})
	in.mu.Unlock()
	in.ring()
}

// frame copies a frame in. A short frame is filled up with silence.
func (in *inbox) frame(frame []int16) {
	in.mu.Lock()
	if in.used == backlog {
		in.lost++
		in.mu.Unlock()
		return
	}
	slot := in.next
	in.next = (in.next + 1) % backlog
	in.used++
	n := copy(in.frames[slot], frame)
	clear(in.frames[slot][n:])
	in.items = append(in.items, item{slot: slot})
	in.mu.Unlock()
	in.ring()
}

func (in *inbox) ring() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox. What it returns is valid until the next take.
func (in *inbox) take() []item {
	in.mu.Lock()
	defer in.mu.Unlock()
	batch := in.items
	in.items, in.spare = in.spare[:0], batch
	return batch
}

// free gives a handled frame's slot back.
func (in *inbox) free() {
	in.mu.Lock()
	in.used--
	in.mu.Unlock()
}
