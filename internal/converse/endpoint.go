package converse

import (
	"strings"
	"time"

	"parley"
)

// endpointing is the rule that ends a customer's turn.
type endpointing struct {
	pause    time.Duration // how long a pause ends the turn
	judge    bool          // endpoint_type ai: the words before the pause matter
	language string
}

func newEndpointing(a *parley.Assistant, language string) endpointing {
	return endpointing{pause: endpointPause(a.EndpointSensitivity), judge: a.EndpointType == "ai", language: language}
}

// endpointPause is the pause that ends a turn: one second divided by one plus the
// sensitivity, so that 0 waits 1000 ms, the default 0.5 waits 667, 1 waits 500 and 5
// waits 167. Pauses inside a sentence are seldom longer than a second; between the
// syllables of one they are seldom longer than 150 ms. The curve falls steeply where
// people notice the difference and never crosses either bound.
func endpointPause(sensitivity float64) time.Duration {
	return whole(float64(time.Second) / (1 + clamp(sensitivity, 0, 5)))
}

// interruptSpeech is how long a customer must speak to interrupt: 750 ms divided by
// one plus the sensitivity, so that 0 needs 750 ms, the default 0.5 needs 500 and 5
// needs 125, which is about a syllable.
func interruptSpeech(sensitivity float64) time.Duration {
	return whole(750 * float64(time.Millisecond) / (1 + clamp(sensitivity, 0, 5)))
}

func whole(d float64) time.Duration { return time.Duration(d).Round(time.Millisecond) }

func clamp(v, low, high float64) float64 { return max(low, min(high, v)) }

// Judgement of the words before a pause, as a factor on it. The longest wait stays
// bearable, the shortest stays longer than the gap between two words.
const (
	finishedShare   = 0.6
	unfinishedShare = 2.5
	longestPause    = 2500 * time.Millisecond
)

// wait is the pause after which these words are a whole turn. opinion is the
// transcriber's own view that they are.
func (e endpointing) wait(text string, opinion bool) time.Duration {
	if !e.judge || text == "" {
		return e.pause
	}
	switch {
	case !opinion && unfinished(text, e.language):
		return max(e.pause, min(longestPause, time.Duration(float64(e.pause)*unfinishedShare)))
	case opinion || finished(text):
		return time.Duration(float64(e.pause) * finishedShare)
	}
	return e.pause
}

// finished reports words that end as a sentence does.
func finished(text string) bool {
	text = strings.TrimRight(text, ` "')»”’`)
	return strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") ||
		strings.HasSuffix(text, "。") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "！")
}

// unfinished reports words that nobody ends a sentence with, a mark that announces
// more, or a number read out in groups that is not yet long enough for one.
func unfinished(text, language string) bool {
	trimmed := strings.TrimSpace(text)
	for _, open := range []string{",", ":", ";", "...", "…", "-", "–"} {
		if strings.HasSuffix(trimmed, open) {
			return true
		}
	}
	words := plainWords(trimmed)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if hesitations[last] || dangling[language][last] {
		return true
	}
	return announced(plain(trimmed), language)
}

// announced reports words that promise a number or a name and stop before it.
func announced(text, language string) bool {
	for _, opening := range announcements[language] {
		if text == opening || strings.HasSuffix(text, " "+opening) {
			return true
		}
	}
	return false
}

var hesitations = setOf("um", "uh", "uhm", "er", "erm", "äh", "ähm", "hm", "euh", "eh", "este", "ehm", "cioè")

// dangling words want another one behind them.
var dangling = map[string]map[string]bool{
	"en": setOf("and", "or", "but", "so", "because", "if", "when", "that", "which", "the", "a", "an", "my", "your", "our", "his", "her", "their", "to", "of", "for", "with", "from", "at", "in", "on", "by", "is", "are", "was", "i", "im", "its", "like", "about", "then", "than", "as", "would", "could", "can", "will", "well"),
	"de": setOf("und", "oder", "aber", "weil", "wenn", "dass", "der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "mein", "meine", "meinen", "zu", "von", "für", "mit", "bei", "in", "im", "am", "auf", "an", "ist", "sind", "war", "ich", "also", "dann", "als", "wie"),
	"fr": setOf("et", "ou", "mais", "parce", "que", "si", "quand", "le", "la", "les", "un", "une", "des", "mon", "ma", "mes", "à", "de", "du", "pour", "avec", "chez", "dans", "sur", "par", "est", "je", "donc", "alors", "comme"),
	"es": setOf("y", "o", "pero", "porque", "que", "si", "cuando", "el", "la", "los", "las", "un", "una", "mi", "mis", "a", "de", "del", "para", "con", "en", "por", "es", "yo", "entonces", "como"),
	"it": setOf("e", "o", "ma", "perché", "che", "se", "quando", "il", "lo", "la", "i", "gli", "le", "un", "una", "mio", "mia", "a", "di", "del", "per", "con", "in", "su", "da", "è", "io", "quindi", "come"),
	"pt": setOf("e", "ou", "mas", "porque", "que", "se", "quando", "o", "a", "os", "as", "um", "uma", "meu", "minha", "de", "do", "da", "para", "com", "em", "por", "é", "eu", "então", "como"),
	"nl": setOf("en", "of", "maar", "omdat", "dat", "als", "wanneer", "de", "het", "een", "mijn", "te", "van", "voor", "met", "bij", "in", "op", "aan", "door", "is", "zijn", "was", "ik", "dus", "dan", "zoals"),
}

// announcements promise a number or a name.
var announcements = map[string][]string{ //nolint:misspell // words of other languages
	"en": {"my number is", "the number is", "my name is", "my address is", "my email is", "it is", "that is", "let me see", "hold on", "one moment", "just a second"},
	"de": {"meine nummer ist", "die nummer ist", "mein name ist", "ich heiße", "meine adresse ist", "moment", "einen moment"},
	"fr": {"mon numéro est", "mon numéro cest", "je mappelle", "mon nom est", "mon adresse est", "un instant", "attendez"},
	"es": {"mi número es", "me llamo", "mi nombre es", "mi dirección es", "un momento", "espere"},
	"it": {"il mio numero è", "mi chiamo", "il mio nome è", "il mio indirizzo è", "un momento", "un attimo"},
	"pt": {"o meu número é", "meu número é", "chamo me", "meu nome é", "a minha morada é", "um momento"},
	"nl": {"mijn nummer is", "mijn naam is", "ik heet", "mijn adres is", "een moment", "momentje"},
}

// finishedQuestion reports a sentence that asks.
func finishedQuestion(text string) bool {
	text = strings.TrimRight(text, ` "')»”’`)
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
}
