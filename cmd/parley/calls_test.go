package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/sip"
	"parley/internal/sip/siptest"
)

// desk is a running server with the people as its carrier, an assistant that answers
// deskNumber and one that calls.
type desk struct {
	*node
	people    *people
	sip       string
	assistant parley.ID
}

const deskNumber = "+12025550123"

var sipLine = regexp.MustCompile(`(?m)^  SIP +(\S+)$`)

// opens a desk in an environment, with settings of its own.
func opens(t *testing.T, p *people, env []string, settings ...string) *desk {
	t.Helper()
	d := returns(t, p, env, settings...)
	var number, a, b struct{ Data struct{ ID parley.ID } }
	d.must(201, "POST", "/api/user/phone-numbers", `{"phone_number":"`+deskNumber+`","type_label":"Normal"}`, &number)
	const assistant = `"engine_type":"pipeline","voice_id":1,"language":"English","llm_model":"sandbox","timezone":"UTC","system_prompt":"When asked about hours, say: We open at nine.",
		"initial_message":"Hello {{name}}, this is Quokkaphone.","record_call":true,"max_silence_duration":25`
	d.must(201, "POST", "/api/user/assistant", fmt.Sprintf(`{"assistant_name":"In","calls_direction":"receive","phone_number_id":%d,%s}`, number.Data.ID, assistant), &a)
	d.must(201, "POST", "/api/user/assistant", `{"assistant_name":"Out","calls_direction":"make",`+assistant+`}`, &b)
	d.assistant = b.Data.ID
	return d
}

// returns starts a desk's server on a database that has one already.
func returns(t *testing.T, p *people, env []string, settings ...string) *desk {
	t.Helper()
	d := &desk{people: p}
	d.node = serves(t, append(append([]string{"PARLEY_SIP=127.0.0.1:0", "PARLEY_DEFAULT_TRUNK=sip:" + p.address(), "PARLEY_RATE_PER_TOKEN=0", "PARLEY_RATE_PER_ADDRESS=0",
		"PARLEY_ACCOUNT_CALLS=0", "PARLEY_ACCOUNT_CALLS_PER_SECOND=0", "PARLEY_TOKEN=desk-desk-desk-desk-desk-desk-desk"}, env...), settings...))
	d.token = "desk-desk-desk-desk-desk-desk-desk"
	d.sip = sipLine.FindStringSubmatch(d.greeted)[1]
	return d
}

// gather starts people who ask their question until the end of a test.
func gather(t *testing.T, says ...string) *people {
	t.Helper()
	p, err := startPeople(says...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.close() })
	return p
}

// ask sends a request and reads the answer.
func (d *desk) ask(method, path, body string, answer any) (int, error) {
	request, err := http.NewRequest(method, d.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && answer != nil {
		if text, ok := answer.(*string); ok {
			*text = string(raw)
		} else {
			err = json.Unmarshal(raw, answer)
		}
	}
	return response.StatusCode, err
}

func (d *desk) must(status int, method, path, body string, answer any) {
	d.t.Helper()
	got, err := d.ask(method, path, body, answer)
	require.NoError(d.t, err)
	require.Equal(d.t, status, got, "%s %s: %s", method, path, d.log)
}

// calls has a number called.
func (d *desk) calls(number string) parley.ID {
	d.t.Helper()
	var made struct {
		ID parley.ID `json:"call_id"`
	}
	d.must(200, "POST", "/api/user/make_call", fmt.Sprintf(`{"assistant_id":%d,"phone_number":"%s","variables":{"name":"Zyxwarida"}}`, d.assistant, number), &made)
	return made.ID
}

// tally counts the calls by status.
func (d *desk) tally() map[parley.CallStatus]int {
	d.t.Helper()
	counts := map[parley.CallStatus]int{}
	for _, status := range parley.CallStatuses {
		var page struct{ Total int }
		d.must(200, "GET", "/api/user/calls?per_page=1&status="+string(status), "", &page)
		if page.Total > 0 {
			counts[status] = page.Total
		}
	}
	return counts
}

// open counts the calls that have no final status.
func (d *desk) open() (n int) {
	d.t.Helper()
	for status, count := range d.tally() {
		if !status.Final() {
			n += count
		}
	}
	return n
}

// metric reads a metric.
func (d *desk) metric(name string) float64 {
	d.t.Helper()
	var text string
	d.must(200, "GET", "/metrics", "", &text)
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	require.NotNil(d.t, found, name)
	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(d.t, err)
	return value
}

// dial has one of them call a desk.
func (p *people) dial(ctx context.Context, to string) (*person, error) {
	who, err := p.newPerson()
	if err != nil {
		return nil, err
	}
	way := parley.Trunk{ID: 1, Address: to, Transport: "udp", CallingFormat: "+e164"}
	who.call, err = p.agent.Dial(ctx, way, sip.Outgoing{To: deskNumber, From: "+12025550111", Media: who.media(), Hooks: who.hooks()})
	if err != nil {
		_ = who.conn.Close()
		return nil, err
	}
	who.answered = time.Now()
	go who.talk(who.call.Session().Remote)
	return who, nil
}

// eventually polls what other processes do.
func eventually(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, within, 50*time.Millisecond, what)
}

// slowly is how long something quick may take on a machine that is busy.
const slowly = time.Minute

func (p *people) awaits(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d talk", n), slowly, func() bool { return p.counts().Talking == n })
}

// The people at the end of a conversation of a whole server: a call out becomes a
// record, and its numbers show in the metrics.
func TestPromiseG9FirstSoundFollowsTheAnswer(t *testing.T) {
	t.Parallel()
	n := promise.Figure(20, 1000)
	p := gather(t, question)
	d := opens(t, p, []string{"PARLEY_DATA=" + t.TempDir()})
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for i := range n {
		<-pace.C
		d.calls(fmt.Sprintf("+4930%06d", i))
		if i%20 == 19 {
			p.hangUp(t.Context(), func(w *person) bool { return w.heard.Load() })
		}
	}
	eventually(t, "everybody has heard something", slowly, func() bool { return p.sounded() == n })
	p.hangUpAll(t.Context())
	eventually(t, "all are over", slowly, func() bool { return d.open() == 0 })
	require.Equal(t, map[parley.CallStatus]int{parley.CallCompleted: n}, d.tally(), "abandoned: 0")
	p99 := p.counts().FirstSoundP99
	t.Logf("%d answered calls: first sound p99 %s", n, p99)
	require.LessOrEqual(t, p99, sampleDuration(10*time.Second, 40*time.Millisecond))
	d.stops()
}

func sampleDuration(usual, promised time.Duration) time.Duration {
	if promise.Full() {
		return promised
	}
	return usual
}

// sounded is how many calls have brought a sound.
func (p *people) sounded() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.silence)
}

// TestPromiseT1 has sipp call a whole server.
func TestPromiseT1EverySetUpHasOneEnd(t *testing.T) {
	t.Parallel()
	n := promise.Figure(60, 1000)
	d := opens(t, gather(t), []string{"PARLEY_DATA=" + t.TempDir()})
	d.sipp(t, n, 50)
	eventually(t, "every call has its end", slowly, func() bool { return d.tally()[parley.CallCompleted] == n })
	require.Equal(t, map[parley.CallStatus]int{parley.CallCompleted: n}, d.tally())
	require.Zero(t, d.metric("parley_calls_active"))
	d.stops()
}

// The rate that a whole server takes calls at, with their rows, conversations and jobs.
func TestSetUpRateOfAServer(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("runs with PARLEY_PROMISES=full")
	}
	d := opens(t, gather(t), []string{"PARLEY_DATA=" + t.TempDir()})
	d.sipp(t, 2000, 200)
	eventually(t, "every call has its end", 2*slowly, func() bool { return d.tally()[parley.CallCompleted] == 2000 })
	d.stops()
}

// sipp places calls at a desk; none may fail.
func (d *desk) sipp(t *testing.T, calls, perSecond int) {
	t.Helper()
	peer := siptest.StartSipp(t, "../../internal/sip/testdata/uac_call.xml", "-s", deskNumber, "-m", strconv.Itoa(calls), "-r", strconv.Itoa(perSecond), "-l", "2000", d.sip)
	require.NoError(t, peer.Wait())
	times := peer.AnswerTimes()
	t.Logf("%d calls at %d/s, INVITE to 200: p50 %s, p99 %s", calls, perSecond, percentile(times, 0.5), percentile(times, 0.99))
	if promise.Full() && perSecond <= 50 {
		require.LessOrEqual(t, percentile(times, 0.99), 100*time.Millisecond)
	}
}

// statusOf is the status that a call was refused with, 0 for one that was answered.
func statusOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	refused, ok := errors.AsType[*sip.Failure](err)
	require.True(t, ok, err)
	return refused.Status
}

func TestPromiseT6OverloadIsRefused(t *testing.T) {
	t.Parallel()
	p := gather(t, question)
	d := opens(t, p, []string{"PARLEY_DATA=" + t.TempDir()}, "PARLEY_MAX_CALLS=20")
	var mu sync.Mutex
	outcomes, slowest := map[int]int{}, time.Duration(0)
	var offered sync.WaitGroup
	pace := time.NewTicker(time.Second / 20)
	defer pace.Stop()
	for range 40 {
		<-pace.C
		offered.Go(func() {
			began := time.Now()
			_, err := p.dial(context.Background(), d.sip)
			mu.Lock()
			defer mu.Unlock()
			status := statusOf(t, err)
			outcomes[status]++
			if status == 503 {
				slowest = max(slowest, time.Since(began))
			}
		})
	}
	offered.Wait()
	require.Equal(t, map[int]int{0: 20, 503: 20}, outcomes)
	require.Equal(t, 20, int(d.metric("parley_calls_active")))
	t.Logf("slowest 503 after %s", slowest)
	if promise.Full() {
		require.LessOrEqual(t, slowest, 200*time.Millisecond)
		time.Sleep(5 * time.Second) // of conversation, in which nothing may be lost
		require.Zero(t, p.counts().Lost)
	}
	p.hangUpAll(t.Context())
	eventually(t, "all are over", slowly, func() bool { return d.open() == 0 })
	require.Equal(t, map[parley.CallStatus]int{parley.CallCompleted: 20}, d.tally())
	who, err := p.dial(t.Context(), d.sip)
	require.NoError(t, err, "there is room again")
	require.NoError(t, who.hangUp(t.Context()))
	d.stops()
}

func TestPromiseT7StopDrains(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		p := gather(t, question)
		d := opens(t, p, env)
		for i := range 10 {
			if i%2 == 0 {
				d.calls(fmt.Sprintf("+4930%06d", i))
				continue
			}
			_, err := p.dial(t.Context(), d.sip)
			require.NoError(t, err)
		}
		p.awaits(t, 10)
		require.NoError(t, d.command.Process.Signal(syscall.SIGTERM))
		eventually(t, "it is not ready any more", slowly, func() bool { return d.get("/readyz", "") == 503 })
		_, err := p.dial(t.Context(), d.sip)
		require.Equal(t, 503, statusOf(t, err))
		require.Equal(t, 10, p.counts().Talking, "they talk on")
		require.Equal(t, 10, int(d.metric("parley_calls_active")))
		p.hangUpAll(t.Context())
		require.NoError(t, <-d.exited, d.log)
		again := returns(t, p, env)
		require.Equal(t, map[parley.CallStatus]int{parley.CallCompleted: 10}, again.tally())
		again.stops()
	})
}

// A drain that takes too long ends the calls itself.
func TestPromiseT7TheDrainHasALimit(t *testing.T) {
	t.Parallel()
	env := []string{"PARLEY_DATA=" + t.TempDir()}
	p := gather(t, question)
	d := opens(t, p, env, "PARLEY_DRAIN_SECONDS=1")
	d.calls("+4930123456")
	p.awaits(t, 1)
	d.stops()
	again := returns(t, p, env)
	require.Equal(t, map[parley.CallStatus]int{parley.CallCompleted: 1}, again.tally())
	again.stops()
}

// A node that stops waits for the calls that it has ended itself to be completed, and not
// for those that another is at work on.
func TestPromiseT7ADrainIsOfOnesOwnCalls(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		p := gather(t, question)
		d := opens(t, p, env, "PARLEY_STOP_TIMEOUT_SECONDS=600")
		d.calls("+4930123456")
		p.awaits(t, 1)
		p.hangUpAll(t.Context())
		eventually(t, "it is completed", slowly, func() bool { return d.tally()[parley.CallCompleted] == 1 })
		_, err := database(t, env).Exec("UPDATE calls SET status = 'ended', ended_on = 'another node'")
		require.NoError(t, err)
		require.NoError(t, d.command.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-d.exited:
			require.NoError(t, err, d.log)
		case <-time.After(slowly):
			require.Fail(t, "it waits for a call of another node")
		}
	})
}

// bounded is how long after a restart, or a death beside another node, calls may be open.
const bounded = 20 * time.Second

func TestPromiseT8CrashIsBounded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		p := gather(t, question)
		d := opens(t, p, env)
		for i := range 20 {
			d.calls(fmt.Sprintf("+4930%06d", i))
		}
		eventually(t, "all talk, and the rows say so", slowly, func() bool { return d.tally()[parley.CallInProgress] == 20 })
		postgres := len(env) > 1
		var heir *desk
		if postgres {
			heir = returns(t, p, env) // beside it
		}
		require.NoError(t, d.command.Process.Kill())
		<-d.exited
		if !postgres {
			heir = returns(t, p, env) // after it
		}
		began := time.Now()
		eventually(t, "all rows are final", sampleDuration(slowly, bounded), func() bool { return heir.open() == 0 })
		t.Logf("final %s later", time.Since(began).Round(time.Millisecond))
		require.Equal(t, map[parley.CallStatus]int{parley.CallCompleted: 20}, heir.tally(), "they had been answered")
		require.EqualValues(t, 20, p.counts().Invites, "nobody was called twice")
		var lost struct {
			Data []struct {
				EndReason string `json:"end_reason"`
			}
		}
		heir.must(200, "GET", "/api/user/calls?per_page=100", "", &lost)
		for _, c := range lost.Data {
			require.Equal(t, string(parley.EndNodeLost), c.EndReason)
		}
		heir.stops()
	})
}

// udpSockets counts a process's open UDP sockets.
func udpSockets(t *testing.T, pid int) (n int) {
	t.Helper()
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		raw, err := os.ReadFile(table)
		require.NoError(t, err)
		for line := range strings.Lines(string(raw)) {
			if fields := strings.Fields(line); len(fields) > 9 {
				inodes["socket:["+fields[9]+"]"] = true
			}
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	for _, e := range entries {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())); err == nil && inodes[to] {
			n++
		}
	}
	return n
}

func TestPromiseT4NothingLeaks(t *testing.T) {
	t.Parallel()
	n := promise.Figure(60, 1000)
	p := gather(t, question)
	d := opens(t, p, []string{"PARLEY_DATA=" + t.TempDir()})
	d.crowd(t, 10) // pools and caches fill
	eventually(t, "all are over", slowly, func() bool { return d.open() == 0 })
	var goroutines, sockets int
	settled := func() bool { // what was begun for the last calls has ended
		before := goroutines
		goroutines, sockets = int(d.metric("go_goroutines")), udpSockets(t, d.command.Process.Pid)
		return goroutines == before
	}
	require.Eventually(t, settled, slowly, time.Second)
	d.crowd(t, n)
	eventually(t, "all are over", slowly, func() bool { return d.open() == 0 })
	eventually(t, "nothing is left of them", sampleDuration(slowly, 5*time.Second), func() bool {
		return d.metric("parley_calls_active") == 0 && d.metric("parley_rtp_sessions") == 0 && udpSockets(t, d.command.Process.Pid) == sockets
	})
	// SIP keeps the transactions of a call for 32 s, to answer what is repeated.
	eventually(t, "no goroutine is left", slowly, func() bool { return int(d.metric("go_goroutines")) <= goroutines+5 })
	t.Logf("%d calls: %v; %d goroutines before, %.0f after", n, d.tally(), goroutines, d.metric("go_goroutines"))
	d.stops()
}

// crowd calls in and out at once; three of ten calls are cut off at a random moment.
func (d *desk) crowd(t *testing.T, n int) {
	t.Helper()
	var all sync.WaitGroup
	pace := time.NewTicker(time.Second / 30)
	defer pace.Stop()
	for i := range n {
		<-pace.C
		life := 800 * time.Millisecond
		if rand.IntN(10) < 3 {
			life = rand.N(life)
		}
		ctx, cancel := context.WithTimeout(context.Background(), life)
		if i%2 == 0 {
			all.Go(func() {
				defer cancel()
				if who, err := d.people.dial(ctx, d.sip); err == nil {
					<-ctx.Done()
					_ = who.hangUp(context.Background())
				}
			})
			continue
		}
		id := d.calls(fmt.Sprintf("+4930%06d", i))
		all.Go(func() {
			defer cancel()
			<-ctx.Done()
			_, _ = d.ask("POST", fmt.Sprintf("/api/user/calls/%d/hangup", id), "", nil)
		})
	}
	all.Wait()
}

func TestPromiseT5DeadMediaEndsTheCall(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("waits for the media's fifteen seconds; make promises runs it")
	}
	p := gather(t) // who say nothing, in packets
	d := opens(t, p, []string{"PARLEY_DATA=" + t.TempDir()})
	dead, err := p.dial(t.Context(), d.sip)
	require.NoError(t, err)
	quiet, err := p.dial(t.Context(), d.sip)
	require.NoError(t, err)
	eventually(t, "they hear", slowly, func() bool { return p.sounded() == 2 })
	dead.quiet.Store(true)
	stopped := time.Now()
	<-dead.over
	require.InDelta(t, 15, time.Since(stopped).Seconds(), 1)
	select {
	case <-quiet.over:
		t.Fatal("packets of silence are no dead line")
	default:
	}
	<-quiet.over
	eventually(t, "all are over", slowly, func() bool { return d.open() == 0 })
	var calls struct {
		Data []struct {
			EndReason string `json:"end_reason"`
		}
	}
	d.must(200, "GET", "/api/user/calls", "", &calls)
	require.Equal(t, "max_silence", calls.Data[0].EndReason)
	require.Equal(t, "media_lost", calls.Data[1].EndReason)
	d.stops()
}

func TestPromiseT9JunkBesideACall(t *testing.T) {
	t.Parallel()
	p := gather(t, question)
	d := opens(t, p, []string{"PARLEY_DATA=" + t.TempDir()})
	_, err := p.dial(t.Context(), d.sip)
	require.NoError(t, err)
	eventually(t, "they talk", slowly, func() bool { return p.sounded() == 1 })
	resident := d.metric("process_resident_memory_bytes")
	to, err := net.ResolveUDPAddr("udp4", d.sip)
	require.NoError(t, err)
	var wait sync.WaitGroup
	var sent atomic.Int64
	lasts := sampleDuration(time.Second, 10*time.Second)
	for _, from := range []string{"127.0.0.66", "127.0.0.1"} { // a stranger, and the carrier's own address
		wait.Go(func() {
			conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, to)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			junk := make([]byte, 700)
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for began := time.Now(); time.Since(began) < lasts; <-pace.C {
				for range 10 {
					for i := range junk {
						junk[i] = byte(rand.Uint32())
					}
					copy(junk, [][]byte{nil, []byte("INVITE sip:x SIP/2.0\r\n"), []byte("SIP/2.0 200 OK\r\n"), []byte("\r\n\r\n")}[rand.IntN(4)])
					if _, err := conn.Write(junk[:1+rand.IntN(len(junk)-1)]); err == nil {
						sent.Add(1)
					}
				}
			}
		})
	}
	wait.Wait()
	grown := d.metric("process_resident_memory_bytes") - resident
	t.Logf("%d datagrams of junk: %.1f MB more, %d packets lost", sent.Load(), grown/1e6, p.counts().Lost)
	require.Equal(t, 1, p.counts().Talking)
	if promise.Full() {
		require.Zero(t, p.counts().Lost)
		require.Less(t, grown, 20e6)
	}
	p.hangUpAll(t.Context())
	eventually(t, "it ends as ever", slowly, func() bool { return d.tally()[parley.CallCompleted] == 1 })
	d.stops()
}

// What people are called, say and type, and what lets them in, is in no log and no metric.
func TestPromiseL2LogsHoldNoPeople(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		n := promise.Figure(5, 50)
		p := gather(t, "My secret word is Wombatish.")
		d := opens(t, p, env)
		var id parley.ID
		for i := range n {
			id = d.calls(fmt.Sprintf("+49309988%03d", i))
			who, err := p.dial(t.Context(), d.sip)
			require.NoError(t, err)
			for _, key := range "7391846" {
				require.NoError(t, who.call.SendDigit(t.Context(), byte(key), 100*time.Millisecond))
			}
		}
		eventually(t, "they hear and are heard", slowly, func() bool { return p.sounded() == 2*n && d.spoken(id, "human") > 0 })
		p.hangUpAll(t.Context())
		eventually(t, "all are over", slowly, func() bool { return d.open() == 0 })
		var metrics string
		d.must(200, "GET", "/metrics", "", &metrics)
		d.stops()
		for _, canary := range []string{"49309988", "12025550111", strings.TrimPrefix(deskNumber, "+"), "Zyxwarida", "Quokka", "Wombat", "7391846", d.token} {
			require.NotContains(t, d.log.String(), canary)
			require.NotContains(t, metrics, canary)
		}
		require.Contains(t, d.log.String(), "stopping", "there is a log")
	})
}

// spoken counts the turns of a call so far, by its events.
func (d *desk) spoken(call parley.ID, sender string) int {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond) // a live call's stream has no end
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/api/user/calls/%d/events", d.url, call), nil)
	require.NoError(d.t, err)
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return strings.Count(string(raw), `"sender":"`+sender+`"`)
}
