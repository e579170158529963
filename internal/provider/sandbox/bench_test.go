package sandbox

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

// minute is speech of about a minute.
func minute(tb testing.TB, p *Provider, rate audio.Rate) []int16 {
	tb.Helper()
	random := rand.New(rand.NewPCG(3, 3))
	var x []int16
	for range 10 {
		y, _ := speak(tb, p, converse.Utterance{Text: chatter(random, 16), Rate: rate})
		x = append(append(x, y...), make([]int16, rate/4)...)
	}
	return x
}

func BenchmarkListenPerFrame(b *testing.B) {
	p := New(Options{})
	random := rand.New(rand.NewPCG(9, 9))
	speech := minute(b, p, audio.Rate8k)
	noise := noisy(15, white)(random, make([]int16, len(speech)))
	for _, c := range []struct {
		name string
		rate audio.Rate
		x    []int16
	}{
		{"speech", audio.Rate8k, speech},
		{"speech and noise", audio.Rate8k, noisy(20, pink)(random, speech)},
		{"noise", audio.Rate8k, noise},
		{"silence", audio.Rate8k, make([]int16, len(speech))},
		{"speech at 16 kHz", audio.Rate16k, minute(b, p, audio.Rate16k)},
		{"speech at 48 kHz", audio.Rate48k, minute(b, p, audio.Rate48k)},
	} {
		b.Run(c.name, func(b *testing.B) {
			l, err := p.Transcriber().Listen(context.Background(), converse.ListenOptions{Rate: c.rate}, func(converse.Heard) {})
			require.NoError(b, err)
			n := c.rate.FrameSamples()
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				if at+n > len(c.x) {
					at = 0
				}
				_ = l.Write(c.x[at : at+n])
				at += n
			}
		})
	}
}

func BenchmarkSpeakPerFrame(b *testing.B) {
	p := New(Options{})
	text := chatter(rand.New(rand.NewPCG(3, 3)), 40)
	samples := 0
	b.ReportAllocs()
	for b.Loop() {
		err := p.Speaker().Speak(context.Background(), converse.Utterance{Text: text, Rate: audio.Rate8k}, func(s converse.Sound) { samples += len(s.Samples) })
		require.NoError(b, err)
	}
	frames := samples / audio.Rate8k.FrameSamples()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}
