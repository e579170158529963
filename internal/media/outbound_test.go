package media

import (
	"math"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// sendFrames takes packets from an outbound and reads them as pion does.
func sendFrames(t *testing.T, o *outbound, from, n int64) (packets []rtp.Packet) {
	t.Helper()
	for i := range n {
		b := o.next(time.Duration(from+i)*audio.FrameDuration, from+i)
		if b == nil {
			continue
		}
		var p rtp.Packet
		require.NoError(t, p.Unmarshal(append([]byte(nil), b...)))
		packets = append(packets, p)
	}
	return packets
}

func TestStreamIsSteady(t *testing.T) {
	t.Parallel()
	params := Params{Codec: PCMU, EventType: 101, Remote: address("192.0.2.1:4000")}
	o := newOutbound(audio.Rate8k)
	require.NoError(t, o.configure(params))
	packets := sendFrames(t, o, 0, 10)
	require.Len(t, packets, 10, "silence is sent too")
	for i, p := range packets {
		require.Equal(t, i == 0, p.Marker, "the marker begins the stream and nothing else")
		require.EqualValues(t, 0, p.PayloadType)
		require.Len(t, p.Payload, 160)
		require.Equal(t, packets[0].SequenceNumber+uint16(i), p.SequenceNumber)
		require.Equal(t, packets[0].Timestamp+uint32(160*i), p.Timestamp)
		require.Equal(t, packets[0].SSRC, p.SSRC)
	}
	left := sendFrames(t, o, 15, 1)
	require.Equal(t, packets[9].Timestamp+6*160, left[0].Timestamp, "frames left out have passed all the same")
	require.Equal(t, packets[9].SequenceNumber+1, left[0].SequenceNumber, "and no packet is missing")

	params.Direction = ReceiveOnly
	require.NoError(t, o.configure(params))
	require.Empty(t, sendFrames(t, o, 16, 10), "on hold")
	params.Direction, params.Codec = SendReceive, PCMA
	require.NoError(t, o.configure(params))
	resumed := sendFrames(t, o, 26, 2)
	require.True(t, resumed[0].Marker)
	require.False(t, resumed[1].Marker)
	require.EqualValues(t, 8, resumed[0].PayloadType)
	require.Equal(t, left[0].Timestamp+11*160, resumed[0].Timestamp)
	require.Equal(t, left[0].SequenceNumber+1, resumed[0].SequenceNumber)
	require.Equal(t, packets[0].SSRC, resumed[0].SSRC)
}

// TestEventsAreThoseOfTheRFC: RFC 4733 2.5.1.
func TestEventsAreThoseOfTheRFC(t *testing.T) {
	t.Parallel()
	o := newOutbound(audio.Rate8k)
	require.NoError(t, o.configure(Params{Codec: PCMU, EventType: 101, Remote: address("192.0.2.1:4000")}))
	before := sendFrames(t, o, 0, 1)[0]
	require.NoError(t, o.dialer.dial("5#"))
	packets := sendFrames(t, o, 1, 30)
	require.Len(t, packets, 30)
	starts := map[uint32]int{}
	for i, p := range packets {
		require.Equal(t, before.SequenceNumber+uint16(i)+1, p.SequenceNumber)
		if p.PayloadType != 101 {
			require.Equal(t, before.Timestamp+uint32(160*(i+1)), p.Timestamp, "sound keeps its time around keys")
			continue
		}
		event, err := audio.ParseEvent(p.Payload)
		require.NoError(t, err)
		starts[p.Timestamp]++
		require.Equal(t, starts[p.Timestamp] == 1, p.Marker)
		require.EqualValues(t, min(starts[p.Timestamp]*160, 800), event.Duration)
		require.Equal(t, starts[p.Timestamp] >= 5, event.End)
	}
	require.Equal(t, map[uint32]int{before.Timestamp + 160: 7, before.Timestamp + 12*160: 7}, starts, "five packets, the last three times, then a pause")
}

func TestKeysMoveInbandWhenEventsAreTakenAway(t *testing.T) {
	t.Parallel()
	params := Params{Codec: PCMU, EventType: 101, Remote: address("192.0.2.1:4000")}
	o := newOutbound(audio.Rate8k)
	require.NoError(t, o.configure(params))
	require.NoError(t, o.dialer.dial("12"))
	sendFrames(t, o, 0, 2)
	params.EventType = 0
	require.NoError(t, o.configure(params))
	detector, err := audio.NewDTMFDetector(audio.Rate8k)
	require.NoError(t, err)
	var heard []byte
	samples := make([]int16, 160)
	for _, p := range sendFrames(t, o, 2, 30) {
		require.Zero(t, p.PayloadType)
		audio.DecodeMuLaw(samples, p.Payload)
		if digit, ok := detector.Detect(samples); ok {
			heard = append(heard, digit)
		}
	}
	require.Equal(t, "2", string(heard))
}

func TestQueueKeepsTheNewest(t *testing.T) {
	t.Parallel()
	o := newOutbound(audio.Rate8k)
	for i := range queueFrames + 3 {
		o.push([]int16{int16(i + 1)})
	}
	require.EqualValues(t, 3, o.overrun)
	for i := range queueFrames {
		frame := o.pop()
		require.EqualValues(t, i+4, frame[0])
		require.Zero(t, frame[1], "what is missing is silence")
	}
	require.Zero(t, o.pop()[0])
}

// TestCodecMayChangeItsRate: a call that began at 8 kHz goes on at 8 kHz over G.722,
// and one of 16 kHz over G.711.
func TestCodecMayChangeItsRate(t *testing.T) {
	t.Parallel()
	remote := address("192.0.2.1:4000")
	for _, codecs := range [][2]Codec{{PCMU, G722}, {G722, PCMA}} {
		rate := codecs[0].Rate()
		in, out := newInbound(rate, time.Minute), newOutbound(rate)
		tone, frame := audio.NewSine(rate, 700, -12), make([]int16, rate.FrameSamples())
		var heard []int16
		for n := range int64(200) {
			now := time.Duration(n) * audio.FrameDuration
			if n == 0 || n == 100 {
				params := Params{Codec: codecs[n/100], Remote: remote}
				require.NoError(t, in.configure(now, params))
				require.NoError(t, out.configure(params))
			}
			tone.Fill(frame)
			out.push(frame)
			in.receive(now, remote, out.next(now, n))
			in.hear(now+time.Millisecond, frame, nil)
			heard = append(heard, frame...)
		}
		for _, second := range []int{50, 120, 150} {
			x := heard[second*len(frame) : (second+50)*len(frame)]
			require.Greater(t, power(x, rate, 700), 0.95, "%v at frame %d", codecs, second)
			require.InDelta(t, 5800, level(x), 600)
		}
	}
}

func TestLawsDecodeByTheirTypes(t *testing.T) {
	t.Parallel()
	// The peer uses A-law though mu-law was agreed on first, as an offer with both allows.
	remote := address("192.0.2.1:4000")
	in, out := newInbound(audio.Rate8k, time.Minute), newOutbound(audio.Rate8k)
	require.NoError(t, in.configure(0, Params{Codec: PCMU, Remote: remote}))
	require.NoError(t, out.configure(Params{Codec: PCMA, Remote: remote}))
	tone, frame := audio.NewSine(audio.Rate8k, 700, -12), make([]int16, 160)
	var heard []int16
	for n := range int64(100) {
		now := time.Duration(n) * audio.FrameDuration
		tone.Fill(frame)
		out.push(frame)
		in.receive(now, remote, out.next(now, n))
		in.hear(now+time.Millisecond, frame, nil)
		heard = append(heard, frame...)
	}
	require.Greater(t, power(heard[8000:], audio.Rate8k, 700), 0.99)
	require.False(t, math.IsNaN(level(heard)))
}
