//go:build speech

package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// vocabulary is the pieces of words that Moonshine writes, by their numbers.
type vocabulary []string

const vocabularySize = 32_000 // Llama's, from which Moonshine's differs only in marks that are not text

func loadVocabulary(file string) (vocabulary, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v := vocabulary(strings.Split(string(text), "\n"))
	if len(v) != vocabularySize {
		return nil, fmt.Errorf("the vocabulary has %d pieces instead of %d", len(v), vocabularySize)
	}
	return v, nil
}

// text puts pieces together. A piece that begins a word has a mark for the space
// before it; a character that is no piece is spelt in bytes, "<0xC3>".
func (v vocabulary) text(tokens []int64) string {
	var b strings.Builder
	for _, token := range tokens {
		if token < 0 || token >= vocabularySize {
			continue // a mark of Moonshine's own
		}
		piece := v[token]
		if hex, ok := strings.CutPrefix(piece, "<0x"); ok && len(hex) == 3 {
			if c, err := strconv.ParseUint(hex[:2], 16, 8); err == nil {
				b.WriteByte(byte(c))
				continue
			}
		}
		b.WriteString(strings.ReplaceAll(piece, "▁", " "))
	}
	return oldSpellings.Replace(strings.TrimSpace(strings.ToValidUTF8(b.String(), "")))
}

// oldSpellings are those of the old books that Moonshine has learnt from.
var oldSpellings = strings.NewReplacer(
	"to-day", "today", "To-day", "Today", "to-morrow", "tomorrow", "To-morrow", "Tomorrow", "to-night", "tonight", "To-night", "Tonight",
	"good-bye", "goodbye", "Good-bye", "Goodbye", "good-by", "goodbye", "Good-by", "Goodbye",
)
