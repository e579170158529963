package converse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitter cuts a model's stream of text into sentences as they complete, so that
// the first is spoken while the rest is still being thought of.
//
// A sentence must be cut too late rather than too early: a voice falls at the end
// of a sentence, and "Dr. | Smith" or "3 | .50" would be heard as two. So a full stop
// counts only when what follows shows that it was one.
type splitter struct {
	rest string
}

const (
	// longest bounds a sentence in bytes: a model that forgets its full stops is
	// cut at a comma or a blank rather than never heard.
	longest = 400
	// shortest keeps "Yes." or "1." with what follows it when that is at hand, for
	// a voice says a single word on its own strangely.
	shortest = 4
)

// add takes the next piece of text and returns the sentences it completes.
func (s *splitter) add(piece string) []string {
	s.rest += strings.ToValidUTF8(piece, "")
	var out []string
	for {
		end := sentenceEnd(s.rest)
		if end < 0 {
			return out
		}
		if sentence := tidy(s.rest[:end]); sentence != "" {
			out = append(out, sentence)
		}
		s.rest = s.rest[end:]
	}
}

// flush returns what is left when the stream has ended.
func (s *splitter) flush() []string {
	out := s.add("\n")
	if last := tidy(s.rest); last != "" {
		out = append(out, last)
	}
	s.rest = ""
	return out
}

// sentenceEnd is where the first whole sentence of text ends, or -1.
func sentenceEnd(text string) int {
	run := false // within several marks in a row, of which the first decides for all
	for i, r := range text {
		mark := endMark(r)
		switch {
		case r == '\n':
			return i + 1
		case fullWidthEnd(r):
			return afterClosers(text, i+utf8.RuneLen(r))
		case mark && !run:
			if end := asciiEnd(text, i, r); end >= 0 {
				return end
			}
		}
		run = mark
		if i >= longest {
			return softEnd(text, i)
		}
	}
	return -1
}

// endMark reports the marks that end a sentence where a blank follows.
func endMark(r rune) bool { return strings.ContainsRune(".!?…।؟։።", r) }

// fullWidthEnd reports the marks of scripts that put no blank behind a sentence.
func fullWidthEnd(r rune) bool { return r == '。' || r == '！' || r == '？' }

// asciiEnd judges a mark at i that ends a sentence only where a blank and something
// that could begin another follow.
func asciiEnd(text string, i int, mark rune) int {
	end := afterClosers(text, i+utf8.RuneLen(mark))
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if !endMark(r) {
			break
		}
		end += n
	}
	if end >= len(text) {
		return -1 // more may follow: "3." could become "3.5"
	}
	if end != i+utf8.RuneLen(mark) {
		end = afterClosers(text, end)
	}
	if end >= len(text) || !unicode.IsSpace(rune(text[end])) {
		return -1
	}
	if mark == '.' && notAnEnd(text[:i], text[end:]) {
		return -1
	}
	if len(strings.TrimSpace(text[:end])) < shortest {
		return -1
	}
	if mark == '.' && strings.Trim(text[end:], " ") == "" && (isNumber(lastWord(text[:i])) || strings.HasSuffix(text[:end], "..")) {
		return -1 // "3. " may go on with "October", "Well... " with anything
	}
	return end
}

// afterClosers steps over the quotes and brackets that belong to a sentence.
func afterClosers(text string, at int) int {
	for at < len(text) {
		r, n := utf8.DecodeRuneInString(text[at:])
		if !strings.ContainsRune(`"')]»”’」』）`, r) {
			break
		}
		at += n
	}
	return at
}

// notAnEnd reports a full stop inside a sentence: after an abbreviation, an initial
// or a number that goes on, or before a small letter.
func notAnEnd(before, after string) bool {
	word := lastWord(before)
	if mayBeShortForm(before) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimSpace(after))
	if next != utf8.RuneError && unicode.IsLower(next) {
		return true
	}
	// "am 3. Oktober", "1. First": an ordinal is followed by its noun.
	return isNumber(word) && next != utf8.RuneError && len(word) <= 2
}

// mayBeShortForm reports a text that ends in an abbreviation or an initial.
func mayBeShortForm(before string) bool {
	word := lastWord(before)
	if abbreviations[strings.ToLower(word)] {
		return true
	}
	r, n := utf8.DecodeRuneInString(word)
	return n > 0 && n == len(word) && unicode.IsUpper(r) && r != 'I' // J. Smith, but "so do I."
}

func lastWord(s string) string {
	at := strings.LastIndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`("'„“«`, r) })
	if at < 0 {
		return s
	}
	_, n := utf8.DecodeRuneInString(s[at:])
	return s[at+n:]
}

func isNumber(word string) bool {
	return word != "" && strings.Trim(word, "0123456789.,") == ""
}

// softEnd cuts an overlong text at its last comma, else its last blank, else here.
func softEnd(text string, at int) int {
	for _, marks := range []string{",;:，、；：", " \t"} {
		if cut := strings.LastIndexAny(text[:at], marks); cut > longest/4 {
			_, n := utf8.DecodeRuneInString(text[cut:])
			return cut + n
		}
	}
	return at
}

// tidy makes a sentence speakable: one line, no markup that a voice would read out.
func tidy(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '*' || r == '#' || r == '`' || r == '~':
			return -1
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return ""
	}
	return s
}

// abbreviations end in a full stop without ending a sentence, in the languages
// that Parley has phrases for. Dots inside them are written, the last one is not.
var abbreviations = setOf(
	"mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "etc", "e.g", "i.e", "a.m", "p.m", "approx", "ext", "inc", "ltd", "dept", "apt", "ave", "blvd",
	"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
	"z.b", "d.h", "u.a", "bzw", "usw", "ca", "nr", "str", "hr", "fr", "tel", "inkl", "evtl", "ggf", "geb", "mio", "mrd",
	"mme", "mlle", "av", "bd", "env", "p.ex",
	"sra", "srta", "ud", "uds", "avda", "núm", "p.ej", "pág", "dra", "exmo",
	"sig", "sig.ra", "dott", "ing", "avv", "ecc", "pag",
	"dhr", "mevr", "mw", "bv", "bijv", "enz", "o.a", "d.w.z",
)

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}
