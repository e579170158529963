package api

import (
	"net/http"
	"time"
)

// FreezeClock stops the time that rate limits count in.
func FreezeClock(handler http.Handler) {
	s := handler.(*Server)
	at := time.Now()
	s.tokens.now = func() time.Time { return at }
	s.callers.now = func() time.Time { return at }
}
