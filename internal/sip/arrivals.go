package sip

import (
	"sync"

	gosip "github.com/emiago/sipgo/sip"
)

// arrivals keep the provisional answers to our INVITEs as they come in. sipgo takes every
// message up on a goroutine of its own: an answer may overtake what the carrier said
// before it, and its transaction drops the latecomer.
type arrivals struct {
	mu      sync.Mutex
	waiting map[string][]*gosip.Response // by branch
}

// mostArrivals bounds what is kept of a carrier that floods.
const mostArrivals = 64

func newArrivals() *arrivals { return &arrivals{waiting: map[string][]*gosip.Response{}} }

// expect begins to keep the answers to an INVITE, until forget.
func (a *arrivals) expect(invite *gosip.Request) (take func() []*gosip.Response, forget func()) {
	branch := branchOf(invite)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[branch] = nil
	take = func() []*gosip.Response {
		a.mu.Lock()
		defer a.mu.Unlock()
		arrived := a.waiting[branch]
		a.waiting[branch] = nil
		return arrived
	}
	return take, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, branch)
	}
}

// note is the transport's: it sees every message before the transactions do, in order.
func (a *arrivals) note(msg gosip.Message) {
	res, ok := msg.(*gosip.Response)
	if !ok || !res.IsProvisional() || res.CSeq() == nil || res.CSeq().MethodName != gosip.INVITE {
		return
	}
	branch := branchOf(res)
	a.mu.Lock()
	defer a.mu.Unlock()
	if arrived, expected := a.waiting[branch]; expected && len(arrived) < mostArrivals {
		a.waiting[branch] = append(arrived, res)
	}
}

func branchOf(msg gosip.Message) (branch string) {
	if via := msg.Via(); via != nil {
		branch, _ = via.Params.Get("branch")
	}
	return branch
}
