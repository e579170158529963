package cartesia

import (
	"context"
	"errors"
	"time"
)

// errSilent is why a request is given up when its server says nothing any more.
var errSilent = errors.New("silent")

// patience ends a request whose server has been silent for too long. A half-open
// connection looks like a slow server, and neither may hold up a call.
type patience struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func (p *Provider) watch(ctx context.Context) (context.Context, *patience) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &patience{cancel: cancel, limit: p.options.Silence}
	w.timer = time.AfterFunc(w.limit, func() { cancel(errSilent) })
	return ctx, w
}

// heard starts the wait anew.
func (w *patience) heard() { w.timer.Reset(w.limit) }

// stop ends the watch, and the request with it.
func (w *patience) stop() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}
