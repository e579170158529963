package simulator

import (
	"strings"

	"parley/internal/audio"
	"parley/internal/converse"
)

const (
	// turnFrames is the silence after which a person takes the turn: half a second.
	turnFrames = 25
	// staleFrames without a word end a turn whatever the line sounds like: the last
	// word may have been lost, and some assistants sit in a café.
	staleFrames = 100
	// quietLevel is the loudest that counts as silence, in dBFS.
	quietLevel = -50
)

// ear keeps what a person hears of the assistant, and whose turn it is.
type ear struct {
	said    string // since the assistant began to speak; what is certain
	partial string // and what is not yet
	passed  int    // words of partial that belong to what was said before
	before  []string
	keys    string // pressed and not taken

	fresh bool // there are words that have not been answered
	over  bool // the assistant has fallen silent, and the next word begins anew
	final bool // the last words were the end of a sentence
	quiet int  // frames of silence
	stale int  // frames since the last word
}

// hear takes what a transcriber makes of the assistant's words.
func (e *ear) hear(h converse.Heard) {
	if h.Text != "" && h.Text != e.partial {
		if e.over {
			e.said, e.passed, e.over = "", len(strings.Fields(e.partial)), false
		}
		e.partial, e.fresh, e.final, e.stale = h.Text, true, false, 0
	}
	if h.Final && e.partial != "" {
		e.said = strings.TrimSpace(e.said + " " + e.partial)
		e.before = append(e.before, e.partial)
		e.partial, e.passed, e.final = "", 0, true
	}
}

// frame takes 20 ms of the line.
func (e *ear) frame(heard []int16) {
	e.stale++
	e.quiet++
	if audio.Level(heard) >= quietLevel {
		e.quiet = min(e.quiet-1, 0)
	}
	e.over = e.over || e.turn()
}

// turn says that the assistant has said something and fallen silent.
func (e *ear) turn() bool {
	return e.fresh && (e.quiet >= turnFrames || e.final && e.stale >= turnFrames || e.stale >= staleFrames)
}

// text is what the assistant has said in its turn.
func (e *ear) text() string { return strings.TrimSpace(e.said + " " + e.partial) }

// words counts what has been said so far of a turn that is not over.
func (e *ear) words() int {
	if e.over {
		return 0
	}
	return len(strings.Fields(e.said)) + max(0, len(strings.Fields(e.partial))-e.passed)
}

// spoke is the end of something the person said. What the assistant said meanwhile
// is no answer to it, unless it speaks on; and whoever has cut in gives it longer.
func (e *ear) spoke(cutIn bool) {
	e.fresh = e.fresh && !e.final && e.stale < turnFrames
	e.over = e.over || !e.fresh
	e.quiet, e.stale = 0, min(e.stale, 0)
	if cutIn {
		e.quiet = -turnFrames
	}
}

// everything is all that was heard in the call.
func (e *ear) everything() string {
	return strings.TrimSpace(strings.Join(e.before, " ") + " " + e.partial)
}
