package converse

import (
	"parley"
)

// phrases are the sentences that the engine itself says in a language. They are
// short, for they are said when something else was late or has gone wrong.
type phrases struct {
	stillThere string // after reengagement_interval
	closing    string // before max_duration
	patience   string // when an answer is late beyond politeness
	pardon     string // when words were said but not understood
	apology    string // when a provider has failed for good; the call ends after it
	goodbye    string // when the model ends the call without a word
	optedOut   string // short: the call must be over within two seconds
	callBack   string // before the number that a voicemail is given
}

// phrasesFor is a language's phrases; ok is false where Parley has none, and then
// the engine keeps silent or asks the model, rather than speak a language that the
// customer did not choose.
func phrasesFor(language string) (phrases, bool) {
	p, ok := phraseBook[language]
	return p, ok
}

// isoOf is the ISO 639-1 code of an assistant's language, which its record holds
// by name.
func isoOf(language string) string {
	for _, l := range parley.Languages {
		if l.Name == language || l.ISO2 == language {
			return l.ISO2
		}
	}
	return "en"
}
