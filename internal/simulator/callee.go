package simulator

import (
	"maps"
	"slices"
)

// Callee is somebody who can be called.
type Callee struct {
	About string

	refuses      int      // the SIP status, instead of ringing
	neverAnswers bool     // rings until the caller gives up
	lines        []string // said one after another, each when the assistant has fallen silent
	leavesAfter  int      // hangs up in the middle of a sentence, after so many words; 0: never
}

// callees are chosen by the last two digits of a number. They say what matters more
// than once: on a line that loses words an assistant may have to ask again.
var callees = map[string]Callee{
	"00": {About: "a willing customer", lines: []string{"Yes, of course.", "No, thank you, goodbye.", "Goodbye.", "Goodbye."}},
	"01": {About: "busy", refuses: 486},
	"02": {About: "never answers", neverAnswers: true},
	"03": {About: "a number that does not exist", refuses: 404},
	"06": {About: "hangs up in the middle of a sentence", leavesAfter: 3},
	"07": {About: "answers and says nothing"},
	"08": {About: "asks never to be called again", lines: []string{"Please never call me again.", "Never call me again.", "Stop calling me.", "Stop calling me."}},
}

// Callees lists who can be called, by their two digits.
func Callees() map[string]Callee { return maps.Clone(callees) }

// CalleeCodes are the digits of all callees, in order.
func CalleeCodes() []string { return slices.Sorted(maps.Keys(callees)) }

// calleeOf is who answers a number: every number that chooses nobody is a willing customer's.
func calleeOf(number string) Callee {
	if len(number) >= 2 {
		if who, ok := callees[number[len(number)-2:]]; ok {
			return who
		}
	}
	return callees["00"]
}
