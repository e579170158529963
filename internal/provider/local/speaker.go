//go:build speech

package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"parley/internal/converse"
)

// Speaker is flite. It knows no word times; stability and similarity mean nothing
// to it.
type Speaker struct{ p *Provider }

// Speak streams a sentence, clause by clause.
func (s *Speaker) Speak(ctx context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	if err := s.speak(ctx, u, emit); err != nil {
		return fmt.Errorf("local speaker: %w", err)
	}
	return nil
}

func (s *Speaker) speak(ctx context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	if err := onlyEnglish(u.Language); err != nil {
		return err
	}
	if u.Voice == "" {
		u.Voice = voices[0]
	}
	if !slices.Contains(voices, u.Voice) {
		return fmt.Errorf("there is no voice %q; choose one of %s", u.Voice, strings.Join(voices, ", "))
	}
	if u.Speed <= 0 {
		u.Speed = 1
	}
	tube, err := newTube(speakingRate, u.Rate)
	if err != nil {
		return err
	}
	for _, clause := range clauses(u.Text) {
		sound, err := s.say(ctx, clause, u)
		if err != nil {
			return err
		}
		emit(converse.Sound{Samples: tube.pass(sound)})
	}
	return nil
}

// say renders a clause when a place is free. What was rendered for a call that is
// over is thrown away.
func (s *Speaker) say(ctx context.Context, clause string, u converse.Utterance) ([]int16, error) {
	if err := s.p.work.take(ctx); err != nil {
		return nil, err
	}
	defer s.p.work.leave()
	if err := ctx.Err(); err != nil { // a free place and the end may come together
		return nil, err
	}
	sound, err := s.p.flite.say(clause, u.Voice, u.Speed)
	if err == nil {
		err = ctx.Err()
	}
	return sound, err
}

func onlyEnglish(language string) error {
	if language != "" && language != "en" {
		return fmt.Errorf("it knows English alone, not %q", language)
	}
	return nil
}

// A call that is over waits for the clause being rendered, so one is never long.
const (
	fewWords    = 3 // fewer are no clause of their own
	mostWords   = 16
	mostLetters = 100 // which may have to be spelt one by one
)

// clauses cuts a sentence where one pauses anyway, so that its beginning is heard
// while the rest is made.
func clauses(text string) (all []string) {
	var clause []string
	letters := 0
	cut := func() {
		if len(clause) > 0 {
			all = append(all, strings.Join(clause, " "))
			clause, letters = nil, 0
		}
	}
	for word := range strings.FieldsSeq(pronounceable(text)) {
		for ; len(word) > mostLetters; word = word[mostLetters:] {
			cut()
			all = append(all, word[:mostLetters])
		}
		if letters+len(word) > mostLetters {
			cut()
		}
		clause, letters = append(clause, word), letters+len(word)
		if len(clause) >= mostWords || len(clause) >= fewWords && strings.ContainsAny(word[len(word)-1:], ",;:!?") {
			cut()
		}
	}
	cut()
	return all
}

// pronounceable is a text in the letters that flite knows, which are ASCII's.
func pronounceable(text string) string {
	text = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`, " – ", ", ", " — ", ", ", "–", ", ", "—", ", ", "…", "...").Replace(text)
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r > unicode.MaxASCII || unicode.IsControl(r):
			return -1
		}
		return r
	}, norm.NFKD.String(text))
}
