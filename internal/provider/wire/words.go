package wire

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/converse"
)

// speakingPace is how many characters a voice says in a second.
const speakingPace = 14

// Words gives words that come without times a place in their sound: where a voice of
// the usual pace would be. The last of them are spread over what is left.
type Words struct {
	Speed  float64       // of the voice; 0 is as 1
	length time.Duration // of the sound so far
	at     time.Duration // where the next word begins
	text   string        // not yet placed
}

// Sound notes that this much more is to be heard.
func (w *Words) Sound(length time.Duration) { w.length += length }

// Length is how much is to be heard so far.
func (w *Words) Length() time.Duration { return w.length }

// Text takes a piece of what is said.
func (w *Words) Text(piece string) { w.text += piece }

// Begun are the whole words that begin in the sound so far.
func (w *Words) Begun() (words []converse.SpokenWord) {
	for w.at < w.length {
		text := strings.TrimLeftFunc(w.text, unicode.IsSpace)
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			return words
		}
		words = append(words, w.place(text[:end], w.pace(text[:end])))
		w.text = text[end:]
	}
	return words
}

// Rest are the words that are left when all has been said.
func (w *Words) Rest() (words []converse.SpokenWord) {
	left := strings.Fields(w.text)
	w.text = ""
	w.at = min(w.at, w.length)
	room, characters := w.length-w.at, 0
	for _, word := range left {
		characters += utf8.RuneCountInString(word) + 1
	}
	for _, word := range left {
		lasts := min(w.pace(word), room*time.Duration(utf8.RuneCountInString(word)+1)/time.Duration(characters))
		words = append(words, w.place(word, lasts))
	}
	return words
}

func (w *Words) place(word string, lasts time.Duration) converse.SpokenWord {
	placed := converse.SpokenWord{Text: word, Start: w.at, End: w.at + lasts}
	w.at += lasts
	return placed
}

// pace is how long a word lasts, with the space after it.
func (w *Words) pace(word string) time.Duration {
	lasts := time.Duration(utf8.RuneCountInString(word)+1) * time.Second / speakingPace
	if w.Speed > 0 {
		lasts = time.Duration(float64(lasts) / w.Speed)
	}
	return lasts
}
