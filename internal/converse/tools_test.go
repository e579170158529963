package converse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

var orderTool = parley.Tool{Name: "get_order", Description: "Looks up an order.", Timeout: 5, Schema: []parley.Param{{Name: "order", Type: "string", Description: "its number"}, {Name: "count", Type: "number", Description: "how many"}}}

func withTool(a *parley.Assistant) { a.Tools = []parley.Tool{orderTool} }

func call(id, name string, arguments map[string]any) ToolCall {
	return ToolCall{ID: id, Name: name, Arguments: arguments}
}

// toolTalk asks once and has the model call tools, then speak about the result.
func toolTalk(calls ...ToolCall) func(Prompt) answer {
	return func(p Prompt) answer {
		last := p.Messages[len(p.Messages)-1]
		if last.Role == RoleTool {
			return answer{first: 51 * ms, text: "It says " + last.Text + "."}
		}
		return answer{first: 51 * ms, text: "Let me look.", calls: calls}
	}
}

// TestToolRuns: the tool gets what its schema declares, the model its result.
func TestToolRuns(t *testing.T) {
	t.Parallel()
	var got map[string]any
	o := scene{
		assistant: withTool, customer: []says{{1500 * ms, 2500 * ms, "where is my order"}}, words: wording{final: 11 * ms},
		model: toolTalk(call("1", "get_order", map[string]any{"order": 42.0, "count": "3", "evil": "x"})),
		tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": func(ctx context.Context, a map[string]any) (string, error) {
			got = a
			return "shipped", sleep(ctx, 2001*ms)
		}},
		until: 12 * time.Second,
	}.play(t)
	require.Equal(t, map[string]any{"order": "42", "count": 3.0}, got, "typed by the schema, the rest dropped")
	require.Equal(t, "AI: Hello from Acme.\nCustomer: where is my order\nAI: Let me look.\nAI: It says shipped.", o.Transcript)
	require.Equal(t, got, o.Variables)
	require.Len(t, o.ToolRuns, 1)
	require.Equal(t, 3000*ms, o.ToolRuns[0].Started, "no tool runs before the turn is over")
	require.Equal(t, 5001*ms, o.ToolRuns[0].Ended)
	require.Equal(t, 5060*ms, o.at("It says"))
}

// TestToolsRunAtOnceAndOnce: several tools run side by side, and the same call within
// a turn is one run.
func TestToolsRunAtOnceAndOnce(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	o := scene{
		assistant: withTool, customer: []says{{1500 * ms, 2500 * ms, "where is my order"}}, words: wording{final: 11 * ms},
		model: func(p Prompt) answer {
			if last := p.Messages[len(p.Messages)-1]; last.Role == RoleTool {
				if runs.Load() == 2 && !strings.Contains(fmt.Sprint(p.Messages), "again") {
					return answer{first: 51 * ms, text: "Done."}
				}
			}
			return answer{first: 51 * ms, text: "", calls: []ToolCall{
				call("1", "get_order", map[string]any{"order": "1"}), call("2", "get_order", map[string]any{"order": "2"}),
				call("3", "get_order", map[string]any{"order": "1"}),
			}}
		},
		tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": func(ctx context.Context, a map[string]any) (string, error) {
			runs.Add(1)
			return "ok", sleep(ctx, 1001*ms)
		}},
		until: 10 * time.Second,
	}.play(t)
	require.EqualValues(t, 2, runs.Load())
	require.Equal(t, o.ToolRuns[0].Started, o.ToolRuns[1].Started)
	require.Contains(t, o.Transcript, "AI: Done.")
	for _, m := range o.model.prompts()[1].Messages {
		if m.Role == RoleTool {
			require.Equal(t, "ok", m.Text)
		}
	}
}

// TestToolTimeOutAndError: both come back as words the model can speak about.
func TestToolTimeOutAndError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool func(context.Context, map[string]any) (string, error)
		says string
		took time.Duration
	}{
		{func(ctx context.Context, _ map[string]any) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "Error: the tool did not answer within 5 seconds", 5 * time.Second},
		{func(context.Context, map[string]any) (string, error) { return "", errors.New("the shop answered 500") }, "Error: the shop answered 500", 0},
		{func(context.Context, map[string]any) (string, error) { return strings.Repeat("x", 10<<20), nil }, strings.Repeat("x", 64<<10), 0},
	} {
		o := scene{
			assistant: withTool, customer: []says{{1500 * ms, 2500 * ms, "where is my order"}}, words: wording{final: 11 * ms},
			model: func(p Prompt) answer {
				if p.Messages[len(p.Messages)-1].Role == RoleTool {
					return answer{text: "Sorry."}
				}
				return answer{first: 51 * ms, calls: []ToolCall{call("1", "get_order", nil)}}
			},
			tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": tt.tool}, until: 15 * time.Second,
		}.play(t)
		prompts := o.model.prompts()
		require.Equal(t, tt.says, prompts[1].Messages[len(prompts[1].Messages)-1].Text)
		require.Equal(t, tt.took, o.ToolRuns[0].Ended-o.ToolRuns[0].Started)
		require.Contains(t, o.Transcript, "AI: Sorry.")
	}
}

// TestToolResultSurvivesAnInterruption: the customer speaks while the tool runs; it
// runs on, once, and its result is told.
func TestToolResultSurvivesAnInterruption(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	o := scene{
		assistant: withTool,
		customer:  []says{{1500 * ms, 2500 * ms, "where is my order"}, {3200 * ms, 4200 * ms, "and hurry up please"}},
		words:     wording{final: 11 * ms, partial: 31 * ms},
		model: func(p Prompt) answer {
			last := p.Messages[len(p.Messages)-1]
			switch {
			case strings.Contains(last.Text, "has answered meanwhile"):
				return answer{text: "It says " + p.Messages[3].Text + "."}
			case last.Text == "and hurry up please":
				return answer{text: "I am on it."}
			}
			return answer{first: 51 * ms, text: "Let me look at that right now.", calls: []ToolCall{call("1", "get_order", nil)}}
		},
		tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": func(ctx context.Context, _ map[string]any) (string, error) {
			runs.Add(1)
			return "shipped", sleep(ctx, 4001*ms)
		}},
		until: 15 * time.Second,
	}.play(t)
	require.EqualValues(t, 1, runs.Load())
	require.True(t, strings.HasSuffix(o.Transcript, "Customer: and hurry up please\nAI: I am on it.\nAI: It says shipped."), o.Transcript)
	var pending bool
	for _, m := range o.model.prompts()[1].Messages {
		pending = pending || m.Role == RoleTool && m.Text == stillRunning
	}
	require.True(t, pending, "the model knows that the tool still runs")
}

// TestEndCall: offered with the assistant's own description; the goodbye is played
// to its last sample, then the call ends.
func TestEndCall(t *testing.T) {
	t.Parallel()
	when := "End the call once the customer has said goodbye."
	s := scene{
		assistant: func(a *parley.Assistant) { a.EndCallDescription = &when },
		customer:  []says{{1500 * ms, 2500 * ms, "thank you goodbye"}}, words: wording{final: 11 * ms},
		model: func(Prompt) answer {
			return answer{first: 51 * ms, text: "Thank you for calling. Goodbye.", calls: []ToolCall{call("1", "end_call", nil)}}
		},
	}
	o := s.play(t)
	require.Equal(t, EndGoodbye, o.EndReason)
	require.Equal(t, ByAssistant, o.EndedBy)
	require.Equal(t, "Hello from Acme. Thank you for calling. Goodbye.", o.said())
	require.Equal(t, 4700*ms, o.hungUp, "five words of 300 ms from 3.0 s, and what the telephone still holds")
	var offered string
	for _, tool := range o.model.prompts()[0].Tools {
		if tool.Name == "end_call" {
			offered = tool.Description
		}
	}
	require.Equal(t, when, offered)

	s.model = func(Prompt) answer { return answer{first: 51 * ms, calls: []ToolCall{call("1", "end_call", nil)}} }
	o = s.play(t)
	require.Equal(t, EndGoodbye, o.EndReason)
	require.Equal(t, "Hello from Acme. Thank you. Goodbye.", o.said(), "a model without words is given some")

	s.assistant = nil
	o = s.play(t)
	require.Equal(t, EndGoodbye, o.EndReason, "an assistant that does not say when can end a call too")
	require.False(t, o.OptOut)

	s.model = func(Prompt) answer {
		return answer{first: 51 * ms, calls: []ToolCall{call("1", "end_call", map[string]any{"reason": "opt_out"})}}
	}
	o = s.play(t)
	require.True(t, o.OptOut, "a model may understand what the phrases do not")
	require.Equal(t, EndOptOut, o.EndReason)
	require.Equal(t, ByCustomer, o.EndedBy)
}

// TestInterruptedGoodbyeKeepsTheCall: a customer who still has something to say is
// not hung up on.
func TestInterruptedGoodbyeKeepsTheCall(t *testing.T) {
	t.Parallel()
	when := "End it."
	o := scene{
		assistant: func(a *parley.Assistant) { a.EndCallDescription = &when },
		customer:  []says{{1500 * ms, 2500 * ms, "thank you goodbye"}, {3600 * ms, 4600 * ms, "wait one more thing"}},
		words:     wording{final: 11 * ms, partial: 31 * ms},
		model: func(p Prompt) answer {
			if lastWords(p) == "wait one more thing" {
				return answer{text: "Of course."}
			}
			return answer{first: 51 * ms, text: "Thank you very much for calling us today. Goodbye.", calls: []ToolCall{call("1", "end_call", nil)}}
		},
		until: 20 * time.Second,
	}.play(t)
	require.Equal(t, EndStopped, o.EndReason)
	require.Contains(t, o.Transcript, "AI: Of course.")
}

// TestTransfer: after the words, blind; a refusal is told to the model.
func TestTransfer(t *testing.T) {
	t.Parallel()
	s := scene{
		config:   func(c *Config) { c.CanTransfer = true },
		customer: []says{{1500 * ms, 2500 * ms, "a human please"}}, words: wording{final: 11 * ms},
		model: func(p Prompt) answer {
			if p.Messages[len(p.Messages)-1].Role == RoleTool {
				return answer{text: "Nobody is there."}
			}
			return answer{first: 51 * ms, text: "One moment.", calls: []ToolCall{call("1", "transfer_call", map[string]any{"number": "+4930123456"})}}
		},
		until: 10 * time.Second,
	}
	o := s.play(t)
	require.Equal(t, EndTransferred, o.EndReason)
	require.Equal(t, 3600*ms, o.hungUp)
	s.config = func(c *Config) {
		c.CanTransfer = true
		c.Line.(*scriptLine).transfer = func(string) error { return errors.New("603 Declined") }
	}
	o = s.play(t)
	require.Equal(t, "One moment. Nobody is there.", strings.TrimPrefix(o.said(), "Hello from Acme. "))
}

// TestDTMF: the model presses keys and collects them.
func TestDTMF(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "press one for sales"}}, words: wording{final: 11 * ms},
		model: func(p Prompt) answer {
			last := p.Messages[len(p.Messages)-1]
			switch {
			case last.Role == RoleTool && strings.HasPrefix(last.Text, "Pressed"):
				return answer{text: "Type your number.", calls: []ToolCall{call("2", "collect_digits", map[string]any{"count": 4})}}
			case last.Role == RoleTool:
				return answer{text: last.Text}
			}
			return answer{first: 51 * ms, calls: []ToolCall{call("1", "send_dtmf", map[string]any{"digits": "1x#"})}}
		},
		digits: map[time.Duration]byte{6 * time.Second: '4', 6200 * ms: '7', 6400 * ms: '1', 6600 * ms: '1'},
		until:  12 * time.Second,
	}.play(t)
	require.Equal(t, "1#", o.sent)
	require.Equal(t, "4711", o.Digits)
	require.Equal(t, "4711", o.Variables["digits"])
	require.True(t, strings.HasSuffix(o.Transcript, "AI: The customer typed 4711."), o.Transcript)
}

// TestTypedDigitsAreATurn: keys pressed without being asked reach the model.
func TestTypedDigitsAreATurn(t *testing.T) {
	t.Parallel()
	o := scene{digits: map[time.Duration]byte{3 * time.Second: '4', 3200 * ms: '2'}, model: always("Forty two.", 21*ms), until: 9 * time.Second}.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: [pressed 42]\nAI: Forty two.", o.Transcript)
}

// TestInterruptedTransferIsUndone: a customer who speaks into the announcement keeps
// the call, and the tool does not stay open.
func TestInterruptedTransferIsUndone(t *testing.T) {
	t.Parallel()
	o := scene{
		config:   func(c *Config) { c.CanTransfer = true },
		customer: []says{{1500 * ms, 2500 * ms, "a human please"}, {3600 * ms, 4600 * ms, "no wait stay with me"}}, words: wording{final: 11 * ms, partial: 11 * ms},
		model: func(p Prompt) answer {
			if lastWords(p) == "no wait stay with me" {
				return answer{text: "I am staying."}
			}
			return answer{first: 51 * ms, text: "I will now hand you over to a colleague of mine.", calls: []ToolCall{call("1", "transfer_call", map[string]any{"number": "+4930123456"})}}
		},
		until: 30 * time.Second,
	}.play(t)
	require.Equal(t, EndStopped, o.EndReason)
	require.True(t, o.ToolRuns[0].Failed)
	require.Contains(t, o.Transcript, "AI: I am staying.")
	require.Equal(t, 1, strings.Count(o.Transcript, "staying"))
}

// TestSpeakingInsteadOfTyping ends the wait for digits.
func TestSpeakingInsteadOfTyping(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "here is my number"}, {6 * time.Second, 7 * time.Second, "it is four seven"}}, words: wording{final: 11 * ms},
		model: func(p Prompt) answer {
			if lastWords(p) == "it is four seven" {
				return answer{text: "Thank you."}
			}
			return answer{first: 51 * ms, text: "Type it.", calls: []ToolCall{call("1", "collect_digits", map[string]any{"timeout": 30})}}
		},
		until: 20 * time.Second,
	}.play(t)
	require.True(t, strings.HasSuffix(o.Transcript, "Customer: it is four seven\nAI: Thank you."), o.Transcript)
}

// TestBackchannelWhileThinking: "okay" to a model that thinks does not start it anew.
func TestBackchannelWhileThinking(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "find me a flight"}, {3200 * ms, 3600 * ms, "okay"}}, words: wording{final: 11 * ms},
		model: always("There is one at noon.", 2001*ms), until: 10 * time.Second,
	}.play(t)
	require.Len(t, o.model.prompts(), 1)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: find me a flight\nCustomer: okay\nAI: There is one at noon.", o.Transcript)
}
