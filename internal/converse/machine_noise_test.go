package converse_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/promise"
	"parley/internal/provider/sandbox"
)

// rendered are the backgrounds and the voices of these tests, made once.
var rendered = sync.OnceValue(func() *audio.Ambience { return audio.NewAmbience(7) })

// mute is a line on which nobody minds what is said.
type mute struct{ down chan struct{} }

func (*mute) Send([]int16)                           {}
func (*mute) SendDigits(string) error                { return nil }
func (*mute) Transfer(context.Context, string) error { return nil }
func (m *mute) HangUp()                              { close(m.down) }

// pickUp is somebody who picks up in a place: a line of a corpus, said with a
// background so many dB under the voice, which stays after the words.
type pickUp struct {
	words string
	place audio.AmbientSound
	snr   float64
	at    uint64 // where in the background
}

// sound is the line's sound from the answer on.
func (p pickUp) sound(t *testing.T, s *sandbox.Speaker) []int16 {
	t.Helper()
	const rate = audio.Rate8k
	said, tone := strings.CutSuffix(p.words, " beep")
	var sound []int16
	speech, n := 0.0, 0
	silence := func(d time.Duration) { sound = append(sound, make([]int16, rate.Samples(d))...) }
	silence(400 * time.Millisecond)
	for part := range strings.SplitSeq(said, "|") {
		if words := strings.TrimSpace(part); words != "" {
			u := converse.Utterance{Text: words, Voice: "tenor", Language: "en", Rate: rate, Speed: 1}
			require.NoError(t, s.Speak(t.Context(), u, func(s converse.Sound) {
				for _, v := range s.Samples {
					speech += float64(v) * float64(v)
				}
				n += len(s.Samples)
				sound = append(sound, s.Samples...)
			}))
		}
		silence(800 * time.Millisecond)
	}
	if tone {
		beep := make([]int16, rate.Samples(400*time.Millisecond))
		audio.NewSine(rate, 1000, -15).Fill(beep)
		sound = append(sound, beep...)
	}
	silence(14 * time.Second)
	level := 20*math.Log10(math.Sqrt(speech/float64(n))/32768) - p.snr
	noise, err := rendered().Background(p.place, rate, 1, p.at)
	require.NoError(t, err)
	scale := math.Pow(10, (level-audio.AmbientLevel)/20)
	background := make([]int16, len(sound))
	noise.Read(background)
	for i, v := range background {
		sound[i] = int16(max(-32768, min(32767, float64(sound[i])+scale*float64(v))))
	}
	return sound
}

// verdict plays it to the engine as the media does.
func (p pickUp) verdict(t *testing.T, s *sandbox.Provider) (by converse.Answerer) {
	t.Helper()
	sound := p.sound(t, s.Speaker())
	synctest.Test(t, func(t *testing.T) {
		a := parley.Assistant{Name: "Front desk", Type: parley.Outbound, Mode: parley.Pipeline}
		parley.AssistantForm.SetDefaults(&a)
		a.Language, a.Timezone, a.InitialMessage, a.SystemPrompt = "English", "UTC", "Hello, this is Acme about your appointment. Do you have a minute?", "Be brief."
		line := &mute{down: make(chan struct{})}
		c, err := converse.New(converse.Config{
			Assistant: a, Rate: audio.Rate8k, Line: line, Call: converse.Facts{CallID: "1", Direction: parley.Outbound},
			Transcribers: []converse.Provider[converse.Transcriber]{{Name: "sandbox", Use: s.Transcriber()}},
			Models:       []converse.Provider[converse.Model]{{Name: "sandbox", Key: "instant", Use: s.Model()}},
			Speakers:     []converse.Provider[converse.Speaker]{{Name: "sandbox", Key: "alto", Use: s.Speaker()}},
		})
		require.NoError(t, err)
		result := make(chan converse.Result, 1)
		go func() { result <- c.Run(t.Context()) }()
		time.Sleep(2 * time.Second) // it rings
		c.Answered()
		tick := time.NewTicker(audio.FrameDuration)
		defer tick.Stop()
		for frame := range slices.Chunk(sound, 160) {
			select {
			case <-line.down:
			case <-tick.C:
				c.Frame(frame)
			}
		}
		c.HungUp()
		by = (<-result).AnsweredBy
	})
	return by
}

// TestPeopleInNoiseAreNoMachines: people and machines of the corpus pick up in every
// place there is, at several levels. No person is taken for a machine, which would hang
// up on them; a machine may stay unknown where its words drown.
func TestPeopleInNoiseAreNoMachines(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{})
	all := promise.Full()
	for _, snr := range []float64{20, 15, 10, 5} {
		for _, place := range audio.AmbientSounds()[1:] {
			every := 1
			switch {
			case all:
			case place == audio.AmbientCafe: // whose babble and dishes never pause
				every = 5
			case snr == 15:
				every = 25
			default:
				continue
			}
			people, mistaken := verdicts(t, s, converse.HumanGreetings, every, place, snr, converse.AnsweredByMachine)
			machines, _ := verdicts(t, s, converse.MachineGreetings, every, place, snr, "")
			t.Logf("%2.0f dB %-12s people: %v, machines: %v", snr, place, people, machines)
			require.Empty(t, mistaken, "%s at %g dB", place, snr)
			if snr >= 15 {
				found := machines[converse.AnsweredByMachine]
				require.GreaterOrEqual(t, 10*found, 9*(found+machines[converse.AnsweredByHuman]+machines[converse.AnsweredByUnknown]), "%s at %g dB", place, snr)
			}
		}
	}
}

// verdicts counts those on every so many lines of a corpus, and lists the lines that got
// the wrong one.
func verdicts(t *testing.T, s *sandbox.Provider, corpus []string, every int, place audio.AmbientSound, snr float64, wrong converse.Answerer) (counts map[converse.Answerer]int, mistaken []string) {
	t.Helper()
	counts = map[converse.Answerer]int{}
	for i := 0; i < converse.Fewer(len(corpus)); i += every {
		by := pickUp{corpus[i], place, snr, uint64(i)}.verdict(t, s)
		counts[by]++
		if by == wrong {
			mistaken = append(mistaken, corpus[i])
		}
	}
	return counts, mistaken
}
