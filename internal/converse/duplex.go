package converse

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley/internal/audio"
)

// live is a speech-to-speech model in the place of transcriber, model and speaker.
// The engine keeps what makes a call a call: who has the floor, the timers, the tools
// and the transcript. The model is told when a turn is over, gets the customer's
// sound, and its own is played like any other.
type live struct {
	chain   chain
	route   route
	used    int
	gen     int
	session DuplexSession
	stop    func()
	watch   *time.Timer
	todo    []func(DuplexSession) error // until the session is open

	expected []*utterance // asked for, in order; their sound is still to come
	now      *utterance   // whose sound is arriving
	reply    *reply       // the tools that it calls
	awaited  bool         // an answer was asked for and has not begun
	deaf     bool         // what was interrupted may still be on its way here
	unheard  *Turn        // a turn whose words are still to come
	written  time.Duration
}

const (
	// liveLimit is how long an answer may take to begin, or to go on.
	liveLimit = 5 * time.Second
	// leastTurn is speech that is a turn though its words are not known yet.
	leastTurn = 300 * time.Millisecond
)

// openLive opens the session while the telephone rings.
func (c *Conversation) openLive() {
	if c.live == nil {
		c.live = &live{chain: newChain(len(c.cfg.Duplexes))}
	}
	l := c.live
	i, ok := l.chain.provider(&l.route)
	if !ok {
		c.giveUp(EndDuplex)
		return
	}
	l.gen++
	l.used = i
	p, gen, a := c.cfg.Duplexes[i], l.gen, &c.cfg.Assistant
	prompt := c.prompt(c.mind.history.messages())
	prompt.Model = p.Key
	options := DuplexOptions{Prompt: prompt, Utterance: Utterance{
		Voice: p.Voice, Language: c.language, Rate: c.cfg.Rate,
		Speed: float64(a.SpeechSpeed), Stability: float64(a.VoiceStability), Similarity: float64(a.VoiceSimilarity),
	}}
	c.meter.add(PartUsage{Part: PartDuplex, Provider: p.Name, Key: p.Key, Requests: 1})
	l.watch = time.AfterFunc(openLimit, func() {
		c.inbox.post(func() { c.liveFailed(gen, errStalled) })
	})
	l.stop = c.begin(func(ctx context.Context) {
		session, err := p.Use.Converse(ctx, options, func(e DuplexEvent) {
			if e.Sound != nil {
				e.Sound = &Sound{slices.Clone(e.Sound.Samples), slices.Clone(e.Sound.Words)}
			}
			c.inbox.post(func() { c.liveEvent(gen, e) })
		})
		if err != nil {
			c.inbox.post(func() { c.liveFailed(gen, err) })
			return
		}
		c.inbox.post(func() { c.liveOpened(gen, session) })
		<-ctx.Done()
		_ = session.Close() // what it still had to say is void
	})
}

func (c *Conversation) liveOpened(gen int, session DuplexSession) {
	l := c.live
	if gen != l.gen {
		return
	}
	l.watch.Stop()
	l.session = session
	todo := l.todo
	l.todo = nil
	for _, do := range todo {
		l.do(c, do)
	}
}

// do has the session do something, now or once it is open.
func (l *live) do(c *Conversation, what func(DuplexSession) error) {
	if l.session == nil {
		l.todo = append(l.todo, what)
		return
	}
	if err := what(l.session); err != nil {
		c.liveFailed(l.gen, err)
	}
}

// say has the model say a text. The sound comes as if it were an answer.
func (l *live) say(c *Conversation, u *utterance, text string) {
	text = tidy(text)
	if text == "" {
		return
	}
	u.sentences = []*sentence{{text: text, asked: true}}
	u.more = true
	l.expected = append(l.expected, u)
	l.do(c, func(s DuplexSession) error { return s.Say(text) })
}

// endTurn asks for an answer.
func (l *live) endTurn(c *Conversation) {
	l.awaited = true
	l.await(c)
	l.do(c, DuplexSession.EndTurn)
}

// await suspects a model that does not begin, or stops in the middle.
func (l *live) await(c *Conversation) {
	gen := l.gen
	if l.watch != nil {
		l.watch.Stop()
	}
	l.watch = time.AfterFunc(liveLimit, func() {
		c.inbox.post(func() {
			if c.live.awaited || c.live.now != nil {
				c.liveFailed(gen, errStalled)
			}
		})
	})
}

// write gives the model the customer's 20 ms.
func (l *live) write(c *Conversation, frame []int16) {
	if l.session == nil {
		return
	}
	l.written += audio.FrameDuration
	if err := l.session.Write(frame); err != nil {
		c.liveFailed(l.gen, err)
	}
}

// thinkingLive reports that an answer is on its way.
func (c *Conversation) thinkingLive() bool {
	return c.live != nil && (c.live.awaited || c.live.now != nil)
}

// liveEvent takes what the model does.
func (c *Conversation) liveEvent(gen int, e DuplexEvent) {
	l := c.live
	if gen != l.gen || c.phase == ended {
		return
	}
	switch {
	case e.Err != nil:
		c.liveFailed(gen, e.Err)
	case e.Customer != nil:
		c.liveHeard(*e.Customer)
	case l.deaf:
	case e.Sound != nil:
		c.liveSounded(*e.Sound)
	case e.ToolCall != nil:
		c.liveCalls(*e.ToolCall)
	case e.Done != nil:
		c.liveDone(*e.Done)
	}
}

// liveHeard takes the customer's words. Those of a turn that was taken by its sound
// alone are its record.
func (c *Conversation) liveHeard(h Heard) {
	l := c.live
	if h.Err != nil {
		c.liveFailed(l.gen, h.Err)
		return
	}
	if c.phase == ringing {
		return
	}
	if l.unheard == nil {
		c.heard(h)
		return
	}
	text := legible(h.Text)
	if !h.Final || text == "" {
		return
	}
	t := l.unheard
	l.unheard = nil
	t.Text = text
	c.turns = append(c.turns, *t)
	c.watch(Event{Turn: t})
	c.mind.history.add(customerMessage(text, h.Damaged))
	c.machine.turn(text)
	if c.judgeMachine(); c.phase == talking {
		c.refuses(text)
	}
}

// answering is the utterance that what arrives belongs to: the next that was asked
// for, or an answer.
func (c *Conversation) answering() *utterance {
	l := c.live
	if l.now != nil {
		return l.now
	}
	if len(l.expected) > 0 {
		l.now, l.expected = l.expected[0], l.expected[1:]
	} else {
		l.now = &utterance{kind: kindReply, more: true, since: c.mind.since, turned: c.mind.turned, token: c.now, sentences: []*sentence{{asked: true}}}
		l.now.entry = c.mind.history.add(Message{Role: RoleAssistant})
		l.awaited = false
		c.enqueue(l.now)
	}
	l.reply = &reply{u: l.now}
	l.route = route{}
	return l.now
}

func (c *Conversation) liveSounded(sound Sound) {
	u := c.answering()
	c.live.await(c)
	s := u.sentences[0]
	if s.sound.length == 0 {
		s.first = c.now
	}
	s.sound.add(sound.Samples)
	s.words = append(s.words, sound.Words...)
	if u.entry != nil && u.kind == kindReply {
		for _, w := range sound.Words {
			s.text = strings.TrimSpace(s.text + " " + w.Text)
		}
		u.entry.Text = s.text
	}
}

// liveCalls runs a tool for the model.
func (c *Conversation) liveCalls(call ToolCall) {
	u := c.answering()
	c.live.await(c)
	r := c.live.reply
	r.calls = append(r.calls, call)
	if u.entry == nil {
		u.entry = c.mind.history.add(Message{Role: RoleAssistant, Text: u.text()})
	}
	u.entry.ToolCalls = r.calls
	c.callTool(r, call)
}

// toolAnswered tells the model a result; the last of them makes it go on. One that
// ends the call is not answered: there is nothing to go on with.
func (c *Conversation) toolAnswered(r *reply, e *entry) {
	if c.live == nil || r.farewell || c.phase == ended {
		return
	}
	id, result := e.ToolCallID, e.Text
	c.live.awaited = true
	c.live.await(c)
	c.live.do(c, func(s DuplexSession) error { return s.ToolResult(id, result) })
}

func (c *Conversation) liveDone(usage Usage) {
	l := c.live
	p := c.cfg.Duplexes[l.used]
	c.meter.add(PartUsage{Part: PartDuplex, Provider: p.Name, Key: p.Key, InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens})
	u := l.now
	if u == nil {
		l.awaited = false // an answer without sound
		c.rearmQuiet()
		return
	}
	l.now = nil
	if !l.awaited {
		l.watch.Stop()
	}
	u.sentences[0].whole = true
	u.more = false
	if l.reply != nil {
		l.reply.done = true
	}
	c.rearmQuiet()
}

// silence tells the model how much of an utterance was heard. What was on its way
// here when it was told is not played.
func (l *live) silence(c *Conversation, u *utterance) {
	waiting := slices.Contains(l.expected, u)
	if c.phase == ended || l.deaf || !waiting && l.now != u && !u.begun {
		return
	}
	heard := time.Duration(0)
	for _, s := range u.sentences {
		heard += c.cfg.Rate.Duration(s.sound.taken)
	}
	l.expected, l.now, l.awaited = nil, nil, false
	l.deaf = true
	l.do(c, func(s DuplexSession) error { return s.Interrupt(heard) })
	c.inbox.post(func() { l.deaf = false })
}

// liveTurn takes the customer's turn to the model. Where its words are not known
// yet they follow.
func (c *Conversation) liveTurn() {
	e, l := &c.ear, c.live
	text, damaged, partial := e.text(), e.damaged, e.partial
	if text == "" {
		if e.last-e.began < leastTurn {
			c.nothingSaid()
			return
		}
		l.unheard = &Turn{Sender: Human, Started: c.sinceAnswer(e.began), Ended: c.sinceAnswer(e.last)}
		c.quiet.since = max(c.quiet.since, e.last)
		e.forget()
	} else {
		if c.refuses(text) {
			return
		}
		c.keepHeard()
		if partial != "" {
			e.taken = plain(partial)
		}
	}
	if c.judgeMachine(); c.phase != talking || c.machine.message {
		return
	}
	if text != "" && c.greetsBack(text) {
		return
	}
	c.answerTo(text, damaged, max(e.last, c.mouth.ended))
}

// liveFailed opens another session, which is told the conversation so far.
func (c *Conversation) liveFailed(gen int, err error) {
	l := c.live
	if gen != l.gen || c.phase == ended {
		return
	}
	c.failed(PartDuplex, c.cfg.Duplexes[l.used].Name, err)
	awaited, lost := l.awaited, l.expected
	l.close(c)
	l.route.fail()
	if l.now != nil {
		l.now.sentences[0].whole, l.now.more = true, false // what is there of it is said
		l.now = nil
	}
	l.expected, l.awaited = nil, false
	for _, u := range lost {
		text := u.sentences[0].text
		l.expected = append(l.expected, u)
		l.todo = append(l.todo, func(s DuplexSession) error { return s.Say(text) })
	}
	c.openLive()
	if awaited && c.phase == talking {
		l.endTurn(c)
	}
}

// close ends the session.
func (l *live) close(c *Conversation) {
	l.gen++
	l.session, l.todo = nil, nil
	if l.watch != nil {
		l.watch.Stop()
	}
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	if l.written > 0 {
		p := c.cfg.Duplexes[l.used]
		c.meter.add(PartUsage{Part: PartDuplex, Provider: p.Name, Key: p.Key, Heard: l.written})
	}
	l.written = 0
}
