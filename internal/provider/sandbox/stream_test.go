package sandbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley/internal/audio"
	"parley/internal/converse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ converse.Transcriber = (*Transcriber)(nil)
	_ converse.Speaker     = (*Speaker)(nil)
	_ converse.Model       = (*Model)(nil)
	_ converse.Duplex      = (*Duplex)(nil)
)

// play writes samples in real time, frame by frame; it needs a bubble.
func play(t *testing.T, write func([]int16) error, x []int16) {
	t.Helper()
	n := audio.Rate8k.FrameSamples()
	for len(x) > 0 {
		frame := make([]int16, n)
		x = x[copy(frame, x):]
		require.NoError(t, write(frame))
		time.Sleep(audio.FrameDuration)
	}
}

// TestPartialsAndFinal: words appear as they are spoken, the final one after the
// set delay, and a sentence that goes straight on is one.
func TestPartialsAndFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{})
		began := time.Now()
		var at []time.Duration
		var all []converse.Heard
		l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: audio.Rate8k}, func(h converse.Heard) {
			all, at = append(all, h), append(at, time.Since(began))
		})
		require.NoError(t, err)
		x, words := speak(t, p, converse.Utterance{Text: "Hello there, Ada.", Rate: audio.Rate8k})
		play(t, l.Write, append(x, make([]int16, 8000)...))
		require.Equal(t, []converse.Heard{
			{Text: "Hello"}, {Text: "Hello there,"}, {Text: "Hello there, Ada."},
			{Text: "Hello there, Ada.", Final: true, EndTurn: true},
		}, all)
		for i, w := range words {
			require.InDelta(t, w.End.Seconds(), at[i].Seconds(), 0.021, "as soon as its last frame is there")
		}
		require.InDelta(t, (at[2] + 150*time.Millisecond).Seconds(), at[3].Seconds(), 0.021)

		all = nil
		y, _ := speak(t, p, converse.Utterance{Text: "One moment.", Rate: audio.Rate8k})
		play(t, l.Write, append(append(x, y...), make([]int16, 8000)...))
		final := all[len(all)-1]
		require.Equal(t, converse.Heard{Text: "Hello there, Ada. One moment.", Final: true, EndTurn: true}, final)
		for _, h := range all[:len(all)-1] {
			require.False(t, h.Final)
		}

		all = nil
		z, _ := speak(t, p, converse.Utterance{Text: "my number is", Rate: audio.Rate8k})
		play(t, l.Write, append(z, make([]int16, 8000)...))
		require.Equal(t, converse.Heard{Text: "my number is", Final: true}, all[len(all)-1], "an unfinished sentence ends no turn")
		require.NoError(t, l.Close())
	})
}

// TestFlush: at once, or after its delay; nothing after Close.
func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Delays: Delays{Flush: 150 * time.Millisecond}})
		var mu sync.Mutex // a delayed final comes from a timer
		var all []converse.Heard
		l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: audio.Rate8k}, func(h converse.Heard) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, h)
		})
		heard := func() []converse.Heard {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
		require.NoError(t, err)
		x, words := speak(t, p, converse.Utterance{Text: "Hello there again", Rate: audio.Rate8k})
		play(t, l.Write, x[:audio.Rate8k.Samples(words[1].End+10*time.Millisecond)])
		require.NoError(t, l.Flush())
		synctest.Wait()
		require.False(t, heard()[len(heard())-1].Final)
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, converse.Heard{Text: "Hello there", Final: true}, heard()[len(heard())-1])
		require.NoError(t, l.Flush())
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		n := len(heard())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, heard(), n)
		require.Error(t, l.Write(make([]int16, 160)))
		require.Error(t, l.Flush())
	})
}

// TestSpeakerDelayAndCancel: the first sound comes after its delay, and none once
// nobody wants it.
func TestSpeakerDelayAndCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Delays: Delays{FirstSound: 120 * time.Millisecond}})
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		sounds := 0
		err := p.Speaker().Speak(ctx, converse.Utterance{Text: "one two three", Rate: audio.Rate8k}, func(converse.Sound) {
			require.Equal(t, 120*time.Millisecond, time.Since(began))
			sounds++
			cancel()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, sounds)
	})
}

// TestFaults: each way to misbehave, in each part, by turn.
func TestFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := func(k FaultKind) Faults { return Faults{At: map[int]Fault{1: {Kind: k, After: 2}}} }
		for _, kind := range []FaultKind{FaultError, FaultStall, FaultHalfOpen, FaultBreak, FaultGarbage} {
			p := New(Options{SpeakerFaults: at(kind), ModelFaults: at(kind), TranscriberFaults: at(kind)})
			for turn := 1; turn <= 2; turn++ {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				sounds := 0
				err := p.Speaker().Speak(ctx, converse.Utterance{Text: "one two three four", Rate: audio.Rate8k}, func(converse.Sound) { sounds++ })
				faulty(t, kind, turn, err, sounds, 4, time.Since(began))
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
				tokens := 0
				_, err = p.Model().Reply(ctx, converse.Prompt{}, func(converse.Delta) { tokens++ })
				cancel()
				if kind != FaultGarbage {
					faulty(t, kind, turn, err, tokens, 6, 0)
				}
			}
		}
	})
}

func faulty(t *testing.T, kind FaultKind, turn int, err error, got, whole int, took time.Duration) {
	t.Helper()
	if turn == 2 {
		require.NoError(t, err, kind)
		require.Equal(t, whole, got, kind)
		return
	}
	switch kind {
	case FaultError:
		require.ErrorContains(t, err, "simulated failure")
		require.Zero(t, got)
	case FaultStall:
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, got)
		require.LessOrEqual(t, took, 5*time.Second)
	case FaultHalfOpen:
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2, got)
	case FaultBreak:
		require.ErrorContains(t, err, "simulated failure")
		require.Equal(t, 2, got)
	case FaultGarbage:
		require.NoError(t, err)
		require.Equal(t, whole, got)
	case FaultNone:
	}
}

// TestTranscriberFaults: what a stream that misbehaves gives.
func TestTranscriberFaults(t *testing.T) {
	t.Parallel()
	listen := func(f Fault) ([]converse.Heard, error) {
		p := New(Options{TranscriberFaults: Faults{Probability: 1, Default: f, Until: 1}})
		x, _ := speak(t, p, converse.Utterance{Text: "Hello there, Ada.", Rate: audio.Rate8k})
		var all []converse.Heard
		l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: audio.Rate8k}, func(h converse.Heard) { all = append(all, h) })
		if err != nil {
			return nil, err
		}
		for ; len(x) >= 160; x = x[160:] {
			require.NoError(t, l.Write(x[:160]))
		}
		require.NoError(t, l.Flush())
		return all, l.Close()
	}
	_, err := listen(Fault{Kind: FaultError})
	require.ErrorContains(t, err, "sandbox transcriber: simulated failure")
	all, err := listen(Fault{Kind: FaultStall})
	require.NoError(t, err)
	require.Empty(t, all)
	all, _ = listen(Fault{Kind: FaultHalfOpen, After: 25})
	require.Equal(t, []converse.Heard{{Text: "Hello"}}, all)
	all, _ = listen(Fault{Kind: FaultBreak, After: 25})
	require.Len(t, all, 2)
	require.ErrorContains(t, all[1].Err, "simulated failure")
	all, _ = listen(Fault{Kind: FaultGarbage, After: 10})
	require.NotEmpty(t, all)
	require.NotContains(t, all[0].Text, "Hello")
}

// TestFaultsAreDeterministic: the same seed fails in the same turns.
func TestFaultsAreDeterministic(t *testing.T) {
	t.Parallel()
	turns := func(seed uint64) string {
		p := New(Options{Seed: seed, ModelFaults: Faults{Probability: 0.3, Default: Fault{Kind: FaultError}}})
		var b strings.Builder
		for range 200 {
			_, err := p.Model().Reply(t.Context(), converse.Prompt{}, func(converse.Delta) {})
			b.WriteByte("-x"[map[bool]int{err != nil: 1}[true]])
		}
		return b.String()
	}
	again := turns(1)
	require.Equal(t, again, turns(1))
	require.NotEqual(t, turns(1), turns(2))
	require.InDelta(t, 60, strings.Count(turns(1), "x"), 25)
}

// TestListenAllocatesNothing: a frame costs no memory unless it completes a word.
func TestListenAllocatesNothing(t *testing.T) {
	p := New(Options{})
	random := rand.New(rand.NewPCG(6, 6))
	x, _ := speak(t, p, converse.Utterance{Text: "Donaudampfschiff", Rate: audio.Rate8k})
	for name, sound := range map[string][]int16{
		"speech":  x[:len(x)*3/4/160*160],
		"noise":   noisy(10, pink)(random, make([]int16, 8000)),
		"silence": make([]int16, 8000),
	} {
		l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: audio.Rate8k}, func(converse.Heard) {})
		require.NoError(t, err)
		at := 0
		frames := len(sound)/160 - 1
		require.Zero(t, testing.AllocsPerRun(frames, func() {
			_ = l.Write(sound[at : at+160])
			at += 160
			at %= len(sound) - 159
		}), name)
	}
}

// TestAStreamIsSmall: what every call holds for as long as it lasts.
func TestAStreamIsSmall(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, unsafe.Sizeof(listener{}), uintptr(8<<10))
}

// TestManyCalls: one provider serves many calls at once.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	var all sync.WaitGroup
	failures := make(chan error, 32)
	for i := range cap(failures) {
		all.Go(func() {
			rate := []audio.Rate{audio.Rate8k, audio.Rate16k}[i%2]
			text := chatter(rand.New(rand.NewPCG(uint64(i), 0)), 12)
			x, _ := speak(t, p, converse.Utterance{Text: text, Rate: rate})
			if got, _, _ := transcribe(t, p, rate, x); got != text {
				failures <- errors.New(got + " instead of " + text)
			}
		})
	}
	all.Wait()
	require.Empty(t, failures)
}
