package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Model is Claude over streamed messages.
type Model struct{ p *Provider }

// Reply streams the answer. A request that is refused for its temperature is made
// again without it.
func (m *Model) Reply(ctx context.Context, prompt converse.Prompt, emit func(converse.Delta)) (converse.Usage, error) {
	usage, words, cause := m.attempt(ctx, prompt, emit)
	if words != nil && ctx.Err() == nil && m.p.learn(prompt.Model, cause) {
		usage, words, _ = m.attempt(ctx, prompt, emit)
	}
	return usage, words
}

// attempt asks once. An error comes in words, and as what it came from.
func (m *Model) attempt(ctx context.Context, prompt converse.Prompt, emit func(converse.Delta)) (usage converse.Usage, words, cause error) {
	ctx, watch := wire.Watch(ctx, m.p.options.Silence)
	defer watch.Stop()
	stream := m.p.messages.NewStreaming(ctx, m.p.request(prompt))
	defer func() { _ = stream.Close() }() // what it still had to say is void
	a := answer{emit: emit, extracting: prompt.Extract != nil, calls: map[int64]*partialCall{}}
	for stream.Next() {
		watch.Heard()
		event := stream.Current()
		if err := a.take(&event); err != nil {
			return a.usage(), fmt.Errorf("%s model: %w", name, err), nil
		}
	}
	if err := stream.Err(); err != nil || ctx.Err() != nil {
		return a.usage(), m.p.explain(ctx, err), err
	}
	if err := a.finish(); err != nil {
		return a.usage(), fmt.Errorf("%s model: %w", name, err), nil
	}
	return a.usage(), nil, nil
}

// answer is what has come of an answer so far.
type answer struct {
	emit       func(converse.Delta)
	extracting bool
	calls      map[int64]*partialCall
	said       bool
	over       bool
	reason     string // why the model stopped
	in, out    int64  // tokens
}

// partialCall is a tool call whose arguments are still coming.
type partialCall struct {
	id, name  string
	arguments strings.Builder
}

func (a *answer) usage() converse.Usage {
	return converse.Usage{InputTokens: int(a.in), OutputTokens: int(a.out)}
}

// take takes an event. Kinds that are not known are left alone, as the vendor asks.
func (a *answer) take(e *sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.in, a.out = u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.OutputTokens
	case "content_block_start":
		if e.ContentBlock.Type == "tool_use" {
			a.calls[e.Index] = &partialCall{id: e.ContentBlock.ID, name: e.ContentBlock.Name}
		}
	case "content_block_delta":
		a.piece(e)
	case "content_block_stop":
		return a.stop(e.Index)
	case "message_delta":
		a.reason = string(e.Delta.StopReason)
		a.out = max(a.out, e.Usage.OutputTokens)
	case "message_stop":
		a.over = true
	}
	return nil
}

// piece takes a piece of a text or of a tool call. The arguments of an extraction
// are its answer.
func (a *answer) piece(e *sdk.MessageStreamEventUnion) {
	text := e.Delta.Text
	if c := a.calls[e.Index]; c != nil {
		c.arguments.WriteString(e.Delta.PartialJSON)
		text = ""
	}
	if text == "" || a.extracting {
		return
	}
	a.said = true
	a.emit(converse.Delta{Text: text})
}

// stop ends a block; a tool call is whole then.
func (a *answer) stop(index int64) error {
	c := a.calls[index]
	if c == nil {
		return nil
	}
	delete(a.calls, index)
	call := converse.ToolCall{ID: c.id, Name: c.name, Arguments: map[string]any{}}
	if text := c.arguments.String(); text != "" {
		if err := json.Unmarshal([]byte(text), &call.Arguments); err != nil {
			return fmt.Errorf("the arguments of the tool call %s are not a JSON object", c.name)
		}
	}
	a.said = true
	if a.extracting {
		text, _ := json.Marshal(call.Arguments) //nolint:errchkjson // it was decoded from JSON
		a.emit(converse.Delta{Text: string(text)})
		return nil
	}
	a.emit(converse.Delta{ToolCall: &call})
	return nil
}

// finish judges the whole. A stream that ends without saying so was cut: the
// vendor's client takes a lost connection for an end.
func (a *answer) finish() error {
	switch {
	case !a.over:
		return errors.New("the answer broke off")
	case a.said:
		return nil
	case a.reason == "refusal":
		return errors.New("the model refuses to answer")
	default:
		return errors.New("the answer is empty")
	}
}
