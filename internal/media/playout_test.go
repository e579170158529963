package media

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/promise"
)

// delivery is a packet and when it arrives.
type delivery struct {
	at        time.Duration
	timestamp uint32
	payload   []byte
}

// toneStream is a tone in packets of this length, sent on time.
func toneStream(hertz float64, length, ptime time.Duration) []delivery {
	tone := audio.NewSine(audio.Rate8k, hertz, -12)
	n := audio.Rate8k.Samples(ptime)
	samples := make([]int16, n)
	var stream []delivery
	for at := time.Duration(0); at < length; at += ptime {
		tone.Fill(samples)
		payload := make([]byte, n)
		audio.EncodeMuLaw(payload, samples)
		// Timestamps wrap soon after the start.
		stream = append(stream, delivery{at: at, timestamp: uint32(ticks(at)) - 4000, payload: payload})
	}
	return stream
}

// play runs a stream through a jitter buffer in virtual time.
func play(t *testing.T, p *playout, stream []delivery, length time.Duration, each func(now time.Duration)) []int16 {
	t.Helper()
	require.NoError(t, p.switchTo(PCMU))
	slices.SortStableFunc(stream, func(a, b delivery) int { return int(a.at - b.at) })
	var heard []int16
	frame := make([]int16, p.rate.FrameSamples())
	for now := 7 * time.Millisecond; now < length; now += audio.FrameDuration {
		for len(stream) > 0 && stream[0].at <= now {
			p.put(stream[0].at, stream[0].timestamp, stream[0].payload)
			stream = stream[1:]
		}
		p.frame(now, frame)
		heard = append(heard, frame...)
		if each != nil {
			each(now)
		}
	}
	return heard
}

// longestGap is the longest stretch, in whole 5 ms, that is far below the tone.
func longestGap(x []int16) time.Duration {
	usual, longest, gap := level(x), 0, 0
	for ; len(x) >= 40; x = x[40:] {
		if gap++; level(x[:40]) > usual/8 {
			gap = 0
		}
		longest = max(longest, gap)
	}
	return time.Duration(longest) * 5 * time.Millisecond
}

func requireToneInEachSecond(t *testing.T, x []int16, hertz float64) {
	t.Helper()
	for second := 0; len(x) >= 8000; second++ {
		require.Greater(t, share(x[:8000], audio.Rate8k, hertz), 0.7, "the tone stands out in second %d", second)
		for _, other := range []float64{hertz / 2, hertz * 1.7, hertz * 2.3} {
			require.Less(t, share(x[:8000], audio.Rate8k, other), 0.05, "nothing else does")
		}
		x = x[8000:]
	}
}

// TestPromiseT11BadNetworksAreSurvived: 3 % loss, 40 ms jitter, 2 % reorder.
func TestPromiseT11BadNetworksAreSurvived(t *testing.T) {
	t.Parallel()
	const length, hertz = 60 * time.Second, 440.0
	seeds := promise.Figure[uint64](3, 50)
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 11))
		var stream []delivery
		for _, d := range toneStream(hertz, length, 20*time.Millisecond) {
			if random.Float64() < 0.03 {
				continue
			}
			d.at += time.Duration(random.Float64() * float64(40*time.Millisecond))
			if random.Float64() < 0.02 {
				d.at += 25 * time.Millisecond // behind its successor
			}
			stream = append(stream, d)
		}
		p := newPlayout(audio.Rate8k)
		deepest := time.Duration(0)
		heard := play(t, p, stream, length, func(now time.Duration) { deepest = max(deepest, p.delay(now)) })
		heard = heard[2000:]
		require.LessOrEqual(t, longestGap(heard), 60*time.Millisecond)
		requireToneInEachSecond(t, heard, hertz)
		require.LessOrEqual(t, deepest, 150*time.Millisecond)
		share := float64(p.concealed) / float64(length/audio.FrameDuration)
		require.Less(t, share, 0.08, "loss, and little more, is concealed")
		if seed == 0 {
			t.Logf("concealed %.1f %% of frames, late %d packets, delay at most %v, longest gap %v", 100*share, p.late, deepest, longestGap(heard))
		}
	}
}

func TestACleanStreamIsPlayedBitForBit(t *testing.T) {
	t.Parallel()
	for _, ptime := range []time.Duration{10, 20, 30, 40, 60} {
		ptime *= time.Millisecond
		stream := toneStream(440, 3*time.Second, ptime)
		var sent []int16
		for _, d := range stream {
			samples := make([]int16, len(d.payload))
			audio.DecodeMuLaw(samples, d.payload)
			sent = append(sent, samples...)
		}
		p := newPlayout(audio.Rate8k)
		heard := play(t, p, stream, 3*time.Second, nil)
		start := slices.IndexFunc(heard, func(v int16) bool { return v != 0 }) / 160 * 160
		require.Less(t, tickTime(int64(start)), 60*time.Millisecond, "packets of %v are played soon", ptime)
		const fade = 160 // the first sound comes in gently
		n := len(heard) - start
		require.True(t, slices.Equal(sent[fade:n], heard[start+fade:start+n]), "packets of %v", ptime)
		require.Zero(t, p.concealed)
		require.Zero(t, p.late)
	}
}

func TestDelayGrowsWithJitterAndShrinksAgain(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	stream := toneStream(440, 40*time.Second, 20*time.Millisecond)
	for i := range stream {
		if stream[i].at > 10*time.Second && stream[i].at < 20*time.Second {
			stream[i].at += time.Duration(random.Float64() * float64(100*time.Millisecond))
		}
	}
	p := newPlayout(audio.Rate8k)
	at := map[int]time.Duration{}
	heard := play(t, p, stream, 40*time.Second, func(now time.Duration) { at[int(now.Seconds())] = p.delay(now) })
	require.Less(t, at[9], 40*time.Millisecond)
	require.Greater(t, at[19], 80*time.Millisecond)
	require.Less(t, at[19], 160*time.Millisecond)
	require.Less(t, at[39], 60*time.Millisecond, "comes down again")
	requireToneInEachSecond(t, heard[8000*21:8000*39], 440)
	require.Less(t, longestGap(heard[8000*21:8000*39]), 10*time.Millisecond, "shrinking is not heard")
	t.Logf("delay: steady %v, 100 ms of jitter %v, after it %v", at[9], at[19], at[39])
}

// words are lengths of sound between pauses, in whole 5 ms.
func words(x []int16) (lengths []time.Duration) {
	length, pause := time.Duration(0), 0
	for ; len(x) >= 40; x = x[40:] {
		if level(x[:40]) > 1000 {
			length += 5 * time.Millisecond
			pause = 0
		} else if pause++; pause == 6 && length > 0 { // 30 ms end a word
			lengths = append(lengths, length)
			length = 0
		}
	}
	return lengths
}

// A voice pauses, and the delay changes in its pauses: whatever the network does, the
// words between are as long as they were spoken, and only the one that a stall broke
// is not.
func TestTheDelayChangesInPauses(t *testing.T) {
	t.Parallel()
	const word, pause, length = 240 * time.Millisecond, 100 * time.Millisecond, 40 * time.Second
	spoken := toneStream(440, length, 20*time.Millisecond)
	silence := make([]byte, 160)
	audio.EncodeMuLaw(silence, make([]int16, 160))
	count := 0
	for i := range spoken {
		switch spoken[i].at % (word + pause) {
		case 0:
			count++
		default:
			if spoken[i].at%(word+pause) >= word {
				spoken[i].payload = silence
			}
		}
	}
	random := rand.New(rand.NewPCG(5, 5))
	for name, c := range map[string]struct {
		late   func(at time.Duration) time.Duration
		broken int
	}{
		"nothing happens": {func(time.Duration) time.Duration { return 0 }, 0},
		"one stall of 150 ms": {func(at time.Duration) time.Duration {
			return max(0, 10200*time.Millisecond-at) * max(0, min(1, at/(10050*time.Millisecond)))
		}, 2}, // one in two pieces
		"10 s of 40 ms jitter": {func(at time.Duration) time.Duration {
			if at < 10*time.Second || at > 20*time.Second {
				return 0
			}
			return time.Duration(random.Float64() * float64(40*time.Millisecond))
		}, 1},
	} {
		stream := slices.Clone(spoken)
		for i := range stream {
			stream[i].at += c.late(stream[i].at)
		}
		p := newPlayout(audio.Rate8k)
		var last time.Duration
		heard := words(play(t, p, stream, length+time.Second, func(now time.Duration) {
			if now < length {
				last = p.delay(now)
			}
		}))
		require.InDelta(t, count, len(heard), float64(c.broken), name)
		broken := 0
		for _, w := range heard[:len(heard)-1] { // the end of the last is concealed
			if (w - word).Abs() > 10*time.Millisecond {
				broken++
			}
		}
		require.LessOrEqual(t, broken, c.broken, name)
		require.Zero(t, p.discarded, name)
		require.Less(t, last, 60*time.Millisecond, "%s: the delay has come down", name)
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	t.Run("a flood of the future", func(t *testing.T) {
		t.Parallel()
		p := newPlayout(audio.Rate8k)
		stream := toneStream(440, 20*time.Second, 20*time.Millisecond)
		for i := range stream {
			stream[i].at /= 2 // twice as fast as it plays
		}
		play(t, p, stream, 10*time.Second, func(time.Duration) {
			require.LessOrEqual(t, p.line.to-p.line.from, int64(playoutDeepest))
		})
		require.NotZero(t, p.discarded)
	})
	t.Run("a stall of two seconds", func(t *testing.T) {
		t.Parallel()
		p := newPlayout(audio.Rate8k)
		stream := toneStream(440, 20*time.Second, 20*time.Millisecond)
		for i := range stream {
			if at := stream[i].at; at > 5*time.Second && at < 7*time.Second {
				stream[i].at = 7 * time.Second
			}
		}
		var last time.Duration
		heard := play(t, p, stream, 20*time.Second, func(now time.Duration) { last = p.delay(now) })
		require.Less(t, last, 60*time.Millisecond)
		requireToneInEachSecond(t, heard[8000*8:8000*19], 440)
	})
}

func TestPausesOfThePeer(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string]bool{"timestamps go on": false, "timestamps stand still": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stream []delivery
			for _, d := range toneStream(440, 20*time.Second, 20*time.Millisecond) {
				switch {
				case d.at < 5*time.Second:
				case d.at < 12*time.Second && !frozen:
					continue
				case frozen:
					d.at += 7 * time.Second
				}
				stream = append(stream, d)
			}
			p := newPlayout(audio.Rate8k)
			heard := play(t, p, stream, 20*time.Second, nil)
			require.Zero(t, level(heard[8000*6:8000*11]), "a pause is silence, not a drone")
			require.Less(t, longestGap(heard[8000*13:8000*19]), 10*time.Millisecond)
			requireToneInEachSecond(t, heard[8000*13:8000*19], 440)
			require.Less(t, p.concealed, uint64(20), "a pause is no loss")
		})
	}
}

func TestClocksThatDisagree(t *testing.T) {
	t.Parallel()
	for _, ppm := range []float64{-500, 500} {
		stream := toneStream(440, 120*time.Second, 20*time.Millisecond)
		for i := range stream {
			stream[i].at = time.Duration(float64(stream[i].at) * (1 + ppm/1e6))
		}
		p := newPlayout(audio.Rate8k)
		heard := play(t, p, stream, 119*time.Second, func(now time.Duration) {
			require.Less(t, p.delay(now), 100*time.Millisecond)
		})
		require.Less(t, longestGap(heard[8000:]), 30*time.Millisecond)
		requireToneInEachSecond(t, heard[8000:], 440)
	}
}

func TestSqueezedToneStaysPure(t *testing.T) {
	t.Parallel()
	for _, hertz := range []float64{150, 440, 1000} {
		x := make([]int16, 8000)
		audio.NewSine(audio.Rate8k, hertz, -12).Fill(x)
		s := newSqueezer(audio.Rate8k)
		var out []int16
		for ; len(x) >= 320; x = x[320:] {
			n := s.shorten(x[:320], 160)
			require.Less(t, n, 320)
			out = append(out, x[:n]...)
		}
		steepest := 0.0
		for i := 1; i < len(out); i++ {
			steepest = max(steepest, math.Abs(float64(out[i])-float64(out[i-1])))
		}
		limit := 2 * math.Pi * hertz / 8000 * 8231 * 2.5
		require.Less(t, steepest, limit, "no click at %v Hz", hertz)
	}
}
