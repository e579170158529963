package converse

import "time"

// quiet is the customer's silence. It begins when the customer or the assistant has
// said something, and the assistant's own "Are you still there?" does not end it.
type quiet struct {
	since time.Duration
	asked time.Duration // the end of the last such question
}

// rearmQuiet sets the two alarms of silence. Neither counts while somebody speaks or
// an answer is on its way; max_silence_duration goes on through a re-engagement, so
// that it ends the call to the millisecond.
func (c *Conversation) rearmQuiet() {
	c.clock.cancel(alarmReengage)
	c.clock.cancel(alarmMaxSilence)
	if c.phase != talking || c.ear.open && !c.ear.noise || c.mind.reply != nil || c.tools.busy() || c.keys.run != nil || c.thinkingLive() || c.machine.message {
		return
	}
	u := c.mouth.now
	if u != nil && u.kind != kindReengage {
		return
	}
	a := &c.cfg.Assistant
	if a.MaxSilenceDuration > 0 {
		c.clock.wake(alarmMaxSilence, max(c.now, c.quiet.since+time.Duration(a.MaxSilenceDuration)*time.Second))
	}
	if a.ReengagementInterval > 0 && u == nil {
		from := max(c.quiet.since, c.quiet.asked)
		c.clock.wake(alarmReengage, max(c.now, from+time.Duration(a.ReengagementInterval)*time.Second))
	}
}

// reengage asks whether the customer is still there.
func (c *Conversation) reengage() {
	c.quiet.asked = c.now
	if c.greet() {
		return
	}
	if c.phrases.stillThere != "" || c.live != nil {
		c.say(kindReengage, c.phrases.stillThere)
		return
	}
	// A language without phrases: the model asks, in its own words.
	prompt := c.prompt(append(c.mind.history.messages(), Message{Role: RoleCustomer, Text: "[silence]"}))
	prompt.System += "\nThe customer has been silent for a while. Ask in one short sentence whether they are still there."
	r := c.newReply("")
	r.u.kind = kindReengage
	r.prompt = prompt
	r.u.entry = c.mind.history.add(Message{Role: RoleAssistant})
	c.mind.reply = r
	c.enqueue(r.u)
	c.ask(r)
}

const (
	// closingLead is when the closing sentence is rendered, before max_duration.
	closingLead = 12 * time.Second
	// tail is what the customer's own buffers still hold when our last sample has
	// left: hanging up sooner would cut the last word.
	tail = 200 * time.Millisecond
	// lastWordsLimit bounds a last sentence whose sound never comes.
	lastWordsLimit = 12 * time.Second
)

// close leads to the end at max_duration: the closing sentence is rendered in
// time, begins so that its last sample is heard, and the call ends exactly at the
// limit.
func (c *Conversation) close() {
	if c.phase != talking || c.phrases.closing == "" {
		return
	}
	limit := c.clock.at[alarmMaxDuration]
	length := c.lengthOf(c.phrases.closing)
	at := limit - length - tail
	if c.now < at {
		c.keep(c.phrases.closing)
		// The length becomes exact when the sentence is there; until then it is asked again.
		c.clock.wake(alarmClosing, min(at, c.now+time.Second))
		return
	}
	c.leave(EndMaxDuration, BySystem, c.phrases.closing)
	c.clock.cancel(alarmLeave) // max_duration itself ends the call
}

// lengthOf is how long a text takes to say, exactly if it has been rendered.
func (c *Conversation) lengthOf(text string) time.Duration {
	var split splitter
	n := 0
	for _, line := range append(split.add(text), split.flush()...) {
		if s := c.voice.kept[line]; s != nil && s.whole && !s.failed {
			n += s.sound.length
		} else {
			n += expected(line, int(c.cfg.Rate))
		}
	}
	return c.cfg.Rate.Duration(n)
}

// departure is why the call will end once the last words are said.
type departure struct {
	reason EndReason
	by     Party
}

// leave says a last sentence, which nothing interrupts, and ends the call after it.
func (c *Conversation) leave(reason EndReason, by Party, text string) {
	if c.phase != talking {
		return
	}
	c.takeLastWords()
	c.drop()
	c.dropReply()
	c.dropEarly()
	c.phase = leaving
	c.rearmQuiet()
	c.departure = &departure{reason, by}
	if text == "" {
		c.depart()
		return
	}
	u := c.say(kindLast, text)
	u.then = c.lastSaid(u)
	c.clock.wake(alarmLeave, c.now+lastWordsLimit)
}

// lastSaid waits until the customer has heard the end, then ends the call.
func (c *Conversation) lastSaid(u *utterance) func() {
	return func() {
		if c.departure != nil && c.departure.reason == EndMaxDuration && c.clock.armed(alarmMaxDuration) {
			return
		}
		c.clock.wake(alarmTail, max(c.now, u.ended+tail))
	}
}

// departAfter ends the call after the tail of what was just said.
func (c *Conversation) departAfter(reason EndReason, by Party) {
	c.departure = &departure{reason, by}
	c.phase = leaving
	c.rearmQuiet()
	c.clock.wake(alarmTail, max(c.now, c.mouth.ended+tail))
}

// depart ends the call as was decided.
func (c *Conversation) depart() {
	if c.departure != nil {
		c.end(c.departure.reason, c.departure.by)
	}
}

// giveUp ends a call whose providers have failed, with an apology if one can still
// be said.
func (c *Conversation) giveUp(reason EndReason) {
	switch c.phase {
	case ended:
		return
	case ringing:
		c.end(reason, BySystem)
		return
	case leaving:
		if reason == EndSpeaker {
			c.depart() // the last words cannot be said; why they were to be remains
		}
		return
	}
	if reason == EndDuplex || reason == EndSpeaker && !c.voice.has(c.phrases.apology) {
		c.end(reason, BySystem)
		return
	}
	c.leave(reason, BySystem, c.phrases.apology)
}
