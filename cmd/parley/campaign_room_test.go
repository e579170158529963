package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two nodes hold twice as many calls of a campaign at once as one of them does, and no
// more; without the one that stops there is room for the other's alone.
func TestTheRoomOfSeveralNodes(t *testing.T) {
	t.Parallel()
	p := startPeer(t, func(string) treatment { return treatment{rings: 2 * time.Second, status: 486} })
	env := append(shared(t, p), "PARLEY_ACCOUNT_CALLS_PER_SECOND=0", "PARLEY_MAX_CALLS=2")
	first := serves(t, env)
	second := joins(t, env, first.token)
	campaign := first.campaign(first.assistant(""), `,"max_retries":0,"max_calls_in_parallel":10`, leadNumbers(12)...)
	first.switches(campaign, "start")
	first.completes(campaign, time.Minute)
	calls, most := p.seen()
	require.Len(t, calls, 12)
	require.Equal(t, 4, most)
	require.Equal(t, map[string]int{"busy": 12}, endings(t, env))
	second.stops()
	var room int
	require.NoError(t, database(t, env).QueryRow("SELECT SUM(max_calls) FROM nodes").Scan(&room))
	require.Equal(t, 2, room)
	first.stops()
}
