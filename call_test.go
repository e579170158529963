package parley_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

func TestACallNeverGoesBackward(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		status := parley.CallInitiated
		visited := map[parley.CallStatus]bool{status: true}
		for range 20 {
			next := rapid.SampledFrom(parley.CallStatuses).Draw(r, "next")
			if !status.CanBecome(next) {
				continue
			}
			require.False(r, visited[next], "%s came twice", next)
			require.False(r, status.Final(), "%s is final, yet became %s", status, next)
			require.Contains(r, next.Before(), status)
			visited[next], status = true, next
		}
		require.False(r, visited[parley.CallBusy] && visited[parley.CallInProgress], "a busy line had no conversation")
	})
}

func TestCallStatusTransitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to parley.CallStatus
		may      bool
	}{
		{parley.CallInitiated, parley.CallRinging, true},
		{parley.CallInitiated, parley.CallInProgress, true}, // a carrier that never says 180
		{parley.CallRinging, parley.CallInitiated, false},
		{parley.CallRinging, parley.CallBusy, true},
		{parley.CallInProgress, parley.CallFailed, false},
		{parley.CallInProgress, parley.CallEndedByCustomer, true},
		{parley.CallEndedByCustomer, parley.CallEndedByAssistant, false},
		{parley.CallEnded, parley.CallCompleted, true},
		{parley.CallCompleted, parley.CallEnded, false},
		{parley.CallFailed, parley.CallCompleted, false},
		{"nonsense", parley.CallCompleted, false},
		{parley.CallInitiated, "nonsense", false},
	} {
		require.Equal(t, c.may, c.from.CanBecome(c.to), "%s -> %s", c.from, c.to)
	}
	for _, status := range parley.CallStatuses {
		require.NotEqual(t, status.Final(), len(after(status)) > 0, "%s is final exactly when nothing follows it", status)
	}
	require.True(t, parley.CallEnded.Talked())
	require.False(t, parley.CallBusy.Talked())
}

func after(status parley.CallStatus) (next []parley.CallStatus) {
	for _, s := range parley.CallStatuses {
		if status.CanBecome(s) {
			next = append(next, s)
		}
	}
	return next
}
