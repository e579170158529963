package media

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// TestSRTPOutlivesTheSequence: the rollover counter goes on when the 16-bit numbers
// begin again (RFC 3711 3.3.1), and when a re-INVITE repeats the keys.
func TestSRTPOutlivesTheSequence(t *testing.T) {
	t.Parallel()
	key, _ := testKeys()
	params := Params{Codec: PCMU, SendKey: key, ReceiveKey: key}
	l := newLoop(t, params)
	l.out.packet.sequence = 65000
	for n := range 3000 {
		if n == 2000 {
			again := *key
			params.Remote, params.SendKey, params.ReceiveKey = l.remote, &again, &again
			require.NoError(t, l.out.configure(params))
			require.NoError(t, l.in.configure(time.Duration(l.n)*audio.FrameDuration, params))
		}
		l.step()
	}
	require.EqualValues(t, 3000, l.in.packets)
	require.EqualValues(t, 65000+3000, l.in.sequence.highest)
	require.Zero(t, l.in.invalid)
}

func TestSRTPHearsOnlyWhoHoldsTheKey(t *testing.T) {
	t.Parallel()
	key, other := testKeys()
	remote := address("192.0.2.1:4000")
	in := newInbound(audio.Rate8k, time.Minute)
	require.NoError(t, in.configure(0, Params{Codec: PCMU, Remote: remote, SendKey: key, ReceiveKey: key}))
	sender := func(key *Key) *outbound {
		o := newOutbound(audio.Rate8k)
		require.NoError(t, o.configure(Params{Codec: PCMU, Remote: remote, SendKey: key, ReceiveKey: key}))
		return o
	}
	right, wrong, bare := sender(key), sender(other), sender(nil)
	for n := range int64(1000) {
		in.receive(0, remote, wrong.next(0, n))
		in.receive(0, remote, bare.next(0, n))
	}
	require.Zero(t, in.packets)
	require.EqualValues(t, 2000, in.invalid)
	require.False(t, in.watch.heard, "a forgery is no sign of life")

	packet := append([]byte(nil), right.next(0, 0)...)
	spoilt := append([]byte(nil), packet...)
	spoilt[20] ^= 1
	in.receive(0, remote, spoilt)
	require.Zero(t, in.packets)
	in.receive(0, remote, packet)
	in.receive(0, remote, packet)
	require.EqualValues(t, 1, in.packets, "once")

	require.NoError(t, in.configure(0, Params{Codec: PCMU, Remote: remote, SendKey: key, ReceiveKey: other}))
	in.receive(0, remote, right.next(0, 1))
	require.EqualValues(t, 1, in.packets, "the old key is worth nothing after a new one")
	changed := sender(other)
	in.receive(0, remote, changed.next(0, 0))
	in.receive(0, remote, changed.next(0, 1))
	require.EqualValues(t, 2, in.packets, "the new stream is believed from its second packet on")
}

// TestPromiseS7ForgedPacketsAreNotDecoded: among the packets of an encrypted call come
// 10,000 of the same stream in which a bit is wrong, in the tag or anywhere else, from the
// peer's own address. None is decoded, and of the call's own none is lost.
func TestPromiseS7ForgedPacketsAreNotDecoded(t *testing.T) {
	t.Parallel()
	const forged, each = 10_000, 10
	key, _ := testKeys()
	l := newLoop(t, Params{Codec: PCMU, SendKey: key, ReceiveKey: key})
	random := rand.New(rand.NewPCG(7, 7))
	l.step()
	for range forged / each {
		now := time.Duration(l.n) * audio.FrameDuration
		forgery := append([]byte(nil), l.out.next(now, l.n)...)
		for i := range each {
			bit := random.IntN(8 * len(forgery))
			if i == 0 {
				bit = 8*len(forgery) - 1 - random.IntN(80) // the tag is the last ten octets
			}
			forgery[bit/8] ^= 1 << (bit % 8)
			l.in.receive(now, l.remote, forgery)
			forgery[bit/8] ^= 1 << (bit % 8)
		}
		l.in.receive(now, l.remote, forgery) // which is the call's own now
		l.n++
	}
	require.EqualValues(t, forged, l.in.invalid)
	require.EqualValues(t, 1+forged/each, l.in.packets)
	require.Zero(t, l.in.sequence.lost())
}

func TestReportsAreSealedToo(t *testing.T) {
	t.Parallel()
	key, other := testKeys()
	var mine, theirs, stranger cipher
	require.NoError(t, mine.rekey(key))
	require.NoError(t, theirs.rekey(key))
	require.NoError(t, stranger.rekey(other))
	l := newLoop(t, Params{Codec: PCMU})
	l.step()
	report, err := newReports(0).compound(0, time.Unix(1_790_000_000, 0), l.in, l.out, true)
	require.NoError(t, err)
	sealed, ok := mine.sealReport(report)
	require.True(t, ok)
	sealed = append([]byte(nil), sealed...)
	_, ok = stranger.openReport(append([]byte(nil), sealed...))
	require.False(t, ok)
	opened, ok := theirs.openReport(append([]byte(nil), sealed...))
	require.True(t, ok)
	require.Equal(t, string(report), string(opened))
	_, ok = theirs.openReport(append([]byte(nil), sealed...))
	require.False(t, ok, "a report is believed once")
}
