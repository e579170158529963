package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"parley/internal/converse"
)

// toolCalls puts tool calls together from their pieces. Several may grow at once,
// told apart by their index; some servers send each call whole and all of them with
// index 0, so an id of its own begins a call as well.
type toolCalls struct{ list []*partialCall }

type partialCall struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

func (t *toolCalls) add(piece *sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	c := t.find(piece)
	if c == nil {
		c = &partialCall{index: piece.Index}
		t.list = append(t.list, c)
	}
	if piece.ID != "" {
		c.id = piece.ID
	}
	if piece.Function.Name != "" {
		c.name = piece.Function.Name
	}
	c.arguments.WriteString(piece.Function.Arguments)
}

// find is the call that a piece belongs to: the latest one of its index, unless the
// piece has another id.
func (t *toolCalls) find(piece *sdk.ChatCompletionChunkChoiceDeltaToolCall) *partialCall {
	for _, c := range slices.Backward(t.list) {
		if c.index != piece.Index {
			continue
		}
		if piece.ID != "" && c.id != "" && piece.ID != c.id {
			return nil
		}
		return c
	}
	return nil
}

// whole are the finished calls. One without an id is given one that no other
// turn of the call has: the answer to it must name it.
func (t *toolCalls) whole() ([]converse.ToolCall, error) {
	calls := make([]converse.ToolCall, 0, len(t.list))
	for _, c := range t.list {
		if c.name == "" {
			return nil, errors.New("a tool call without a name")
		}
		call := converse.ToolCall{ID: c.id, Name: c.name, Arguments: map[string]any{}}
		if call.ID == "" {
			call.ID = "call_" + rand.Text()
		}
		if text := strings.TrimSpace(c.arguments.String()); text != "" && text != "null" {
			if err := json.Unmarshal([]byte(text), &call.Arguments); err != nil {
				return nil, fmt.Errorf("the arguments of the tool call %s are not a JSON object", c.name)
			}
		}
		calls = append(calls, call)
	}
	return calls, nil
}
