package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// limiter admits a number of requests a second from each source. It counts in
// whole seconds: what is left and when it starts again can be told in a header.
type limiter struct {
	perSecond int
	now       func() time.Time

	mu     sync.Mutex
	second int64
	used   map[string]int
}

func newLimiter(perSecond int, now func() time.Time) *limiter {
	return &limiter{perSecond: perSecond, now: now, used: map[string]int{}}
}

// admit counts a request and writes the headers. It has answered when it returns false.
func (l *limiter) admit(w *answerWriter, source string) bool {
	if l.perSecond <= 0 {
		return true
	}
	used, second := l.count(source)
	header := w.Header()
	header.Set("X-RateLimit-Limit", strconv.Itoa(l.perSecond))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, l.perSecond-used)))
	header.Set("X-RateLimit-Reset", strconv.FormatInt(second+1, 10))
	if used <= l.perSecond {
		return true
	}
	header.Set("Retry-After", "1")
	w.json(http.StatusTooManyRequests, encode(struct {
		Message    string `json:"message"`
		RetryAfter int    `json:"retry_after"`
	}{"Too Many Attempts.", 1}))
	return false
}

func (l *limiter) count(source string) (used int, second int64) {
	second = l.now().Unix()
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		// Everybody starts again, so nobody needs to be remembered.
		l.second = second
		clear(l.used)
	}
	l.used[source]++
	return l.used[source], second
}
