package jobs

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
)

// every does something again and again until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// live beats once. A node that was taken for dead, after a long pause of the whole
// machine, say, begins anew with nothing.
func (q *Queue) live(ctx context.Context) {
	alive, err := q.db.System().Beat(ctx, q.node)
	if err != nil || alive {
		q.complain(ctx, "the node could not say that it lives", err)
		return
	}
	q.log.Error("this node was taken for dead: its calls are ended")
	if q.work.Lost != nil {
		q.work.Lost()
	}
	q.complain(ctx, "the node could not join again", q.join(ctx))
}

// join announces the node, or what has changed about it.
func (q *Queue) join(ctx context.Context) error {
	return q.db.System().Join(ctx, q.node, int(q.room.Load()))
}

// Bury takes over from every node that is dead. This one is not, however long the
// machine has slept.
func (q *Queue) Bury(ctx context.Context) {
	dead, err := q.db.System().DeadNodes(ctx, q.pace.silence)
	q.complain(ctx, "dead nodes could not be looked for", err)
	for _, node := range dead {
		if node == q.node {
			continue
		}
		err := q.db.System().Bury(ctx, node, q.pace.silence, func(s *store.System, c *parley.Call) error {
			if q.work.Conclude == nil {
				return nil
			}
			return q.work.Conclude(ctx, s, c)
		})
		if err == nil {
			q.log.Warn("took over from a node that died", "node", node)
		}
		q.complain(ctx, "a dead node's work could not be taken over", err)
	}
}

func (q *Queue) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		q.log.Error(what, "error", err)
	}
}
