package media

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// TestReportsMeasureTheRoundTrip lets two calls report to each other over a line
// of 30 ms each way that loses one packet in ten.
func TestReportsMeasureTheRoundTrip(t *testing.T) {
	t.Parallel()
	type side struct {
		in      *inbound
		out     *outbound
		reports *reports
	}
	params := Params{Codec: PCMU, Remote: address("192.0.2.1:4000")}
	sides := [2]side{}
	for i := range sides {
		sides[i] = side{newInbound(audio.Rate8k, time.Minute), newOutbound(audio.Rate8k), newReports(0)}
		require.NoError(t, sides[i].in.configure(0, params))
		require.NoError(t, sides[i].out.configure(params))
	}
	const way = 30 * time.Millisecond
	epoch := time.Unix(1_790_000_000, 0)
	sent := [2]int{}
	for n := range int64(3000) { // a minute
		now := time.Duration(n) * audio.FrameDuration
		for i := range sides {
			me, other := &sides[i], &sides[1-i]
			packet := me.out.next(now, n)
			if n%10 != 5 {
				other.in.receive(now+way, params.Remote, packet)
			}
			if me.reports.isDue(now) {
				sent[i]++
				report, err := me.reports.compound(now, epoch.Add(now), me.in, me.out, false)
				require.NoError(t, err)
				other.reports.receive(now+way, epoch.Add(now+way), other.out.packet.ssrc, report)
			}
		}
	}
	for i := range sides {
		require.InDelta(t, 12, sent[i], 5, "about every 5 s")
		r := sides[i].reports
		require.InDelta(t, 60, r.roundTrip.Seconds()*1000, 1)
		require.InDelta(t, 290, r.remoteLost, 45)
		require.Less(t, r.remoteJitter, time.Millisecond)
		require.EqualValues(t, 300, sides[i].in.sequence.lost())
	}
}

func TestReportIntervalVaries(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		r := newReports(0)
		require.LessOrEqual(t, r.due, 4*time.Second, "the first comes soon")
		start := r.due
		require.False(t, r.isDue(start-1))
		require.True(t, r.isDue(start))
		require.False(t, r.isDue(start))
		require.GreaterOrEqual(t, r.due-start, reportInterval/2)
		require.LessOrEqual(t, r.due-start, reportInterval*3/2)
		seen[r.due-start] = true
	}
	require.Greater(t, len(seen), 90)
}

func TestReportsOfOthersAreIgnored(t *testing.T) {
	t.Parallel()
	r := newReports(0)
	now := time.Unix(1_790_000_000, 0)
	receive := func(packets ...rtcp.Packet) {
		b, err := rtcp.Marshal(packets)
		require.NoError(t, err)
		r.receive(time.Second, now, 7, b)
	}
	block := rtcp.ReceptionReport{SSRC: 8, TotalLost: 5, LastSenderReport: middle(ntp(now)) - 6554, Jitter: 80}
	receive(&rtcp.ReceiverReport{SSRC: 1, Reports: []rtcp.ReceptionReport{block}})
	require.Zero(t, r.remoteLost, "about another stream")
	block.SSRC = 7
	block.Delay = 65536 * 60
	receive(&rtcp.ReceiverReport{SSRC: 1, Reports: []rtcp.ReceptionReport{block}})
	require.Zero(t, r.roundTrip, "a trip that ends before it began")
	require.EqualValues(t, 5, r.remoteLost)
	require.Equal(t, 10*time.Millisecond, r.remoteJitter)
	block.Delay = 0
	receive(&rtcp.ReceiverReport{SSRC: 1, Reports: []rtcp.ReceptionReport{block}})
	require.InDelta(t, 0.1, r.roundTrip.Seconds(), 0.001)
}

func TestReportTarget(t *testing.T) {
	t.Parallel()
	remote, seen := address("192.0.2.1:4000"), address("192.0.2.7:61000")
	require.Equal(t, address("192.0.2.1:4001"), reportTarget(&Params{Remote: remote}, remote))
	require.Equal(t, remote, reportTarget(&Params{Remote: remote, Mux: true}, remote))
	own := &Params{Remote: remote, RemoteRTCP: address("192.0.2.1:5000")}
	require.Equal(t, own.RemoteRTCP, reportTarget(own, remote))
	require.Equal(t, address("192.0.2.7:61001"), reportTarget(own, seen), "a NAT has moved it")
}
