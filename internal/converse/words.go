package converse

import (
	"strings"
	"unicode"
)

// plainWords are the words of a text without case and marks, so that "Yes, please!"
// and "yes please" are the same words. Scripts without blanks count each character
// as a word: that is how their speakers would count them, nearly.
func plainWords(text string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case unblanked(r):
			end()
			words = append(words, string(r))
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r):
			word.WriteRune(unicode.ToLower(r))
		case r == '\'' || r == '’' || r == '-':
			// "don't" and "mm-hm" are one word
		default:
			end()
		}
	}
	end()
	return words
}

// unblanked reports the scripts that are written without blanks between words.
func unblanked(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// plain is a text reduced to its words.
func plain(text string) string { return strings.Join(plainWords(text), " ") }

// hasPhrase reports whether the words of a phrase stand in a text, in a row. Both
// are plain.
func hasPhrase(text, phrase string) bool {
	return strings.Contains(" "+text+" ", " "+phrase+" ")
}

// isBackchannel reports words that only say "I am listening": they are no wish to
// speak. A text without words is none.
func isBackchannel(text, language string) bool {
	words := plainWords(text)
	if len(words) == 0 || len(words) > 4 {
		return false
	}
	own := backchannels[language]
	for _, w := range words {
		if !own[w] && !hums[w] {
			return false
		}
	}
	return true
}

// hums are made in every language.
var hums = setOf("mm", "mmm", "mhm", "mmhm", "mmhmm", "hm", "hmm", "uhhuh", "uh", "huh", "ah", "aha", "oh", "eh", "ok", "okay")

var backchannels = map[string]map[string]bool{
	"en": setOf("yes", "yeah", "yep", "yup", "right", "sure", "alright", "fine", "i", "see", "got", "it", "good", "great", "cool", "exactly", "true"),
	"de": setOf("ja", "jaja", "genau", "klar", "gut", "stimmt", "richtig", "verstehe", "ach", "so", "achso", "alles", "schön"),
	"fr": setOf("oui", "ouais", "daccord", "bien", "sûr", "voilà", "entendu", "très", "ouí", "exactement"),
	"es": setOf("sí", "si", "claro", "vale", "bueno", "ya", "entiendo", "bien", "ajá", "exacto"),
	"it": setOf("sì", "si", "certo", "va", "bene", "capisco", "esatto", "giusto", "già", "chiaro"),
	"pt": setOf("sim", "claro", "certo", "tá", "bom", "entendi", "pois", "é", "isso", "exato"),
	"nl": setOf("ja", "jawel", "goed", "precies", "klopt", "oké", "prima", "juist", "snap", "ik"),
}

// isPickUp reports the words of somebody who picks up a telephone.
func isPickUp(text, language string) bool {
	words := plainWords(text)
	if len(words) == 0 || len(words) > 3 {
		return false
	}
	own := pickUps[language]
	for _, w := range words {
		if !own[w] && !hums[w] {
			return false
		}
	}
	return true
}

var pickUps = map[string]map[string]bool{
	"en": setOf("hello", "hi", "hey", "yes", "yeah", "speaking", "whos", "this"),
	"de": setOf("hallo", "ja", "bitte", "guten", "tag", "morgen", "abend", "wer", "da"),
	"fr": setOf("allô", "allo", "oui", "bonjour", "bonsoir"),
	"es": setOf("hola", "sí", "si", "diga", "dígame", "digame", "bueno", "aló", "alo"),
	"it": setOf("pronto", "sì", "si", "ciao", "buongiorno"),
	"pt": setOf("olá", "ola", "alô", "alo", "está", "estou", "sim", "bom", "dia"),
	"nl": setOf("hallo", "ja", "goedemorgen", "goedemiddag", "met"),
}

// isEchoOf reports whether heard words are our own, come back over a loudspeaker:
// nearly all of them in the order in which they were just spoken. Fewer than
// least words are none: a customer may well repeat one or two ("option B").
func isEchoOf(heard, spoken string, least int) bool {
	words, own := plainWords(heard), plainWords(spoken)
	if len(words) < max(1, least) {
		return false
	}
	found, at := 0, 0
	for _, w := range words {
		for i := at; i < len(own) && i < at+4; i++ {
			if own[i] == w {
				found, at = found+1, i+1
				break
			}
		}
		if found == 0 {
			at = indexOf(own, w) + 1
			if at > 0 {
				found = 1
			}
		}
	}
	return found*5 >= len(words)*4
}

// echoWords are enough to be sure of an echo.
const echoWords = 3

func indexOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return -1
}
