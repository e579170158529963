package sandbox

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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

// FuzzListen: whatever happens to the frames of an utterance, and whatever samples
// follow it, the decoder does not panic and hears no word that was not spoken.
func FuzzListen(f *testing.F) {
	p := New(Options{})
	const text = "No, I am Ada."
	x, _ := speak(f, p, converse.Utterance{Text: text, Rate: audio.Rate8k, Speed: 1.2})
	f.Add([]byte{}, []byte{}, 160)
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte{0xff, 0x7f, 0x00, 0x80}, 1)
	f.Add([]byte{0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 9, 9, 9}, []byte{}, 33)
	f.Fuzz(func(t *testing.T, damage, raw []byte, size int) {
		y := damaged(x, damage)
		for ; len(raw) >= 2 && len(y) < 40000; raw = raw[2:] {
			y = append(y, int16(binary.LittleEndian.Uint16(raw)))
		}
		l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: audio.Rate8k}, func(h converse.Heard) {
			for word := range strings.FieldsSeq(strings.ReplaceAll(h.Text, Damage, "")) {
				require.Contains(t, strings.Fields(text), word)
			}
		})
		require.NoError(t, err)
		size = 1 + int(uint(size)%2000)
		for ; len(y) > 0; y = y[min(size, len(y)):] {
			require.NoError(t, l.Write(y[:min(size, len(y))]))
		}
		require.NoError(t, l.Flush())
		require.NoError(t, l.Close())
	})
}

// damaged does something to each 20 ms frame: a byte says what.
func damaged(x []int16, damage []byte) []int16 {
	var y []int16
	for i := 0; i+160 <= len(x); i += 160 {
		frame := append([]int16(nil), x[i:i+160]...)
		what := byte(0)
		if len(damage) > 0 {
			what, damage = damage[0], damage[1:]
		}
		switch what % 10 {
		case 1: // lost, and the one before repeated
			copy(frame, x[max(0, i-160):])
		case 2:
			clear(frame)
		case 3: // lost without a trace
			continue
		case 4: // played twice
			y = append(y, frame...)
		case 5: // out of step from here on
			frame = frame[:int(what)%160]
		case 6: // another part of the speech
			copy(frame, x[int(what)*160%(len(x)-160):])
		case 7:
			slices.Reverse(frame)
		case 8:
			for j := range frame {
				frame[j] *= int16(what)
			}
		case 9:
			scramble(frame)
		}
		y = append(y, frame...)
	}
	return y
}
