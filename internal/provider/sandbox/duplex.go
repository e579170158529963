package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/converse"
)

// Duplex is a speech-to-speech model made of the other three: it hears as the
// transcriber, thinks as the model and speaks as the speaker.
type Duplex struct{ p *Provider }

var errSession = errors.New("sandbox duplex: the session is closed")

// Converse opens a session. Its events come one at a time and in order; emit must
// not call the session. A goroutine runs only while an answer is being made, and
// Close waits for it.
func (d *Duplex) Converse(ctx context.Context, o converse.DuplexOptions, emit func(converse.DuplexEvent)) (converse.DuplexSession, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{p: d.p, ctx: ctx, cancel: cancel, options: o, emit: emit, history: append([]converse.Message(nil), o.Prompt.Messages...)}
	// The end of a turn needs its words at once, whatever a transcriber's delays are.
	delays := d.p.options.Delays
	delays.Flush = 0
	ear, err := d.p.listen(ctx, converse.ListenOptions{Language: o.Utterance.Language, Rate: o.Utterance.Rate}, delays, s.heard)
	if err != nil {
		cancel()
		return nil, err
	}
	s.ear = ear
	return s, nil
}

// session is one call's conversation.
type session struct {
	p       *Provider
	ctx     context.Context //nolint:containedctx // bounds the answers, which outlive the calls that start them
	cancel  context.CancelFunc
	options converse.DuplexOptions
	ear     converse.Listener
	work    sync.WaitGroup

	mu      sync.Mutex // also held while emitting, which keeps events in order
	emit    func(converse.DuplexEvent)
	closed  bool
	failed  bool
	history []converse.Message
	said    []string // by the customer since the last turn
	pending map[string]bool
	queue   []task
	busy    bool
	answer  *spokenAnswer // the latest one
	stop    context.CancelFunc
	owed    converse.Usage // of interrupted answers
}

// task is an answer to be made: of the model, or with given words.
type task struct{ say string }

// spokenAnswer is what was said in an answer, and when.
type spokenAnswer struct {
	words   []converse.SpokenWord
	length  time.Duration
	message int // its place in the history, or -1
	over    bool
}

// heard takes what the transcriber made of the customer's speech.
func (s *session) heard(h converse.Heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed {
		return
	}
	if h.Err != nil {
		s.fail(h.Err)
		return
	}
	if h.Final && h.Text != "" {
		s.said = append(s.said, h.Text)
	}
	s.emit(converse.DuplexEvent{Customer: &h})
}

// fail reports an error, after which nothing is emitted any more.
func (s *session) fail(err error) {
	s.failed = true
	s.emit(converse.DuplexEvent{Err: err})
}

func (s *session) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errSession
	}
	if s.failed {
		return errors.New("sandbox duplex: the session has failed")
	}
	return nil
}

// Write hears a frame.
func (s *session) Write(frame []int16) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.ear.Write(frame)
}

// EndTurn answers what the customer has said.
func (s *session) EndTurn() error {
	if err := s.alive(); err != nil {
		return err
	}
	if err := s.ear.Flush(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, converse.Message{Role: converse.RoleCustomer, Text: strings.Join(s.said, " ")})
	s.said = nil
	s.enqueue(task{})
	return nil
}

// Say speaks a text as if the model had chosen it.
func (s *session) Say(text string) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue(task{say: text})
	return nil
}

// ToolResult answers a tool call; when it was the last one open, the model goes on.
func (s *session) ToolResult(id, result string) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pending[id] {
		return fmt.Errorf("sandbox duplex: no tool call %q is open", id)
	}
	delete(s.pending, id)
	s.history = append(s.history, converse.Message{Role: converse.RoleTool, Text: result, ToolCallID: id})
	if len(s.pending) == 0 {
		s.enqueue(task{})
	}
	return nil
}

// Interrupt stops the answer under way and forgets what was not heard of it.
func (s *session) Interrupt(heard time.Duration) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	if s.stop != nil {
		s.stop()
	}
	a := s.answer
	if a == nil {
		return nil
	}
	a.over = true
	var kept []string
	for _, w := range a.words {
		if w.Start < heard {
			kept = append(kept, w.Text)
		}
	}
	if a.message >= 0 {
		s.history[a.message].Text = strings.Join(kept, " ")
	}
	return nil
}

// Close ends the session and waits until nothing of it runs any more.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.queue = nil
	s.mu.Unlock()
	s.cancel()
	err := s.ear.Close()
	s.work.Wait()
	return err
}

// enqueue has a task done after those before it.
func (s *session) enqueue(t task) {
	if s.closed {
		return
	}
	s.queue = append(s.queue, t)
	if !s.busy {
		s.busy = true
		s.work.Go(s.run)
	}
}

// run makes answers until there are none to make.
func (s *session) run() {
	for {
		s.mu.Lock()
		if s.closed || s.failed || len(s.queue) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		ctx, stop := context.WithCancel(s.ctx)
		a := &spokenAnswer{message: -1}
		s.answer, s.stop = a, stop
		prompt := s.options.Prompt
		prompt.Messages = append([]converse.Message(nil), s.history...)
		s.mu.Unlock()
		usage, err := s.produce(ctx, a, next, prompt)
		stop()
		s.settle(a, usage, err)
	}
}

// settle ends an answer: with its usage, or with an error unless it was stopped.
func (s *session) settle(a *spokenAnswer, usage converse.Usage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.failed || s.ctx.Err() != nil:
	case a.over: // interrupted: not complete, but billed with the next
		s.owed.InputTokens += usage.InputTokens
		s.owed.OutputTokens += usage.OutputTokens
	case err != nil:
		s.fail(err)
	default:
		usage.InputTokens += s.owed.InputTokens
		usage.OutputTokens += s.owed.OutputTokens
		s.owed = converse.Usage{}
		s.emit(converse.DuplexEvent{Done: &usage})
	}
	a.over = true
}

// produce makes an answer: whole sentences are spoken as soon as they are there,
// then the tools are called.
func (s *session) produce(ctx context.Context, a *spokenAnswer, t task, p converse.Prompt) (converse.Usage, error) {
	if t.say != "" {
		return converse.Usage{OutputTokens: len(strings.Fields(t.say))}, s.speak(ctx, a, t.say)
	}
	var sentence strings.Builder
	var speech error
	usage, err := s.p.Model().Reply(ctx, p, func(d converse.Delta) {
		if d.ToolCall != nil {
			if sentence.Len() > 0 && speech == nil {
				speech = s.speak(ctx, a, sentence.String())
				sentence.Reset()
			}
			s.callTool(a, *d.ToolCall)
			return
		}
		sentence.WriteString(d.Text)
		if speech == nil && finished(strings.TrimSpace(d.Text)) {
			speech = s.speak(ctx, a, sentence.String())
			sentence.Reset()
		}
	})
	if err == nil && speech == nil && strings.TrimSpace(sentence.String()) != "" {
		speech = s.speak(ctx, a, sentence.String())
	}
	if err != nil {
		return usage, err
	}
	return usage, speech
}

// speak says a sentence of an answer. Its words count from the answer's beginning.
func (s *session) speak(ctx context.Context, a *spokenAnswer, text string) error {
	u := s.options.Utterance
	u.Text = text
	offset := a.length
	return s.p.Speaker().Speak(ctx, u, func(sound converse.Sound) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if a.over || s.closed || s.failed {
			return
		}
		sound.Samples, sound.Words = slices.Clone(sound.Samples), slices.Clone(sound.Words)
		for i := range sound.Words {
			sound.Words[i].Start += offset
			sound.Words[i].End += offset
			s.remember(a, sound.Words[i].Text)
		}
		a.words = append(a.words, sound.Words...)
		a.length += u.Rate.Duration(len(sound.Samples))
		s.emit(converse.DuplexEvent{Sound: &sound})
	})
}

// message is the history's entry of an answer.
func (s *session) message(a *spokenAnswer) *converse.Message {
	if a.message < 0 {
		a.message = len(s.history)
		s.history = append(s.history, converse.Message{Role: converse.RoleAssistant})
	}
	return &s.history[a.message]
}

// remember adds a word that is being spoken to the history.
func (s *session) remember(a *spokenAnswer, word string) {
	m := s.message(a)
	if m.Text != "" {
		m.Text += " "
	}
	m.Text += word
}

// callTool asks for a tool's result.
func (s *session) callTool(a *spokenAnswer, c converse.ToolCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.over || s.closed || s.failed {
		return
	}
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	s.pending[c.ID] = true
	m := s.message(a)
	m.ToolCalls = append(m.ToolCalls, c)
	s.emit(converse.DuplexEvent{ToolCall: &c})
}
