package converse

import (
	"context"
	"strings"
	"time"
)

// mind is the model's side of a conversation: what it has been told, and what it is
// thinking of.
type mind struct {
	chain   chain
	history history
	reply   *reply        // the answer to the customer's last turn
	early   *reply        // an answer to words that may not be all yet
	rounds  int           // answers within this turn: each follows a tool's result
	nudge   string        // why the model should speak though the customer has said nothing
	turned  time.Duration // when the customer's last turn was taken
	since   time.Duration // the end of the words that are being answered
}

// reply is one answer being thought of.
type reply struct {
	words    string // plain, of the customer; an early reply is void when they change
	early    bool
	u        *utterance
	split    splitter
	text     strings.Builder
	calls    []ToolCall
	owes     int  // tools whose results it waits for
	last     bool // the call ends or is handed over after it
	farewell bool // the call ends after it, and it should hold a goodbye
	done     bool
	dropped  bool
	route    route
	try      int
	stop     func()
	watch    *time.Timer
	prompt   Prompt
}

// How long a model may take. The customer is told to be patient long before; these
// bound how long a dead one is waited for.
const (
	firstTokenLimit = 4 * time.Second
	// A tool call arrives whole: its arguments are silence until then.
	nextTokenLimit = 6 * time.Second
	// mostText bounds an answer in bytes: more than five minutes of speech.
	mostText = 5000
	// mostRounds bounds how often an answer calls tools again.
	mostRounds = 6
)

// thinkEarly has the model begin on words that may be all the customer says. The
// answer is spoken only if they are; until then no tool is run.
func (c *Conversation) thinkEarly() {
	e := &c.ear
	text := e.text()
	busy := c.mouth.now != nil && (c.mouth.now.begun || c.mouth.now.firm)
	if text == "" || e.speaking || busy || c.phase != talking || c.live != nil || c.machine.suspect() {
		return
	}
	if c.mind.reply != nil && isBackchannel(text, c.language) || c.first.owed {
		return
	}
	words := plain(text)
	if c.mind.early != nil {
		if c.mind.early.words == words {
			return
		}
		c.dropEarly()
	}
	r := c.newReply(words)
	r.early = true
	r.prompt = c.prompt(append(c.mind.history.messages(), customerMessage(text, e.damaged)))
	c.mind.early = r
	c.ask(r)
}

// answerTo takes the customer's turn to the model.
func (c *Conversation) answerTo(text string, damaged bool, said time.Duration) {
	c.dropReply()
	c.stopCollecting()
	c.mind.since, c.mind.turned = said, c.now
	c.tools.turn++
	c.mind.rounds = 0
	c.mind.nudge = ""
	if text != "" {
		c.mind.history.add(customerMessage(text, damaged))
	}
	c.awaitAnswer()
	if c.live != nil {
		c.live.endTurn(c)
		return
	}
	r := c.mind.early
	c.mind.early = nil
	if r != nil && r.words != plain(text) {
		r.drop()
		r = nil
	}
	if r == nil {
		r = c.newReply(plain(text))
		r.prompt = c.prompt(c.mind.history.messages())
		c.ask(r)
	}
	c.commit(r)
}

func customerMessage(text string, damaged bool) Message {
	if damaged {
		text += " [partly unintelligible]"
	}
	return Message{Role: RoleCustomer, Text: text}
}

func (c *Conversation) newReply(words string) *reply {
	return &reply{words: words, u: &utterance{kind: kindReply, more: true}}
}

// commit lets a reply be heard and act.
func (c *Conversation) commit(r *reply) {
	r.early = false
	r.u.since, r.u.transcribed, r.u.turned = c.mind.since, c.ear.final, c.mind.turned
	r.u.entry = c.mind.history.add(Message{Role: RoleAssistant, Text: r.text.String(), ToolCalls: r.calls})
	c.mind.reply = r
	c.enqueue(r.u)
	for _, call := range r.calls {
		c.callTool(r, call)
	}
	if r.done {
		c.thought(r)
	}
}

// ask puts the question to the model whose turn it is.
func (c *Conversation) ask(r *reply) {
	r.rest()
	i, ok := c.mind.chain.provider(&r.route)
	if !ok {
		c.mindless(r)
		return
	}
	p, try := c.cfg.Models[i], r.try
	prompt := r.prompt
	prompt.Model = p.Key
	r.watch = time.AfterFunc(firstTokenLimit, func() {
		c.inbox.post(func() { c.replyOver(r, try, errStalled) })
	})
	c.meter.add(PartUsage{Part: PartModel, Provider: p.Name, Key: p.Key, Requests: 1})
	r.stop = c.begin(func(ctx context.Context) {
		usage, err := p.Use.Reply(ctx, prompt, func(d Delta) {
			c.inbox.post(func() { c.thinking(r, try, d) })
		})
		c.meter.add(PartUsage{Part: PartModel, Provider: p.Name, Key: p.Key, InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens})
		c.inbox.post(func() { c.replyOver(r, try, err) })
	})
}

// thinking takes a piece of the answer.
func (c *Conversation) thinking(r *reply, try int, d Delta) {
	if r.dropped || r.done || try != r.try {
		return
	}
	if r.u.token == 0 && (d.Text != "" || d.ToolCall != nil) {
		r.u.token = c.now
	}
	if r.watch != nil {
		r.watch.Reset(nextTokenLimit)
	}
	if d.ToolCall != nil {
		r.calls = append(r.calls, *d.ToolCall)
		if !r.early {
			r.u.entry.ToolCalls = r.calls
			c.callTool(r, *d.ToolCall)
		}
	}
	r.text.WriteString(strings.ToValidUTF8(d.Text, ""))
	c.utter(r, r.split.add(d.Text))
	if r.text.Len() > mostText {
		c.replyOver(r, try, nil)
	}
}

// utter adds finished sentences to the reply's utterance. Of an early reply only
// the first is rendered, so that it is ready when the turn ends.
func (c *Conversation) utter(r *reply, lines []string) {
	for _, line := range lines {
		r.u.sentences = append(r.u.sentences, c.voice.recall(line))
	}
	switch {
	case len(r.u.sentences) == 0:
	case r.early:
		c.render(r.u.sentences[0])
	default:
		c.feed(r.u)
	}
}

// replyOver ends an attempt. An answer that breaks off is said as far as it goes;
// one that never began is asked for again.
func (c *Conversation) replyOver(r *reply, try int, err error) {
	if r.dropped || r.done || try != r.try {
		return
	}
	if err == nil && tidy(r.text.String()) == "" && len(r.calls) == 0 && c.mind.rounds == 0 {
		err = errNothing // after a tool it may have said all there is
	}
	i := r.route.provider
	if err != nil {
		c.failed(PartModel, c.cfg.Models[i].Name, err)
	} else {
		c.mind.chain.worked(i)
	}
	if err != nil && len(r.u.sentences) == 0 && len(r.calls) == 0 {
		r.try++
		r.route.fail()
		r.text.Reset()
		r.split = splitter{}
		c.ask(r)
		return
	}
	r.rest()
	r.done = true
	c.utter(r, r.split.flush())
	r.u.more = false
	if !r.early {
		c.thought(r)
	}
}

// thought is called when a committed answer is complete: it is said, or waits for
// its tools.
func (c *Conversation) thought(r *reply) {
	r.u.entry.Text = strings.TrimSpace(r.text.String())
	r.u.entry.ToolCalls = r.calls
	if r.farewell && len(r.u.sentences) == 0 && c.phrases.goodbye != "" {
		c.sayBefore(kindPhrase, c.phrases.goodbye)
	}
	c.toolsSettled(r)
	if c.mind.reply == r && (len(r.calls) == 0 || r.last) {
		c.mind.reply = nil
		c.rearmQuiet()
	}
}

// followUp has the model go on with the results of its tools.
func (c *Conversation) followUp() {
	if c.mind.rounds++; c.mind.rounds > mostRounds {
		c.mind.reply = nil
		c.sayPardon()
		return
	}
	r := c.newReply("")
	messages := c.mind.history.messages()
	if c.mind.nudge != "" {
		// A prompt must not end with the model's own words.
		messages = append(messages, Message{Role: RoleCustomer, Text: c.mind.nudge})
		c.mind.nudge = ""
	}
	r.prompt = c.prompt(messages)
	r.u.entry = c.mind.history.add(Message{Role: RoleAssistant})
	c.mind.reply = r
	c.enqueue(r.u)
	c.ask(r)
}

// mindless is when no model is left to ask. An early reply is simply not there.
func (c *Conversation) mindless(r *reply) {
	r.drop()
	if c.mind.early == r {
		c.mind.early = nil
		return
	}
	c.giveUp(EndModel)
}

// dropReply takes back the answer being thought of, early or not.
func (c *Conversation) dropReply() {
	if r := c.mind.reply; r != nil {
		c.mind.reply = nil
		r.drop()
		c.retract(r.u)
	}
	c.clock.cancel(alarmFiller)
	c.clock.cancel(alarmPatience)
}

func (c *Conversation) dropEarly() {
	if r := c.mind.early; r != nil {
		c.mind.early = nil
		r.drop()
		c.silence(r.u)
	}
}

// drop makes a reply void: nothing of it is taken in any more.
func (r *reply) drop() {
	r.dropped = true
	for _, s := range r.u.sentences {
		s.halt()
	}
	r.rest()
}

func (r *reply) rest() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	if r.watch != nil {
		r.watch.Stop()
		r.watch = nil
	}
}
