package sandbox

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

// A telephone line for tests: what happens to samples between a mouth and an ear.
type impairment func(random *rand.Rand, x []int16) []int16

func through(imps ...impairment) impairment {
	return func(random *rand.Rand, x []int16) []int16 {
		for _, imp := range imps {
			x = imp(random, x)
		}
		return x
	}
}

func clip(x float64) int16 { return int16(max(-32768, min(32767, math.Round(x)))) }

// companded is a round trip through G.711's mu-law or A-law, by their formulas.
func companded(aLaw bool) impairment {
	var table [1 << 16]int16
	for i := range table {
		s := int16(i - 1<<15)
		v := math.Abs(float64(s)) / 32768
		if aLaw {
			v = aLawRound(v)
		} else {
			v = muLawRound(v)
		}
		table[i] = clip(math.Copysign(v*32768, float64(s)))
	}
	return func(_ *rand.Rand, x []int16) []int16 {
		out := make([]int16, len(x))
		for i, s := range x {
			out[i] = table[int(s)+1<<15]
		}
		return out
	}
}

func muLawRound(v float64) float64 {
	c := math.Log1p(255*v) / math.Log(256)
	c = math.Round(c*127) / 127
	return (math.Pow(256, c) - 1) / 255
}

func aLawRound(v float64) float64 {
	const a = 87.6
	k := 1 + math.Log(a)
	var c float64
	if v < 1/a {
		c = a * v / k
	} else {
		c = (1 + math.Log(a*v)) / k
	}
	c = (math.Floor(c*128) + 0.5) / 128
	if c < 1/k {
		return c * k / a
	}
	return math.Exp(c*k-1) / a
}

// lossy drops 20 ms packets and conceals each by repeating the one before, fading
// out over three in a row.
func lossy(rate audio.Rate, probability float64) impairment {
	return func(random *rand.Rand, x []int16) []int16 {
		n := rate.FrameSamples()
		out := append([]int16(nil), x...)
		run := 0
		for at := n; at+n <= len(out); at += n {
			if random.Float64() >= probability {
				run = 0
				continue
			}
			run++
			gain := math.Pow(0.6, float64(run))
			if run > 3 {
				gain = 0
			}
			for i := range n {
				out[at+i] = int16(gain * float64(x[max(0, at-run*n)+i]))
			}
		}
		return out
	}
}

func gained(db float64) impairment {
	return func(_ *rand.Rand, x []int16) []int16 {
		out := make([]int16, len(x))
		g := math.Pow(10, db/20)
		for i, s := range x {
			out[i] = clip(g * float64(s))
		}
		return out
	}
}

// noisy adds noise at so many dB below the level of speech.
func noisy(snr float64, color func(*rand.Rand, int) []float64) impairment {
	return func(random *rand.Rand, x []int16) []int16 {
		noise := color(random, len(x))
		g := speechLevel * math.Pow(10, -snr/20) / rms(noise)
		out := make([]int16, len(x))
		for i, s := range x {
			out[i] = clip(float64(s) + g*noise[i])
		}
		return out
	}
}

func white(random *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = random.NormFloat64()
	}
	return out
}

// pink is Kellet's filter over white noise.
func pink(random *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	var a, b, c float64
	for i := range out {
		w := random.NormFloat64()
		a = 0.99765*a + w*0.0990460
		b = 0.96300*b + w*0.2965164
		c = 0.57000*c + w*1.0526913
		out[i] = a + b + c + w*0.1848
	}
	return out
}

// ambience is a room: pink noise that swells, with hum and a clatter of tones.
func ambience(random *rand.Rand, n int) []float64 {
	out := pink(random, n)
	hum, tone, left := 0.0, 0.0, 0
	for i := range out {
		out[i] *= 1 + 0.5*math.Sin(2*math.Pi*float64(i)/20000)
		hum += 2 * math.Pi * 100 / 8000
		out[i] += math.Sin(hum)
		if left == 0 {
			left = 400 + random.IntN(4000)
			tone = 300 + 2500*random.Float64()
		}
		left--
		out[i] += 2 * math.Exp(-float64(4000-left)/600) * math.Sin(2*math.Pi*tone*float64(i)/8000)
	}
	return out
}

func rms(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(x)))
}

// offset puts a silence of a random odd length before the speech.
func offset(random *rand.Rand, x []int16) []int16 {
	return append(make([]int16, random.IntN(1600)), x...)
}

// echoing adds another voice of the sandbox, so many dB below.
func echoing(t testing.TB, p *Provider, db float64) impairment {
	t.Helper()
	return func(random *rand.Rand, x []int16) []int16 {
		other, _ := speak(t, p, converse.Utterance{Text: chatter(random, 60), Rate: audio.Rate8k, Voice: "tenor"})
		other = gained(db)(random, other)
		out := append([]int16(nil), x...)
		for i := range min(len(out), len(other)) {
			out[i] = clip(float64(out[i]) + float64(other[i]))
		}
		return out
	}
}

// speak collects an utterance.
func speak(t testing.TB, p *Provider, u converse.Utterance) ([]int16, []converse.SpokenWord) {
	t.Helper()
	var samples []int16
	var words []converse.SpokenWord
	require.NoError(t, p.Speaker().Speak(context.Background(), u, func(s converse.Sound) {
		samples = append(samples, s.Samples...)
		words = append(words, s.Words...)
	}))
	return samples, words
}

// transcribe plays samples to a listener in 20 ms frames and flushes.
func transcribe(t testing.TB, p *Provider, rate audio.Rate, x []int16) (string, bool, []converse.Heard) {
	t.Helper()
	var all []converse.Heard
	l, err := p.Transcriber().Listen(context.Background(), converse.ListenOptions{Rate: rate}, func(h converse.Heard) { all = append(all, h) })
	require.NoError(t, err)
	defer l.Close()
	n := rate.FrameSamples()
	x = append(append([]int16(nil), x...), make([]int16, 15*n)...)
	for ; len(x) >= n; x = x[n:] {
		require.NoError(t, l.Write(x[:n]))
	}
	require.NoError(t, l.Flush())
	var finals []string
	damaged := false
	for _, h := range all {
		if h.Final && h.Text != "" {
			finals = append(finals, h.Text)
		}
		damaged = damaged || h.Damaged
	}
	return strings.Join(finals, " "), damaged, all
}

// chatter is a text of so many words as people say them on the telephone.
func chatter(random *rand.Rand, words int) string {
	lexicon := strings.Fields(`I a the you to it and that of is in what we have do for on was be my your not with
		this okay yes no can please thank hello order number appointment tomorrow morning afternoon delivery address
		about would could question customer service Monday Tuesday 4711 10:30 Straße naïve café Parley's e-mail twenty
		unfortunately information confirmation cancellation seventy-three telephone`)
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(lexicon[random.IntN(len(lexicon))])
		switch r := random.IntN(12); {
		case i == words-1 || r == 0:
			b.WriteByte(".?!"[random.IntN(3)])
		case r == 1:
			b.WriteByte(',')
		}
	}
	return b.String()
}

// score compares words: how many were recovered in order, how many were invented.
func score(spoken, heard string) (total, recovered, invented int) {
	a, b := strings.Fields(spoken), strings.Fields(strings.ReplaceAll(heard, Damage, " "))
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return len(a), row[len(b)], len(b) - row[len(b)]
}
