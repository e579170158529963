package converse

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley"
)

// Conversation holds one call from before its answer to its end. Everything after
// the first block belongs to the goroutine in Run; all others reach it through the
// inbox.
type Conversation struct {
	cfg      Config
	language string
	phrases  phrases
	inbox    *inbox

	begin func(work func(context.Context)) (stop func())
	start time.Time
	now   time.Duration // since start; of the item being handled
	clock *clock

	phase     phase
	answered  time.Duration
	values    map[string]string
	senses    senses
	ear       ear
	mouth     mouth
	mind      mind
	tools     toolbox
	keys      keypad
	quiet     quiet
	stream    stream
	voice     voice
	machine   machine
	live      *live // of a multimodal assistant
	departure *departure
	first     firstWords
	noticed   bool // the notice has ended

	turns  []Turn
	meter  meter
	result Result
	out    []int16
	clean  []int16
}

// phase is how far a call is. Who has the floor within a call is not a phase: it
// follows from what the ear hears and the mouth holds.
type phase int

const (
	ringing phase = iota
	talking
	leaving // a last sentence is being said; nothing changes that any more
	ended
)

// New makes a conversation. It does nothing until Run.
func New(cfg Config) (*Conversation, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Conversation{
		cfg:      cfg,
		language: isoOf(cfg.Assistant.Language),
		inbox:    newInbox(cfg.Rate.FrameSamples()),
		out:      make([]int16, cfg.Rate.FrameSamples()),
		clean:    make([]int16, cfg.Rate.FrameSamples()),
	}
	c.phrases, _ = phrasesFor(c.language)
	var err error
	if c.senses, err = newSenses(&c.cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// Answered says that the line is open: frames count from now on.
func (c *Conversation) Answered() { c.inbox.post(c.answer) }

// Frame takes the 20 ms that arrived from the customer and has the engine send the
// next 20 ms. It is called once per 20 ms for the whole call, with silence where
// nothing arrived: the media's pace is the conversation's. It never blocks.
func (c *Conversation) Frame(frame []int16) { c.inbox.frame(frame) }

// Digit takes a key that the customer pressed: 0 to 9, *, #, A to D.
func (c *Conversation) Digit(key byte) { c.inbox.post(func() { c.pressed(key) }) }

// HungUp says that the customer has gone.
func (c *Conversation) HungUp() { c.inbox.post(func() { c.end(EndHungUp, ByCustomer) }) }

// Stop ends the call from outside: an operator, a node that drains, lost media.
func (c *Conversation) Stop(reason EndReason) { c.inbox.post(func() { c.end(reason, BySystem) }) }

// patienceWithWorkers bounds how long Run waits for providers that ignore the end of
// their context. The line is long closed by then; what is bounded is the record.
const patienceWithWorkers = 2 * time.Second

// Run holds the conversation and returns when it has ended and every goroutine it
// started has too. It is called once; while the telephone rings it has the first
// words rendered.
func (c *Conversation) Run(ctx context.Context) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	c.begin = func(work func(context.Context)) func() {
		ctx, stop := context.WithCancel(ctx)
		workers.Go(func() {
			defer stop()
			work(ctx)
		})
		return stop
	}
	c.start = time.Now()
	c.clock = newClock()
	c.prepare()
	for c.phase != ended {
		c.clock.rest(c.now)
		select {
		case <-c.inbox.wake:
			c.handle(c.inbox.take())
		case <-c.clock.timer.C:
			c.clock.rang()
			c.tell()
			c.ringDue()
		case <-ctx.Done():
			c.tell()
			c.end(EndStopped, BySystem)
		}
	}
	cancel()
	c.closeStreams()
	awaitAll(&workers)
	return c.conclude()
}

// awaitAll waits for the workers, but not for ever.
func awaitAll(workers *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	limit := time.NewTimer(patienceWithWorkers)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}

// tell reads the clock once for everything an item causes.
func (c *Conversation) tell() { c.now = time.Since(c.start) }

// handle works through a batch. Alarms that are due go first: a pause that is long
// enough has ended the turn, whatever came in at the same moment.
func (c *Conversation) handle(batch []item) {
	for i, it := range batch {
		if c.phase == ended {
			return
		}
		batch[i] = item{} // the batch's memory is used again, and must not hold what has been done
		c.tell()
		if it.do == nil {
			c.clock.round(alarmEndOfTurn, c.now)
		}
		c.ringDue()
		switch {
		case c.phase == ended:
		case it.do != nil:
			it.do()
		default:
			c.frame(c.inbox.frames[it.slot])
			c.inbox.free()
		}
	}
}

func (c *Conversation) ringDue() {
	for c.phase != ended {
		a, ok := c.clock.due(c.now)
		if !ok {
			return
		}
		c.ring(a)
	}
}

func (c *Conversation) ring(a alarm) {
	switch a {
	case alarmEndOfTurn:
		c.pauseEnded()
	case alarmWords:
		c.wordsOverdue()
	case alarmEarly:
		c.thinkEarly()
	case alarmConfirm:
		c.weighInterruption()
	case alarmResume:
		c.resume()
	case alarmFiller:
		c.sayFiller()
	case alarmPatience:
		c.sayPatience()
	case alarmReengage:
		c.reengage()
	case alarmMaxSilence:
		c.end(EndMaxSilence, BySystem)
	case alarmClosing:
		c.close()
	case alarmMaxDuration:
		c.end(EndMaxDuration, BySystem)
	case alarmLeave, alarmTail:
		c.depart()
	case alarmDigits:
		c.digitsOver()
	case alarmNoise:
		c.onlyNoise()
	case alarmMachine:
		c.leaveMessage()
	}
}

// frame is the 20 ms path: hear, then speak, so that a word of the customer's holds
// the very frame that would have spoken over it. Nothing in it allocates.
func (c *Conversation) frame(in []int16) {
	if c.phase == ringing {
		return
	}
	c.listen(in)
	if c.phase == ended {
		return
	}
	c.play()
	if c.noticed && c.cfg.Tap != nil && !c.result.RecordingRefused {
		c.cfg.Tap(in, c.out)
	}
}

// prepare runs while the telephone rings.
func (c *Conversation) prepare() {
	c.values = c.cfg.Call.Values(&c.cfg.Assistant, c.start)
	c.ear.endpointing = newEndpointing(&c.cfg.Assistant, c.language)
	c.ear.need = interruptSpeech(c.cfg.Assistant.InterruptSensitivity)
	c.machine.init(c.language, c.cfg.Call.Direction)
	c.stream.init(c)
	c.voice.init(c)
	c.mind.chain = newChain(len(c.cfg.Models))
	c.tools.init(c)
	if c.cfg.Assistant.Mode == parley.Multimodal {
		c.openLive()
	}
	c.prepareWords()
}

// answer begins the call proper.
func (c *Conversation) answer() {
	if c.phase != ringing {
		return
	}
	c.phase = talking
	c.answered = c.now
	c.result.Answered = true
	c.machine.answered = c.now
	if limit := c.cfg.Assistant.MaxDuration; limit > 0 {
		at := c.now + time.Duration(limit)*time.Second
		c.clock.wake(alarmMaxDuration, at)
		c.clock.wake(alarmClosing, max(c.now, at-closingLead))
	}
	c.openStream()
	c.sayFirstWords()
	c.quiet.since = c.now
	c.rearmQuiet()
}

// sinceAnswer is a moment as the record shows it.
func (c *Conversation) sinceAnswer(at time.Duration) time.Duration { return max(0, at-c.answered) }

// end closes the call at once.
func (c *Conversation) end(reason EndReason, by Party) {
	if c.phase == ended {
		return
	}
	if c.phase == ringing {
		reason = notAnswered(reason)
	}
	c.cutOff()
	c.takeLastWords()
	c.machine.answer = c.machine.judge(c.now)
	c.phase = ended
	c.result.EndReason, c.result.EndedBy = reason, by
	c.result.Duration = c.sinceAnswer(c.now)
	c.cfg.Line.HangUp()
}

// notAnswered is the reason of a call that ended while it rang, unless something
// better is known.
func notAnswered(reason EndReason) EndReason {
	if reason == EndHungUp || reason == EndStopped {
		return EndNotAnswered
	}
	return reason
}

// conclude gathers the result.
func (c *Conversation) conclude() Result {
	r := c.result
	if !r.Answered {
		r.Duration = 0
	}
	r.Turns = c.turns
	r.Transcript = transcript(c.turns)
	r.AnsweredBy = c.machine.verdict()
	r.Usage = c.meter.all()
	r.Variables = c.tools.collected
	r.ToolRuns = c.tools.runs()
	return r
}

// watch tells the outside.
func (c *Conversation) watch(e Event) {
	e.At = c.sinceAnswer(c.now)
	c.cfg.Watch(e)
}

// failed notes a provider's failure that the call survives, or may.
func (c *Conversation) failed(part Part, provider string, err error) {
	c.result.Failure = provider + ": " + err.Error()
	c.cfg.Log.Warn("provider failed", slog.String("part", string(part)), slog.String("provider", provider), slog.Any("error", err))
	c.watch(Event{Failure: c.result.Failure})
}
