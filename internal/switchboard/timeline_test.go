package switchboard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/sip"
	"parley/internal/store/storetest"
)

// A telephone that rings and is picked up in the same instant leaves both in the timeline,
// in order.
func TestEveryStepIsInTheTimeline(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil)
	o.assistant = o.hire(o.user, func(a *parley.Assistant) { a.MaxDuration = 1 })
	p := newPeer(t, func(_ context.Context, in *sip.Incoming) {
		_ = in.Ring()
		_, _ = in.Answer(silent(), sip.Hooks{})
	})
	trunk := o.trunk(o.user, p, 100)
	var calls []parley.ID
	for range 20 {
		calls = append(calls, o.asksBy(&parley.Call{CustomerNumber: "+4930123456", Carrier: parley.CarrierTrunk, TrunkID: &trunk.ID}))
	}
	for _, id := range calls {
		c := o.ends(id)
		require.Equal(t, []string{"initiated", "ringing", "in-progress", "ended", "completed"}, statuses(c))
		var events []any
		for _, e := range c.Timeline[:3] {
			events = append(events, e.Event, fmt.Sprint(e.Detail["status"]))
		}
		require.Equal(t, []any{"status", "initiated", "sip", "180", "status", "ringing"}, events)
	}
}
