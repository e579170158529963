package sandbox

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley/internal/audio"
	"parley/internal/converse"
)

// TestPace: the default is about 170 words a minute and 15 characters a second,
// and speed scales it.
func TestPace(t *testing.T) {
	t.Parallel()
	text := `Hello, this is Parley calling about the appointment you made with us last week. Would tomorrow at ten
		in the morning still be all right for you, or would you rather have another day? It only takes a few
		minutes, and you can bring your papers along with you if that is easier.`
	text = strings.Join(strings.Fields(text), " ")
	words := float64(len(strings.Fields(text)))
	length := func(o Options, speed float64) float64 {
		x, _ := speak(t, New(o), converse.Utterance{Text: text, Rate: audio.Rate8k, Speed: speed})
		return audio.Rate8k.Duration(len(x)).Minutes()
	}
	normal := length(Options{}, 1)
	t.Logf("%.0f words a minute, %.1f characters a second", words/normal, float64(len(text))/normal/60)
	require.InDelta(t, 170, words/normal, 15)
	require.InDelta(t, 15, float64(len(text))/normal/60, 1.5)
	require.InEpsilon(t, normal, length(Options{}, 0), 0.001, "no speed is normal speed")
	require.InEpsilon(t, normal/0.7, length(Options{}, 0.7), 0.08)
	require.InEpsilon(t, normal/1.2, length(Options{}, 1.2), 0.10)
	require.InEpsilon(t, normal*170/120, length(Options{WordsPerMinute: 120}, 1), 0.08)
	require.Less(t, length(Options{WordsPerMinute: 300}, 1), 0.75*normal)
	for speed := 0.7; speed < 1.19; speed += 0.05 {
		require.GreaterOrEqual(t, length(Options{}, speed), length(Options{}, speed+0.05), "speed %.2f", speed)
	}
}

// TestWordTimes: each word begins and ends exactly where it is said to.
func TestWordTimes(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	rapid.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 5))
		rate := rapid.SampledFrom([]audio.Rate{audio.Rate8k, audio.Rate16k, audio.Rate24k, audio.Rate48k}).Draw(r, "rate")
		text := chatter(random, 2) + " Donaudampfschifffahrtsgesellschaft."
		x, words := speak(t, p, converse.Utterance{Text: text, Rate: rate})
		require.Len(r, words, len(strings.Fields(text)))
		at := time.Duration(0)
		for i, w := range words {
			require.Equal(r, strings.Fields(text)[i], w.Text)
			require.GreaterOrEqual(r, w.Start, at)
			require.Greater(r, w.End, w.Start)
			// The first and the last symbol of a word are audible, and after the
			// millisecond in which it fades there is silence until the next.
			require.Greater(r, levelOf(x[rate.Samples(w.Start):rate.Samples(w.Start+10*time.Millisecond)]), 500.0)
			require.Greater(r, levelOf(x[rate.Samples(w.End-10*time.Millisecond):rate.Samples(w.End)]), 500.0)
			next := rate.Duration(len(x))
			if i+1 < len(words) {
				next = words[i+1].Start
			}
			require.Zero(r, levelOf(x[rate.Samples(w.End+time.Millisecond):rate.Samples(next)]))
			at = w.End
		}
	})
}

func levelOf(x []int16) float64 {
	sum := 0.0
	for _, s := range x {
		sum += float64(s) * float64(s)
	}
	return math.Sqrt(sum / float64(max(1, len(x))))
}

// TestSoundsLikeAVoice: loud as speech, within the telephone's band, at the
// voice's pitch, swelling with the syllables, never clipped.
func TestSoundsLikeAVoice(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	random := rand.New(rand.NewPCG(2, 2))
	text := chatter(random, 12)
	for voice, pitch := range pitches {
		x, words := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate16k, Voice: voice, Stability: 1})
		var spoken []int16
		for _, w := range words {
			spoken = append(spoken, x[audio.Rate16k.Samples(w.Start):audio.Rate16k.Samples(w.End)]...)
		}
		db := 20 * math.Log10(levelOf(spoken)/32768)
		require.InDelta(t, -20, db, 0.5, voice)
		peak := int16(0)
		for _, s := range x {
			peak = max(peak, s, -s)
		}
		require.Less(t, int(peak), 20000, "4 dB of gain clip nothing")
		in, all, strongest := band(spoken, 16000)
		require.Greater(t, in/all, 0.85, "share of 300-3400 Hz of %s", voice)
		harmonic := strongest / pitch
		t.Logf("%-8s %.1f dBFS, peak %.1f dBFS, %.1f %% in band, strongest low tone %.0f Hz", voice, db, 20*math.Log10(float64(peak)/32768), 100*in/all, strongest)
		require.InDelta(t, math.Round(harmonic), harmonic, 0.25, "%s: %.0f Hz is not a harmonic of %.0f", voice, strongest, pitch)
	}
	a, _ := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Voice: "nobody"})
	b, _ := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Voice: "alto"})
	require.Equal(t, b, a, "an unknown voice is the default one")
	c, _ := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Voice: "alto", Stability: 1})
	require.NotEqual(t, b, c, "stability is heard")
	d, _ := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Voice: "tenor", Similarity: 1})
	e, _ := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Voice: "tenor"})
	require.NotEqual(t, d, e, "similarity is heard")
}

// band measures the power between 300 and 3400 Hz, that of everything, and the
// strongest frequency below the coded tones.
func band(x []int16, rate float64) (in, all, strongest float64) {
	const n = 512
	best := 0.0
	power := [n / 2]float64{}
	for at := 0; at+n <= len(x) && at < 6*n; at += n {
		for k := range power {
			var sum complex128
			for i := range n {
				w := 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/n)
				sum += complex(w*float64(x[at+i]), 0) * cmplx.Rect(1, -2*math.Pi*float64(k*i)/n)
			}
			power[k] += real(sum)*real(sum) + imag(sum)*imag(sum)
		}
	}
	for k, p := range power {
		f := float64(k) * rate / n
		all += p
		if f >= 300-rate/n && f <= 3400 {
			in += p
		}
		if f < 620 && p > best {
			best, strongest = p, f
		}
	}
	return in, all, strongest
}
