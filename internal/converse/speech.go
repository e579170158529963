package converse

import (
	"strings"
	"time"
)

// mouth holds what is being said and what is to be said next. A new utterance never
// takes sound from an old one: each owns its sentences, each sentence its samples,
// and a dropped utterance is out of reach of the frame path.
type mouth struct {
	now   *utterance
	queue []*utterance
	held  bool          // paused: the customer may be interrupting
	last  *utterance    // the one before, whose echo may still come back
	ended time.Duration // when anything was last said
}

// utterance is something said in one go: an answer, the greeting, a filler.
type utterance struct {
	kind      kind
	firm      bool // cannot be interrupted
	sentences []*sentence
	at        int  // the sentence being played
	more      bool // further sentences may come
	begun     bool
	pushed    bool // begins even though somebody is speaking
	started   time.Duration
	ended     time.Duration // of the last sound sent
	entry     *entry        // its message in the history
	then      func()        // once it has been said to the end, or can not be
	undone    func()        // when it is dropped before its end, in place of then

	// Of an answer: when what happened on its way.
	since       time.Duration // the customer's last word
	transcribed time.Duration
	turned      time.Duration
	token       time.Duration
}

// kind is what an utterance is for.
type kind int

const (
	kindReply kind = iota
	kindNotice
	kindGreeting
	kindFiller   // bridges a pause and answers nothing
	kindReengage // does not break the customer's silence
	kindPhrase
	kindLast // the call ends after it
	kindMessage
)

// text is all of an utterance, heard or not.
func (u *utterance) text() string {
	parts := make([]string, len(u.sentences))
	for i, s := range u.sentences {
		parts[i] = s.text
	}
	return strings.Join(parts, " ")
}

// heard is what of an utterance has reached the customer, to the word.
func (u *utterance) heard(rate int) string {
	var parts []string
	for i, s := range u.sentences {
		if i > u.at || i == u.at && s.sound.taken == 0 && !s.over() {
			break
		}
		if part := s.heard(rate); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// sounding is the text of the sentences that have begun.
func (u *utterance) sounding() string {
	parts := make([]string, 0, len(u.sentences))
	for i, s := range u.sentences {
		if i > u.at {
			break
		}
		parts = append(parts, s.text)
	}
	return strings.Join(parts, " ")
}

// current is the sentence being played, or nil.
func (u *utterance) current() *sentence {
	if u.at < len(u.sentences) {
		return u.sentences[u.at]
	}
	return nil
}

// over reports that nothing of it is left to play.
func (u *utterance) over() bool {
	for u.at < len(u.sentences) {
		if !u.sentences[u.at].over() {
			return false
		}
		u.at++
	}
	return !u.more
}

// read moves speech into a frame and says how many samples it gave. Sentences
// follow each other without a gap.
func (u *utterance) read(out []int16) int {
	n := 0
	for n < len(out) {
		s := u.current()
		if s == nil {
			break
		}
		got := s.sound.take(out[n:])
		n += got
		if !s.over() {
			if got == 0 {
				break
			}
			continue
		}
		u.at++
	}
	return n
}

// play sends the next frame: speech if there is any, silence, and the ambient sound
// under both.
func (c *Conversation) play() {
	n := c.fill(c.out)
	clear(c.out[n:])
	c.senses.ambient(c.out)
	c.senses.sent(c.out)
	c.cfg.Line.Send(c.out)
}

// fill puts the next 20 ms of speech into a frame.
func (c *Conversation) fill(out []int16) int {
	m := &c.mouth
	for m.now != nil && m.now.over() && !m.held {
		c.finish(m.now)
		if c.phase == ended {
			return 0
		}
	}
	u := m.now
	if u == nil || m.held {
		return 0
	}
	if !u.begun {
		if s := u.current(); s == nil || s.sound.length == 0 && !s.over() {
			return 0
		}
		if c.ear.speaking && !u.firm && !u.pushed && c.hold() {
			return 0 // nobody begins to speak over somebody who is speaking
		}
	}
	n := u.read(out)
	if n == 0 {
		return 0
	}
	if !u.begun {
		c.begun(u)
	}
	u.ended = c.now + c.cfg.Rate.Duration(n)
	c.feed(u)
	return n
}

// begun notes the first sound of an utterance.
func (c *Conversation) begun(u *utterance) {
	u.begun = true
	u.started = c.now
	c.clock.cancel(alarmFiller)
	c.clock.cancel(alarmPatience)
	c.rearmQuiet()
}

// enqueue gives an utterance the floor, now or after what is being said.
func (c *Conversation) enqueue(u *utterance) {
	m := &c.mouth
	if m.now == nil {
		m.now = u
	} else {
		m.queue = append(m.queue, u)
	}
	c.feed(u)
	c.rearmQuiet()
}

// say has a text said as one utterance.
func (c *Conversation) say(k kind, text string) *utterance {
	u := c.compose(k, text)
	c.enqueue(u)
	return u
}

// compose makes an utterance of a text without saying it yet.
func (c *Conversation) compose(k kind, text string) *utterance {
	u := &utterance{kind: k, firm: k == kindNotice || k == kindLast || k == kindMessage}
	if c.live != nil {
		c.live.say(c, u, text)
		return u
	}
	var split splitter
	for _, line := range append(split.add(text), split.flush()...) {
		u.sentences = append(u.sentences, c.voice.recall(line))
	}
	return u
}

// finish takes an utterance off the floor that has been said to its end.
func (c *Conversation) finish(u *utterance) {
	c.mouth.ended = u.ended
	c.keepSaid(u, false)
	c.next()
	if u.kind != kindReengage && u.begun {
		c.quiet.since = max(c.quiet.since, u.ended)
	} else {
		c.quiet.asked = max(c.quiet.asked, u.ended)
	}
	u.undone = nil
	if u.then != nil {
		u.then()
	}
	if c.phase != ended {
		c.floorFree()
	}
}

// next moves the queue up.
func (c *Conversation) next() {
	m := &c.mouth
	m.last = m.now
	m.now, m.held = nil, false
	c.clock.cancel(alarmConfirm)
	c.clock.cancel(alarmResume)
	if len(m.queue) > 0 {
		m.now = m.queue[0]
		m.queue = m.queue[1:]
		c.feed(m.now)
	}
}

// floorFree is called when an utterance has ended: words that waited for it are
// taken up, and silence begins to count.
func (c *Conversation) floorFree() {
	if c.mouth.now == nil {
		if c.live == nil && (c.mind.reply != nil || c.tools.busy()) {
			c.clock.wake(alarmPatience, c.now+patienceAgain)
		}
		c.wordsWaited()
		c.tellNews()
	}
	c.rearmQuiet()
}

// drop takes back everything that is being said or about to be, but for what
// cannot be interrupted, and keeps of it what was heard.
func (c *Conversation) drop() {
	m := &c.mouth
	u := m.now
	if u == nil || u.firm {
		return
	}
	c.keepSaid(u, !u.over())
	c.silence(u)
	kept := m.queue[:0]
	for _, waiting := range m.queue {
		if waiting.firm {
			kept = append(kept, waiting)
			continue
		}
		c.unsaid(waiting)
	}
	m.queue = kept
	m.ended = c.now
	c.next()
}

// unsaid forgets an utterance of which nothing was heard.
func (c *Conversation) unsaid(u *utterance) {
	c.silence(u)
	if u.entry != nil {
		u.entry.Text = ""
	}
}

// silence stops the rendering of an utterance; nothing of it can sound any more.
func (c *Conversation) silence(u *utterance) {
	u.more = false
	for _, s := range u.sentences {
		s.halt()
	}
	if undone := u.undone; undone != nil {
		u.undone = nil
		undone()
	}
	if c.live != nil {
		c.live.silence(c, u)
	}
}

// retract takes back an utterance of which nothing was heard.
func (c *Conversation) retract(u *utterance) {
	m := &c.mouth
	if u.begun {
		return
	}
	c.unsaid(u)
	if m.now == u {
		c.next()
		return
	}
	for i, waiting := range m.queue {
		if waiting == u {
			m.queue = append(m.queue[:i:i], m.queue[i+1:]...)
			return
		}
	}
}

// sayBefore has a text said before the answer that is still awaited.
func (c *Conversation) sayBefore(k kind, text string) {
	u := c.compose(k, text)
	m := &c.mouth
	if m.now == nil || m.now.begun {
		c.enqueue(u)
		return
	}
	m.queue = append([]*utterance{m.now}, m.queue...)
	m.now = u
	c.feed(u)
}

// cutOff is the end of the call in the middle of an utterance.
func (c *Conversation) cutOff() {
	m := &c.mouth
	if m.now != nil {
		c.keepSaid(m.now, !m.now.over())
		c.silence(m.now)
	}
	for _, u := range m.queue {
		c.silence(u)
	}
	m.now, m.queue = nil, nil
}
