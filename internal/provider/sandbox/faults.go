package sandbox

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"parley/internal/converse"
)

// FaultKind is a way in which a provider misbehaves.
type FaultKind int

// The ways. Each is one that real vendors have shown on a live line.
const (
	FaultNone     FaultKind = iota
	FaultError              // an error at once
	FaultStall              // nothing, until the caller gives up
	FaultHalfOpen           // some output, then nothing until the caller gives up
	FaultBreak              // some output, then an error
	FaultGarbage            // output that makes no sense
)

// String names a kind as messages and test tables do.
func (k FaultKind) String() string {
	switch k {
	case FaultNone:
		return "none"
	case FaultError:
		return "error"
	case FaultStall:
		return "stall"
	case FaultHalfOpen:
		return "half-open"
	case FaultBreak:
		return "break"
	case FaultGarbage:
		return "garbage"
	default:
		return fmt.Sprintf("fault %d", int(k))
	}
}

// Fault is one misbehaviour.
type Fault struct {
	Kind FaultKind
	// After is how much passes before a half-open stream falls silent or breaks:
	// tokens of a model, words of a speaker, frames of a transcriber. At least one.
	After int
}

func (f Fault) err(part string) error {
	return fmt.Errorf("sandbox %s: simulated failure", part)
}

// Faults says when a provider misbehaves. Turns are the calls of Listen, Reply or
// Speak, counted from 1 over the provider's life; a turn named in At fails in that
// way, any other one with the given Probability in the way of Default. The same
// seed and the same order of turns fail alike.
type Faults struct {
	At          map[int]Fault
	Probability float64
	Default     Fault
	// Until is the last turn that may fail by chance, so that a test sees the
	// recovery; 0 is no end.
	Until int
}

// roulette decides, turn by turn.
type roulette struct {
	mu     sync.Mutex
	faults Faults
	random *rand.Rand
	turn   int
}

func newRoulette(f Faults, seed, part uint64) *roulette {
	return &roulette{faults: f, random: rand.New(rand.NewPCG(seed, part))}
}

func (r *roulette) next() Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	chance := r.random.Float64()
	if f, ok := r.faults.At[r.turn]; ok {
		return f.atLeastOne()
	}
	if r.faults.Until > 0 && r.turn > r.faults.Until || chance >= r.faults.Probability {
		return Fault{}
	}
	return r.faults.Default.atLeastOne()
}

func (f Fault) atLeastOne() Fault {
	f.After = max(1, f.After)
	return f
}

// misbehave says whether a frame is to be ignored, and does what the fault says.
func (l *listener) misbehave() bool {
	switch l.fault.Kind {
	case FaultStall:
		return true
	case FaultHalfOpen:
		return l.frames > l.fault.After
	case FaultBreak:
		if l.frames == l.fault.After {
			l.hear(converse.Heard{Err: l.fault.err("transcriber")})
		}
		return l.frames >= l.fault.After
	case FaultGarbage:
		if l.frames%l.fault.After == 0 {
			l.hear(converse.Heard{Text: nonsense, Damaged: true})
		}
		return true
	default:
		return false
	}
}

// silenced says whether Flush is to go unanswered.
func (l *listener) silenced() bool {
	switch l.fault.Kind {
	case FaultStall:
		return true
	case FaultHalfOpen, FaultBreak:
		return l.frames >= l.fault.After
	default:
		return false
	}
}

// nonsense is what garbage looks like: not valid UTF-8, with control characters
// and markup, longer than a word should be.
const nonsense = "\x00\xff<|im_end|>}{\"\\u0000 \x1b[2J …"

// Delays are the waiting times of providers behind a network. Zero is at once.
type Delays struct {
	Final      time.Duration // from the end of an utterance to its final transcript; 150 ms unless set, none if negative
	Flush      time.Duration // from Flush to its final transcript
	FirstSound time.Duration // from Speak to the first sound
	FirstToken time.Duration // of the model, for keys other than instant and realistic
	Token      time.Duration // between tokens, likewise
}
