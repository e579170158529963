package sip

import (
	"net/netip"
	"testing"
	"time"

	gosip "github.com/emiago/sipgo/sip"
	"github.com/stretchr/testify/require"
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
