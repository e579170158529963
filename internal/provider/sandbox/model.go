package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/internal/converse"
)

// Model is a dialogue policy in the place of a language model: it always answers
// the same prompt in the same way. The package comment has its conventions.
type Model struct{ p *Provider }

// The delays of the model named realistic: those of a good model behind a network.
const (
	realistic           = "realistic"
	realisticFirstToken = 200 * time.Millisecond
	realisticToken      = 20 * time.Millisecond
)

// Reply streams the answer word by word, then the tool calls.
func (m *Model) Reply(ctx context.Context, p converse.Prompt, emit func(converse.Delta)) (converse.Usage, error) {
	usage := converse.Usage{InputTokens: tokensIn(p)}
	s := &tokenStream{ctx: ctx, emit: emit, usage: &usage, fault: m.p.modelFaults.next()}
	switch s.fault.Kind {
	case FaultError:
		return converse.Usage{}, s.fault.err("model")
	case FaultStall:
		return converse.Usage{}, stall(ctx, "model")
	}
	var first time.Duration
	first, s.delay = m.p.tokenDelays(p.Model)
	if err := wait(ctx, first, "model"); err != nil {
		return usage, err
	}
	t := newTalk(p)
	var d decision
	switch {
	case s.fault.Kind == FaultGarbage:
		d = decision{text: nonsense, calls: []converse.ToolCall{{ID: "", Name: "no_such_tool", Arguments: map[string]any{"\x00": nil}}}}
	case p.Extract != nil:
		d = decision{text: t.extract()}
	default:
		d = t.decide()
	}
	for token := range strings.SplitAfterSeq(d.text, " ") {
		if token == "" {
			continue
		}
		if err := s.send(converse.Delta{Text: token}); err != nil {
			return usage, err
		}
	}
	for i := range d.calls {
		if err := s.send(converse.Delta{ToolCall: &d.calls[i]}); err != nil {
			return usage, err
		}
	}
	return usage, nil
}

// tokenDelays are the waits before the first token and between tokens: of the
// options where they are set, else of the model.
func (p *Provider) tokenDelays(model string) (first, each time.Duration) {
	if model == realistic {
		first, each = realisticFirstToken, realisticToken
	}
	if d := p.options.Delays; d.FirstToken != 0 || d.Token != 0 {
		first, each = d.FirstToken, d.Token
	}
	return first, each
}

// tokenStream paces an answer and misbehaves as told.
type tokenStream struct {
	ctx   context.Context //nolint:containedctx // lives as long as one Reply
	emit  func(converse.Delta)
	usage *converse.Usage
	fault Fault
	delay time.Duration
	sent  int
}

func (s *tokenStream) send(d converse.Delta) error {
	if s.sent >= s.fault.After {
		switch s.fault.Kind {
		case FaultHalfOpen:
			return stall(s.ctx, "model")
		case FaultBreak:
			return s.fault.err("model")
		}
	}
	if s.sent > 0 {
		if err := wait(s.ctx, s.delay, "model"); err != nil {
			return err
		}
	}
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("sandbox model: %w", err)
	}
	s.sent++
	s.usage.OutputTokens++
	s.emit(d)
	return nil
}

// tokensIn counts the words of a prompt.
func tokensIn(p converse.Prompt) int {
	n := countWords(p.System)
	for _, m := range p.Messages {
		n += countWords(m.Text) + len(m.ToolCalls)
	}
	for _, t := range p.Tools {
		n += 1 + countWords(t.Description) + paramTokens(t.Params)
	}
	return n + paramTokens(p.Extract)
}

func paramTokens(params []converse.ParamSpec) int {
	n := 0
	for _, p := range params {
		n += 1 + countWords(p.Description)
	}
	return n
}

func countWords(text string) int {
	n := 0
	for range strings.FieldsSeq(text) {
		n++
	}
	return n
}
