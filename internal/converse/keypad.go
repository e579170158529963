package converse

import (
	"strings"
	"time"
)

// keypad gathers the keys that the customer presses.
type keypad struct {
	typed   string // not yet taken
	run     *toolRun
	count   int
	timeout time.Duration
}

// typedPause is the silence after which typed digits are a turn of the customer.
const typedPause = 2 * time.Second

// pressed takes a key. While the last words are being said it is only noted, unless it
// refuses further calls: that counts until the end.
func (c *Conversation) pressed(key byte) {
	if c.phase != talking && c.phase != leaving || !strings.ContainsRune("0123456789*#ABCD", rune(key)) {
		return
	}
	k := &c.keys
	c.result.Digits += string(rune(key))
	c.quiet.since = c.now
	if k.run == nil && key == c.cfg.OptOutDigit && k.typed == "" {
		c.optOut()
		return
	}
	if c.phase == leaving {
		return
	}
	k.typed += string(rune(key))
	if c.cfg.Assistant.AllowInterruptions && c.mouth.now != nil && c.mouth.now.begun {
		c.interrupt()
		c.mind.nudge = "" // a key is no noise
	}
	if k.run != nil && k.complete() {
		c.digitsOver()
		return
	}
	c.clock.wake(alarmDigits, c.now+k.pause())
	c.rearmQuiet()
}

func (k *keypad) pause() time.Duration {
	if k.run != nil {
		return k.timeout
	}
	return typedPause
}

func (k *keypad) complete() bool {
	return strings.HasSuffix(k.typed, "#") || k.count > 0 && len(k.typed) >= k.count
}

// collectDigits waits for the customer to type. What was typed while the question
// was still being asked counts.
func (c *Conversation) collectDigits(_ *reply, run *toolRun) {
	k := &c.keys
	if k.run != nil {
		c.toolOver(k.run, strings.TrimSuffix(k.typed, "#"), nil)
	}
	k.run = run
	count, _ := run.Arguments["count"].(float64)
	timeout, _ := run.Arguments["timeout"].(float64)
	if timeout == 0 {
		timeout = 10
	}
	k.count = int(clamp(count, 0, 64))
	k.timeout = time.Duration(clamp(timeout, 2, 30) * float64(time.Second))
	if k.complete() {
		c.clock.wake(alarmDigits, c.now)
		return
	}
	c.clock.wake(alarmDigits, c.now+k.timeout)
}

// stopCollecting is for a customer who speaks instead of typing: the tool has its
// answer, and the words are answered, not the tool.
func (c *Conversation) stopCollecting() {
	k := &c.keys
	if k.run == nil || k.typed != "" {
		return
	}
	run := k.run
	k.run = nil
	c.clock.cancel(alarmDigits)
	c.overtaken(run, "the customer spoke instead of typing")
}

// digitsOver takes the digits typed so far, for the tool that waits or as a turn.
func (c *Conversation) digitsOver() {
	k := &c.keys
	c.clock.cancel(alarmDigits)
	if c.mouth.now != nil && k.run != nil && k.typed == "" {
		c.clock.wake(alarmDigits, c.now+k.timeout) // the question is still being asked
		return
	}
	digits, run := strings.TrimSuffix(k.typed, "#"), k.run
	k.typed, k.run = "", nil
	if run != nil {
		result := "The customer typed nothing."
		if digits != "" {
			c.tools.collected["digits"] = digits
			result = "The customer typed " + digits + "."
		}
		c.toolOver(run, result, nil)
		return
	}
	if digits == "" || c.phase != talking {
		return
	}
	t := Turn{Text: "[pressed " + digits + "]", Sender: Human, Started: c.sinceAnswer(c.now), Ended: c.sinceAnswer(c.now)}
	c.turns = append(c.turns, t)
	c.watch(Event{Turn: &t})
	c.answerTo(t.Text, false, c.now)
}
