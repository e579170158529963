package converse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"parley"
)

// toolbox is what the model can do beside speaking, and what it has done.
type toolbox struct {
	specs     []ToolSpec
	limits    map[string]time.Duration // of the assistant's own tools
	builtin   map[string]func(*Conversation, *reply, *toolRun)
	all       []*toolRun
	turn      int // of the customer's
	collected map[string]any
}

// toolRun is one run of a tool, for every call of the model that meant the same.
type toolRun struct {
	ToolRun
	key     string
	turn    int
	running bool
	entries []*entry
	replies []*reply
	stop    func()
	watch   *time.Timer
}

const (
	// mostResult bounds what a tool tells the model, in bytes.
	mostResult = 64 << 10
	// mostCalls bounds the calls of one answer: a model gone wild.
	mostCalls = 16
	// toolLimit is for a tool whose record names none.
	toolLimit = 10 * time.Second
)

func (t *toolbox) init(c *Conversation) {
	t.limits = make(map[string]time.Duration)
	t.collected = make(map[string]any)
	for _, tool := range c.cfg.Assistant.Tools {
		spec := ToolSpec{Name: tool.Name, Description: tool.Description}
		for _, p := range tool.Schema {
			spec.Params = append(spec.Params, ParamSpec{Name: p.Name, Type: p.Type, Description: p.Description, Required: true})
		}
		t.specs = append(t.specs, spec)
		t.limits[tool.Name] = toolLimit
		if tool.Timeout > 0 {
			t.limits[tool.Name] = time.Duration(tool.Timeout) * time.Second
		}
	}
	t.addBuiltins(c)
}

func (t *toolbox) spec(name string) *ToolSpec {
	for i := range t.specs {
		if t.specs[i].Name == name {
			return &t.specs[i]
		}
	}
	return nil
}

// busy reports that a tool is running.
func (t *toolbox) busy() bool {
	for _, run := range t.all {
		if run.running {
			return true
		}
	}
	return false
}

func (t *toolbox) runs() []ToolRun {
	runs := make([]ToolRun, len(t.all))
	for i, run := range t.all {
		runs[i] = run.ToolRun
	}
	return runs
}

// callTool does what the model wants done, once: the same call within the
// customer's turn, or while it still runs, shares the run and its result.
func (c *Conversation) callTool(r *reply, call ToolCall) {
	e := c.mind.history.add(Message{Role: RoleTool, ToolCallID: call.ID})
	spec := c.tools.spec(call.Name)
	switch {
	case spec == nil:
		e.Text = "Error: there is no tool of this name."
		c.toolAnswered(r, e)
		return
	case len(r.calls) > mostCalls:
		e.Text = "Error: too many tools at once."
		c.toolAnswered(r, e)
		return
	}
	arguments := fit(spec.Params, call.Arguments)
	key := intent(call.Name, arguments)
	run := c.tools.same(key)
	if run == nil {
		run = c.runTool(r, call.Name, arguments, key)
	}
	if !run.running {
		e.Text = run.Result
		c.toolAnswered(r, e)
		return
	}
	e.pending = true
	r.owes++
	run.entries = append(run.entries, e)
	run.replies = append(run.replies, r)
}

// intent is a call's meaning: its name and arguments, whatever their order.
func intent(name string, arguments map[string]any) string {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return name
	}
	return name + string(raw)
}

func (t *toolbox) same(key string) *toolRun {
	for _, run := range t.all {
		if run.key == key && (run.running || run.turn == t.turn) {
			return run
		}
	}
	return nil
}

func (c *Conversation) runTool(r *reply, name string, arguments map[string]any, key string) *toolRun {
	run := &toolRun{ToolRun: ToolRun{Name: name, Arguments: arguments, Started: c.sinceAnswer(c.now)}, key: key, turn: c.tools.turn, running: true}
	c.tools.all = append(c.tools.all, run)
	if do, ok := c.tools.builtin[name]; ok {
		do(c, r, run)
		return run
	}
	maps.Copy(c.tools.collected, arguments)
	limit := c.tools.limits[name]
	run.watch = time.AfterFunc(limit, func() {
		c.inbox.post(func() {
			c.toolOver(run, "", fmt.Errorf("the tool did not answer within %d seconds", int(limit/time.Second)))
		})
	})
	run.stop = c.begin(func(ctx context.Context) {
		result, err := c.cfg.RunTool(ctx, name, arguments)
		c.inbox.post(func() { c.toolOver(run, result, err) })
	})
	return run
}

// toolOver takes a tool's result, or its failure in words the model can speak about.
func (c *Conversation) toolOver(run *toolRun, result string, err error) {
	if !run.running {
		return
	}
	run.running = false
	if run.watch != nil {
		run.watch.Stop()
	}
	if run.stop != nil {
		run.stop()
	}
	if err != nil {
		result = "Error: " + cut(err.Error(), 300)
	}
	run.Failed = err != nil
	run.Result = strings.ToValidUTF8(cut(result, mostResult), "")
	run.Ended = c.sinceAnswer(c.now)
	done := run.ToolRun
	c.watch(Event{ToolRun: &done})
	for i, e := range run.entries {
		e.Text, e.pending = run.Result, false
		c.toolAnswered(run.replies[i], e)
	}
	replies := run.replies
	run.replies = nil
	for _, r := range replies {
		r.owes--
		c.toolsSettled(r)
	}
	c.rearmQuiet()
}

// overtaken ends a tool that the customer's own words have overtaken: they are
// answered, not its result.
func (c *Conversation) overtaken(run *toolRun, why string) {
	for i, e := range run.entries {
		e.Text, e.pending = "Error: "+why, false
		c.toolAnswered(run.replies[i], e)
	}
	run.entries, run.replies = nil, nil
	c.toolOver(run, "", errors.New(why))
}

// cut shortens a text to a number of bytes without breaking a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// toolsSettled goes on once all the results an answer waits for are there. A
// result whose answer was interrupted is news: it is told when there is a pause.
func (c *Conversation) toolsSettled(r *reply) {
	switch {
	case r.owes > 0 || len(r.calls) == 0 || c.phase != talking:
	case r.dropped:
		c.mind.nudge = "[" + r.calls[0].Name + " has answered meanwhile. Tell me the result.]"
		c.tellNews()
	case !r.done || r.last:
	case c.live != nil:
	default:
		c.followUp()
	}
}

// tellNews has the model speak without being spoken to: a result came in, or what
// interrupted it was only noise.
func (c *Conversation) tellNews() {
	if c.mind.nudge != "" && c.mind.reply == nil && c.mouth.now == nil && !c.ear.open && c.phase == talking && c.live == nil {
		c.followUp()
	}
}

// fit keeps of a model's arguments those that the tool declares, as the types it
// declares. The rest is dropped: a tool is sent nothing that its owner did not ask for.
func fit(params []ParamSpec, arguments map[string]any) map[string]any {
	out := make(map[string]any, len(params))
	for _, p := range params {
		if typed, ok := parley.TypedAs(p.Type, arguments[p.Name]); ok {
			out[p.Name] = typed
		}
	}
	return out
}
