package converse

// entry is a message in the history that may still change: an answer shrinks to
// what was heard of it, a tool's result comes in later.
type entry struct {
	Message
	pending bool // a tool still runs
}

// history is the conversation as the model is told it.
type history struct{ entries []*entry }

func (h *history) add(m Message) *entry {
	e := &entry{Message: m}
	h.entries = append(h.entries, e)
	return e
}

// stillRunning is the result of a tool that has none yet.
const stillRunning = "This is still running. Its result will follow."

// messages copies the history for a prompt. Answers of which nothing was heard are
// left out, so that the model does not believe it has said them; a call of a tool
// always keeps its answer beside it, as models demand.
func (h *history) messages() []Message {
	out := make([]Message, 0, len(h.entries)+1)
	for _, e := range h.entries {
		m := e.Message
		if m.Role == RoleAssistant && m.Text == "" && len(m.ToolCalls) == 0 {
			continue
		}
		if e.pending {
			m.Text = stillRunning
		}
		out = append(out, m)
	}
	return out
}
