//go:build speech

package local

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

// mostWrong is the share of words that may be wrong, in every voice. Measured are 4 to
// 12 in a hundred: these voices are harder to understand than most people.
const mostWrong = 0.2

// What was said is what is read, after the resampling and the mu-law of a telephone
// line, in four voices.
func TestWordErrorRate(t *testing.T) {
	p := loaded(t)
	for _, voice := range voices {
		t.Run(voice, func(t *testing.T) {
			wrong, all := 0, 0
			for _, phrase := range phrases {
				s := listening(t, p)
				s.write(t, telephoned(t, p, phrase, voice))
				require.NoError(t, s.Flush())
				var heard string
				for text := s.final(t); text != ""; text = s.final(t) { // the last is the answer to Flush: nothing more
					heard += " " + text
				}
				meant, got := plainWords(phrase), plainWords(heard)
				wrong, all = wrong+distance(meant, got), all+len(meant)
				if distance(meant, got) > 0 {
					t.Logf("%q was heard as %q", phrase, strings.TrimSpace(heard))
				}
			}
			rate := float64(wrong) / float64(all)
			t.Logf("word error rate on %d phrases, 8 kHz mu-law, voice %s: %.1f %% (%d of %d words)", len(phrases), voice, 100*rate, wrong, all)
			require.Less(t, rate, mostWrong)
		})
	}
}

// plainWords are words as far as they can be heard.
func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
}

// distance is how many words must be changed, added or left out.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		corner := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := corner
			if x != y {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func TestNobodySpeaks(t *testing.T) {
	p := loaded(t)
	s := listening(t, p)
	s.write(t, silence(3*time.Second))
	require.NoError(t, s.Flush())
	require.Empty(t, s.final(t))
}
