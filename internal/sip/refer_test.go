package sip

import (
	"testing"

	gosip "github.com/emiago/sipgo/sip"
	"github.com/stretchr/testify/require"
)

// A carrier that is asked to transfer tells how it goes, until the end.
func TestAReferralIsReported(t *testing.T) {
	t.Parallel()
	statuses, reported := make(chan int, 8), make(chan error, 8)
	p := connect(t, quick(), Hooks{Transfer: func(status int) { statuses <- status }}, Hooks{Refer: func(r *Referral) {
		if r.To == "reception" {
			r.Refuse(404)
			return
		}
		require.Equal(t, "+12025550177", r.To)
		r.Accept()
		for _, status := range []int{100, 180, 486} {
			reported <- r.Report(within(t), status)
		}
		<-r.Over()
		reported <- r.Report(within(t), 200)
	}})
	require.Equal(t, NoSuchNumber, failure(t, p.ours.Transfer(within(t), "reception")).Outcome)
	require.Equal(t, Busy, failure(t, p.ours.Transfer(within(t), "+12025550177")).Outcome)
	for _, status := range []int{100, 180, 486} {
		require.NoError(t, get(t, reported))
		require.Equal(t, status, get(t, statuses))
	}
	res, err := p.a.roundTrip(within(t), p.ours.prepare(gosip.REFER))
	require.NoError(t, err)
	require.Equal(t, 400, res.StatusCode, "to nowhere")
	require.NoError(t, p.ours.Hangup(within(t)))
	require.ErrorIs(t, get(t, reported), ErrOver)
}
