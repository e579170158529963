package converse_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/sandbox"
)

// The whole loop in virtual time: the sandbox's voice goes through the real voice
// detector, echo reference and noise suppression into the sandbox's transcriber, whose
// words reach its model, whose answer is spoken. Nothing in it is scripted but what
// the customer says when.

// caller is a customer whose voice is the sandbox's.
type caller struct {
	mu       sync.Mutex
	provider *sandbox.Provider
	rate     audio.Rate
	queue    []int16 // what is still to be said
	down     bool
	heard    []int16 // what was heard of the assistant
}

func (c *caller) Send(frame []int16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, frame...)
}
func (c *caller) SendDigits(string) error                { return nil }
func (c *caller) Transfer(context.Context, string) error { return nil }
func (c *caller) HangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = true
}

// say renders words to be said from now on.
func (c *caller) say(t *testing.T, text string) {
	t.Helper()
	u := converse.Utterance{Text: text, Voice: "tenor", Language: "en", Rate: c.rate, Speed: 1}
	var samples []int16
	require.NoError(t, c.provider.Speaker().Speak(t.Context(), u, func(s converse.Sound) { samples = append(samples, s.Samples...) }))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, samples...)
}

func (c *caller) frame(to []int16) (alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(to)
	n := copy(to, c.queue)
	c.queue = c.queue[n:]
	return !c.down
}

// loop runs a call in which the customer says each text at its time.
func loop(t *testing.T, mode parley.Mode, script map[time.Duration]string, change func(*converse.Config)) converse.Result {
	t.Helper()
	var result converse.Result
	synctest.Test(t, func(t *testing.T) {
		p := sandbox.New(sandbox.Options{})
		line := &caller{provider: p, rate: audio.Rate8k}
		when := "End the call when the customer says goodbye."
		cfg := converse.Config{
			Assistant: parley.Assistant{ID: 1, Name: "Shop", Mode: mode, Settings: parley.Settings{
				Language: "English", Timezone: "UTC", InitialMessage: "Hello, this is the shop. What can I do for you?",
				SystemPrompt:        "When asked about price or cost, say: It costs ten euros.\nClosing: Thank you and goodbye.",
				EndpointSensitivity: 0.5, AllowInterruptions: true, InterruptSensitivity: 0.5, EnableNoiseCancellation: true,
				MaxDuration: 60, MaxSilenceDuration: 20, ReengagementInterval: 15, SpeechSpeed: 1, EndCallDescription: &when,
			}},
			Call: converse.Facts{CallID: "loop", Direction: parley.Inbound}, Rate: audio.Rate8k, Line: line,
			Transcribers: []converse.Provider[converse.Transcriber]{{Name: "sandbox", Use: p.Transcriber()}},
			Models:       []converse.Provider[converse.Model]{{Name: "sandbox", Key: "realistic", Use: p.Model()}},
			Speakers:     []converse.Provider[converse.Speaker]{{Name: "sandbox", Key: "alto", Use: p.Speaker()}},
			Duplexes:     []converse.Provider[converse.Duplex]{{Name: "sandbox", Key: "realistic", Voice: "alto", Use: p.Duplex()}},
		}
		if change != nil {
			change(&cfg)
		}
		c, err := converse.New(cfg)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() { defer close(done); result = c.Run(t.Context()) }()
		time.Sleep(time.Second)
		c.Answered()
		frame := make([]int16, line.rate.FrameSamples())
		for at := time.Duration(0); line.frame(frame); at += 20 * time.Millisecond {
			c.Frame(frame)
			if text, ok := script[at]; ok {
				line.say(t, text)
			}
			time.Sleep(20 * time.Millisecond)
		}
		<-done
	})
	return result
}

// TestWholeLoop: greeting, a question, its answer, a goodbye: every word of both
// sides went through sound.
func TestWholeLoop(t *testing.T) {
	t.Parallel()
	for _, mode := range []parley.Mode{parley.Pipeline, parley.Multimodal} {
		r := loop(t, mode, map[time.Duration]string{5 * time.Second: "What is the price please?", 12 * time.Second: "Thank you, goodbye."}, nil)
		lines := strings.Split(r.Transcript, "\n")
		require.GreaterOrEqual(t, len(lines), 5, r.Transcript)
		require.Equal(t, "AI: Hello, this is the shop. What can I do for you?", lines[0])
		require.Contains(t, strings.ToLower(lines[1]), "what is the price please")
		require.Contains(t, lines[2], "It costs ten euros.")
		require.Contains(t, strings.ToLower(lines[3]), "goodbye")
		require.Equal(t, converse.EndGoodbye, r.EndReason, "%s: %s", mode, r.Transcript)
		for _, turn := range r.Turns {
			t.Logf("%s %6v..%6v %q %+v", mode, turn.Started, turn.Ended, turn.Text, turn.Latency)
		}
	}
}

// TestWholeLoopInterruption: a voice in the middle of the greeting stops it, and the
// transcript ends where the sound did.
func TestWholeLoopInterruption(t *testing.T) {
	t.Parallel()
	r := loop(t, parley.Pipeline, map[time.Duration]string{1500 * time.Millisecond: "Wait please, what is the price of it?", 14 * time.Second: "Goodbye."}, nil)
	t.Log(r.Transcript)
	require.True(t, r.Turns[0].Interrupted)
	require.Contains(t, r.Transcript, "It costs ten euros.")
}
