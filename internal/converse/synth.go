package converse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// voice has sentences rendered, and keeps those that the engine must be able to say
// even when the speaker no longer answers.
type voice struct {
	chain chain
	kept  map[string]*sentence
	todo  []*sentence // to be kept, one at a time, so that they delay nothing
}

func (v *voice) init(c *Conversation) {
	v.chain = newChain(len(c.cfg.Speakers))
	v.kept = make(map[string]*sentence)
}

// How long a speaker may take; vendors answer in 100 to 500 ms. The last one that is
// left is given longer: a slow voice is better than none.
const (
	firstSoundLimit = 1100 * time.Millisecond
	lastSoundLimit  = 2500 * time.Millisecond
	nextSoundLimit  = 1200 * time.Millisecond
)

var (
	errStalled = errors.New("no answer in time")
	errNothing = errors.New("an empty answer")
	errNoWords = errors.New("speech without words")
)

// ahead is how long before its turn a sentence is rendered: early enough to follow
// without a gap though a speaker fails and another is asked, late enough that an
// interruption wastes little and a call holds little.
const ahead = 3 * time.Second

// feed has the sentence being played rendered, and those that follow within ahead.
func (c *Conversation) feed(u *utterance) {
	until, rate := 0, int(c.cfg.Rate)
	for i := u.at; i < len(u.sentences) && until < c.cfg.Rate.Samples(ahead); i++ {
		c.render(u.sentences[i])
		until += u.sentences[i].remaining(rate)
	}
}

// keep has a text rendered for later.
func (c *Conversation) keep(text string) {
	if text == "" || c.live != nil {
		return
	}
	var split splitter
	for _, line := range append(split.add(text), split.flush()...) {
		if c.voice.kept[line] == nil {
			s := &sentence{text: line}
			c.voice.kept[line] = s
			c.voice.todo = append(c.voice.todo, s)
		}
	}
	c.keepNext()
}

// keepNext renders the next sentence that is to be kept, if none is under way.
func (c *Conversation) keepNext() {
	v := &c.voice
	for len(v.todo) > 0 {
		s := v.todo[0]
		if s.asked && !s.whole {
			return
		}
		if !s.asked && !c.look(s) {
			c.render(s)
			return
		}
		v.todo = v.todo[1:]
	}
}

// recall is a sentence to be said: one that was kept, or a new one.
func (v *voice) recall(text string) *sentence {
	if k := v.kept[text]; k != nil && k.whole && !k.failed {
		return &sentence{text: text, sound: k.sound.copy(), words: k.words, whole: true, asked: true}
	}
	return &sentence{text: text}
}

// render asks a speaker for a sentence, once.
func (c *Conversation) render(s *sentence) {
	if s.asked || s.whole {
		return
	}
	s.asked = true
	c.attempt(s, s.text)
}

// attempt asks the speaker whose turn it is for a text that ends the sentence.
func (c *Conversation) attempt(s *sentence, text string) {
	s.rest()
	i, ok := c.voice.chain.provider(&s.route)
	if !ok {
		c.unspeakable(s)
		return
	}
	s.base = s.sound.length
	p, try, u := c.cfg.Speakers[i], s.try, c.asks(i, text).Utterance
	c.meter.add(PartUsage{Part: PartSpeaker, Provider: p.Name, Key: p.Key, Characters: utf8.RuneCountInString(text), Requests: 1})
	limit := firstSoundLimit
	if c.voice.chain.last(s.route) {
		limit = lastSoundLimit
	}
	s.watch = time.AfterFunc(limit, func() {
		c.inbox.post(func() { c.attemptOver(s, try, errStalled) })
	})
	s.stop = c.begin(func(ctx context.Context) {
		err := p.Use.Speak(ctx, u, func(sound Sound) {
			sound.Samples, sound.Words = slices.Clone(sound.Samples), slices.Clone(sound.Words)
			c.inbox.post(func() { c.sounded(s, try, sound) })
		})
		c.inbox.post(func() { c.attemptOver(s, try, err) })
	})
}

// sounded takes a piece of speech. That of an attempt which was given up is void.
func (c *Conversation) sounded(s *sentence, try int, sound Sound) {
	if try != s.try || s.whole {
		return
	}
	if s.sound.length == s.base {
		s.first = c.now
	}
	shift := c.cfg.Rate.Duration(s.base)
	for _, w := range sound.Words {
		s.words = append(s.words, SpokenWord{w.Text, w.Start + shift, w.End + shift})
	}
	s.sound.add(sound.Samples)
	if len(sound.Samples) > 0 && s.watch != nil {
		s.watch.Reset(nextSoundLimit)
	}
}

// attemptOver ends an attempt, well or badly. A speaker that has given all its
// sound but does not end counts as having ended.
func (c *Conversation) attemptOver(s *sentence, try int, err error) {
	if try != s.try || s.whole {
		return
	}
	if err == nil && s.sound.length == s.base {
		err = errNothing
	}
	if errors.Is(err, errStalled) && c.allThere(s) {
		err = nil
	}
	i := s.route.provider
	if err == nil {
		s.whole = true
		s.rest()
		c.voice.chain.worked(i)
		c.enter(s, i)
		c.keepNext()
		return
	}
	c.failed(PartSpeaker, c.cfg.Speakers[i].Name, err)
	s.try++
	s.route.fail()
	text := s.text
	if s.sound.length > 0 {
		if text = s.left(int(c.cfg.Rate)); text == "" {
			s.whole = true
			s.rest()
			return
		}
	}
	c.attempt(s, text)
}

// allThere reports that a sentence's sound is complete as far as can be told.
func (c *Conversation) allThere(s *sentence) bool {
	if len(s.words) > 0 {
		return len(s.words) >= len(strings.Fields(s.text))
	}
	speed := max(0.5, float64(c.cfg.Assistant.SpeechSpeed))
	return float64(s.sound.length)*speed >= 0.7*float64(expected(s.text, int(c.cfg.Rate)))
}

// unspeakable gives a sentence up: no speaker is left. A call in which nothing can
// be said is ended, with the apology that was rendered while there still was a
// voice.
func (c *Conversation) unspeakable(s *sentence) {
	s.whole, s.failed = true, true
	s.rest()
	if slices.Contains(c.voice.todo, s) {
		delete(c.voice.kept, s.text)
		c.keepNext()
		return
	}
	c.giveUp(EndSpeaker)
}

// has reports that a text has been kept and can be said without a speaker.
func (v *voice) has(text string) bool {
	var split splitter
	lines := append(split.add(text), split.flush()...)
	for _, line := range lines {
		if s := v.kept[line]; s == nil || !s.whole || s.failed {
			return false
		}
	}
	return len(lines) > 0
}
