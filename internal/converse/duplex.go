package converse

type live struct{}

func (c *Conversation) openLive()                     {}
func (c *Conversation) thinkingLive() bool            { return false }
func (l *live) say(*Conversation, *utterance, string) {}
func (l *live) silence(*Conversation, *utterance)     {}
func (l *live) endTurn(*Conversation)                 {}
func (l *live) write(*Conversation, []int16)          {}
func (l *live) shut(*Conversation)                    {}
