package gemini

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Model is Gemini over streamed content.
type Model struct{ p *Provider }

// Reply streams the answer.
func (m *Model) Reply(ctx context.Context, prompt converse.Prompt, emit func(converse.Delta)) (converse.Usage, error) {
	ctx, watch := wire.Watch(ctx, m.p.options.Silence)
	defer watch.Stop()
	a := answer{emit: emit, signatures: m.p.signatures}
	for chunk, err := range m.p.models.GenerateContentStream(ctx, prompt.Model, m.p.contents(prompt), config(prompt)) {
		if err != nil {
			return a.usage, m.p.explain(ctx, name+" model", err)
		}
		watch.Heard()
		a.take(chunk)
	}
	if ctx.Err() != nil {
		return a.usage, m.p.explain(ctx, name+" model", ctx.Err())
	}
	if err := a.finish(); err != nil {
		return a.usage, fmt.Errorf("%s model: %w", name, err)
	}
	return a.usage, nil
}

// answer is what has come of an answer so far.
type answer struct {
	emit       func(converse.Delta)
	signatures *signatures
	usage      converse.Usage
	said       bool
	reason     string // why the model stopped
	blocked    string // why it never began
}

func (a *answer) take(chunk *genai.GenerateContentResponse) {
	if u := chunk.UsageMetadata; u != nil {
		a.usage = converse.Usage{InputTokens: int(u.PromptTokenCount), OutputTokens: int(u.CandidatesTokenCount + u.ThoughtsTokenCount)}
	}
	if f := chunk.PromptFeedback; f != nil && f.BlockReason != "" {
		a.blocked = string(f.BlockReason)
	}
	if len(chunk.Candidates) == 0 || chunk.Candidates[0] == nil {
		return
	}
	candidate := chunk.Candidates[0]
	if candidate.FinishReason != "" {
		a.reason = string(candidate.FinishReason)
	}
	if candidate.Content == nil {
		return
	}
	for _, part := range candidate.Content.Parts {
		a.part(part)
	}
}

// part hands on a piece of text or a tool call, which always comes whole. Thoughts
// are not said.
func (a *answer) part(part *genai.Part) {
	switch {
	case part == nil || part.Thought:
	case part.FunctionCall != nil:
		call := &converse.ToolCall{ID: part.FunctionCall.ID, Name: part.FunctionCall.Name, Arguments: part.FunctionCall.Args}
		if call.ID == "" {
			call.ID = "call_" + rand.Text()
		}
		if call.Arguments == nil {
			call.Arguments = map[string]any{}
		}
		a.signatures.keep(call.ID, part.ThoughtSignature)
		a.said = true
		a.emit(converse.Delta{ToolCall: call})
	case part.Text != "":
		a.said = true
		a.emit(converse.Delta{Text: part.Text})
	}
}

// finish judges the whole. A stream that ends without saying why was cut.
func (a *answer) finish() error {
	switch {
	case a.blocked != "":
		return fmt.Errorf("the question was withheld (%s)", strings.ToLower(a.blocked))
	case a.reason == "":
		return errors.New("the answer broke off")
	case a.said:
		return nil
	case a.reason == string(genai.FinishReasonStop):
		return errors.New("the answer is empty")
	default:
		return fmt.Errorf("no answer (%s)", strings.ToLower(a.reason))
	}
}
