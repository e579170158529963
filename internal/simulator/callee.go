package simulator

import (
	_ "embed" // the callees
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/internal/audio"
)

// Callee is somebody who can be called, or who calls: how the call is taken, what the
// line is like, and what the person does.
type Callee struct {
	Code  string // the two digits that choose them
	About string

	Refuses      int  // the SIP status, instead of ringing
	NeverAnswers bool // rings until the caller gives up
	NoReply      bool // nothing comes back, not even that it rings
	Rings        time.Duration

	Line   Line
	Script []Step

	// Ended is told how the call went; nil for nobody.
	Ended func(Outcome)
}

// Line is what the network does to a call.
type Line struct {
	Noise  audio.AmbientSound // behind the person; empty for none
	Volume float32            // of the noise, 0 to 1
	Loss   float64            // of the packets each way, in percent
	Jitter time.Duration      // the longest that a packet is held up
}

// Step is one thing that a person does, and when. Without a condition a step that
// speaks, types or hangs up waits for its turn: the assistant has said something and
// fallen silent.
type Step struct {
	Say    string // a bar is a pause of a second
	Press  string
	Cough  bool
	Beep   bool
	Wait   time.Duration
	HangUp bool // after the words

	AtOnce     bool           // waits for nothing
	AfterWords int            // cuts in after so many words, or at its turn if fewer are said
	Hears      *regexp.Regexp // at its turn, once the assistant has said this
	Key        string         // once the assistant has pressed these keys

	// Of a step that waits for words or keys: how often the step before is done again
	// in the meantime, and what is said before hanging up when that was in vain.
	Again  int
	OrElse string
}

//go:embed callees.yaml
var calleesFile []byte

// builtIn are the callees of the file; a mistake in it is one of the build, which any
// test finds.
var builtIn = sync.OnceValue(func() map[string]Callee {
	r := &reader{file: "callees.yaml"}
	callees := map[string]Callee{}
	r.pairs(r.document(calleesFile), "the list of callees", func(code, value *yaml.Node) {
		callee := r.callee(value)
		callee.Code = code.Value
		callees[code.Value] = callee
	})
	if err := r.err(); err != nil {
		panic(err)
	}
	return callees
})

// Callees lists who can be called, in the order of their digits.
func Callees() []Callee {
	return slices.SortedFunc(maps.Values(builtIn()), func(a, b Callee) int { return strings.Compare(a.Code, b.Code) })
}

// FindCallee is the callee of two digits.
func FindCallee(code string) (Callee, bool) {
	callee, ok := builtIn()[code]
	return callee, ok
}

// Calls says whether somebody can place a call too: whoever never picks up cannot.
func (c Callee) Calls() bool { return c.Refuses == 0 && !c.NeverAnswers && !c.NoReply }

func (r *reader) callee(n *yaml.Node) (c Callee) {
	r.mapping(n, "a callee", []key{
		{"about", func(n *yaml.Node) { c.About = r.text(n, "about") }},
		{"refuses", func(n *yaml.Node) { c.Refuses = r.whole(n, "refuses, a SIP status,", 400, 699) }},
		{"never_answers", func(n *yaml.Node) { c.NeverAnswers = r.flag(n, "never_answers") }},
		{"no_reply", func(n *yaml.Node) { c.NoReply = r.flag(n, "no_reply") }},
		{"rings", func(n *yaml.Node) { c.Rings = r.duration(n, "rings", 2*time.Minute) }},
		{"line", func(n *yaml.Node) { c.Line = r.line(n) }},
		{"script", func(n *yaml.Node) { c.Script = r.script(n) }},
	})
	return c
}

func (r *reader) line(n *yaml.Node) (l Line) {
	l.Volume = 0.35
	r.mapping(n, "line", []key{
		{"noise", func(n *yaml.Node) {
			sounds := audio.AmbientSounds()[1:]
			names := make([]string, len(sounds))
			for i, s := range sounds {
				names[i] = string(s)
			}
			l.Noise = audio.AmbientSound(r.oneOf(n, "noise", names))
		}},
		{"noise_volume", func(n *yaml.Node) { l.Volume = float32(r.number(n, "noise_volume", 0, 1)) }},
		{"loss_percent", func(n *yaml.Node) { l.Loss = r.number(n, "loss_percent", 0, 100) }},
		{"jitter", func(n *yaml.Node) { l.Jitter = r.duration(n, "jitter", time.Second) }},
	})
	return l
}

func (r *reader) script(n *yaml.Node) (steps []Step) {
	r.list(n, "script", func(n *yaml.Node) {
		s := r.step(n)
		switch {
		case s.Say == "" && s.Press == "" && !s.Cough && !s.Beep && s.Wait == 0 && !s.HangUp:
			r.wrongf(n, "a step must do something: say, press, cough, beep, wait or hang_up")
		case (s.Again > 0 || s.OrElse != "") && s.Key == "" && s.Hears == nil:
			r.wrongf(n, "again and or_else belong to a step that waits: add key or hears")
		case s.Again > 0 && len(steps) == 0:
			r.wrongf(n, "again repeats the step before, and there is none; begin with what is to be said")
		}
		steps = append(steps, s)
	})
	return steps
}

func (r *reader) step(n *yaml.Node) (s Step) {
	conditions := 0
	r.mapping(n, "a step", []key{
		{"say", func(n *yaml.Node) { s.Say = r.text(n, "say") }},
		{"press", func(n *yaml.Node) { s.Press = r.keypad(n, "press") }},
		{"cough", func(n *yaml.Node) { s.Cough = r.flag(n, "cough") }},
		{"beep", func(n *yaml.Node) { s.Beep = r.flag(n, "beep") }},
		{"wait", func(n *yaml.Node) { s.Wait = r.duration(n, "wait", 10*time.Minute) }},
		{"hang_up", func(n *yaml.Node) { s.HangUp = r.flag(n, "hang_up") }},
		{"at_once", func(n *yaml.Node) { s.AtOnce, conditions = r.flag(n, "at_once"), conditions+1 }},
		{"after_words", func(n *yaml.Node) { s.AfterWords, conditions = r.whole(n, "after_words", 1, 1000), conditions+1 }},
		{"hears", func(n *yaml.Node) { s.Hears, conditions = r.pattern(n, "hears"), conditions+1 }},
		{"key", func(n *yaml.Node) { s.Key, conditions = r.keypad(n, "key"), conditions+1 }},
		{"again", func(n *yaml.Node) { s.Again = r.whole(n, "again", 0, 10) }},
		{"or_else", func(n *yaml.Node) { s.OrElse = r.text(n, "or_else") }},
	})
	if conditions > 1 {
		r.wrongf(n, "a step has one condition: at_once, after_words, hears or key")
	}
	return s
}

func (r *reader) keypad(n *yaml.Node, what string) string {
	keys := strings.ToUpper(r.text(n, what))
	if strings.Trim(keys, "0123456789*#ABCD") != "" {
		r.wrongf(n, `%s must be keys of a telephone in quotes, such as "4711#"`, what)
	}
	return keys
}
