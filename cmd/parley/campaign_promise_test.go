package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/sip/siptest"
	"parley/internal/store/storetest"
)

// leadNumbers are numbers that only a trunk has.
func leadNumbers(count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("+1303%07d", 2_000_000+i)
	}
	return all
}

// shared is the environment of several nodes on one PostgreSQL.
func shared(t *testing.T, p *peer) []string {
	t.Helper()
	return append([]string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_DB=" + storetest.EmptyPostgres(t)}, p.trunk()...)
}

// joins starts a further node.
func joins(t *testing.T, env []string, token string) *node {
	t.Helper()
	n := serves(t, env)
	n.token = token
	return n
}

// callsOf counts the calls by number.
func callsOf(calls []peerCall) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		counts[c.number]++
	}
	return counts
}

// Three nodes on one database never have more calls up than a campaign may have, and a stop
// that has been answered is the last that is heard of it.
func TestPromiseG3ParallelismIsNeverExceeded(t *testing.T) {
	t.Parallel()
	count, parallel := promise.Figure(200, 5000), promise.Figure(10, 20)
	p := startPeer(t, func(string) treatment {
		return treatment{rings: 200*time.Millisecond + rand.N(400*time.Millisecond), status: 486}
	})
	env := append(shared(t, p), "PARLEY_ACCOUNT_CALLS_PER_SECOND=0")
	first := serves(t, env)
	second, third := joins(t, env, first.token), joins(t, env, first.token)
	campaign := first.campaign(first.assistant(""), fmt.Sprintf(`,"max_retries":0,"max_calls_in_parallel":%d`, parallel), leadNumbers(count)...)
	began := time.Now()
	first.switches(campaign, "start")
	require.True(t, comesTrue(30*time.Second, func() bool { calls, _ := p.seen(); return len(calls) > 0 }))
	calls, _ := p.seen()
	t.Logf("the first INVITE came %s after the start was asked for", calls[0].invited.Sub(began).Round(time.Millisecond))

	for _, n := range []*node{second, third} {
		before := len(calls)
		require.True(t, comesTrue(time.Minute, func() bool { calls, _ = p.seen(); return len(calls) >= before+count/8 }), "the campaign goes on")
		n.switches(campaign, "stop")
		stopped := time.Now()
		time.Sleep(1500 * time.Millisecond) // nothing is to be heard in this time
		calls, _ = p.seen()
		late := slices.DeleteFunc(slices.Clone(calls), func(c peerCall) bool { return c.invited.Before(stopped) })
		require.Empty(t, late, "INVITEs after the stop was answered")
		n.switches(campaign, "start")
	}
	first.completes(campaign, 10*time.Minute)
	calls, most := p.seen()
	t.Logf("%d leads, %d INVITEs, %d at once, %s", count, len(calls), most, time.Since(began).Round(time.Second))
	require.LessOrEqual(t, most, parallel)
	require.Equal(t, parallel, most, "and the campaign's calls are made as many at once as they may be")
	for number, times := range callsOf(calls) {
		require.Equal(t, 1, times, number)
	}
	if len(callsOf(calls)) < count {
		t.Errorf("%d of %d leads were called; their calls ended so: %v", len(callsOf(calls)), count, endings(t, env))
	}
}

// A node that has too few ports for a campaign's calls makes them all, one after another:
// what we have not costs no lead its attempt.
func TestPromiseG3WhatWeLackCostsNoAttempt(t *testing.T) {
	t.Parallel()
	const count, ports = 7, 8
	p := startPeer(t, func(string) treatment { return treatment{rings: 300 * time.Millisecond, status: 486} })
	first := siptest.Ports(t)
	env := append(p.trunk(), "PARLEY_DATA="+t.TempDir(), fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", first, first+ports-1))
	n := serves(t, env)
	campaign := n.campaign(n.assistant(""), fmt.Sprintf(`,"max_retries":0,"max_calls_in_parallel":%d`, count), leadNumbers(count)...)
	n.switches(campaign, "start")
	n.completes(campaign, 5*time.Minute) // the ports of a call rest for half a minute
	calls, most := p.seen()
	require.LessOrEqual(t, most, ports/2)
	require.Len(t, callsOf(calls), count, "%v", endings(t, env))
	require.Equal(t, map[string]int{"busy": count}, endings(t, env))
}

// endings counts why calls ended.
func endings(t *testing.T, env []string) map[string]int {
	t.Helper()
	rows, err := database(t, env).Query("SELECT COALESCE(end_reason, status), COUNT(*) FROM calls GROUP BY 1")
	require.NoError(t, err)
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var reason string
		var n int
		require.NoError(t, rows.Scan(&reason, &n))
		all[reason] = n
	}
	require.NoError(t, rows.Err())
	return all
}

// Nodes are killed at random instants: no attempt is dialled twice, and no lead is lost.
func TestPromiseG4NoAttemptIsDialledTwice(t *testing.T) {
	t.Parallel()
	kills, count := promise.Figure(4, 100), promise.Figure(80, 1500)
	p := startPeer(t, func(string) treatment {
		return treatment{rings: rand.N(300 * time.Millisecond), status: 486}
	})
	env := shared(t, p)
	nodes := []*node{serves(t, env)}
	token := nodes[0].token
	for range 2 {
		nodes = append(nodes, joins(t, env, token))
	}
	assistant := nodes[0].assistant("")
	campaign := nodes[0].campaign(assistant, `,"max_retries":0,"max_calls_in_parallel":6`, leadNumbers(count)...)
	nodes[0].switches(campaign, "start")
	for kill := range kills {
		calls, _ := p.seen()
		require.True(t, comesTrue(2*time.Minute, func() bool { now, _ := p.seen(); return len(now) > len(calls) || len(now) == count }), "calls go on after %d kills", kill)
		time.Sleep(rand.N(400 * time.Millisecond)) // a random instant
		victim := rand.IntN(len(nodes))
		require.NoError(t, nodes[victim].command.Process.Kill())
		<-nodes[victim].exited
		nodes[victim] = joins(t, env, token)
	}
	nodes[0].completes(campaign, 10*time.Minute)
	calls, most := p.seen()
	for number, status := range nodes[0].statuses(campaign) {
		require.Equal(t, "reached-max-retries", status, number)
	}
	for number, times := range callsOf(calls) {
		require.Equal(t, 1, times, number)
	}
	lost := count - len(callsOf(calls)) // claimed by a node that died before its INVITE left
	t.Logf("%d kills, %d leads: %d INVITEs, %d attempts ended with their node before they left, %d at once", kills, count, len(calls), lost, most)
	require.LessOrEqual(t, lost, kills*6)
}

// Nobody who answers meets silence, and nobody's telephone stops ringing early.
func TestPromiseG9CampaignCallsMeetNoSilence(t *testing.T) {
	t.Parallel()
	count, parallel := promise.Figure(30, 1000), promise.Figure(5, 10)
	numbers := leadNumbers(count + 1)
	patient := numbers[count]
	p := startPeer(t, func(number string) treatment {
		if number == patient {
			return treatment{}
		}
		return treatment{rings: 300 * time.Millisecond, status: 200, talks: 1500 * time.Millisecond}
	})
	env := append([]string{"PARLEY_DATA=" + t.TempDir()}, p.trunk()...)
	n := serves(t, env)
	assistant := n.assistant("")
	campaign := n.campaign(assistant, fmt.Sprintf(`,"max_retries":0,"max_calls_in_parallel":%d`, parallel), numbers[:count]...)
	unanswered := n.campaign(assistant, `,"max_retries":0`, patient)
	n.switches(unanswered, "start")
	n.switches(campaign, "start")
	n.completes(campaign, 20*time.Minute)
	calls, _ := p.seen()
	var waits []time.Duration
	abandoned := 0
	for _, c := range calls {
		if c.answered.IsZero() {
			continue
		}
		if c.heard.IsZero() || c.endedByThem && c.heard.IsZero() {
			abandoned++
			continue
		}
		waits = append(waits, c.heard.Sub(c.answered))
	}
	t.Logf("%d answered, %d abandoned; first sound after %s (median), %s (p99)", len(waits)+abandoned, abandoned, percentile(waits, 0.5).Round(time.Millisecond), percentile(waits, 0.99).Round(time.Millisecond))
	require.Len(t, waits, count)
	require.Zero(t, abandoned)
	require.LessOrEqual(t, percentile(waits, 0.99), sampleDuration(10*time.Second, time.Second))

	n.completes(unanswered, 2*time.Minute)
	calls, _ = p.seen()
	rang := slices.IndexFunc(calls, func(c peerCall) bool { return c.number == patient })
	require.False(t, calls[rang].cancelled.IsZero())
	require.GreaterOrEqual(t, calls[rang].cancelled.Sub(calls[rang].invited), 15*time.Second)
}

// People who say or key that they want no more calls are hung up on at once, and no campaign
// of the account calls them again, whichever node serves it.
func TestPromiseG5OptOutsInARunningCampaign(t *testing.T) {
	t.Parallel()
	count, parallel := promise.Figure(20, 200), promise.Figure(4, 10)
	env := []string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_DB=" + storetest.EmptyPostgres(t), "PARLEY_OPT_OUT_KEY=4", "PARLEY_SIP=127.0.0.1:0"}
	n := serves(t, env)
	joins(t, env, n.token)
	numbers := make([]string, count)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("+1303555%02d%s", i/2, []string{"08", "16"}[i%2]) // spoken, and keyed
	}
	assistant := n.assistant("")
	settings := fmt.Sprintf(`,"max_calls_in_parallel":%d`, parallel)
	campaigns := []int{n.campaign(assistant, settings, numbers...), n.campaign(assistant, settings, numbers...)}
	for _, c := range campaigns {
		n.switches(c, "start")
	}
	for _, c := range campaigns {
		n.completes(c, 20*time.Minute)
		for number, status := range n.statuses(c) {
			require.Equal(t, "blacklisted", status, number)
		}
	}
	rows, err := database(t, env).Query("SELECT client_phone_number, opted_out, answered_at, ended_at, turns FROM calls WHERE dialed_at IS NOT NULL")
	require.NoError(t, err)
	defer rows.Close()
	called, took := map[string]int{}, []time.Duration{}
	for rows.Next() {
		var number, document string
		var optedOut bool
		var answered, ended int64
		require.NoError(t, rows.Scan(&number, &optedOut, &answered, &ended, &document))
		called[number]++
		var turns []parley.Turn
		require.NoError(t, json.Unmarshal([]byte(document), &turns))
		slices.Reverse(turns)
		said := slices.IndexFunc(turns, func(t parley.Turn) bool { return t.Sender == "human" })
		if optedOut && said >= 0 {
			asked := time.UnixMicro(answered).Add(time.Duration(turns[said].EndedMS) * time.Millisecond)
			took = append(took, time.UnixMicro(ended).Sub(asked))
		}
	}
	require.NoError(t, rows.Err())
	require.Len(t, called, count)
	for number, times := range called {
		require.Equal(t, 1, times, number)
	}
	t.Logf("%d opted out, each called once; the call was over %s after the customer's last words (p99)", count, percentile(took, 0.99).Round(time.Millisecond))
	require.LessOrEqual(t, percentile(took, 0.99), 2*time.Second)
}
