package wire

import (
	"context"
	"fmt"
	"time"
)

// silentError is why a request is given up when its service says nothing any more.
type silentError struct{ limit time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("no word from the service for %v", e.limit) }

// Patience ends a request whose service has been silent for too long. A half-open
// connection looks like a slow service, and neither may hold up a call.
type Patience struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

// Watch begins to wait for the service's first word.
func Watch(ctx context.Context, limit time.Duration) (context.Context, *Patience) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &Patience{cancel: cancel, limit: limit}
	p.timer = time.AfterFunc(limit, func() { cancel(&silentError{limit}) })
	return ctx, p
}

// Heard starts the wait anew.
func (p *Patience) Heard() { p.timer.Reset(p.limit) }

// Stop ends the watch, and the request with it.
func (p *Patience) Stop() {
	p.timer.Stop()
	p.cancel(context.Canceled)
}
