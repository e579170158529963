package sandbox

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

// TestNothingIsHeardInNoise: a minute of each sound that is not speech, loud and
// soft, gives no word and no claim that there was one.
func TestNothingIsHeardInNoise(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	const samples = 60 * 8000
	for name, sound := range map[string]func(*rand.Rand, int) []float64{
		"white": white, "pink": pink, "ambience": ambience, "keys": keys, "hum": hum, "sweep": sweep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 60))
			for _, snr := range []float64{-6, 10} {
				x := noisy(snr, sound)(random, make([]int16, samples))
				got, damaged, _ := transcribe(t, p, audio.Rate8k, companded(false)(random, x))
				require.Empty(t, got)
				require.False(t, damaged)
			}
		})
	}
}

// keys are random DTMF digits.
func keys(random *rand.Rand, n int) []float64 {
	low, high := []float64{697, 770, 852, 941}, []float64{1209, 1336, 1477, 1633}
	out := make([]float64, n)
	for at := 0; at < n; {
		l, h := low[random.IntN(4)], high[random.IntN(4)]
		on, off := 400+random.IntN(1200), 400+random.IntN(1200)
		for i := range min(on, n-at) {
			s := 2 * math.Pi * float64(i) / 8000
			out[at+i] = math.Sin(l*s) + math.Sin(h*s)
		}
		at += on + off
	}
	return out
}

// hum is the mains and its harmonics.
func hum(_ *rand.Rand, n int) []float64 {
	const period = 8000 / 50
	out := make([]float64, n)
	for i := range out {
		if i >= period {
			out[i] = out[i-period]
			continue
		}
		for h := 1; h < 60; h++ {
			out[i] += math.Sin(2*math.Pi*float64(h*i)/period) / float64(h)
		}
	}
	return out
}

// sweep is a tone that glides through the whole band.
func sweep(_ *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	phase := 0.0
	for i := range out {
		phase += 2 * math.Pi * (200 + 3400*float64(i%8000)/8000) / 8000
		out[i] = math.Sin(phase)
	}
	return out
}

// FuzzListen: no samples make the decoder panic, and none make it hear words that
// were not spoken.
func FuzzListen(f *testing.F) {
	p := New(Options{})
	x, _ := speak(f, p, converse.Utterance{Text: "Hello there.", Rate: audio.Rate8k})
	seed := make([]byte, 0, 2*len(x))
	for _, s := range x {
		seed = binary.LittleEndian.AppendUint16(seed, uint16(s))
	}
	f.Add(seed, 160)
	f.Add(seed[:len(seed)/2], 1)
	f.Add([]byte{0xff, 0x7f, 0x00, 0x80}, 7)
	f.Fuzz(func(t *testing.T, raw []byte, frame int) {
		frame = 1 + int(uint(frame)%2000)
		l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: audio.Rate8k}, func(h converse.Heard) {
			_, _, invented := score("Hello there.", h.Text)
			require.Zero(t, invented, h.Text)
		})
		require.NoError(t, err)
		var x []int16
		for ; len(raw) >= 2; raw = raw[2:] {
			x = append(x, int16(binary.LittleEndian.Uint16(raw)))
		}
		for ; len(x) > 0; x = x[min(frame, len(x)):] {
			require.NoError(t, l.Write(x[:min(frame, len(x))]))
		}
		require.NoError(t, l.Flush())
		require.NoError(t, l.Close())
	})
}
