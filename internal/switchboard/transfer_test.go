package switchboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A call whose customer asks for a person is handed over by the simulated carrier, and its
// record says so.
func TestATransferredCallsRecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		o.assistant = o.hire(o.user, func(a *parley.Assistant) { a.SystemPrompt = "Transfer to: +12025550100" })
		c := o.ends(o.asks(asksForAPerson))
		ended(t, c, parley.CallCompleted, parley.EndTransferred)
		require.Equal(t, "assistant", *c.EndedBy)
		require.Equal(t, []string{"initiated", "ringing", "in-progress", "ended_by_assistant", "completed"}, statuses(c))
		require.Contains(t, c.Transcript, "connect you")
		require.Positive(t, c.Duration)
		eventually(t, "nothing is held", func() bool { return o.board.Live() == 0 && o.board.Telephone.SIP.Counters().Active == 0 })
	})
}
