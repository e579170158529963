package converse

import "sync"

// Phrasebook holds the sound of what the engine itself says in every call, so that it is
// rendered, paid for and held in memory once for a voice and not once for a call. The
// zero value is ready; all calls of a process share one.
type Phrasebook struct {
	mu     sync.Mutex
	spoken map[spokenBy]Sound
}

// spokenBy is a sentence as a provider was asked for it.
type spokenBy struct {
	provider string
	Utterance
}

// mostPhrases bounds a book; a sentence that finds it full is rendered call by call.
const mostPhrases = 4096

func (b *Phrasebook) find(by spokenBy) (Sound, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sound, ok := b.spoken[by]
	return sound, ok
}

// add enters a sentence and returns the one to use: that of whoever came first.
func (b *Phrasebook) add(by spokenBy, sound Sound) Sound {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first, ok := b.spoken[by]; ok {
		return first
	}
	if b.spoken == nil {
		b.spoken = map[spokenBy]Sound{}
	}
	if len(b.spoken) < mostPhrases {
		b.spoken[by] = sound
		return b.spoken[by]
	}
	return sound
}

// look takes a sentence that is to be kept from the book.
func (c *Conversation) look(s *sentence) bool {
	i, ok := c.voice.chain.provider(&s.route)
	if c.cfg.Phrases == nil || !ok {
		return false
	}
	sound, found := c.cfg.Phrases.find(c.asks(i, s.text))
	if found {
		s.sound, s.words, s.asked, s.whole = tapeOf(sound.Samples), sound.Words, true, true
	}
	return found
}

// enter puts a sentence that has been kept into the book, if one speaker said all of it.
func (c *Conversation) enter(s *sentence, provider int) {
	if c.cfg.Phrases != nil && s.base == 0 && c.voice.kept[s.text] == s {
		kept := c.cfg.Phrases.add(c.asks(provider, s.text), Sound{Samples: s.sound.all(), Words: s.words})
		s.sound, s.words = tapeOf(kept.Samples), kept.Words
	}
}

// asks is what a speaker is asked for.
func (c *Conversation) asks(provider int, text string) spokenBy {
	p, a := c.cfg.Speakers[provider], &c.cfg.Assistant
	return spokenBy{p.Name, Utterance{
		Text: text, Voice: p.Key, Language: c.language, Rate: c.cfg.Rate,
		Speed: float64(a.SpeechSpeed), Stability: float64(a.VoiceStability), Similarity: float64(a.VoiceSimilarity),
	}}
}
