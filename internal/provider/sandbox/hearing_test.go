package sandbox

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley/internal/audio"
	"parley/internal/converse"
)

// times repeats the measurements with other words: -times 33 makes it 20,000 words
// for each line that may lose some.
var times = flag.Int("times", 1, "how often to repeat the measured conversations")

// TestWordsSurviveTheLine measures how many words come through each kind of line.
// No line may put a word into anybody's mouth.
func TestWordsSurviveTheLine(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	mu, a := companded(false), companded(true)
	loss := func(r float64) impairment { return lossy(audio.Rate8k, r) }
	cases := []struct {
		name  string
		line  impairment
		least float64 // 1 also means that no damage may be claimed
	}{
		{"clean", through(), 1},
		{"offset", offset, 1},
		{"mu-law", through(offset, mu), 1},
		{"A-law", through(offset, a), 1},
		{"mu-law twice and A-law", through(offset, mu, a, mu), 1},
		{"loss 5%", through(offset, mu, loss(0.05)), 0.97},
		{"loss 10%", through(offset, mu, loss(0.10)), 0.90},
		{"gain -20 dB", through(offset, gained(-20), mu), 1},
		{"gain +6 dB", through(offset, gained(6), mu), 1},
		{"gain +12 dB, clipped", through(offset, gained(12), a), 0.98},
		{"white noise 20 dB", through(offset, noisy(20, white), mu), 1},
		{"white noise 10 dB", through(offset, noisy(10, white), mu), 0.99},
		{"pink noise 10 dB", through(offset, noisy(10, pink), mu), 0.99},
		{"ambience 15 dB", through(offset, noisy(15, ambience), mu), 0.99},
		{"echo -25 dB", through(offset, echoing(t, p, -25), mu), 1},
		{"all at once", through(offset, echoing(t, p, -25), noisy(20, ambience), gained(-6), mu, loss(0.05)), 0.97},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 11))
			var total, recovered, invented int
			rounds := 5
			if c.least < 1 {
				rounds = 15 // rare damage needs more words to show
			}
			for range rounds * *times {
				text := chatter(random, 40)
				voice := []string{"alto", "soprano", "tenor", "bass"}[random.IntN(4)]
				x, _ := speak(t, p, converse.Utterance{
					Text: text, Rate: audio.Rate8k, Voice: voice,
					Speed: 0.7 + 0.5*random.Float64(), Stability: random.Float64(), Similarity: random.Float64(),
				})
				got, damaged, _ := transcribe(t, p, audio.Rate8k, c.line(random, x))
				n, ok, bad := score(text, got)
				total, recovered, invented = total+n, recovered+ok, invented+bad
				if c.least == 1 {
					require.False(t, damaged, "damage where there was none: %q became %q", text, got)
				}
				if ok < n {
					require.True(t, damaged, "lost words without saying so: %q became %q", text, got)
				}
			}
			rate := float64(recovered) / float64(total)
			t.Logf("%-24s %5d words, recovered %.2f %%, invented %d", c.name, total, 100*rate, invented)
			require.Zero(t, invented)
			require.GreaterOrEqual(t, rate, c.least)
		})
	}
}

// TestRates: the same speech at any sampling rate.
func TestRates(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	for _, rate := range []audio.Rate{audio.Rate8k, audio.Rate16k, audio.Rate24k, audio.Rate48k} {
		random := rand.New(rand.NewPCG(5, uint64(rate)))
		text := chatter(random, 60)
		x, _ := speak(t, p, converse.Utterance{Text: text, Rate: rate})
		got, damaged, _ := transcribe(t, p, rate, through(offset, noisy(20, white), lossy(rate, 0.02))(random, x))
		require.Equal(t, text, got, "at %d Hz", rate)
		require.False(t, damaged)
	}
	_, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: 44100}, func(converse.Heard) {})
	require.ErrorContains(t, err, "sandbox transcriber: no sampling rate of 44100 Hz")
	require.ErrorContains(t, p.Speaker().Speak(t.Context(), converse.Utterance{Text: "x", Rate: 44100}, func(converse.Sound) {}), "44100")
}

// TestAnyText: whatever can be written can be said.
func TestAnyText(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	for _, text := range []string{
		"I",
		"Hello, this is Acme! Do you have a minute?",
		"Your order 4711 costs €12.50 (incl. VAT) — \"really\"?",
		"Grüße aus Köln: schöne Straße.",
		"Здравствуйте, чем могу помочь?",
		"您好，請問有什麼可以幫您的嗎？今天天氣很好我們去公園散步吧。",
		"नमस्ते, मैं आपकी क्या सहायता कर सकता हूँ।",
		"مرحبا، كيف يمكنني مساعدتك؟",
		"Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft ist lang.",
		"👩‍👩‍👧‍👦 🇩🇪 emoji",
		"https://example.com/a?b=c&d=%20#e",
		"… damage said aloud …",
	} {
		x, words := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Voice: "bass"})
		got, damaged, _ := transcribe(t, p, audio.Rate8k, x)
		require.Equal(t, text, got)
		require.False(t, damaged, text)
		require.Len(t, words, len(strings.Fields(text)))
	}
	for _, text := range []string{"", " \n\t ", "\x00\x01"} {
		x, words := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k})
		require.Empty(t, x)
		require.Empty(t, words)
	}
	x, _ := speak(t, p, converse.Utterance{Text: "bad \xff\xfe bytes\x00\nhere", Rate: audio.Rate8k})
	got, _, _ := transcribe(t, p, audio.Rate8k, x)
	require.Equal(t, "bad \uFFFD bytes here", got)
}

func TestAnyTextProperty(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringN(0, 40, 120).Draw(r, "text")
		speed := rapid.Float64Range(0.5, 2).Draw(r, "speed")
		skip := rapid.IntRange(0, 500).Draw(r, "offset")
		x, words := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Speed: speed})
		got, damaged, _ := transcribe(t, p, audio.Rate8k, append(make([]int16, skip), x...))
		want := strings.Join(strings.Fields(printable(text)), " ")
		require.Equal(r, want, got)
		require.False(r, damaged)
		require.Len(r, words, len(strings.Fields(want)))
	})
}

// TestInterrupted: speech that stops anywhere gives the words before, never
// another one, and says that something was cut off if enough of it was heard.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	rapid.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		text := chatter(random, 8)
		x, words := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k})
		stop := rapid.IntRange(0, len(x)).Draw(r, "stop")
		got, damaged, _ := transcribe(t, p, audio.Rate8k, append(make([]int16, random.IntN(300)), x[:stop]...))
		at := audio.Rate8k.Duration(stop)
		var whole []string
		inside := time.Duration(0)
		for _, w := range words {
			// The last milliseconds of a word are needed, but not all of them.
			if w.End+2*time.Millisecond <= at {
				whole = append(whole, w.Text)
			} else if w.Start < at {
				inside = at - w.Start
			}
		}
		heard := strings.Fields(strings.ReplaceAll(got, Damage, " "))
		if len(heard) > len(whole) { // enough of the last one came to repair it
			require.Equal(r, strings.Fields(text)[:len(heard)], heard)
			require.Len(r, heard, len(whole)+1)
			return
		}
		require.Equal(r, strings.Join(whole, " "), strings.Join(heard, " "))
		if inside > 120*time.Millisecond {
			require.True(r, damaged, "%q cut after %s", text, at)
			require.True(r, strings.HasSuffix(got, Damage), got)
		}
	})
}

// TestOneAfterAnother: utterances cut short and followed at once by others, out of
// step with them, as after an interruption.
func TestOneAfterAnother(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	random := rand.New(rand.NewPCG(4, 4))
	var total, recovered, invented int
	for range 50 {
		a, b := chatter(random, 6), chatter(random, 10)
		x, _ := speak(t, p, converse.Utterance{Text: a, Rate: audio.Rate8k})
		y, _ := speak(t, p, converse.Utterance{Text: b, Rate: audio.Rate8k, Voice: "tenor"})
		x = x[:len(x)/2+random.IntN(len(x)/2)]
		gap := []int{0, random.IntN(80), random.IntN(2000)}[random.IntN(3)]
		x = append(append(x, make([]int16, gap)...), y...)
		got, _, _ := transcribe(t, p, audio.Rate8k, x)
		n, ok, _ := score(b, got)
		_, _, bad := score(a+" "+b, got)
		total, recovered, invented = total+n, recovered+ok, invented+bad
	}
	t.Logf("second utterance: recovered %.2f %% of %d words, invented %d", 100*float64(recovered)/float64(total), total, invented)
	require.Zero(t, invented)
	require.GreaterOrEqual(t, float64(recovered)/float64(total), 0.98)
}

// TestOwnEchoAlone: while the customer is silent, our own voice coming back 25 dB
// down is nobody's words.
func TestOwnEchoAlone(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	random := rand.New(rand.NewPCG(8, 4))
	x := through(echoing(t, p, -25), companded(false))(random, make([]int16, 20*8000))
	got, damaged, all := transcribe(t, p, audio.Rate8k, x)
	require.Empty(t, got)
	require.False(t, damaged)
	require.Len(t, all, 1, "only the answer to Flush")
}
