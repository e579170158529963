package converse

import (
	"strings"
	"time"

	"parley"
)

// machine judges who picked up, by sound and by words. A person says a word or two
// and waits; an answering machine speaks on, says what answering machines say, and
// beeps. Menus and call screeners are neither, and are left to the model: the verdict
// on them is unknown.
//
// A person taken for a machine is hung up on, a machine taken for a person costs a
// minute. So length alone convicts only where no person would speak that long, and a
// phrase that a receptionist might use counts half. Voices and dishes behind a person
// sound like speech that goes on: only words that keep coming make a run a long one.
type machine struct {
	language string
	inbound  bool
	answer   Answerer
	settled  bool // nothing changes the verdict any more
	answered time.Duration
	message  bool // a machine is listening, and is to be left a message

	talk   time.Duration // when the run of speech now heard began
	ending time.Duration // of the last speech
	run    time.Duration // how long it went on, if it was a greeting
	greets bool          // it was the first, right after the answer
	spoke  bool
	voiced bool
	said   string // all words since the answer
	heard  string // of turns already taken
	turns  int
	tone   bool

	count  int           // of the words said
	worded time.Duration // when the last of them came
}

const (
	// runGap is the pause that ends a run of speech.
	runGap = 600 * time.Millisecond
	// greetsWithin the answer a greeting begins. What comes later may be a person's
	// long answer to our own.
	greetsWithin = 2 * time.Second
	// longRun is longer than people speak when they pick up; endlessRun is longer
	// than anybody does.
	longRun    = 4 * time.Second
	endlessRun = 8 * time.Second
	// wordTime is more than a word takes even those who speak slowly, and wordsLag how far
	// a transcriber is behind the sound at most. A run whose words are too few for its
	// length, or ended before it did, is a short one with noise behind it.
	wordTime = 650 * time.Millisecond
	wordsLag = 2 * time.Second
	// awaitedPause is how long a person waits for an answer at least.
	awaitedPause = 900 * time.Millisecond
	// machineEvidence is what a verdict of machine takes.
	machineEvidence = 4
	// dialogue turns make a person.
	dialogue = 3
	// greetingLimit is longer than any greeting of a machine.
	greetingLimit = time.Minute
	// messageAfter the end of a machine's greeting a message is left without a beep.
	messageAfter = 2500 * time.Millisecond
)

func (m *machine) init(language string, direction parley.Direction) {
	m.language = language
	m.inbound = direction == parley.Inbound
	m.answer = AnsweredByUnknown
}

// began and paused are the edges of the customer's speech.
func (m *machine) began(at time.Duration) {
	if !m.voiced && (m.talk == 0 || at-m.ending > runGap) {
		m.talk = at
		m.greets = !m.spoke && at-m.answered <= greetsWithin
	}
	m.voiced, m.spoke = true, true
}

func (m *machine) paused(last time.Duration) {
	m.voiced = false
	m.ending = last
	if m.greets {
		m.run = max(m.run, last-m.talk)
	}
}

// words takes what has been said since the last turn.
func (m *machine) words(text string) {
	m.said = strings.TrimSpace(m.heard + " " + plain(text))
}

// turn takes a turn that is complete.
func (m *machine) turn(text string) {
	m.words(text)
	m.heard = m.said
	m.turns++
}

// note counts the words and remembers when there last was a new one.
func (m *machine) note(now time.Duration) {
	if n := len(strings.Fields(m.said)); n > m.count {
		m.count, m.worded = n, now
	}
}

// spoken is how long the greeting went on, as far as its words bear it out.
func (m *machine) spoken(now time.Duration) time.Duration {
	run, until := m.run, m.ending
	if m.voiced && m.greets {
		run, until = max(run, now-m.talk), now
	}
	if time.Duration(m.count)*wordTime < run || until-m.worded > wordsLag {
		return 0
	}
	return run
}

// evidence is how much speaks for a machine.
func (m *machine) evidence(now time.Duration) int {
	e := m.wordsEvidence()
	switch run := m.spoken(now); {
	case run >= endlessRun:
		e += 4
	case run >= longRun:
		e++
	}
	if m.tone {
		e += 4
	}
	return e
}

func (m *machine) wordsEvidence() int {
	e := 0
	for _, p := range machinePhrases[m.language] {
		if hasPhrase(m.said, p.words) {
			e += p.weight
		}
	}
	return e
}

// menu reports a voice that wants a key pressed or a caller announced.
func (m *machine) menu() bool {
	for _, p := range menuPhrases[m.language] {
		if hasPhrase(m.said, p) {
			return true
		}
	}
	return false
}

// judge is the verdict on what is known.
func (m *machine) judge(now time.Duration) Answerer {
	m.note(now)
	switch {
	case m.settled:
		return m.answer
	case m.inbound:
		if m.said != "" {
			return AnsweredByHuman
		}
		return AnsweredByUnknown
	case m.turns >= dialogue && m.evidence(now) < machineEvidence:
		m.settled = true
		return AnsweredByHuman
	case m.menu():
		return AnsweredByUnknown
	case m.evidence(now) >= machineEvidence:
		m.settled = true
		return AnsweredByMachine
	case m.said != "" && m.waits(now) && m.evidence(now) <= 1:
		return AnsweredByHuman
	}
	return m.answer
}

// waits reports somebody who has spoken and leaves the floor. Where there is noise behind
// the words, their end tells.
func (m *machine) waits(now time.Duration) bool {
	if m.voiced {
		return now-m.worded >= awaitedPause+wordsLag
	}
	return m.turns > 0 || now-m.ending >= awaitedPause
}

// suspect reports some evidence of a machine: no answer is worth preparing.
func (m *machine) suspect() bool {
	return m.message || !m.inbound && m.turns == 0 && m.wordsEvidence() >= 2
}

func (m *machine) verdict() Answerer { return m.answer }

// listening reports that a tone would still mean something. Looking for one costs
// more than all else in a frame, so it ends with the doubt.
func (m *machine) listening(since time.Duration) bool {
	return m.message || !m.inbound && !m.settled && since < greetingLimit
}

// judgeMachine acts on the verdict when it changes.
func (c *Conversation) judgeMachine() {
	m := &c.machine
	verdict := m.judge(c.now)
	if verdict == m.answer || c.phase != talking {
		return
	}
	m.answer = verdict
	c.watch(Event{AnsweredBy: verdict})
	if verdict != AnsweredByMachine {
		return
	}
	if c.cfg.Assistant.EndCallOnVoicemail {
		c.end(EndVoicemail, BySystem)
		return
	}
	m.message = true
	c.drop()
	c.dropReply()
	c.dropEarly()
	c.rearmQuiet()
	switch {
	case m.tone:
		c.leaveMessage()
	case !m.voiced:
		c.clock.wake(alarmMachine, c.now+messageAfter)
	}
}

// beeped is the tone of an answering machine: from now on it records.
func (c *Conversation) beeped() {
	m := &c.machine
	if m.inbound || c.phase != talking || m.settled && m.answer == AnsweredByHuman {
		return
	}
	m.tone = true
	if m.message {
		c.leaveMessage()
		return
	}
	c.judgeMachine()
}

// leaveMessage says the initial message onto the machine, with a number to call
// back, and ends the call.
func (c *Conversation) leaveMessage() {
	text := parley.Render(c.cfg.Assistant.InitialMessage, c.values)
	number := c.cfg.Call.AssistantPhone
	if c.cfg.Notice != "" && !c.noticed {
		text = parley.Render(c.cfg.Notice, c.values) + " " + text
	}
	if number != "" && c.phrases.callBack != "" && !strings.Contains(text, number) {
		text += " " + c.phrases.callBack + " " + spelled(number) + "."
	}
	c.leave(EndMessageLeft, ByAssistant, text)
	if c.phase != ended {
		c.clock.wake(alarmLeave, c.now+messageLimit)
	}
}

// messageLimit bounds a message whose sound never comes or never ends.
const messageLimit = time.Minute

// spelled is a number digit by digit, as one is read out.
func spelled(number string) string {
	return strings.Join(strings.Split(number, ""), " ")
}
