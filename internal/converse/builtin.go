package converse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The tools that every model has. A tool of the user's with the same name wins.
const (
	toolEndCall   = "end_call"
	toolTransfer  = "transfer_call"
	toolSendDTMF  = "send_dtmf"
	toolGetDigits = "collect_digits"
)

// endCallWhen is when to end a call, where the assistant does not say.
const endCallWhen = "Ends the call. Use it once the customer has said goodbye or nothing is left to do, and say goodbye yourself."

// addBuiltins offers the model what this call allows.
func (t *toolbox) addBuiltins(c *Conversation) {
	t.builtin = make(map[string]func(*Conversation, *reply, *toolRun))
	offer := func(do func(*Conversation, *reply, *toolRun), spec ToolSpec) {
		if t.spec(spec.Name) == nil {
			t.specs = append(t.specs, spec)
			t.builtin[spec.Name] = do
		}
	}
	when := endCallWhen
	if own := c.cfg.Assistant.EndCallDescription; own != nil {
		when = *own
	}
	offer((*Conversation).endCall, ToolSpec{Name: toolEndCall, Description: when,
		Params: []ParamSpec{{Name: "reason", Type: "string", Description: "Why: completed, not_interested, or opt_out when the customer never wants to be called again."}}})
	if c.cfg.CanTransfer {
		offer((*Conversation).transferCall, ToolSpec{Name: toolTransfer, Description: "Hands the customer over to another telephone number, once your words have been said.",
			Params: []ParamSpec{{Name: "number", Type: "string", Description: "The number in international form, such as +4930123456.", Required: true}}})
	}
	offer((*Conversation).sendDTMF, ToolSpec{Name: toolSendDTMF, Description: "Presses keys of the telephone, as a menu asks for.",
		Params: []ParamSpec{{Name: "digits", Type: "string", Description: "The keys: 0 to 9, * and #.", Required: true}}})
	offer((*Conversation).collectDigits, ToolSpec{Name: toolGetDigits, Description: "Waits for the customer to type digits on the telephone and returns them.",
		Params: []ParamSpec{
			{Name: "count", Type: "number", Description: "How many digits to wait for. The customer can end sooner with #."},
			{Name: "timeout", Type: "number", Description: "Seconds to wait for the next digit, 2 to 30."},
		}})
}

// endCall ends the call once the words of this answer have been said to the end. A
// customer who interrupts them keeps the call. A model may understand a wish never to
// be called again that the phrases do not know: it counts as much.
func (c *Conversation) endCall(r *reply, run *toolRun) {
	r.last, r.farewell = true, true
	reason, by := EndGoodbye, ByAssistant
	if run.Arguments["reason"] == "opt_out" {
		c.result.OptOut = true
		reason, by = EndOptOut, ByCustomer
	}
	r.u.then = func() { c.departAfter(reason, by) }
	c.toolOver(run, "The call ends once your words have been said.", nil)
}

// transferCall hands the customer over once the words of this answer have been said.
func (c *Conversation) transferCall(r *reply, run *toolRun) {
	number, _ := run.Arguments["number"].(string)
	if !telephone(number) {
		c.toolOver(run, "", errors.New("this is not a telephone number in international form"))
		return
	}
	r.last = true
	r.u.then = func() { c.transfer(run, number) }
	r.u.undone = func() {
		r.last = false
		c.overtaken(run, "the customer spoke before the call was handed over")
	}
}

func (c *Conversation) transfer(run *toolRun, number string) {
	run.watch = time.AfterFunc(transferLimit, func() {
		c.inbox.post(func() { c.transferred(run, errStalled) })
	})
	run.stop = c.begin(func(ctx context.Context) {
		err := c.cfg.Line.Transfer(ctx, number)
		c.inbox.post(func() { c.transferred(run, err) })
	})
}

const transferLimit = 20 * time.Second

func (c *Conversation) transferred(run *toolRun, err error) {
	if !run.running {
		return
	}
	for _, r := range run.replies {
		r.last = r.last && err == nil
	}
	if err != nil {
		c.toolOver(run, "", fmt.Errorf("the call could not be handed over: %w", err))
		return
	}
	c.toolOver(run, "The call has been handed over.", nil)
	c.end(EndTransferred, ByAssistant)
}

// sendDTMF presses keys at once.
func (c *Conversation) sendDTMF(_ *reply, run *toolRun) {
	digits, _ := run.Arguments["digits"].(string)
	digits = strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789*#ABCD", r) {
			return r
		}
		return -1
	}, strings.ToUpper(digits))
	if digits == "" || len(digits) > 64 {
		c.toolOver(run, "", errors.New("these are no keys of a telephone"))
		return
	}
	if err := c.cfg.Line.SendDigits(digits); err != nil {
		c.toolOver(run, "", err)
		return
	}
	c.toolOver(run, "Pressed "+digits+".", nil)
}

// telephone reports an E.164 number.
func telephone(s string) bool {
	if len(s) < 8 || len(s) > 16 || s[0] != '+' || s[1] == '0' {
		return false
	}
	return strings.Trim(s[1:], "0123456789") == ""
}
