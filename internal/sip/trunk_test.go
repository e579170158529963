package sip

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/icholy/digest"
	"github.com/stretchr/testify/require"

	"parley"
)

// guarded is an agent whose one trunk is known by digest only.
func guarded(t testing.TB, s Settings, take func(context.Context, *Incoming)) *Agent {
	t.Helper()
	s.Incoming = take
	a := start(t, s)
	a.SetTrunks([]parley.Trunk{{ID: 7, Address: "192.0.2.1", Username: "parley", Password: "a long secret", MaxChannels: 10000}})
	return a
}

func TestACallerProvesItselfByDigest(t *testing.T) {
	t.Parallel()
	calls := make(chan *Call, 1)
	b := guarded(t, quick(), answering(calls, Hooks{}))
	a := start(t, quick())
	trunk := trunkTo(b, "udp")
	trunk.Username, trunk.Password = "parley", "a long secret"
	c, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
	require.NoError(t, err)
	require.NoError(t, c.Hangup(within(t)))
	ended(t, get(t, calls))

	trunk.Password = "wrong"
	_, err = a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
	require.Equal(t, Unauthorized, failure(t, err).Outcome)
	require.Equal(t, FaultUs, failure(t, err).Fault)
	trunk.Username = ""
	_, err = a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
	require.Equal(t, 401, failure(t, err).Status)
}

// TestPromiseS9 is the network half of it: without a trunk, SIP answers no stranger,
// and an empty password opens nothing.
func TestPromiseS9(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Incoming = func(context.Context, *Incoming) { panic("a stranger was let in") }
	a := start(t, s)
	stranger := newPeer(t)
	for _, method := range []string{"INVITE", "OPTIONS", "REGISTER", "BYE", "CANCEL", "MESSAGE"} {
		stranger.send(a, stranger.outside(a, method, "100", 1, nil, "Contact: <sip:x@"+stranger.addr.String()+">"))
	}
	require.True(t, stranger.silent(500*time.Millisecond))
	a.SetTrunks([]parley.Trunk{{ID: 1, Address: "192.0.2.1", Username: "admin"}})
	stranger.send(a, stranger.invite(a, 2))
	require.True(t, stranger.silent(500*time.Millisecond))
}

func TestSHA256IsPreferred(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"MD5", "SHA-256"}, {"SHA-256", "MD5"}, {"MD5", "SHA-256", "AKAv1-MD5"}} {
		carrier := newPeer(t)
		a := start(t, quick())
		trunk := carrier.trunk()
		trunk.Username, trunk.Password = "u", "p"
		result := make(chan error, 1)
		go func() {
			_, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
			result <- err
		}()
		invite := carrier.request("INVITE")
		challenges := []string{}
		for _, algorithm := range order {
			challenges = append(challenges, `Proxy-Authenticate: Digest realm="c", nonce="n", qop="auth,auth-int", algorithm=`+algorithm)
		}
		carrier.answer(invite, 407, nil, challenges...)
		carrier.request("ACK")
		second := carrier.request("INVITE")
		given, err := digest.ParseCredentials(header(second, "Proxy-Authorization"))
		require.NoError(t, err)
		require.Equal(t, "SHA-256", given.Algorithm)
		want, ok := expected(given, "INVITE", "p")
		require.True(t, ok)
		require.Equal(t, want, given.Response)
		require.Equal(t, "2 INVITE", header(second, "CSeq"))
		require.Equal(t, header(invite, "Call-ID"), header(second, "Call-ID"))
		carrier.answer(second, 486, nil)
		require.Equal(t, Busy, failure(t, get(t, result)).Outcome)
	}
}

func TestRegistrationFollowsTheServer(t *testing.T) {
	t.Parallel()
	registrar := newPeer(t)
	s := quick()
	s.RegisterRetry = 50 * time.Millisecond
	a := start(t, s)
	trunk := registrar.trunk()
	trunk.Username, trunk.Password, trunk.Register = "u", "p", true
	a.SetTrunks([]parley.Trunk{trunk})
	first := registrar.request("REGISTER")
	require.Contains(t, first, "Contact: <sip:trunk-2@127.0.0.1:")
	require.Contains(t, first, "Expires: 3600")
	require.Contains(t, first, "REGISTER sip:127.0.0.1:")
	registrar.answer(first, 503, nil)
	registrar.answer(registrar.request("REGISTER"), 401, nil, `WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5`)
	authorized := registrar.request("REGISTER")
	require.Contains(t, header(authorized, "Authorization"), `username="u"`)
	registrar.answer(authorized, 423, nil, "Min-Expires: 7200")
	longer := registrar.request("REGISTER")
	require.Contains(t, longer, "Expires: 7200")
	registrar.grant(longer, 1)
	refreshed := registrar.request("REGISTER")
	require.Equal(t, header(first, "Call-ID"), header(refreshed, "Call-ID"), "RFC 3261 section 10.2: one Call-ID for all")
	registrar.grant(refreshed, 3600)
	eventually(t, "it is registered", func() bool {
		h, ok := a.Health(2)
		return ok && h.Registered && time.Until(h.Until) > time.Hour/2
	})
	a.SetTrunks([]parley.Trunk{trunk})
	h, _ := a.Health(2)
	require.True(t, h.Registered, "the same trunk again changes nothing")
	a.SetTrunks(nil)
	gone := registrar.must("unregistering", func(m string) bool {
		return strings.HasPrefix(m, "REGISTER") && header(m, "Expires") == "0"
	})
	registrar.answer(gone, 200, nil)
	_, ok := a.Health(2)
	require.False(t, ok)
}

// grant accepts a registration for some seconds by the Contact's own parameter.
func (p *peer) grant(request string, seconds int) {
	p.answer(request, 200, nil, "Contact: "+header(request, "Contact")+fmt.Sprintf(";expires=%d", seconds))
}

func TestKeepAlivesTellATrunksHealth(t *testing.T) {
	t.Parallel()
	carrier := newPeer(t)
	s := quick()
	s.OptionsEvery = 100 * time.Millisecond
	a := start(t, s)
	a.SetTrunks([]parley.Trunk{carrier.trunk()})
	reachable := func(want bool) func() bool {
		return func() bool { h, _ := a.Health(2); return h.Reachable == want && !h.Since.IsZero() }
	}
	carrier.answer(carrier.request("OPTIONS"), 404, nil)
	eventually(t, "any answer is a sign of life", reachable(true))
	carrier.answer(carrier.request("OPTIONS"), 503, nil)
	eventually(t, "but not 503", reachable(false))
}

func TestARegistrarsCallFindsItsTrunk(t *testing.T) {
	t.Parallel()
	seen := make(chan *Incoming, 1)
	s := quick()
	s.Incoming = func(_ context.Context, in *Incoming) { seen <- in; _ = in.Refuse(486, 0) }
	a := start(t, s)
	carrier := newPeer(t)
	a.SetTrunks([]parley.Trunk{{ID: 4, Address: carrier.addr.String()}, {ID: 5, Address: carrier.addr.String(), CallingFormat: "e164"}})
	invite := strings.Replace(carrier.invite(a, 1), "INVITE sip:+12025550123@", "INVITE sip:trunk-5@", 1)
	invite = strings.Replace(invite, "To: <sip:+12025550123@", "To: <sip:12025550123@", 1)
	carrier.send(a, invite)
	carrier.response(486)
	in := get(t, seen)
	require.EqualValues(t, 5, in.Trunk.ID)
	require.Len(t, in.Trunks, 2)
	require.Equal(t, "+12025550123", in.To)
}

func TestTrunksAreLimited(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := newLimiter(func() time.Time { return now })
	trunk := parley.Trunk{ID: 1, MaxChannels: 3, CallsPerSecond: 2}
	one, ok := l.reserve(trunk, true)
	require.True(t, ok)
	_, ok = l.reserve(trunk, true)
	require.True(t, ok)
	_, ok = l.reserve(trunk, true)
	require.False(t, ok, "two a second")
	now = now.Add(time.Second)
	_, ok = l.reserve(trunk, true)
	require.True(t, ok)
	_, ok = l.reserve(trunk, false)
	require.False(t, ok, "three at once")
	one()
	one()
	require.Equal(t, 2, l.inUse(1))
	_, ok = l.reserve(trunk, false)
	require.True(t, ok)
	_, ok = l.reserve(trunk, false)
	require.False(t, ok, "a release counts once")
}

// TestPromiseT6 is overload as SIP sees it: the cap is exact and the refusal quick.
func TestPromiseT6(t *testing.T) {
	t.Parallel()
	s := quick()
	s.MaxCalls = 20
	calls := make(chan *Call, 40)
	b := callee(t, s, answering(calls, Hooks{}))
	a := start(t, quick())
	results := make(chan error, 40)
	for range 40 {
		go func() {
			began := time.Now()
			_, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
			if err != nil && time.Since(began) > 5*time.Second {
				err = context.DeadlineExceeded
			}
			results <- err
		}()
	}
	refused := 0
	for range 40 {
		if err := get(t, results); err != nil {
			refused++
			f := failure(t, err)
			require.Equal(t, 503, f.Status)
			require.Equal(t, 5*time.Second, f.RetryAfter)
		}
	}
	require.Equal(t, 20, refused)
	b.Drain()
	_, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
	require.Equal(t, 503, failure(t, err).Status)
}
