package converse

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
)

// levelLine measures what is sent while nobody speaks.
type levelLine struct {
	*scriptLine
	levels []float64
	last   []int16
}

func (l *levelLine) Send(frame []int16) {
	l.levels = append(l.levels, audio.Level(frame))
	l.last = append(l.last[:0], frame...)
}

// backgrounds are rendered once for all tests, as they are for all calls of a process.
var backgrounds = sync.OnceValue(func() *audio.Ambience { return audio.NewAmbience(1) })

// ambience is the level of the background in the last second of a call in which
// nothing is said.
func ambience(t *testing.T, sound string, volume parley.Decimal) (level float64, last []int16) {
	t.Helper()
	line := &levelLine{}
	scene{
		assistant: func(a *parley.Assistant) {
			a.AmbientSound, a.AmbientSoundVolume, a.WaitForCustomer = sound, volume, true
		},
		config: func(c *Config) {
			line.scriptLine = c.Line.(*scriptLine)
			c.Line, c.Ambience = line, backgrounds()
		},
		until: 4 * time.Second,
	}.play(t)
	sum := 0.0
	for _, l := range line.levels[len(line.levels)-50:] {
		sum += l
	}
	return sum / 50, line.last
}

// TestAmbientSound: each background is heard, at its volume, and off is silence.
func TestAmbientSound(t *testing.T) {
	t.Parallel()
	silence, _ := ambience(t, "off", 1)
	require.InDelta(t, audio.SilenceLevel, silence, 0.1)
	var before []int16
	for _, sound := range parley.AmbientSounds[1 : 1+fewer(6)] {
		loud, frame := ambience(t, sound, 1)
		soft, _ := ambience(t, sound, 0.25)
		require.NotEqual(t, before, frame, "each sounds different")
		before = frame
		require.Greater(t, loud, -45.0, sound)
		require.InDelta(t, 12, loud-soft, 2, "a quarter of the volume is 12 dB less: %s", sound)
	}
	silence, _ = ambience(t, "office", 0)
	require.InDelta(t, audio.SilenceLevel, silence, 0.1)
}

// levelEars measures what reaches the transcriber.
type levelEars struct{ levels []float64 }

func (e *levelEars) Listen(context.Context, ListenOptions, func(Heard)) (Listener, error) {
	return e, nil
}
func (e *levelEars) Write(frame []int16) error {
	e.levels = append(e.levels, audio.Level(frame))
	return nil
}
func (e *levelEars) Flush() error { return nil }
func (e *levelEars) Close() error { return nil }

// TestNoiseCancellation: steady noise reaches the transcriber at least 10 dB weaker,
// and unchanged when it is switched off.
func TestNoiseCancellation(t *testing.T) {
	t.Parallel()
	heard := func(on bool) float64 {
		ears := &levelEars{}
		random := rand.New(rand.NewPCG(1, 1))
		scene{
			assistant: func(a *parley.Assistant) { a.EnableNoiseCancellation = on },
			config:    func(c *Config) { c.Transcribers[0].Use = ears },
			noise: func(frame []int16) {
				for i := range frame {
					frame[i] = int16(random.NormFloat64() * 300)
				}
			},
			until: 6 * time.Second,
		}.play(t)
		sum := 0.0
		for _, l := range ears.levels[len(ears.levels)-100:] {
			sum += l
		}
		return sum / 100
	}
	require.Greater(t, heard(false)-heard(true), 10.0)
}

// TestInbandDigits: a key pressed as a tone in the sound is recognised where the
// line has no other way.
func TestInbandDigits(t *testing.T) {
	t.Parallel()
	s := scene{noise: nil, until: 6 * time.Second}
	s.config = func(c *Config) { c.InbandDigits = true }
	tone, err := audio.NewDTMF(audio.Rate8k, '5', 200*ms)
	require.NoError(t, err)
	at := 0
	s.noise = func(frame []int16) {
		if at++; at > 100 && at <= 110 {
			tone.Fill(frame)
		}
	}
	require.Equal(t, "5", s.play(t).Digits)
}

// benchConversation is a call in the middle of an answer with everything switched on:
// the 20 ms path of VAD, echo reference, noise suppression, transcriber, playback,
// ambient sound and recording.
func benchConversation(b testing.TB, tap func(customer, assistant []int16)) *Conversation {
	b.Helper()
	a := baseAssistant()
	a.EnableNoiseCancellation, a.AmbientSound, a.AmbientSoundVolume = true, "office", 0.5
	c, err := New(Config{
		Assistant: a, Rate: audio.Rate8k, Line: nullLine{}, Tap: tap,
		Call:         Facts{CallID: "bench", Direction: parley.Inbound},
		Transcribers: []Provider[Transcriber]{{Name: "ears", Use: &nullEars{}}},
		Models:       []Provider[Model]{{Name: "mind", Use: &scriptModel{}}},
		Speakers:     []Provider[Speaker]{{Name: "voice", Use: nullVoice{}}},
	})
	require.NoError(b, err)
	return c
}

type nullLine struct{}

func (nullLine) Send([]int16)                           {}
func (nullLine) SendDigits(string) error                { return nil }
func (nullLine) Transfer(context.Context, string) error { return nil }
func (nullLine) HangUp()                                {}

type nullEars struct{}

func (e *nullEars) Listen(context.Context, ListenOptions, func(Heard)) (Listener, error) {
	return e, nil
}
func (*nullEars) Write([]int16) error { return nil }
func (*nullEars) Flush() error        { return nil }
func (*nullEars) Close() error        { return nil }

// nullVoice speaks an hour of noise.
type nullVoice struct{}

func (nullVoice) Speak(_ context.Context, _ Utterance, emit func(Sound)) error {
	emit(Sound{Samples: noiseSamples(8000 * 60)})
	return nil
}

func noiseSamples(n int) []int16 {
	random := rand.New(rand.NewPCG(7, 7))
	samples := make([]int16, n)
	for i := range samples {
		samples[i] = int16(random.NormFloat64() * 1000)
	}
	return samples
}

// BenchmarkFrame is what a call costs per 20 ms at 8 kHz, recording included; the
// goal is 12 us, so that a core holds a thousand.
func BenchmarkFrame(b *testing.B) {
	frame := framePath(b)
	b.ReportAllocs()
	for b.Loop() {
		frame()
	}
}

// TestFramePathAllocatesNothing: a thousand calls must not feed the collector.
func TestFramePathAllocatesNothing(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	frame := framePath(t)
	require.Zero(t, testing.AllocsPerRun(500, frame))
}

// framePath is one frame of a call in which the assistant speaks and is recorded.
func framePath(b testing.TB) func() {
	b.Helper()
	file, err := os.Create(filepath.Join(b.TempDir(), "call.wav"))
	require.NoError(b, err)
	b.Cleanup(func() { _ = file.Close() })
	recorder, err := audio.NewRecorder(file, audio.Rate8k)
	require.NoError(b, err)
	at := time.Duration(0)
	c := benchConversation(b, func(customer, assistant []int16) {
		_ = recorder.Customer(at, customer)
		_ = recorder.Assistant(at, assistant)
		at += audio.FrameDuration
	})
	c.begin = func(work func(context.Context)) func() { work(b.Context()); return func() {} }
	c.start, c.clock = time.Now(), newClock()
	// The worker of a stream waits for its end: here the stream is opened by hand.
	ears := &nullEars{}
	c.cfg.Transcribers[0].Use = failingEars{}
	c.prepare()
	c.handle(c.inbox.take())
	c.answer()
	c.handle(c.inbox.take())
	c.stream.listener = ears
	c.phase = talking
	quiet := noiseSamples(160)
	for i := range quiet {
		quiet[i] /= 50
	}
	return func() {
		c.tell()
		c.ringDue()
		c.frame(quiet)
		u := c.mouth.now
		if u == nil || !u.begun {
			b.Fatal("the assistant should be speaking")
		}
		if s := &u.current().sound; s.at > 8000*50 {
			s.at, s.taken = 0, 0 // the utterance never ends
		}
	}
}

// failingEars never open, so that no goroutine waits.
type failingEars struct{}

func (failingEars) Listen(context.Context, ListenOptions, func(Heard)) (Listener, error) {
	return nil, errScripted
}

// BenchmarkConversation is the same through the inbox and the conversation's own
// goroutine, as the media's clock drives it.
func BenchmarkConversation(b *testing.B) {
	sent := make(chan struct{}, 1)
	c := benchConversation(b, nil)
	c.cfg.Line = signalLine{sent: sent}
	done := make(chan struct{})
	go func() { defer close(done); c.Run(b.Context()) }()
	c.Answered()
	quiet := noiseSamples(160)
	for i := range quiet {
		quiet[i] /= 50
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Frame(quiet)
		<-sent
	}
	c.HungUp()
	<-done
}

type signalLine struct {
	nullLine
	sent chan struct{}
}

func (l signalLine) Send([]int16) { l.sent <- struct{}{} }

// BenchmarkTurnInRealTime measures, on the real clock, what the engine adds to
// providers of 30 ms each and a pause of 167 ms: a turn's first audio after those.
func BenchmarkTurnInRealTime(b *testing.B) {
	var over []time.Duration
	for b.Loop() {
		o := scene{
			ring: 10 * ms, assistant: func(a *parley.Assistant) { endless(a); a.EndpointSensitivity, a.InitialMessage = 5, "" },
			customer: []says{{40 * ms, 340 * ms, "are you there"}, {1200 * ms, 1500 * ms, "and once more"}},
			words:    wording{final: 30 * ms}, model: always("Yes.", 30*ms), speaker: speaking{first: 30 * ms, word: 200 * ms}, until: 2 * time.Second,
		}.run(b)
		for _, turn := range o.Turns {
			if l := turn.Latency.FirstAudio; l > 0 {
				over = append(over, l-180*ms) // the first frame after 167 ms
			}
		}
	}
	slices.Sort(over)
	if len(over) > 0 {
		b.ReportMetric(float64(over[len(over)/2])/1e6, "ms-p50-over")
		b.ReportMetric(float64(over[len(over)*95/100])/1e6, "ms-p95-over")
	}
}
