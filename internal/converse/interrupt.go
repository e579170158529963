package converse

import "time"

// An interruption goes through three steps. The first voiced frame holds the mouth:
// silence is the polite answer to a voice, and it is instant. Then the rule is weighed
// as speech and words come in. Met, the utterance is dropped for good; not met by the
// end of the speech, it goes on where it stopped.

const (
	// resumeSoon is the silence after a cough or a hum that lets the utterance go
	// on; resumeLate gives the transcriber time where the speech was long enough.
	resumeSoon = 240 * time.Millisecond
	resumeLate = 700 * time.Millisecond
	// heldLimit ends a hold by a voice that never comes to words, such as a
	// television in the customer's room.
	heldLimit = 4 * time.Second
	// echoTrail is how long after our own words their echo may come back.
	echoTrail = 400 * time.Millisecond
)

// hold pauses the mouth. It reports whether the mouth is held.
func (c *Conversation) hold() bool {
	m := &c.mouth
	u := m.now
	if u == nil || u.firm || u.over() || u.begun && !c.cfg.Assistant.AllowInterruptions {
		return false
	}
	m.held = true
	c.clock.wake(alarmResume, c.now+heldLimit)
	c.awaitRule()
	return true
}

// awaitRule rings when the speech will next be long enough for something.
func (c *Conversation) awaitRule() {
	e := &c.ear
	switch {
	case e.voiced < e.need:
		c.clock.wake(alarmConfirm, c.now+e.need-e.voiced)
	case e.voiced < 2*e.need:
		c.clock.wake(alarmConfirm, c.now+2*e.need-e.voiced)
	default:
		c.clock.cancel(alarmConfirm)
	}
}

// unhold is the end of the speech that held the mouth.
func (c *Conversation) unhold() {
	e := &c.ear
	if !c.mouth.held {
		return
	}
	c.clock.cancel(alarmConfirm)
	if e.voiced < e.need {
		c.clock.wake(alarmResume, e.last+resumeSoon)
		return
	}
	c.clock.wake(alarmResume, c.now+resumeLate)
}

// weighInterruption applies the rule to what is known.
func (c *Conversation) weighInterruption() {
	e := &c.ear
	if !c.mouth.held || c.phase != talking {
		return
	}
	if c.meansIt() {
		c.interrupt()
		return
	}
	if e.speaking {
		c.awaitRule()
		return
	}
	if !e.owed && e.text() != "" && e.voiced >= e.need {
		c.resume() // all the words are known, and they are no interruption
	}
}

// meansIt is the rule: enough speech (interrupt_sensitivity), enough words
// (min_interrupt_words), and not merely a sign of listening. Without a word it takes
// twice the speech: a transcriber may be slow, but a cough has no words at all.
func (c *Conversation) meansIt() bool {
	e, a := &c.ear, &c.cfg.Assistant
	if !a.AllowInterruptions || e.voiced < e.need || c.onlyListening() {
		return false
	}
	if e.speaking && e.voiced < 2*e.need && c.repeated(e.text(), 1) {
		return false // too few words to tell from our own
	}
	least := 0
	if a.UseMinInterruptWords {
		least = a.MinInterruptWords
	}
	if len(plainWords(e.text())) >= max(1, least) {
		return true
	}
	return least == 0 && e.voiced >= 2*e.need && e.speaking
}

// onlyListening reports words that want no answer: "mm-hm", or the "Hello?" of
// somebody who has just picked up and is being greeted. A "yes" after a question is
// an answer.
func (c *Conversation) onlyListening() bool {
	u, text := c.mouth.now, c.ear.text()
	if u == nil || text == "" {
		return false
	}
	hum := isBackchannel(text, c.language)
	if u.kind == kindGreeting && !hum && isPickUp(text, c.language) {
		return true
	}
	if s := u.current(); s != nil && finishedQuestion(s.text) {
		return false
	}
	return hum || u.kind == kindGreeting && isPickUp(text, c.language)
}

// interrupt drops what was being said. The answer that was being thought of is
// dropped with it; tools go on, for what they do is done once. Should no words
// follow, it was no interruption after all, and the model is asked to go on.
func (c *Conversation) interrupt() {
	c.drop()
	c.dropReply()
	c.mind.nudge = "[There was noise on the line. Please go on.]"
	c.rearmQuiet()
}

// resume lets the mouth go on where it stopped.
func (c *Conversation) resume() {
	m := &c.mouth
	c.clock.cancel(alarmResume)
	c.clock.cancel(alarmConfirm)
	if !m.held {
		return
	}
	m.held = false
	if m.now != nil && !m.now.begun && c.ear.speaking {
		m.now.pushed = true
	}
	if c.ear.speaking {
		return
	}
	c.wordsWaited()
}

// echoed reports words that are our own, heard back while or just after they were
// said.
func (c *Conversation) echoed(text string) bool { return c.repeated(text, echoWords) }

func (c *Conversation) repeated(text string, least int) bool {
	if text == "" {
		return false
	}
	m := &c.mouth
	for _, u := range []*utterance{m.now, m.last} {
		if u == nil || !u.begun || c.ear.since > u.ended+echoTrail || c.ear.since < u.started {
			continue
		}
		if isEchoOf(text, u.sounding(), least) {
			return true
		}
	}
	return false
}
