package converse

import (
	"strings"
	"time"
)

// optOutLimit bounds the end of a call after its customer has refused further ones;
// the promise is two seconds.
const optOutLimit = 1900 * time.Millisecond

// refuses looks for what a customer may demand at any time, whatever the model
// thinks of it: never to be called again, and not to be recorded. It reports that
// the call is ending.
func (c *Conversation) refuses(text string) bool {
	if !c.result.RecordingRefused && refusesRecording(text, c.language) {
		c.result.RecordingRefused = true
		c.watch(Event{Refused: true})
	}
	if !wantsNoCalls(text, c.language) {
		return false
	}
	c.optOut()
	return true
}

// optOut ends the call politely and at once.
func (c *Conversation) optOut() {
	c.result.OptOut = true
	c.leave(EndOptOut, ByCustomer, c.phrases.optedOut)
	if c.phase != ended {
		c.clock.wake(alarmLeave, c.now+optOutLimit)
	}
}

// wantsNoCalls reports a demand never to be called again.
func wantsNoCalls(text, language string) bool {
	return demands(text, optOutPhrases[language]) || language != "en" && demands(text, optOutPhrases["en"])
}

func refusesRecording(text, language string) bool {
	return demands(text, unrecordedPhrases[language])
}

// gap is a word that could not be understood.
const gap = "…"

// demands looks for one of the phrases, not followed by what limits it: "do not call
// me again before Monday" is an appointment. On a bad line one word of a longer phrase
// may be lost: "never … me again" can mean one thing only.
func demands(text string, phrases []string) bool {
	var said []string
	for part := range strings.FieldsSeq(text) {
		if strings.Trim(part, ".,!?") == gap {
			said = append(said, gap)
			continue
		}
		said = append(said, plainWords(part)...)
	}
	for _, phrase := range phrases {
		wanted := strings.Fields(phrase)
		for i := 0; i+len(wanted) <= len(said); i++ {
			if !saysSo(said[i:i+len(wanted)], wanted) {
				continue
			}
			if rest := said[i+len(wanted):]; len(rest) == 0 || !limiting[rest[0]] {
				return true
			}
		}
	}
	return false
}

// saysSo compares words that were heard with those of a phrase.
func saysSo(said, wanted []string) bool {
	gaps := 0
	for i := range wanted {
		switch {
		case said[i] == wanted[i]:
		case said[i] == gap && len(wanted) >= 4:
			gaps++
		default:
			return false
		}
	}
	return gaps <= 1
}
