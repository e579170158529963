package converse

import (
	"slices"
	"strings"
	"time"

	"parley"
)

const (
	// fillerAfter is how long an answer may take before it is bridged. Shorter
	// gaps are natural between two people.
	fillerAfter = 700 * time.Millisecond
	// patienceAfter the customer's last word something is said in any case: three
	// seconds without a sound make people ask whether the line is dead.
	patienceAfter = 2400 * time.Millisecond
	patienceLeast = time.Second // after a long pause the turn itself was late, not the answer
	patienceAgain = 6 * time.Second
)

// mood is what the customer's words sound like.
type mood int

const (
	neutral mood = iota
	negative
	positive
	question
)

// awaitAnswer sets the alarms of an answer that may be slow, and has the filler
// rendered that would bridge it.
//
// A speech-to-speech model has but one voice, which is busy with the answer: it is
// not bridged.
func (c *Conversation) awaitAnswer() {
	if c.live != nil {
		return
	}
	c.keepPhrases()
	if c.cfg.Assistant.Fillers {
		c.keep(c.filler())
		c.clock.wake(alarmFiller, c.now+fillerAfter)
	}
	c.clock.wake(alarmPatience, max(c.mind.since+patienceAfter, c.now+patienceLeast))
}

// filler is the short utterance that fits the customer's last words: the next of
// the list for their mood.
func (c *Conversation) filler() string {
	said := c.lastOf(Human)
	m := moodOf(said, c.language)
	f := &c.cfg.Assistant.FillerConfig
	list := [...][]string{f.Neutral, f.Negative, f.Positive, f.Question}[m]
	if len(list) == 0 {
		list = ownFillers[c.language][m]
	}
	if len(list) == 0 {
		return ""
	}
	return parley.Render(list[c.tools.turn%len(list)], c.values)
}

// sayFiller bridges a slow model or tool.
func (c *Conversation) sayFiller() {
	if c.awaiting() {
		if text := c.filler(); text != "" {
			c.sayBefore(kindFiller, text)
		}
	}
}

// sayPatience is said when an answer is late, whether fillers are wanted or not:
// silence would be taken for the end of the call.
func (c *Conversation) sayPatience() {
	if !c.awaiting() {
		return
	}
	if c.phrases.patience != "" {
		c.sayBefore(kindFiller, c.phrases.patience)
	}
	c.clock.wake(alarmPatience, c.now+patienceAgain)
}

// awaiting reports that an answer is on its way and nothing is being said.
func (c *Conversation) awaiting() bool {
	u := c.mouth.now
	if c.phase != talking || c.ear.speaking || u != nil && u.begun {
		return false
	}
	return u != nil || c.mind.reply != nil || c.tools.busy() || c.thinkingLive()
}

// sayPardon asks the customer to say it again.
func (c *Conversation) sayPardon() {
	if c.phase == talking && c.phrases.pardon != "" && c.mouth.now == nil {
		u := c.say(kindPhrase, c.phrases.pardon)
		u.entry = c.mind.history.add(Message{Role: RoleAssistant, Text: c.phrases.pardon})
	}
	c.rearmQuiet()
}

func (c *Conversation) lastOf(who Sender) string {
	for _, t := range slices.Backward(c.turns) {
		if t.Sender == who {
			return t.Text
		}
	}
	return ""
}

// moodOf judges words by their marks and by a few that carry a mood. It need not be
// right: it chooses between "Good question." and "I understand.".
func moodOf(text, language string) mood {
	if strings.ContainsAny(text, "?？؟") {
		return question
	}
	words := plainWords(text)
	if len(words) > 0 && askers[language][words[0]] {
		return question
	}
	down, up := 0, 0
	for _, w := range words {
		switch {
		case unhappy[language][w]:
			down++
		case happy[language][w]:
			up++
		}
	}
	switch {
	case down > 0 && down >= up: // "not good" is not good
		return negative
	case up > 0:
		return positive
	}
	return neutral
}
