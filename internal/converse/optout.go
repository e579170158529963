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

// demands looks for one of the phrases, not followed by what limits it: "do not call
// me again before Monday" is an appointment.
func demands(text string, phrases []string) bool {
	said := plain(text)
	for _, phrase := range phrases {
		_, after, found := strings.Cut(" "+said+" ", " "+phrase+" ")
		if !found {
			continue
		}
		next, _, _ := strings.Cut(after, " ")
		if !limiting[next] {
			return true
		}
	}
	return false
}
