package converse

import "time"

// keepSaid records what was heard of an utterance, once.
func (c *Conversation) keepSaid(u *utterance, interrupted bool) {
	if !u.begun {
		if u.entry != nil {
			u.entry.Text = ""
		}
		return
	}
	text := u.heard(int(c.cfg.Rate))
	if u.entry != nil && interrupted {
		u.entry.Text = text
	}
	if text == "" {
		return
	}
	t := Turn{
		Text: text, Sender: Bot, Interrupted: interrupted, Latency: u.latency(),
		Started: c.sinceAnswer(u.started), Ended: c.sinceAnswer(u.ended),
	}
	c.turns = append(c.turns, t)
	c.watch(Event{Turn: &t})
}

// latency is where the time before an answer went.
func (u *utterance) latency() Latency {
	if u.turned == 0 {
		return Latency{}
	}
	from := func(at time.Duration) time.Duration {
		if at == 0 {
			return 0
		}
		return max(0, at-u.since)
	}
	l := Latency{Transcript: from(u.transcribed), EndOfTurn: from(u.turned), FirstToken: from(u.token), FirstAudio: from(u.started)}
	if len(u.sentences) > 0 {
		l.FirstSound = from(u.sentences[0].first)
	}
	return l
}
