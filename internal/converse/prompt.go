package converse

import (
	"strings"

	"parley"
)

// prompt is everything the model is told for its next answer.
func (c *Conversation) prompt(messages []Message) Prompt {
	a := &c.cfg.Assistant
	return Prompt{
		System:      c.systemPrompt(),
		Messages:    messages,
		Tools:       c.tools.specs,
		Temperature: float64(a.LLMTemperature),
		Language:    c.language,
	}
}

// systemPrompt is the assistant's own prompt and, after it, what every assistant
// must know: that it is speaking, in which language, what to find out, and the time. The
// time comes last: what stands before it stays the same during a call, and vendors
// charge less for a beginning they have seen.
func (c *Conversation) systemPrompt() string {
	a := &c.cfg.Assistant
	var b strings.Builder
	b.WriteString(parley.Render(a.SystemPrompt, c.values))
	b.WriteString("\n\nYou are speaking on the telephone. Answer in short spoken sentences without lists, markup or emoji. Speak ")
	b.WriteString(languageName(a.Language))
	b.WriteString(".")
	if len(a.PostCallSchema) > 0 {
		b.WriteString("\nAfter the call it will be asked:")
		for _, p := range a.PostCallSchema {
			b.WriteString("\n- " + p.Name + " (" + p.Type + "): " + p.Description)
		}
	}
	local := c.start.Add(c.now).In(a.Zone())
	b.WriteString("\nIt is now " + local.Format("Monday, 2 January 2006, 15:04") + " (" + local.Location().String() + ").")
	return b.String()
}

func languageName(language string) string {
	if language == "" {
		return "English"
	}
	return language
}

// firstWords are rendered before the answer, so that they begin with it.
type firstWords struct {
	notice, hint, greeting *utterance
	owed                   bool // the greeting is still to be said
}

// prepareWords has everything rendered that may be needed in a hurry, the first
// words first.
func (c *Conversation) prepareWords() {
	a := &c.cfg.Assistant
	if text := parley.Render(c.cfg.Notice, c.values); tidy(text) != "" {
		c.first.notice = c.compose(kindNotice, text)
	}
	if text := parley.Render(c.cfg.OptOutHint, c.values); tidy(text) != "" {
		c.first.hint = c.compose(kindGreeting, text)
	}
	if text := parley.Render(a.InitialMessage, c.values); tidy(text) != "" {
		c.first.greeting = c.compose(kindGreeting, text)
	}
	for _, u := range []*utterance{c.first.notice, c.first.hint, c.first.greeting} {
		if u != nil {
			c.feed(u)
		}
	}
	c.keepPhrases()
}

// keepPhrases has what must be said in a hurry rendered, if it is not yet: a
// rendering that failed is tried again in each turn.
func (c *Conversation) keepPhrases() {
	for _, text := range []string{c.phrases.patience, c.phrases.apology, c.phrases.pardon, c.phrases.optedOut} {
		c.keep(text)
	}
}

// sayFirstWords begins the call: the notice, how to refuse calls, and the greeting
// unless the customer speaks first.
func (c *Conversation) sayFirstWords() {
	for _, u := range []*utterance{c.first.notice, c.first.hint} {
		if u != nil {
			c.sayNoted(u)
		}
	}
	c.first.owed = c.first.greeting != nil
	if !c.cfg.Assistant.WaitForCustomer {
		c.greet()
	}
	if c.first.notice != nil {
		c.first.notice.then = c.noticeEnded
	} else {
		c.noticeEnded()
	}
}

// sayNoted says an utterance that the model is told of.
func (c *Conversation) sayNoted(u *utterance) {
	u.entry = c.mind.history.add(Message{Role: RoleAssistant, Text: u.text()})
	c.enqueue(u)
}

// greet says the initial message, if it has not been said. It reports that it did.
func (c *Conversation) greet() bool {
	if !c.first.owed {
		return false
	}
	c.first.owed = false
	c.dropEarly()
	c.sayNoted(c.first.greeting)
	return true
}

// greetsBack answers a customer who was to speak first: the initial message is the
// first thing that is said, and all that is said to a mere "Hello?". It reports that
// no further answer is wanted.
func (c *Conversation) greetsBack(text string) bool {
	if !c.greet() || !isPickUp(text, c.language) {
		return false
	}
	c.mind.history.add(customerMessage(text, false))
	return true
}

// noticeEnded lets the recording begin: the customer knows of it.
func (c *Conversation) noticeEnded() {
	c.noticed = true
	c.result.NoticeEnded = c.sinceAnswer(c.now)
	c.watch(Event{NoticeEnded: true})
}
