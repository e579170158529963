package converse

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// scriptDuplex is a speech-to-speech model made of the scripted three.
type scriptDuplex struct {
	ears  *scriptTranscriber
	voice *scriptSpeaker
	model func(Prompt) answer
	fault func(open int) fault
	mu    sync.Mutex
	opens []DuplexOptions
	heard []time.Duration // of interrupted answers
}

func (d *scriptDuplex) Converse(ctx context.Context, o DuplexOptions, emit func(DuplexEvent)) (DuplexSession, error) {
	d.mu.Lock()
	d.opens = append(d.opens, o)
	open := len(d.opens)
	d.mu.Unlock()
	s := &scriptSession{d: d, ctx: ctx, emit: emit, prompt: o.Prompt}
	if d.fault != nil {
		s.fault = d.fault(open)
	}
	if s.fault == errs {
		return nil, errScripted
	}
	listener, err := d.ears.Listen(ctx, ListenOptions{}, func(h Heard) {
		if h.Final {
			s.mu.Lock()
			s.said = h.Text
			s.mu.Unlock()
		}
		emit(DuplexEvent{Customer: &h})
	})
	s.listener = listener
	return s, err
}

type scriptSession struct {
	d        *scriptDuplex
	ctx      context.Context //nolint:containedctx // a session lives as long as its context
	emit     func(DuplexEvent)
	prompt   Prompt
	listener Listener
	fault    fault
	mu       sync.Mutex
	said     string
	gen      int
}

func (s *scriptSession) Write(frame []int16) error { return s.listener.Write(frame) }

func (s *scriptSession) EndTurn() error {
	_ = s.listener.Flush()
	if s.fault == stalls {
		return nil
	}
	s.later(201*ms, func() answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		p := s.prompt
		p.Messages = append(p.Messages, Message{Role: RoleCustomer, Text: s.said})
		return s.d.model(p)
	})
	return nil
}

func (s *scriptSession) Say(text string) error {
	s.later(0, func() answer { return answer{text: text} })
	return nil
}

func (s *scriptSession) ToolResult(_, result string) error {
	s.later(101*ms, func() answer {
		p := s.prompt
		p.Messages = append(p.Messages, Message{Role: RoleTool, Text: result})
		return s.d.model(p)
	})
	return nil
}

// later makes an answer unless it is interrupted before.
func (s *scriptSession) later(after time.Duration, compose func() answer) {
	s.mu.Lock()
	gen := s.gen
	s.mu.Unlock()
	time.AfterFunc(after, func() {
		a := compose()
		s.mu.Lock()
		defer s.mu.Unlock()
		if gen != s.gen || s.ctx.Err() != nil {
			return
		}
		words := strings.Fields(a.text)
		if s.fault == half {
			words = words[:len(words)/2]
		}
		for i, w := range words {
			sound := s.d.voice.sound(w, i, 300*ms)
			s.emit(DuplexEvent{Sound: &sound})
		}
		if s.fault == half {
			return
		}
		for _, call := range a.calls {
			s.emit(DuplexEvent{ToolCall: &call})
		}
		s.emit(DuplexEvent{Done: &Usage{InputTokens: 5, OutputTokens: len(strings.Fields(a.text))}})
	})
}

func (s *scriptSession) Interrupt(heard time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++
	s.d.mu.Lock()
	s.d.heard = append(s.d.heard, heard)
	s.d.mu.Unlock()
	return nil
}

func (s *scriptSession) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++
	return s.listener.Close()
}

// duplexed turns a scene into one of a multimodal assistant.
func (s scene) duplexed(d *scriptDuplex) scene {
	assistant, config := s.assistant, s.config
	s.assistant = func(a *parley.Assistant) {
		a.Mode = parley.Multimodal
		if assistant != nil {
			assistant(a)
		}
	}
	s.config = func(c *Config) {
		d.ears, d.voice, d.model = c.Transcribers[0].Use.(*scriptTranscriber), c.Speakers[0].Use.(*scriptSpeaker), s.model
		c.Transcribers, c.Models, c.Speakers = nil, nil, nil
		c.Duplexes = []Provider[Duplex]{{Name: "live", Key: "live-1", Voice: "alto", Use: d}}
		if config != nil {
			config(c)
		}
	}
	return s
}

// TestDuplex: the same call through a speech-to-speech model: greeting with the
// answer, a turn by the pause, an interruption kept to the word, usage and transcript.
func TestDuplex(t *testing.T) {
	t.Parallel()
	d := &scriptDuplex{}
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "count to ten please"}, {4400 * ms, 5600 * ms, "stop right there please"}},
		words:    wording{final: 51 * ms, partial: 31 * ms},
		model: func(p Prompt) answer {
			if strings.HasPrefix(lastWords(p), "count") {
				return answer{text: tenWords}
			}
			return answer{text: "As you wish."}
		},
		until: 10 * time.Second,
	}.duplexed(d).play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: count to ten please\nAI: One two three four\nCustomer: stop right there please\nAI: As you wish.", o.Transcript)
	require.Equal(t, 20*ms, o.at("Hello"))
	require.Equal(t, 3220*ms, o.at("One two"), "500 ms of pause, 201 of model, the rest of a frame")
	require.Equal(t, []time.Duration{1200 * ms}, d.heard, "the model knows how much was heard")
	require.NotContains(t, o.said(), "six")
	require.Equal(t, "alto", d.opens[0].Utterance.Voice)
	require.Equal(t, "live-1", d.opens[0].Prompt.Model)
	require.Equal(t, 10*time.Second, o.Usage[0].Heard)
	require.Positive(t, o.Usage[0].OutputTokens)
}

// TestDuplexWithoutPartials: a model that tells the words only when the turn is over.
func TestDuplexWithoutPartials(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "good morning to you"}}, words: wording{final: 51 * ms}, model: always("Good morning.", 0), until: 6 * time.Second,
	}.duplexed(&scriptDuplex{}).play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: good morning to you\nAI: Good morning.", o.Transcript)
	require.Equal(t, 1500*ms, o.Turns[1].Started)
}

// TestDuplexTools: tools, timers and the end are the engine's.
func TestDuplexTools(t *testing.T) {
	t.Parallel()
	when := "End it."
	o := scene{
		assistant: func(a *parley.Assistant) { withTool(a); a.EndCallDescription = &when },
		customer:  []says{{1500 * ms, 2500 * ms, "where is my order"}, {7 * time.Second, 8 * time.Second, "thank you bye"}},
		words:     wording{final: 51 * ms, partial: 31 * ms},
		model: func(p Prompt) answer {
			last := p.Messages[len(p.Messages)-1]
			switch {
			case last.Role == RoleTool:
				return answer{text: "It is " + last.Text + "."}
			case strings.HasPrefix(last.Text, "thank"):
				return answer{text: "Goodbye then.", calls: []ToolCall{call("2", "end_call", nil)}}
			}
			return answer{text: "Let me look.", calls: []ToolCall{call("1", "get_order", map[string]any{"order": "7"})}}
		},
		tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": func(ctx context.Context, _ map[string]any) (string, error) {
			return "shipped", sleep(ctx, 1501*ms)
		}},
		until: 20 * time.Second,
	}.duplexed(&scriptDuplex{}).play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: where is my order\nAI: Let me look.\nAI: It is shipped.\nCustomer: thank you bye\nAI: Goodbye then.", o.Transcript)
	require.Equal(t, EndGoodbye, o.EndReason)
	require.Len(t, o.ToolRuns, 2)
}

// TestDuplexTimers: silence and length end a multimodal call too.
func TestDuplexTimers(t *testing.T) {
	t.Parallel()
	o := scene{assistant: func(a *parley.Assistant) { a.ReengagementInterval, a.MaxSilenceDuration = 7, 12 }}.duplexed(&scriptDuplex{}).play(t)
	require.Equal(t, "AI: Hello from Acme.\nAI: Are you still there?", o.Transcript)
	require.Equal(t, 12920*ms, o.hungUp)
	o = scene{assistant: func(a *parley.Assistant) { a.MaxDuration = 20 }}.duplexed(&scriptDuplex{}).play(t)
	require.Equal(t, 20*time.Second, o.hungUp)
	require.Contains(t, o.Transcript, phraseBook["en"].closing)
}

// TestDuplexFails: another session takes over, or the call ends; it never hangs.
func TestDuplexFails(t *testing.T) {
	t.Parallel()
	s := scene{customer: []says{{1500 * ms, 2500 * ms, "good morning to you"}}, words: wording{final: 51 * ms, partial: 31 * ms}, model: always("Good morning.", 0), until: 30 * time.Second}
	o := s.duplexed(&scriptDuplex{fault: func(int) fault { return errs }}).play(t)
	require.Equal(t, EndDuplex, o.EndReason)
	o = s.duplexed(&scriptDuplex{fault: func(open int) fault {
		if open == 1 {
			return stalls
		}
		return sound
	}}).play(t)
	require.Contains(t, o.Transcript, "AI: Good morning.")
	require.Equal(t, EndStopped, o.EndReason)
	s.until = 50 * time.Second
	o = s.duplexed(&scriptDuplex{fault: func(open int) fault {
		if open == 1 {
			return half
		}
		return sound
	}}).play(t)
	require.Contains(t, o.Transcript, "AI: Hello", "what there is of the greeting is said")
	require.Equal(t, EndMaxSilence, o.EndReason, "and the call does not hang")
}
