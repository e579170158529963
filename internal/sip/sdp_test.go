package sip

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// desc writes a description with one audio line and more lines after it.
func desc(connection, audio string, more ...string) []byte {
	lines := []string{"v=0", "o=- 1 1 IN IP4 192.0.2.1", "s=-"}
	if connection != "" {
		lines = append(lines, "c="+connection)
	}
	lines = append(lines, "t=0 0", "m="+audio)
	return []byte(strings.Join(append(lines, more...), "\r\n") + "\r\n")
}

const (
	here  = "IN IP4 192.0.2.1"
	plain = "audio 4000 RTP/AVP 0 8 101"
)

func TestAnOfferAndItsAnswerAgree(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"192.0.2.1", "2001:db8::1"} {
		for _, secure := range []bool{false, true} {
			a := Media{Address: netip.MustParseAddr(address), Port: 4000, ID: 1}
			if secure {
				a.Crypto = []Crypto{NewCrypto(1, AESCM128SHA180), NewCrypto(2, AESCM128SHA132)}
			}
			b := Media{Address: netip.MustParseAddr(address), Port: 5000, Codecs: []Codec{PCMA(), TelephoneEvent()}}
			answer, theirs, err := Answer(Offer(a), b)
			require.NoError(t, err)
			ours, err := Accept(answer, a)
			require.NoError(t, err)
			require.Equal(t, "PCMA", ours.Codec.Name)
			require.Equal(t, ours.Codec, theirs.Codec)
			require.Equal(t, "telephone-event", ours.Event.Name)
			require.Equal(t, netip.AddrPortFrom(b.Address, 5000), ours.Remote)
			require.Equal(t, netip.AddrPortFrom(a.Address, 4000), theirs.Remote)
			require.True(t, ours.RTCPMux && theirs.RTCPMux)
			require.Equal(t, ours.Remote, ours.RTCP)
			require.Equal(t, 20*time.Millisecond, ours.Ptime)
			if secure {
				require.Equal(t, ours.SendKey, theirs.RecvKey)
				require.Equal(t, ours.RecvKey, theirs.SendKey)
				require.NotEqual(t, ours.SendKey.Key, ours.RecvKey.Key)
				require.Contains(t, string(answer), "RTP/SAVP")
			} else {
				require.Nil(t, ours.SendKey)
			}
		}
	}
}

func TestOddOffersAreAnswered(t *testing.T) {
	t.Parallel()
	key := NewCrypto(3, AESCM128SHA132).String()
	local := Media{Address: netip.MustParseAddr("192.0.2.9"), Port: 5000}
	for name, c := range map[string]struct {
		offer []byte
		check func(Session)
	}{
		"no rtpmap at all": {desc(here, plain), func(s Session) { require.Equal(t, PCMU(), s.Codec) }},
		"dynamic payload of a static codec": {desc(here, "audio 4000 RTP/AVP 96", "a=rtpmap:96 pcma/8000"),
			func(s Session) { require.Equal(t, Codec{Payload: 96, Name: "PCMA", Rate: 8000}, s.Codec) }},
		"wideband first": {desc(here, "audio 4000 RTP/AVP 9 0 8"), func(s Session) { require.Equal(t, PCMU(), s.Codec) }},
		"wideband only":  {desc(here, "audio 4000 RTP/AVP 9 18"), func(s Session) { require.Equal(t, G722(), s.Codec) }},
		"events on 97": {desc(here, "audio 4000 RTP/AVP 0 97", "a=rtpmap:97 telephone-event/8000/1"),
			func(s Session) {
				require.EqualValues(t, 97, s.Event.Payload)
				require.EqualValues(t, 97, s.EventHeard)
			}},
		"events of another clock": {desc(here, "audio 4000 RTP/AVP 0 97", "a=rtpmap:97 telephone-event/48000"),
			func(s Session) { require.Empty(t, s.Event.Name) }},
		"media address wins": {desc(here, plain, "c=IN IP4 192.0.2.77"),
			func(s Session) { require.Equal(t, "192.0.2.77:4000", s.Remote.String()) }},
		"only a media address": {desc("", plain, "c=IN IP6 2001:db8::7"),
			func(s Session) { require.Equal(t, "[2001:db8::7]:4000", s.Remote.String()) }},
		"hold": {desc(here, plain, "a=sendonly"), func(s Session) {
			require.Equal(t, RecvOnly, s.Direction)
			require.True(t, s.Held())
		}},
		"inactive for all": {[]byte(strings.Replace(string(desc(here, plain)), "t=0 0", "t=0 0\r\na=inactive", 1)),
			func(s Session) { require.Equal(t, Inactive, s.Direction) }},
		"hold by 0.0.0.0": {desc("IN IP4 0.0.0.0", plain), func(s Session) {
			require.False(t, s.Remote.IsValid())
			require.True(t, s.Held())
		}},
		"ptime 30":       {desc(here, plain, "a=ptime:30"), func(s Session) { require.Equal(t, 30*time.Millisecond, s.Ptime) }},
		"ptime nonsense": {desc(here, plain, "a=ptime:-7"), func(s Session) { require.Equal(t, 20*time.Millisecond, s.Ptime) }},
		"own rtcp port":  {desc(here, plain, "a=rtcp:4999"), func(s Session) { require.Equal(t, "192.0.2.1:4999", s.RTCP.String()) }},
		"own rtcp address": {desc(here, plain, "a=rtcp:4999 IN IP4 192.0.2.8"),
			func(s Session) { require.Equal(t, "192.0.2.8:4999", s.RTCP.String()) }},
		"rtcp by default": {desc(here, plain), func(s Session) { require.EqualValues(t, 4001, s.RTCP.Port()) }},
		"video beside it": {desc(here, "video 4000 RTP/AVP 96", "a=rtpmap:96 VP8/90000", "m="+plain),
			func(s Session) { require.Equal(t, "PCMU", s.Codec.Name) }},
		"srtp with an odd key first": {desc(here, "audio 4000 RTP/SAVP 0", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:short", "a=crypto:"+key),
			func(s Session) { require.Equal(t, 3, s.SendKey.Tag) }},
		"srtp without keys, rtp after": {desc(here, "audio 4002 RTP/SAVP 0", "m="+plain),
			func(s Session) { require.EqualValues(t, 4000, s.Remote.Port()) }},
		"bare line feeds": {[]byte(strings.ReplaceAll(string(desc(here, plain)), "\r\n", "\n")),
			func(s Session) { require.Equal(t, "PCMU", s.Codec.Name) }},
	} {
		answer, s, err := Answer(c.offer, local)
		require.NoError(t, err, name)
		c.check(s)
		require.Equal(t, strings.Count(string(c.offer), "m="), strings.Count(string(answer), "m="), name)
	}
}

func TestUnusableOffersAreRefused(t *testing.T) {
	t.Parallel()
	local := Media{Address: netip.MustParseAddr("192.0.2.9"), Port: 5000}
	for name, offer := range map[string][]byte{
		"nothing":            nil,
		"junk":               []byte("hello"),
		"too long":           []byte("v=0\r\n" + strings.Repeat("a=x\r\n", 10000)),
		"no media":           []byte("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n"),
		"port 0":             desc(here, "audio 0 RTP/AVP 0"),
		"no codec":           desc(here, "audio 4000 RTP/AVP 18"),
		"only events":        desc(here, "audio 4000 RTP/AVP 101", "a=rtpmap:101 telephone-event/8000"),
		"wideband stereo":    desc(here, "audio 4000 RTP/AVP 96", "a=rtpmap:96 PCMU/8000/2"),
		"multicast":          desc("IN IP4 224.2.1.1/127", plain),
		"a name":             desc("IN IP4 host.example.com", plain),
		"no address":         desc("", plain),
		"srtp without a key": desc(here, "audio 4000 RTP/SAVP 0"),
		"srtp with MKI": desc(here, "audio 4000 RTP/SAVP 0",
			"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20|1:4"),
		"dtls":  desc(here, "audio 4000 UDP/TLS/RTP/SAVPF 0"),
		"image": desc(here, "image 4000 udptl t38"),
	} {
		_, _, err := Answer(offer, local)
		require.Error(t, err, name)
	}
}

// An answerer may number its events otherwise: each side sends what the other named.
func TestEventsAreHeardAsOffered(t *testing.T) {
	t.Parallel()
	s, err := Accept(desc(here, "audio 4000 RTP/AVP 0 97", "a=rtpmap:97 telephone-event/8000"), Media{Address: netip.MustParseAddr("192.0.2.9"), Port: 5000})
	require.NoError(t, err)
	require.EqualValues(t, 97, s.Event.Payload)
	require.EqualValues(t, 101, s.EventHeard)
}

func TestAnswersThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	secure := Media{Address: netip.MustParseAddr("192.0.2.9"), Port: 5000, Crypto: []Crypto{NewCrypto(1, AESCM128SHA180)}}
	for name, answer := range map[string][]byte{
		"plain for secure": desc(here, plain),
		"another tag":      desc(here, "audio 4000 RTP/SAVP 0", "a=crypto:"+NewCrypto(2, AESCM128SHA180).String()),
		"another suite":    desc(here, "audio 4000 RTP/SAVP 0", "a=crypto:"+NewCrypto(1, AESCM128SHA132).String()),
		"refused":          desc(here, "audio 0 RTP/SAVP 0"),
	} {
		_, err := Accept(answer, secure)
		require.Error(t, err, name)
	}
}

func TestNumbersAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ number, format, want string }{
		{"+12025550123", "+e164", "+12025550123"}, {"+12025550123", "e164", "12025550123"},
		{"+12025550123", "national", "2025550123"}, {"+442079460123", "national", "02079460123"},
		{"+999", "national", "999"}, {"reception", "e164", "reception"}, {"+12025550123", "", "+12025550123"},
	} {
		require.Equal(t, c.want, dialled(c.number, c.format), c)
	}
	for _, c := range []struct{ user, format, want string }{
		{"+1-202-555-0123", "", "+12025550123"}, {"12025550123", "e164", "+12025550123"}, {"12025550123", "+e164", "12025550123"},
		{"0012025550123", "national", "+12025550123"}, {"+12025550123;phone-context=x", "", "+12025550123"},
		{"02079460123", "e164", "02079460123"}, {"anonymous", "e164", "anonymous"}, {"", "e164", ""}, {"+", "e164", "+"},
	} {
		require.Equal(t, c.want, received(c.user, c.format), c)
	}
}

func TestRelayAndFragments(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]byte{
		"Signal=5\r\nDuration=160\r\n": '5', "signal= * \nduration=x\n": '*', "Signal=11\r\n": '#', "Signal=d": 'D',
	} {
		digit, _, err := parseRelay("application/dtmf-relay", []byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, digit)
	}
	digit, _, err := parseRelay("application/dtmf", []byte("7\r\n"))
	require.NoError(t, err)
	require.EqualValues(t, '7', digit)
	for _, body := range []string{"", "Signal=", "Signal=12", "Signal=x", "Duration=5", strings.Repeat("a", 2000)} {
		_, _, err := parseRelay("application/dtmf-relay", []byte(body))
		require.Error(t, err, body)
	}
	for body, want := range map[string]int{"SIP/2.0 200 OK": 200, "SIP/2.0 180\r\nX: y": 180, "SIP/2.0 603 Decline\r\n": 603} {
		status, ok := parseFragment([]byte(body))
		require.True(t, ok, body)
		require.Equal(t, want, status)
	}
	for _, body := range []string{"", "HTTP/1.1 200 OK", "SIP/2.0 20", "SIP/2.0 2000 OK", "SIP/2.0 700 X", "SIP/2.0 abc"} {
		_, ok := parseFragment([]byte(body))
		require.False(t, ok, fmt.Sprint(body))
	}
}
