package sandbox

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

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
		least float64
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
			for range 40 {
				text := chatter(random, 40)
				voice := []string{"alto", "soprano", "tenor", "bass"}[random.IntN(4)]
				x, _ := speak(t, p, converse.Utterance{
					Text: text, Rate: audio.Rate8k, Voice: voice,
					Speed: 0.7 + 0.5*random.Float64(), Stability: random.Float64(), Similarity: random.Float64(),
				})
				got, damaged, _ := transcribe(t, p, audio.Rate8k, c.line(random, x))
				n, ok, bad := score(text, got)
				total, recovered, invented = total+n, recovered+ok, invented+bad
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
