package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
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

// round is a question over the telephone and the time to answer it, which is what a
// transcriber hears in a call.
func round(tb testing.TB, p *Provider) []int16 {
	tb.Helper()
	x, _ := speak(tb, p, converse.Utterance{Text: "What are your hours?", Voice: "tenor", Rate: audio.Rate8k})
	return companded(false)(nil, append(x, make([]int16, 4*audio.Rate8k)...))
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
		{"question and silence", audio.Rate8k, round(b, p)},
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

// BenchmarkListenManyCalls: a thousand calls take turns, so that each finds its memory
// out of the processor's caches, as on a busy node.
func BenchmarkListenManyCalls(b *testing.B) {
	const calls, n = 1000, 160
	p := New(Options{})
	x := round(b, p)
	frames := len(x) / n
	before := heap()
	streams := make([]converse.Listener, calls)
	for i := range streams {
		var err error
		streams[i], err = p.Transcriber().Listen(context.Background(), converse.ListenOptions{Rate: audio.Rate8k}, func(converse.Heard) {})
		require.NoError(b, err)
	}
	at := 0
	b.ReportAllocs()
	for b.Loop() {
		call := at % calls
		frame := (at/calls + call*7) % frames
		_ = streams[call].Write(x[frame*n : frame*n+n])
		at++
	}
	b.ReportMetric(float64(heap()-before)/calls, "B/stream")
	runtime.KeepAlive(streams)
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkSpeakPerSecond(b *testing.B) {
	p := New(Options{})
	text := chatter(rand.New(rand.NewPCG(3, 3)), 12)
	for _, rate := range []audio.Rate{audio.Rate8k, audio.Rate16k} {
		b.Run(fmt.Sprintf("%d Hz", rate), func(b *testing.B) {
			samples := 0
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				err := p.Speaker().Speak(context.Background(), converse.Utterance{Text: text, Rate: rate}, func(s converse.Sound) { samples += len(s.Samples) })
				require.NoError(b, err)
			}
			runtime.ReadMemStats(&after)
			seconds := rate.Duration(samples).Seconds()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/seconds, "ns/s")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/seconds, "B/s")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/seconds, "allocs/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkReply(b *testing.B) {
	p := New(Options{})
	for name, prompt := range map[string]converse.Prompt{
		"answer": {System: benchPrompt, Messages: benchTalk("What are your hours?", 1)},
		"later":  {System: benchPrompt, Messages: benchTalk("What are your hours?", 20)},
		"learn": {
			System:   benchPrompt + "\nAsk for: order number\nAsk for: email (Where may we send the confirmation?)",
			Messages: benchTalk("My order number is 4711.", 3),
			Tools:    []converse.ToolSpec{{Name: "find_order", Description: "Looks up an order", Params: []converse.ParamSpec{{Name: "order_number", Type: "string", Required: true}}}},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := p.Model().Reply(context.Background(), prompt, func(converse.Delta) {})
				require.NoError(b, err)
			}
		})
	}
}

// benchPrompt is a prompt as the engine sends it.
const benchPrompt = `When asked about hours, say: We open at nine in the morning and close at six in the evening.

You are speaking on the telephone. Answer in short spoken sentences without lists, markup or emoji. Speak English.
It is now Monday, 2 January 2006, 15:04 (UTC).`

// benchTalk is a conversation in which the customer says the same thing again and again.
func benchTalk(says string, turns int) []converse.Message {
	all := []converse.Message{{Role: converse.RoleAssistant, Text: "Hello, this is Acme, what can I do for you?"}}
	for i := range turns {
		if i > 0 {
			all = append(all, converse.Message{Role: converse.RoleAssistant, Text: "We open at nine in the morning and close at six in the evening. " + moreSentence})
		}
		all = append(all, converse.Message{Role: converse.RoleCustomer, Text: says})
	}
	return all
}
