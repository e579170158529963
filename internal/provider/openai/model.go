package openai

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/openai/openai-go/v3"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Model is a language model over streamed chat completions.
type Model struct{ p *Provider }

// Reply streams the answer. A request that is refused for a setting that the model
// does not take is made again without it.
func (m *Model) Reply(ctx context.Context, prompt converse.Prompt, emit func(converse.Delta)) (converse.Usage, error) {
	for {
		usage, err := m.attempt(ctx, prompt, emit)
		if err == nil || ctx.Err() != nil || !m.p.learn(prompt.Model, err.cause) {
			return usage, err.orNil()
		}
	}
}

// failure is an error in words, and what it came from.
type failure struct {
	words error
	cause error
}

func (f *failure) orNil() error {
	if f == nil {
		return nil
	}
	return f.words
}

func (m *Model) attempt(ctx context.Context, prompt converse.Prompt, emit func(converse.Delta)) (converse.Usage, *failure) {
	ctx, watch := wire.Watch(ctx, m.p.options.Silence)
	defer watch.Stop()
	stream := m.p.chat.NewStreaming(ctx, request(prompt, m.p.quirksOf(prompt.Model)))
	defer func() { _ = stream.Close() }() // what it still had to say is void
	a := answer{emit: emit}
	for stream.Next() {
		watch.Heard()
		chunk := stream.Current()
		a.take(&chunk)
	}
	if err := stream.Err(); err != nil || ctx.Err() != nil {
		return a.usage, &failure{words: m.p.explain(ctx, "model", err), cause: err}
	}
	if err := a.finish(); err != nil {
		return a.usage, &failure{words: fmt.Errorf("%s model: %w", m.p.options.Name, err)}
	}
	return a.usage, nil
}

// answer is what has come of an answer so far.
type answer struct {
	emit   func(converse.Delta)
	usage  converse.Usage
	calls  toolCalls
	said   bool
	reason string // why the model stopped
}

func (a *answer) take(chunk *sdk.ChatCompletionChunk) {
	if chunk.Usage.TotalTokens > 0 || chunk.Usage.PromptTokens > 0 {
		a.usage = converse.Usage{InputTokens: int(chunk.Usage.PromptTokens), OutputTokens: int(chunk.Usage.CompletionTokens)}
	}
	if len(chunk.Choices) == 0 {
		return // the last chunk has the usage alone
	}
	choice := &chunk.Choices[0]
	// A refusal is said like anything else: the customer must hear something.
	if text := choice.Delta.Content + choice.Delta.Refusal; text != "" {
		a.said = true
		a.emit(converse.Delta{Text: text})
	}
	for i := range choice.Delta.ToolCalls {
		a.calls.add(&choice.Delta.ToolCalls[i])
	}
	if choice.FinishReason != "" {
		a.reason = choice.FinishReason
	}
}

// finish emits the tool calls, which are whole only now. A stream that ends without
// saying why was cut: the vendor's client takes a lost connection for an end.
func (a *answer) finish() error {
	if a.reason == "" {
		return errors.New("the answer broke off")
	}
	calls, err := a.calls.whole()
	if err != nil {
		return err
	}
	for i := range calls {
		a.emit(converse.Delta{ToolCall: &calls[i]})
	}
	switch {
	case a.said || len(calls) > 0:
		return nil
	case a.reason == "content_filter":
		return errors.New("the answer was withheld by the content filter")
	default:
		return errors.New("the answer is empty")
	}
}
