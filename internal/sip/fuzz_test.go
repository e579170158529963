package sip

import (
	"net/netip"
	"testing"
	"time"

	gosip "github.com/emiago/sipgo/sip"
	"github.com/stretchr/testify/require"

	"parley"
)

func FuzzSDP(f *testing.F) {
	local := Media{Address: netip.MustParseAddr("192.0.2.9"), Port: 5000, Crypto: []Crypto{NewCrypto(1, AESCM128SHA180)}}
	f.Add(Offer(local))
	f.Add(desc(here, plain, "a=rtcp:4999 IN IP4 192.0.2.8", "a=sendonly", "a=ptime:30"))
	f.Add(desc("IN IP6 2001:db8::1", "audio 4000 RTP/SAVP 0 96", "a=rtpmap:96 PCMA/8000", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x|2^20"))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = Accept(body, local)
		answer, s, err := Answer(body, local)
		if err != nil {
			return
		}
		_, err = parseSDP(answer)
		require.NoError(t, err, "our own answer can be read")
		require.NotEmpty(t, s.Codec.Name)
		require.False(t, s.Remote.IsValid() && s.Remote.Addr().IsMulticast())
	})
}

// FuzzSIP gives an agent's parts a message as if it had arrived: the filter, the parser,
// and all that is read from a request or a response before a call exists.
func FuzzSIP(f *testing.F) {
	a, err := New(quick())
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, a.Close()) })
	p := &peer{tag: "a", callID: "b", addr: netip.MustParseAddrPort("127.0.0.1:5060")}
	for _, seed := range []string{
		p.inviteBody(a, 1, Offer(media(5000)), "Session-Expires: 90;refresher=uac", "Require: 100rel", "Record-Route: <sip:p;lr>, <sip:q>"),
		p.outside(a, "NOTIFY", "x", 2, []byte("SIP/2.0 200 OK"), "Event: refer"),
		p.outside(a, "ACK", "x", 1, nil), p.outside(a, "INFO", "x", 3, []byte("Signal=1"), "Content-Type: application/dtmf-relay"),
		"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKx;received=192.0.2.1;rport=9\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>;tag=2\r\n" +
			"Call-ID: x\r\nCSeq: 1 INVITE\r\nContact: <sip:c@d>\r\nRecord-Route: <sip:e;lr>\r\nRSeq: 1\r\nMin-SE: 90\r\nContent-Length: 0\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	parser := gosip.NewParser()
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = looksLikeRequest(data)
		_ = scanner(data)
		message, err := parser.ParseSIP(data)
		if err != nil {
			return
		}
		a.tag(message)
		switch m := message.(type) {
		case *gosip.Request:
			readRequest(a, m)
		case *gosip.Response:
			readResponse(a, m)
		}
	})
}

func readRequest(a *Agent, req *gosip.Request) {
	if req.From() == nil || req.To() == nil || req.CallID() == nil || req.CSeq() == nil {
		return
	}
	_ = a.opens(req)
	_, _ = a.refusal(req)
	in := &Incoming{Trunks: []parley.Trunk{{ID: 1, CallingFormat: "national"}}, req: req}
	in.name()
	c := a.newCall(parley.Trunk{}, false, Hooks{}, func() {})
	c.dialog = dialogFromRequest(req, "tag")
	_ = c.prepare(gosip.BYE).String()
	_ = c.accepts(req)
	_, _, _ = parseRelay(headerValue(req, "Content-Type", "c"), req.Body()) //nolint:dogsled // only that it returns
	_ = listed(req, "UPDATE", "Allow")
	_ = a.response(req, 200).String()
}

func readResponse(a *Agent, res *gosip.Response) {
	a.learn(hop{network: "udp"}, res)
	if res.From() == nil || res.To() == nil || res.CallID() == nil || res.CSeq() == nil {
		return
	}
	d := dialogFromResponse(res, hop{network: "udp"})
	_ = d.request(a, gosip.BYE, 2, "").String()
	_ = verdictOf(res)
	_, _ = parseSeconds(headerValue(res, "Session-Expires", "x"))
	_, _ = Accept(res.Body(), media(5000))
}

func FuzzFragment(f *testing.F) {
	f.Add([]byte("SIP/2.0 200 OK\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if status, ok := parseFragment(body); ok && (status < 100 || status > 699) {
			t.Fatal(status)
		}
	})
}

func FuzzRelay(f *testing.F) {
	f.Add("application/dtmf-relay", []byte("Signal=5\r\nDuration=160\r\n"))
	f.Add("application/dtmf", []byte("#"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		if digit, length, err := parseRelay(kind, body); err == nil && (!validDigit(digit) || length <= 0) {
			t.Fatal(digit, length)
		}
	})
}

func FuzzDigest(f *testing.F) {
	c := newChallenger(Settings{Realm: "parley", Digests: []string{"SHA-256", "MD5"}, NonceTTL: time.Minute, Now: time.Now})
	f.Add(`Digest username="u", realm="parley", nonce="` + c.nonce() + `", uri="sip:x", response="00", nc=00000001, cnonce="x", qop=auth`)
	f.Add(c.challenges(true)[0])
	f.Fuzz(func(t *testing.T, header string) {
		if _, v := c.check(header, "INVITE", func(string) (string, bool) { return "secret", true }); v == right {
			t.Fatal("accepted ", header)
		}
		_, _ = parseChallenge(header)
		_, _ = bestChallenge([]gosip.Header{gosip.NewHeader("WWW-Authenticate", header)})
	})
}

func FuzzGuard(f *testing.F) {
	f.Add([]byte("INVITE sip:x SIP/2.0\r\nUser-Agent: friendly-scanner\r\n\r\n"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = looksLikeRequest(data)
		_ = scanner(data)
	})
}
