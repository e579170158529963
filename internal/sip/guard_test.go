package sip

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/icholy/digest"
	"github.com/stretchr/testify/require"

	"parley"
)

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(1_700_000_000, c.at.Load()) }
func (c *clock) add(by time.Duration) { c.at.Add(int64(by)) }

func TestPromiseS1(t *testing.T) {
	t.Parallel()
	s := quick()
	s.FloodRequests = 100000
	b := guarded(t, s, func(context.Context, *Incoming) { panic("a stranger was let in") })
	scanner := newPeer(t)
	for _, tool := range []string{"friendly-scanner", "sipvicious", "sipcli/v1.8", "VaxSIPUserAgent/3.1", "pplsip"} {
		for _, method := range []string{"OPTIONS", "REGISTER", "INVITE"} {
			scanner.send(b, scanner.outside(b, method, "100", 1, nil, "User-Agent: "+tool, "Contact: <sip:x@"+scanner.addr.String()+">"))
		}
	}
	require.True(t, scanner.silent(500*time.Millisecond), "0 bytes replied")

	// The name of a tool hides nothing else: other strangers learn no extension.
	stranger := newPeer(t)
	same := map[string]int{}
	for i := range 500 {
		user := fmt.Sprintf("%d", 100+i)
		if i%2 == 0 {
			user = "parley" // the one that exists
		}
		stranger.callID = randomHex(6)
		invite := stranger.outside(b, "INVITE", user, 1, nil, "Contact: <sip:x@"+stranger.addr.String()+">")
		stranger.send(b, invite)
		answer := stranger.response(401)
		same[anonymous(answer, user)]++
	}
	require.Len(t, same, 1, "known and unknown answer identically")
	require.Zero(t, b.Counters().CallsIn)
}

// anonymous is an answer without what must differ: ids, nonces, ports and the user asked for.
func anonymous(m, user string) string {
	m = strings.ReplaceAll(m, "sip:"+user+"@", "sip:U@")
	for _, p := range []string{`branch=[^;\r]+`, `tag=[^;\r]+`, `nonce="[^"]+"`, `(?m)^Call-ID:.*$`} {
		m = regexp.MustCompile(p).ReplaceAllString(m, "X")
	}
	return m
}

func TestPromiseS2(t *testing.T) {
	t.Parallel()
	now := &clock{}
	s := quick()
	s.Now = now.now
	calls := make(chan *Call, 64)
	s.Incoming = answering(calls, Hooks{})
	b := start(t, s)
	b.SetTrunks([]parley.Trunk{{ID: 7, Address: "192.0.2.1", AllowedInbound: []string{"127.0.0.1"}, Username: "u", Password: "p", MaxChannels: 1000}})
	noisy := newPeerAt(t, "127.0.0.66")
	flood := func(n int) (answered int) {
		for range n {
			noisy.callID = randomHex(6)
			noisy.send(b, noisy.invite(b, 1))
			if noisy.next(30*time.Millisecond, func(m string) bool { return strings.HasPrefix(m, "SIP/2.0 401") }) != "" {
				answered++
			}
		}
		return answered
	}
	done := make(chan int, 1)
	go func() { done <- flood(60) }()
	a := start(t, quick())
	var waits []time.Duration
	for range 20 {
		began := time.Now()
		c, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
		require.NoError(t, err)
		waits = append(waits, time.Since(began))
		require.NoError(t, c.Hangup(within(t)))
	}
	answered := get(t, done)
	require.LessOrEqual(t, answered, 20)
	require.GreaterOrEqual(t, answered, 10)
	slices.Sort(waits)
	t.Logf("blocked after %d; the trunk's INVITE takes p50 %v, max %v beside it", answered, waits[10], waits[19])
	now.add(299 * time.Second)
	require.Zero(t, flood(1), "banned for 300 s")
	now.add(2 * time.Second)
	noisy.callID = randomHex(6)
	noisy.send(b, noisy.invite(b, 1))
	noisy.response(401) // heard again
	require.EqualValues(t, 1, b.Counters().Banned)
}

func TestTheGuardForgets(t *testing.T) {
	t.Parallel()
	now := &clock{}
	s := quick()
	s.Now = now.now
	require.NoError(t, s.complete())
	g := newGuard(s, func(netip.Addr) bool { return false }, &counters{})
	request := []byte("OPTIONS sip:x SIP/2.0\r\n\r\n")
	for i := range 1000 {
		g.admits(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), true, request)
	}
	require.Len(t, g.sources, 1000)
	now.add(5 * time.Second)
	require.True(t, g.admits(netip.MustParseAddr("10.1.0.1"), true, request))
	require.Len(t, g.sources, 1)
	require.False(t, g.admits(netip.MustParseAddr("10.1.0.1"), true, []byte("junk")))
	require.True(t, g.admits(netip.MustParseAddr("10.1.0.1"), false, []byte("half a message of a stream")))
}

func TestPromiseS3(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		s := quick()
		s.FloodRequests = 1 << 20
		s.Incoming = func(context.Context, *Incoming) { panic("a stranger was let in") }
		b := start(t, s)
		if known {
			b.SetTrunks([]parley.Trunk{{ID: 7, Address: "192.0.2.1", Username: "parley", Password: "a long secret"}})
		}
		stranger := newPeer(t)
		for i := range 1000 {
			stranger.callID = randomHex(6)
			more := ""
			if i%2 == 0 {
				more = `Authorization: Digest username="parley", realm="parley", nonce="` + b.challenge.nonce() +
					`", uri="sip:x", response="` + randomHex(32) + `", algorithm=SHA-256, qop=auth, nc=00000001, cnonce="x"`
			}
			stranger.send(b, stranger.invite(b, 1, more))
		}
		eventually(t, "all are dealt with", func() bool {
			c := b.Counters()
			return c.Challenged+c.Dropped >= 1000
		})
		require.Zero(t, b.Counters().CallsIn)
		require.Zero(t, b.Counters().Active)
	}
}

func TestPromiseS4(t *testing.T) {
	t.Parallel()
	now := &clock{}
	c := newChallenger(Settings{Realm: "parley", Digests: []string{"SHA-256", "MD5"}, NonceTTL: time.Minute, Now: now.now})
	secret := func(user string) (string, bool) { return "a long secret", user == "parley" }
	authorization := func(algorithm, nonce string, nc int, password string) string {
		credentials, err := digest.Digest(&digest.Challenge{Realm: "parley", Nonce: nonce, Algorithm: algorithm, QOP: []string{"auth"}},
			digest.Options{Method: "INVITE", URI: "sip:x", Username: "parley", Password: password, Count: nc})
		require.NoError(t, err)
		return credentials.String()
	}
	challenges := c.challenges(false)
	require.Contains(t, challenges[0], "algorithm=SHA-256")
	require.Contains(t, challenges[1], "algorithm=MD5")

	var accepted []string
	for i := range 100 {
		algorithm := []string{"SHA-256", "MD5"}[i%2]
		h := authorization(algorithm, c.nonce(), 1, "a long secret")
		_, v := c.check(h, "INVITE", secret)
		require.Equal(t, right, v)
		accepted = append(accepted, h)
	}
	replayed := 0
	for _, h := range accepted {
		if _, v := c.check(h, "INVITE", secret); v == right {
			replayed++
		}
	}
	require.Zero(t, replayed, "replay 100 accepted headers: 0 accepted")

	nonce := c.nonce()
	for _, step := range []struct {
		nc   int
		want verdict
	}{{2, right}, {2, stale}, {1, stale}, {3, right}} {
		_, v := c.check(authorization("SHA-256", nonce, step.nc, "a long secret"), "INVITE", secret)
		require.Equal(t, step.want, v, "nc must rise")
	}
	old := authorization("SHA-256", c.nonce(), 1, "a long secret")
	now.add(61 * time.Second)
	_, v := c.check(old, "INVITE", secret)
	require.Equal(t, stale, v)
	require.Contains(t, c.challenges(true)[0], "stale=true")

	_, v = c.check(authorization("SHA-256", c.nonce(), 1, "guess"), "INVITE", secret)
	require.Equal(t, wrong, v)
	_, v = c.check(authorization("SHA-256", c.nonce(), 1, "a long secret"), "BYE", secret)
	require.Equal(t, wrong, v, "made for another method")
	_, v = c.check(authorization("SHA-256", strings.Repeat("0", 64), 1, "a long secret"), "INVITE", secret)
	require.Equal(t, wrong, v, "not our nonce")
	_, v = c.check(authorization("SHA-256", c.nonce(), 1, ""), "INVITE", func(string) (string, bool) { return "", true })
	require.Equal(t, wrong, v, "an empty password is none")
	now.add(2 * time.Minute)
	_, _ = c.check(authorization("MD5", c.nonce(), 1, "a long secret"), "INVITE", secret)
	require.Len(t, c.used, 1, "stale nonces are forgotten")
}

func TestPromiseS8(t *testing.T) {
	t.Parallel()
	calls := make(chan *Call, 1)
	b := callee(t, quick(), answering(calls, Hooks{}))
	caller := newPeer(t)
	caller.send(b, caller.invite(b, 50))
	ok := caller.response(200)
	caller.send(b, caller.inDialog(b, ok, "ACK", 50))
	call := get(t, calls)
	before := call.Session()
	for i := range 100 {
		method := []string{"BYE", "INVITE"}[i%2]
		body := []byte(nil)
		if method == "INVITE" {
			body = Offer(media(9999))
		}
		attack, want := caller.inDialogBody(b, ok, method, 100+i, body), 481
		switch i % 4 {
		case 0, 1: // a guessed tag of ours or of theirs
			tag := []string{"To", "From"}[(i/4)%2]
			line := tag + ": " + header(ok, tag)
			attack = strings.Replace(attack, line, regexp.MustCompile(`tag=.*`).ReplaceAllString(line, "tag=guess"), 1)
		default: // an old number
			attack, want = caller.inDialogBody(b, ok, method, 1+i%50, body), 500
		}
		caller.send(b, attack)
		branch := regexp.MustCompile(`branch=[^;]+`).FindString(attack)
		answer := caller.must("answer", func(m string) bool { return strings.Contains(m, branch) && !strings.HasPrefix(m, "SIP/2.0 1") })
		require.Contains(t, answer, fmt.Sprintf("SIP/2.0 %d ", want), i)
	}
	require.Equal(t, before, call.Session())
	require.EqualValues(t, 1, b.Counters().Active)
	caller.send(b, caller.inDialog(b, ok, "BYE", 51))
	require.Equal(t, 200, caller.status("BYE"))
	require.Equal(t, EndedByPeer, ended(t, call).By)
}
