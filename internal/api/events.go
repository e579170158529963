package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"parley"
)

const (
	// lookEvery is how often a listener's call is looked at. The rows are the source, so
	// that a call on another node is followed like one on this.
	lookEvery = 250 * time.Millisecond
	// pingEvery keeps proxies from closing a quiet stream.
	pingEvery = 15 * time.Second
)

// followCall streams a call's events.
func followCall(ctx context.Context, rq *request) (*reply, error) {
	call, err := rq.tenant.Call(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	after, _ := parley.ParseID(rq.Header.Get("Last-Event-ID")) // 0: from the beginning
	header := http.Header{"Content-Type": {"text/event-stream"}, "X-Accel-Buffering": {"no"}}
	return &reply{status: http.StatusOK, header: header, stream: func(w http.ResponseWriter, r *http.Request) {
		f := follower{rq: rq, call: call.ID, after: after, w: w, out: http.NewResponseController(w)}
		_ = f.out.SetWriteDeadline(time.Time{}) // it goes on for as long as the call
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			f.follow(r.Context())
		}
	}}, nil
}

// follower is one listener to one call.
type follower struct {
	rq    *request
	call  parley.ID
	after parley.ID
	w     http.ResponseWriter
	out   *http.ResponseController
}

func (f *follower) follow(ctx context.Context) {
	look, ping := time.NewTicker(lookEvery), time.NewTicker(pingEvery)
	defer look.Stop()
	defer ping.Stop()
	for f.catchUp(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-f.rq.server.stop:
			return
		case <-ping.C:
			if !f.send(": still here\n\n") {
				return
			}
		case <-look.C:
		}
	}
}

// catchUp sends what has happened since; false: the call is over, or the listener gone.
func (f *follower) catchUp(ctx context.Context) bool {
	// The status is read first: what is written before it becomes final is not missed.
	call, err := f.rq.tenant.Call(ctx, f.call)
	if err != nil {
		return false
	}
	events, err := f.rq.tenant.CallEvents(ctx, f.call, f.after)
	if err != nil {
		return false
	}
	for _, e := range events {
		f.after = e.ID
		if !f.send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Event, encode(e))) {
			return false
		}
	}
	if len(events) == 0 {
		_ = f.out.Flush() // the headers, at least
	}
	return !call.Status.Final()
}

func (f *follower) send(text string) bool {
	if _, err := f.w.Write([]byte(text)); err != nil {
		return false
	}
	return f.out.Flush() == nil
}
