//go:build speech

package local

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

// coreTime is what this thread has worked; the machine's other work does not count.
func coreTime(b *testing.B) time.Duration {
	b.Helper()
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(thread, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure reports the share of one core that a second of sound takes.
func measure(b *testing.B, sound time.Duration, work func()) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	work()
	began := coreTime(b)
	for b.Loop() {
		work()
	}
	b.ReportMetric(float64(coreTime(b)-began)/float64(b.N)/float64(sound), "cores")
}

func BenchmarkMoonshine(b *testing.B) {
	p := loaded(b)
	speech := floats(spoken(b, p, converse.Utterance{Text: booking, Language: "en", Rate: hearingRate, Speed: 1}))
	measure(b, hearingRate.Duration(len(speech)), func() {
		text, err := p.moonshine.words(b.Context(), speech)
		require.NoError(b, err)
		require.NotEmpty(b, text)
	})
}

func BenchmarkSilero(b *testing.B) {
	w := loaded(b).silero.watch()
	samples := make([]float32, glance)
	measure(b, hearingRate.Duration(glance), func() {
		_, err := w.likelihood(samples)
		require.NoError(b, err)
	})
}

func BenchmarkFlite(b *testing.B) {
	p := loaded(b)
	for _, voice := range voices {
		b.Run(voice, func(b *testing.B) {
			sound, err := p.flite.say(booking, voice, 1)
			require.NoError(b, err)
			measure(b, speakingRate.Duration(len(sound)), func() {
				_, err := p.flite.say(booking, voice, 1)
				require.NoError(b, err)
			})
		})
	}
}

// BenchmarkFirstSound is how long a sentence waits for its beginning.
func BenchmarkFirstSound(b *testing.B) {
	p := loaded(b)
	u := converse.Utterance{Text: "Good morning, this is Acme, how can I help you?", Language: "en", Rate: audio.Rate8k, Speed: 1}
	var total time.Duration
	for b.Loop() {
		began, heard := time.Now(), false
		require.NoError(b, p.Speaker().Speak(b.Context(), u, func(converse.Sound) {
			if !heard {
				heard, total = true, total+time.Since(began)
			}
		}))
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms")
}

// The memory that the models take, beside what the test itself has.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		p := loaded(b)
		speech := floats(spoken(b, p, converse.Utterance{Text: booking, Language: "en", Rate: hearingRate, Speed: 1}))
		_, err := p.moonshine.words(b.Context(), speech)
		require.NoError(b, err)
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") {
			b.Log(strings.TrimSpace(line))
		}
	}
}

func floats(samples []int16) []float32 {
	out := make([]float32, len(samples))
	for i, s := range samples {
		out[i] = float32(s) / (1 << 15)
	}
	return out
}
