package audio

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type g711Law struct {
	name   string
	encode func([]byte, []int16) int
	decode func([]int16, []byte) int
}

var g711Laws = []g711Law{
	{"mu-law", EncodeMuLaw, DecodeMuLaw},
	{"A-law", EncodeALaw, DecodeALaw},
}

func TestG711EveryCodePointRoundTrips(t *testing.T) {
	t.Parallel()
	for _, law := range g711Laws {
		codes := make([]byte, 256)
		for i := range codes {
			codes[i] = byte(i)
		}
		samples, back := make([]int16, 256), make([]byte, 256)
		require.Equal(t, 256, law.decode(samples, codes))
		require.Equal(t, 256, law.encode(back, samples))
		if law.name == "mu-law" {
			// Mu-law has two zeros; the negative one comes back as the positive.
			require.Equal(t, byte(0xff), back[0x7f])
			back[0x7f] = 0x7f
		}
		require.Equal(t, codes, back, law.name)
	}
}

func TestG711PublishedValues(t *testing.T) {
	t.Parallel()
	// G.711 tables 1a, 1b, 2a and 2b: the ends and the middles of the laws, with
	// 14-bit and 13-bit units scaled to 16 bits.
	for code, want := range map[byte]int16{0x80: 32124, 0x00: -32124, 0xff: 0, 0x7f: 0, 0xfe: 8, 0x7e: -8, 0x8f: 16764, 0x0f: -16764, 0xef: 132, 0xf0: 120} {
		var got [1]int16
		DecodeMuLaw(got[:], []byte{code})
		require.Equal(t, want, got[0], "mu-law %#x", code)
	}
	for code, want := range map[byte]int16{0xaa: 32256, 0x2a: -32256, 0xd5: 8, 0x55: -8, 0xa5: 16896, 0xc5: 264, 0xda: 248} {
		var got [1]int16
		DecodeALaw(got[:], []byte{code})
		require.Equal(t, want, got[0], "A-law %#x", code)
	}
}

// G.711 tables 5 and 6: the periodic sequences whose decoding is 1 kHz at 0 dBm0,
// which lies 3.17 dB (mu-law) and 3.14 dB (A-law) below the overload point.
func TestG711DigitalMilliwatt(t *testing.T) {
	t.Parallel()
	var got [8]int16
	rms := func() float64 {
		var sum float64
		for _, v := range got {
			sum += float64(v) * float64(v)
		}
		return math.Sqrt(sum / 8)
	}
	DecodeMuLaw(got[:], []byte{0x1e, 0x0b, 0x0b, 0x1e, 0x9e, 0x8b, 0x8b, 0x9e})
	require.InDelta(t, -3.17, 20*math.Log10(rms()*math.Sqrt2/(8159*4)), 0.01)
	DecodeALaw(got[:], []byte{0x34, 0x21, 0x21, 0x34, 0xb4, 0xa1, 0xa1, 0xb4})
	require.InDelta(t, -3.14, 20*math.Log10(rms()*math.Sqrt2/(4096*8)), 0.01)
}

func TestG711EncodingIsNearest(t *testing.T) {
	t.Parallel()
	for _, law := range g711Laws {
		rapid.Check(t, func(t *rapid.T) {
			want := rapid.Int16().Draw(t, "sample")
			var code [1]byte
			var got [1]int16
			law.encode(code[:], []int16{want})
			law.decode(got[:], code[:])
			// Half the step of the largest segment below this magnitude, and the
			// two units that 14 or 13 bits do not see.
			bound := max(16, math.Abs(float64(want))/32+8)
			if want > 32124 || want < -32124 {
				bound = 32768 - 32124
			}
			require.LessOrEqual(t, math.Abs(float64(want)-float64(got[0])), bound, "%s of %d", law.name, want)
		})
	}
}

func TestG711SpeechQuality(t *testing.T) {
	t.Parallel()
	voice := lineVoice(Rate8k, 1, 120, 5*8000)
	for _, law := range g711Laws {
		codes, got := make([]byte, len(voice)), make([]int16, len(voice))
		law.encode(codes, voice)
		law.decode(got, codes)
		snr := lineSNR(voice, got)
		t.Logf("%s: %.1f dB on a speech-like signal at %.0f dBFS", law.name, snr, lineLevel(voice))
		require.Greater(t, snr, 35.0, law.name)
	}
}

func TestG711ShortSlices(t *testing.T) {
	t.Parallel()
	for _, law := range g711Laws {
		require.Zero(t, law.encode(nil, []int16{1}))
		require.Zero(t, law.decode(nil, []byte{1}))
		require.Equal(t, 1, law.encode(make([]byte, 3), []int16{1}))
		require.Equal(t, 2, law.decode(make([]int16, 2), []byte{1, 2, 3}))
	}
}

func TestG711AllocatesNothing(t *testing.T) {
	codes, samples := make([]byte, 160), make([]int16, 160)
	for _, law := range g711Laws {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			law.encode(codes, samples)
			law.decode(samples, codes)
		}), law.name)
	}
}

func BenchmarkG711(b *testing.B) {
	codes, samples := make([]byte, 160), lineVoice(Rate8k, 1, 120, 160)
	for _, law := range g711Laws {
		b.Run(law.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				law.encode(codes, samples)
			}
		})
		b.Run(law.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				law.decode(samples, codes)
			}
		})
	}
}
