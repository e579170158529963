package sip

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rfc4475 are the torture messages of the RFC, which sipgo brings with it.
func rfc4475(t *testing.T) (messages []string) {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/emiago/sipgo").Output()
	require.NoError(t, err)
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "sip", "testdata", "torture", "*", "*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(names), 40, "the RFC has 49")
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		messages = append(messages, string(text))
	}
	return messages
}

// TestPromiseT9 throws the torture of RFC 4475, more of its kind, and plain junk at an
// agent that holds a call: nothing dies, and the call is still there.
func TestPromiseT9(t *testing.T) {
	t.Parallel()
	calls := make(chan *Call, 64) // some of the torture are calls
	b := callee(t, quick(), func(ctx context.Context, in *Incoming) { answering(calls, Hooks{})(ctx, in) })
	a := start(t, quick())
	ours, err := a.Dial(within(t), trunkTo(b, "udp"), Outgoing{To: "+12025550123", Media: media(5000)})
	require.NoError(t, err)
	theirs := get(t, calls)
	attacker := newPeer(t)
	good := attacker.invite(b, 1)
	torture := []string{
		"", "\r\n\r\n", "\x00\x00\x00\x00", "SIP/2.0 200 OK\r\n\r\n", "SIP/2.0 999999999999 x\r\n\r\n", "INVITE\r\n\r\n", "INVITE  SIP/2.0\r\n\r\n",
		"INVITE sip:x SIP/2.0\r\n\r\n", "INVITE sip:x SIP/7.0\r\n\r\n",
		strings.Replace(good, "CSeq: 1 INVITE", "CSeq: 1 BYE", 1),
		strings.Replace(good, "CSeq: 1 INVITE", "CSeq: 99999999999 INVITE", 1),
		strings.Replace(good, "CSeq: 1 INVITE", "CSeq: -1 INVITE", 1),
		strings.Replace(good, "CSeq: 1 INVITE\r\n", "", 1),
		strings.Replace(good, "Max-Forwards: 70", "Max-Forwards: -1", 1),
		strings.Replace(good, "Max-Forwards: 70", "Max-Forwards: 0", 1),
		strings.Replace(good, "Content-Length: ", "Content-Length: 9999999", 1),
		strings.Replace(good, "Content-Length: ", "Content-Length: -", 1),
		strings.Replace(good, "From: ", "From: \"unterminated <sip:x", 1),
		strings.Replace(good, "From: <", "From: <<<<", 1),
		strings.Replace(good, "To: <sip:", "To: <:::", 1),
		strings.Replace(good, "Call-ID: ", "X: ", 1),
		strings.Replace(good, "Via: ", "X: ", 1),
		strings.Replace(good, "branch=z9hG4bK", "branch=", 1),
		strings.Replace(good, "Contact: <sip:caller@", "Contact: <", 1),
		strings.Replace(good, "Contact: ", "X: ", 1),
		strings.Replace(good, "INVITE sip:", "INVITE sip:%00%ff", 1),
		strings.Replace(good, "INVITE sip:+12025550123@", "INVITE tel:+1-202-555-0123;x=", 1),
		strings.Replace(good, "application/sdp", "multipart/mixed", 1),
		strings.Replace(good, "Max-Forwards: 70", "Require: nothingSupportsThis\r\nMax-Forwards: 70", 1),
		strings.Replace(good, "m=audio", "m=\x00\x01audio", 1),
		strings.Replace(good, "\r\nMax-Forwards", "\r\n \r\n\tMax-Forwards", 1),
		strings.Repeat("Via: SIP/2.0/UDP x;branch=z9hG4bKy\r\n", 500),
		"OPTIONS sip:x SIP/2.0\r\n" + strings.Repeat("Via: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKy\r\n", 500) + "\r\n",
		attacker.outside(b, "ACK", "x", 1, nil), attacker.outside(b, "CANCEL", "x", 1, nil), attacker.outside(b, "PRACK", "x", 1, nil),
		attacker.outside(b, "UNHEARDOF", "x", 1, nil), attacker.outside(b, "NOTIFY", "x", 1, nil, "Event: refer"),
		attacker.outside(b, "INVITE", "x", 1, []byte("v=0\r\no=\r\n"), "Contact: <sip:x@127.0.0.1>"),
	}
	for _, m := range append(torture, rfc4475(t)...) {
		attacker.send(b, m)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same junk in every run
	for range 3000 {
		junk := []byte(good)
		for range 1 + random.IntN(8) {
			junk[random.IntN(len(junk))] = byte(random.Uint32())
		}
		attacker.send(b, string(junk[:random.IntN(len(junk)+1)]))
	}
	require.NoError(t, ours.SendDigit(within(t), '1', 100), "the call still works")
	require.NoError(t, ours.Hangup(within(t)))
	require.Equal(t, EndedByPeer, ended(t, theirs).By)
}
