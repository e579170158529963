package simulator

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/converse"
)

// sounds makes what people let hear and keeps it for all calls: nothing is rendered
// while a call runs.
type sounds struct {
	ambience *audio.Ambience

	mu     sync.Mutex
	voice  converse.Speaker
	manner string // which of the speaker's voices
	said   map[string][]int16
}

// speakWith changes the voice; what was said in the old one is forgotten.
func (s *sounds) speakWith(voice converse.Speaker, manner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voice, s.manner, s.said = voice, manner, map[string][]int16{}
}

const (
	lineRate = audio.Rate8k
	// barPause is the pause that a bar in a line stands for: longer than most
	// assistants wait for the rest of a sentence.
	barPause = time.Second
	// The beep of an answering machine.
	beepHertz  = 1000
	beepLength = 400 * time.Millisecond
)

// of is everything that a step lets hear; its Wait follows.
func (s *sounds) of(ctx context.Context, step *Step) (sound []int16, err error) {
	if step.Cough {
		sound = append(sound, cough()...)
	}
	if step.Say != "" {
		words, err := s.speech(ctx, step.Say)
		if err != nil {
			return nil, err
		}
		sound = append(sound, words...)
	}
	if step.Beep {
		beep := make([]int16, lineRate.Samples(beepLength))
		audio.NewBeep(lineRate, beepHertz, beepLength).Fill(beep)
		sound = append(sound, beep...)
	}
	return sound, nil
}

// speech is a line of a script as it sounds.
func (s *sounds) speech(ctx context.Context, line string) ([]int16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sound, made := s.said[line]; made {
		return sound, nil
	}
	var sound []int16
	for i, part := range strings.Split(line, "|") {
		if i > 0 {
			sound = append(sound, silence(barPause)...)
		}
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		u := converse.Utterance{Text: part, Voice: s.manner, Language: "en", Rate: lineRate, Speed: 1}
		if err := s.voice.Speak(ctx, u, func(w converse.Sound) { sound = append(sound, w.Samples...) }); err != nil {
			return nil, err
		}
	}
	s.said[line] = sound
	return sound, nil
}

func silence(d time.Duration) []int16 { return make([]int16, lineRate.Samples(d)) }

// cough is two bursts of breath, as loud as speech.
func cough() []int16 {
	const burst, peak = 110 * time.Millisecond, 9000.0
	random := rand.New(rand.NewPCG(13, 13))
	sound := make([]int16, 0, lineRate.Samples(3*burst))
	for range 2 {
		n, low := lineRate.Samples(burst), 0.0
		for i := range n {
			low += 0.5 * (random.Float64()*2 - 1 - low) // a throat is darker than white noise
			sound = append(sound, int16(peak*math.Exp(-4*float64(i)/float64(n))*low))
		}
		sound = append(sound, silence(burst/2)...)
	}
	return sound
}
