package egress

import (
	"math"
	"net/http"
	"time"
)

// retries is how long after a failed try the next one follows. After the last the
// message is dead until somebody replays it.
var retries = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// spread is how far a delay may stray, so that what failed together does not come
// back together.
const spread = 0.2

// Next says when a message is tried again after its failed try of this number,
// counted from 1, or that it is dead. Jitter is a random number from -1 to 1.
//
// A receiver that says it is overloaded (429, 502, 504) waits a step longer. One that
// asks for a time by Retry-After is not disturbed before it. One that is gone (410) is
// not tried again.
func Next(try int, answer Attempt, now time.Time, jitter float64) (at time.Time, dead bool) {
	if answer.Status == http.StatusGone || try > len(retries) {
		return time.Time{}, true
	}
	step := max(try, 1) - 1
	if overloaded(answer.Status) {
		step = min(step+1, len(retries)-1)
	}
	jitter = max(-1, min(1, jitter))
	delay := stretch(retries[step], jitter)
	if answer.RetryAfter > delay {
		delay = stretch(answer.RetryAfter, math.Abs(jitter))
	}
	return now.Add(delay), false
}

func stretch(d time.Duration, jitter float64) time.Duration {
	return d + time.Duration(float64(d)*spread*jitter)
}

func overloaded(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}
