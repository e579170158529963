package converse

import (
	"time"

	"parley"
)

// machine judges who picked up.
type machine struct{}

func (m *machine) init(string, parley.Direction) {}
func (m *machine) frame(bool, time.Duration)     {}
func (m *machine) began(time.Duration)           {}
func (m *machine) paused(time.Duration)          {}
func (m *machine) words(string, time.Duration)   {}
func (m *machine) turn(string, time.Duration)    {}
func (m *machine) suspect() bool                 { return false }
func (m *machine) verdict() Answerer             { return AnsweredByUnknown }
func (c *Conversation) judgeMachine()            {}
func (c *Conversation) beeped()                  {}
func (c *Conversation) leaveMessage()            {}
