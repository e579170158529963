package audio

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// echoOf is x through a line that returns it: a small room, a delay, a loss.
func echoOf(x []int16, rate Rate, delay time.Duration, loss float64) []int16 {
	wet := make([]float64, len(x))
	for _, tap := range []struct{ ms, gain float64 }{{0, 1}, {1.5, -0.5}, {4, 0.35}, {9, -0.2}, {17, 0.1}} {
		shift := int(tap.ms * float64(rate) / 1000)
		for i := shift; i < len(x); i++ {
			wet[i] += tap.gain * float64(x[i-shift])
		}
	}
	return stimDelay(stimAt(wet, Level(x)-loss), rate.Samples(delay))
}

// hear runs both directions of a line and returns a verdict per frame.
func hear(rate Rate, sent, received []int16) []EchoVerdict {
	e := NewEchoReference(rate)
	size := rate.FrameSamples()
	var out []EchoVerdict
	for at := 0; at+size <= len(received); at += size {
		if at+size <= len(sent) {
			e.Sent(sent[at : at+size])
		}
		out = append(out, e.Received(received[at:at+size]))
	}
	return out
}

// ourTalk and theirTalk are long turns of two different voices.
func ourTalk(t testing.TB, i int, rate Rate) []int16 {
	who := tuningTalkers[i%len(tuningTalkers)]
	return talk(t, who, tuningTexts, rate, 0.4)
}

func theirTalk(t testing.TB, i int, rate Rate) []int16 {
	who := judgingTalkers[i%len(judgingTalkers)]
	return talk(t, who, judgingTexts, rate, 0.6)
}

func TestEchoIsRecognised(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	var frames, missed int
	var found []float64
	for _, loss := range []float64{12, 18, 24, 30} {
		for i, delay := range []time.Duration{20, 55, 130, 247, 400} {
			delay *= time.Millisecond
			sent := ourTalk(t, i, Rate8k)
			echo := echoOf(sent, Rate8k, delay, loss)
			truth := truthOf(echo, Rate8k)
			verdicts := hear(Rate8k, sent, stimSum(echo, stimPink(uint64(i), len(echo), -62)))
			first, start, n, wrong := -1, -1, 0, 0
			for f, v := range verdicts {
				if truth[f] != frameSpeech {
					continue
				}
				if start < 0 {
					start = f
				}
				if first < 0 && v.Explained >= 0.5 {
					first = f
				}
				if f > start+60 {
					n++
					if v.Explained < 0.5 {
						wrong++
					}
				}
			}
			last := verdicts[len(verdicts)-1]
			fmt.Fprintf(&table, "loss %2.0f dB, delay %3d ms: known after %4d ms as %3d ms and %4.1f dB; then %4.1f %% of %d frames missed\n",
				loss, delay.Milliseconds(), (first-start+1)*20, last.Delay.Milliseconds(), last.Loss, percent(wrong, n), n)
			frames, missed = frames+n, missed+wrong
			found = append(found, float64(first-start+1)*20)
		}
	}
	t.Logf("our own voice returned:\n%sall: %.1f %% of %d frames missed; known after %.0f ms (median), %.0f ms (worst)",
		&table, percent(missed, frames), frames, quantile(found, 0.5), quantile(found, 1))
	require.Less(t, percent(missed, frames), 1.0)
	require.LessOrEqual(t, quantile(found, 1), 700.0)
}

func TestEchoIsNotSomebodyElse(t *testing.T) {
	t.Parallel()
	var alone, double, aloneFrames, doubleFrames int
	for i := range 18 {
		sent := ourTalk(t, i, Rate8k)
		near := stimGain(theirTalk(t, i+i/6, Rate8k), -float64(i%4)*4)
		line := stimWhite(uint64(i), len(sent), -66)
		truth := truthOf(near, Rate8k)
		for f, v := range hear(Rate8k, sent, stimSum(near, line)) {
			if f < len(truth) && truth[f] == frameSpeech {
				aloneFrames++
				if v.Explained >= 0.5 {
					alone++
				}
			}
		}
		// Double talk begins when the echo has been heard for two seconds.
		echo := echoOf(sent, Rate8k, time.Duration(30+22*i)*time.Millisecond, 14+float64(i%3)*6)
		near = stimDelay(near, 16000)
		truth = truthOf(near, Rate8k)
		for f, v := range hear(Rate8k, sent, stimSum(echo, near, line)) {
			at := f * 160
			if f >= len(truth) || truth[f] != frameSpeech || at+160 > len(echo) {
				continue
			}
			if Level(near[at:at+160]) > Level(echo[at:at+160])+6 {
				doubleFrames++
				if v.Explained >= 0.5 {
					double++
				}
			}
		}
	}
	t.Logf("another voice taken for our echo: %.1f %% of %d frames alone, %.1f %% of %d frames over the echo",
		percent(alone, aloneFrames), aloneFrames, percent(double, doubleFrames), doubleFrames)
	require.Less(t, percent(alone, aloneFrames), 1.0)
	require.Less(t, percent(double, doubleFrames), 7.0)
}

func TestEchoAtOtherRates(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate16k, Rate24k, Rate48k} {
		sent := stimSyllables(3, rate, 8*int(rate), 140, -22)
		verdicts := hear(rate, sent, echoOf(sent, rate, 120*time.Millisecond, 18))
		last := verdicts[len(verdicts)-10]
		require.True(t, last.Known, "%d Hz", rate)
		require.InDelta(t, 120, last.Delay.Milliseconds(), 10, "%d Hz", rate)
		require.InDelta(t, 18, last.Loss, 5, "%d Hz", rate)
	}
}

func TestEchoOfSilenceIsNothing(t *testing.T) {
	t.Parallel()
	noise := stimWhite(9, 8000*6, -50)
	for _, v := range hear(Rate8k, nil, noise) {
		require.False(t, v.Known)
		require.Zero(t, v.Explained)
	}
	e := NewEchoReference(Rate8k)
	require.False(t, e.Received(nil).Known)
}

func TestEchoReferenceTakesAnyFrame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := NewEchoReference(rapid.SampledFrom([]Rate{Rate8k, Rate16k, Rate24k, Rate48k}).Draw(t, "rate"))
		for range rapid.IntRange(1, 30).Draw(t, "frames") {
			e.Sent(rapid.SliceOfN(rapid.Int16(), 0, 1000).Draw(t, "sent"))
			v := e.Received(rapid.SliceOfN(rapid.Int16(), 0, 1000).Draw(t, "received"))
			require.True(t, v.Explained >= 0 && v.Explained <= 1, "explained %v", v.Explained)
			require.False(t, math.IsNaN(float64(v.Loss)))
		}
	})
}

func TestEchoReferenceAllocatesNothing(t *testing.T) {
	e := NewEchoReference(Rate8k)
	frame := stimWhite(1, 160, -30)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Sent(frame); e.Received(frame) }))
}

func BenchmarkEchoReference(b *testing.B) {
	for _, rate := range []Rate{Rate8k, Rate16k} {
		b.Run(fmt.Sprint(int(rate)), func(b *testing.B) {
			e := NewEchoReference(rate)
			size := rate.FrameSamples()
			sent := stimSyllables(1, rate, size*512, 120, -25)
			received := echoOf(sent, rate, 100*time.Millisecond, 15)
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				e.Sent(sent[at*size : (at+1)*size])
				e.Received(received[at*size : (at+1)*size])
				at = (at + 1) & 511
			}
		})
	}
}
