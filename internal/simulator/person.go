package simulator

import (
	"context"
	"strings"
	"sync"

	"parley/internal/audio"
	"parley/internal/converse"
)

// patience is how long a person, or a menu, waits for what it asked for: 6 s.
const patience = 300

// person is a callee on the telephone, with the sandbox's ears and voice. The line's
// frames are its clock: it has no goroutine and no timer.
type person struct {
	script []act
	orElse map[int][]int16 // by step
	press  func(keys string) error
	noise  *audio.Background

	mu     sync.Mutex
	ear    ear
	at     int  // the step that is next
	cutIn  bool // into the assistant's words, with what is being said
	waited int  // frames in which nobody spoke, since the person last did
	tries  int  // how often the step before was done again
	speech []int16
	rest   int    // samples of silence after it
	busy   bool   // speech and rest are not over
	going  bool   // hangs up after them
	heard  string // keys of the assistant, all
	leave  func() // nil until the call is connected
	waits  bool   // to be put through to somebody else
	away   string // the number of those they were put through to
	frame  []int16
}

// act is a step and how it sounds.
type act struct {
	Step
	sound []int16
}

// newPerson prepares everything that a callee will let hear.
func newPerson(ctx context.Context, s *sounds, who Callee, call uint64) (*person, error) {
	p := &person{script: make([]act, len(who.Script)), orElse: map[int][]int16{}, frame: make([]int16, lineRate.FrameSamples())}
	for i, step := range who.Script {
		sound, err := s.of(ctx, &step)
		if err != nil {
			return nil, err
		}
		p.script[i] = act{step, sound}
		if step.OrElse != "" {
			if p.orElse[i], err = s.speech(ctx, step.OrElse); err != nil {
				return nil, err
			}
		}
	}
	if who.Line.Noise == "" {
		return p, nil
	}
	var err error
	p.noise, err = s.ambience.Background(who.Line.Noise, lineRate, who.Line.Volume, call)
	return p, err
}

// connected begins the script: nobody speaks into a telephone that rings.
func (p *person) connected(leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave = leave
}

// hear takes what the assistant says, word by word.
func (p *person) hear(h converse.Heard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ear.hear(h)
}

// key takes a key that the assistant presses.
func (p *person) key(digit byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ear.keys += string(rune(digit))
	p.heard += string(rune(digit))
}

// outcome is the call so far, as the person knows it.
func (p *person) outcome() Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Outcome{Heard: p.ear.everything(), Keys: p.heard, Steps: p.at, PutThrough: p.away}
}

// wait has the person wait to be put through, or not any more; false when that is so.
func (p *person) wait(waits bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes := p.waits != waits
	p.waits = waits
	return changes
}

// gone notes that the person talks to somebody else now.
func (p *person) gone(number string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = number
}

// hangUp ends the call at once.
func (p *person) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil {
		p.leave()
	}
}

// next is what the person lets hear in this frame.
func (p *person) next(heard []int16) []int16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ear.frame(heard)
	if p.busy && len(p.speech) == 0 && p.rest <= 0 {
		p.finished()
	}
	if !p.busy && !p.waits && p.leave != nil && p.at < len(p.script) {
		p.consider()
	}
	n := copy(p.frame, p.speech)
	clear(p.frame[n:])
	p.speech = p.speech[n:]
	p.rest -= len(p.frame) - n
	if p.noise != nil {
		p.noise.Mix(p.frame)
	}
	return p.frame
}

// finished is the end of what a step let hear.
func (p *person) finished() {
	p.busy, p.waited = false, 0
	p.ear.spoke(p.cutIn)
	if p.going {
		p.at = len(p.script)
		p.leave()
	}
}

// consider does the next step if its time has come.
func (p *person) consider() {
	step := &p.script[p.at]
	if p.ear.stale >= turnFrames {
		p.waited++
	}
	if p.due(step) {
		p.at++
		p.tries = 0
		p.ear.keys = ""
		p.cutIn = step.AfterWords > 0
		p.perform(step)
		return
	}
	inVain := p.waited >= patience || step.Hears != nil && p.ear.turn()
	if !inVain || step.Again == 0 && step.OrElse == "" {
		return
	}
	p.waited, p.cutIn = 0, false
	if p.tries < step.Again {
		p.tries++
		p.perform(&p.script[p.at-1])
		return
	}
	p.perform(&act{Step{HangUp: true}, p.orElse[p.at]})
}

// due says whether a step's condition is met.
func (p *person) due(s *act) bool {
	switch {
	case s.Key != "":
		return strings.Contains(p.ear.keys, s.Key)
	case s.Hears != nil:
		return p.ear.turn() && s.Hears.MatchString(p.ear.text())
	case s.AfterWords > 0:
		return p.ear.words() >= s.AfterWords || p.ear.turn()
	case s.AtOnce, s.Say == "" && s.Press == "" && !s.HangUp:
		return true
	default:
		return p.ear.turn()
	}
}

func (p *person) perform(s *act) {
	p.speech, p.rest, p.busy, p.going = s.sound, lineRate.Samples(s.Wait), true, s.HangUp
	if s.Press != "" {
		_ = p.press(s.Press) // read from the script: they are keys, and few
	}
}
