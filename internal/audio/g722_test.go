package audio

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// g722Delay is how many samples encoder and decoder together hold back: the two
// mirror filters' 24 taps less one.
const g722Delay = 22

func g722Pass(samples []int16) ([]byte, []int16) {
	codes, got := make([]byte, len(samples)/2), make([]int16, len(samples))
	NewG722Encoder().Encode(codes, samples)
	NewG722Decoder().Decode(got, codes)
	return codes, got
}

func TestG722Tones(t *testing.T) {
	t.Parallel()
	// The Recommendation's masks ask for little; these bounds are what the codec
	// is known to give: six bits below 4 kHz, two above.
	for _, c := range []struct{ hertz, bound float64 }{
		{100, 35}, {300, 35}, {500, 35}, {1004, 35}, {2000, 30}, {3000, 28}, {3700, 20}, {4500, 13}, {5500, 13}, {6500, 13},
	} {
		_, got := g722Pass(lineTone(Rate16k, c.hertz, 10000, 32000))
		snr := lineTHDN(got[16000:], Rate16k, c.hertz)
		gain := lineAmplitude(got[16000:], Rate16k, c.hertz) / 10000
		t.Logf("%.0f Hz: SNR %.1f dB, gain %.3f", c.hertz, snr, gain)
		require.Greater(t, snr, c.bound, "%.0f Hz", c.hertz)
		require.InDelta(t, 1, gain, 0.08, "%.0f Hz", c.hertz)
	}
}

func TestG722SpeechQualityAndDelay(t *testing.T) {
	t.Parallel()
	voice := lineVoice(Rate16k, 2, 150, 3*16000)
	_, got := g722Pass(voice)
	snr := lineSNR(voice[:len(voice)-g722Delay], got[g722Delay:])
	t.Logf("speech-like: %.1f dB at a delay of %d samples", snr, g722Delay)
	require.Greater(t, snr, 20.0)
	for _, other := range []int{g722Delay - 1, g722Delay + 1} {
		require.Less(t, lineSNR(voice[:len(voice)-other], got[other:]), snr)
	}
}

func TestG722MirrorFilterSplitsAndRebuilds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hertz float64
		high  bool
	}{{300, false}, {1500, false}, {2400, false}, {5600, true}, {6500, true}, {7800, true}} {
		var split, join g722Filter
		in := lineTone(Rate16k, c.hertz, 10000, 16000)
		low, high, out := make([]int16, 8000), make([]int16, 8000), make([]int16, 16000)
		for i := range low {
			l, h := split.analyse(int(in[2*i]), int(in[2*i+1]))
			low[i], high[i] = int16(l), int16(h)
			out[2*i], out[2*i+1] = join.synthesise(l, h)
		}
		apart := lineLevel(low[100:]) - lineLevel(high[100:])
		if c.high {
			apart = -apart
		}
		t.Logf("%.0f Hz: bands %.0f dB apart, rebuilt to %.0f dB", c.hertz, apart, lineSNR(in[:15900], out[g722Delay:]))
		require.Greater(t, apart, 40.0, "%.0f Hz", c.hertz)
		require.Greater(t, lineSNR(in[:15900], out[g722Delay:]), 45.0)
	}
}

func TestG722Silence(t *testing.T) {
	t.Parallel()
	codes, got := g722Pass(make([]int16, 3200))
	// With both steps at their floor, nothing quantizes to the smallest positive
	// interval that the scaled levels still tell apart.
	require.Equal(t, byte(0xfa), codes[0])
	for _, v := range got {
		require.LessOrEqual(t, max(v, -v), int16(4))
	}

	encoder, decoder := NewG722Encoder(), NewG722Decoder()
	frame, quiet, wire := lineNoise(1, 0.2, 320), make([]int16, 320), make([]byte, 160)
	encoder.Encode(wire, frame)
	decoder.Decode(frame, wire)
	for range 25 {
		encoder.Encode(wire, quiet)
		decoder.Decode(frame, wire)
	}
	require.LessOrEqual(t, decoder.low.step, 2*g722LowStep)
	require.LessOrEqual(t, decoder.high.step, 2*g722HighStep)
	require.Less(t, lineLevel(frame), -75.0, "half a second after noise nothing is left")
}

func TestG722BothEndsKeepOneState(t *testing.T) {
	t.Parallel()
	encoder, decoder := NewG722Encoder(), NewG722Decoder()
	wire, out := make([]byte, 160), make([]int16, 320)
	voice := lineVoice(Rate16k, 3, 110, 16000)
	for at := 0; at+320 <= len(voice); at += 320 {
		require.Equal(t, 160, encoder.Encode(wire, voice[at:at+320]))
		require.Equal(t, 320, decoder.Decode(out, wire))
		require.Equal(t, encoder.low, decoder.low)
		require.Equal(t, encoder.high, decoder.high)
	}
}

func TestG722RecoversFromLoss(t *testing.T) {
	t.Parallel()
	voice := lineTone(Rate16k, 700, 8000, 32000)
	codes, _ := g722Pass(voice)
	decoder, got := NewG722Decoder(), make([]int16, 32000)
	decoder.Decode(got[:8000], codes[:4000])
	decoder.Decode(got[8320:], codes[4160:])
	require.Greater(t, lineTHDN(got[24000:], Rate16k, 700), 30.0)
}

// Any octets at all decode without leaving 16 bits or the quantizer's range.
func TestG722DecodesGarbage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wire := rapid.SliceOfN(rapid.Byte(), 0, 800).Draw(t, "wire")
		decoder, out := NewG722Decoder(), make([]int16, 2*len(wire)+1)
		require.Equal(t, 2*len(wire), decoder.Decode(out, wire))
		for _, band := range []g722Band{decoder.low, decoder.high} {
			require.Equal(t, clip16(band.prediction), band.prediction)
			require.Positive(t, band.step)
		}
	})
}

func TestG722ShortSlices(t *testing.T) {
	t.Parallel()
	require.Zero(t, NewG722Encoder().Encode(make([]byte, 1), []int16{1}))
	require.Equal(t, 1, NewG722Encoder().Encode(make([]byte, 4), []int16{1, 2, 3}))
	require.Zero(t, NewG722Decoder().Decode(make([]int16, 1), []byte{1}))
	require.Zero(t, NewG722Decoder().Decode(nil, nil))
}

func TestG722AllocatesNothing(t *testing.T) {
	encoder, decoder := NewG722Encoder(), NewG722Decoder()
	wire, frame := make([]byte, 160), lineVoice(Rate16k, 1, 120, 320)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		encoder.Encode(wire, frame)
		decoder.Decode(frame, wire)
	}))
}

func BenchmarkG722(b *testing.B) {
	wire, frame := make([]byte, 160), lineVoice(Rate16k, 1, 120, 320)
	encoder, decoder := NewG722Encoder(), NewG722Decoder()
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encoder.Encode(wire, frame)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			decoder.Decode(frame, wire)
		}
	})
}

func ExampleG722Encoder() {
	wire := make([]byte, 160)
	n := NewG722Encoder().Encode(wire, make([]int16, Rate16k.FrameSamples()))
	fmt.Println(n, "octets for 20 ms")
	// Output: 160 octets for 20 ms
}
