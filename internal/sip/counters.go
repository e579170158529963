package sip

import "sync/atomic"

// counters are what an agent has done since it started.
type counters struct {
	requests, dropped, banned, challenged, authFailed  atomic.Int64
	callsIn, callsOut, answered, failed, overloaded    atomic.Int64
	repeatedAnswers, forkedAnswers, lateAnswers, glare atomic.Int64
}

// Counters is a reading of what an agent has done since it started, for metrics.
type Counters struct {
	Requests        int64 // that reached dispatch
	Dropped         int64 // messages of scanners, the banned and strangers: no answer sent
	Banned          int64 // sources put under a ban
	Challenged      int64
	AuthFailed      int64
	CallsIn         int64
	CallsOut        int64
	Answered        int64
	Failed          int64
	Overloaded      int64
	RepeatedAnswers int64 // 2xx that came again and were acknowledged again
	ForkedAnswers   int64 // 2xx of a second branch, acknowledged and ended
	LateAnswers     int64 // 2xx after the attempt was over, acknowledged and ended
	Glare           int64
	Active          int64 // calls now
}

// Counters reads the counters.
func (a *Agent) Counters() Counters {
	c := &a.counters
	a.mu.Lock()
	active := len(a.calls)
	a.mu.Unlock()
	return Counters{
		Requests: c.requests.Load(), Dropped: c.dropped.Load(), Banned: c.banned.Load(),
		Challenged: c.challenged.Load(), AuthFailed: c.authFailed.Load(),
		CallsIn: c.callsIn.Load(), CallsOut: c.callsOut.Load(), Answered: c.answered.Load(),
		Failed: c.failed.Load(), Overloaded: c.overloaded.Load(),
		RepeatedAnswers: c.repeatedAnswers.Load(), ForkedAnswers: c.forkedAnswers.Load(),
		LateAnswers: c.lateAnswers.Load(), Glare: c.glare.Load(), Active: int64(active),
	}
}
