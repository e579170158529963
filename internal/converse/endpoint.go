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

// finishedQuestion reports a sentence that asks.
func finishedQuestion(text string) bool {
	text = strings.TrimRight(text, ` "')»”’`)
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
}
