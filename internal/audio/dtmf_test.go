package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func dtmfHeard(t testing.TB, rate Rate, signal []int16) string {
	d, err := NewDTMFDetector(rate)
	require.NoError(t, err)
	var heard strings.Builder
	for n := rate.FrameSamples(); len(signal) > 0; signal = signal[min(n, len(signal)):] {
		if digit, ok := d.Detect(signal[:min(n, len(signal))]); ok {
			heard.WriteByte(digit)
		}
	}
	return heard.String()
}

// dtmfPress is one press with everything that lines do to it.
type dtmfPress struct {
	length, gap time.Duration
	shift       float64 // of both frequencies, as a share
	twist       float64 // column over row in dB
	level       float64 // of the row in dB below full scale
}

func (p dtmfPress) sound(rate Rate, digit byte) []int16 {
	key := strings.IndexByte(dtmfPad, digit)
	row, column := dtmfRows[key/4]*(1+p.shift), dtmfColumns[key%4]*(1+p.shift)
	peak := 32767 * math.Pow(10, p.level/20)
	n := rate.Samples(p.length)
	on := lineAdd(lineTone(rate, row, peak, n), lineTone(rate, column, peak*math.Pow(10, p.twist/20), n))
	return append(on, make([]int16, rate.Samples(p.gap))...)
}

func TestDTMFIsHeard(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	plain := dtmfPress{length: 100 * ms, gap: 80 * ms, level: -11}
	for _, c := range []struct {
		name  string
		press dtmfPress
		noise float64 // share of full scale
		law   bool
	}{
		{"plain", plain, 0, false},
		{"40 ms and 40 ms", dtmfPress{40 * ms, 40 * ms, 0, 0, -11}, 0, true},
		{"1.5 % high", dtmfPress{60 * ms, 60 * ms, 0.015, 0, -11}, 0, true},
		{"1.5 % low", dtmfPress{60 * ms, 60 * ms, -0.015, 0, -11}, 0, true},
		{"twist 8 dB", dtmfPress{60 * ms, 60 * ms, 0, 8, -20}, 0, true},
		{"twist -4 dB", dtmfPress{60 * ms, 60 * ms, 0, -4, -11}, 0, true},
		{"faint, -28 dBFS each", dtmfPress{60 * ms, 60 * ms, 0, 0, -28}, 0, true},
		{"noise 15 dB below", dtmfPress{60 * ms, 60 * ms, 0, 0, -15}, 0.025, true},
	} {
		for _, rate := range []Rate{Rate8k, Rate16k} {
			rng := rand.New(rand.NewPCG(1, 19))
			var sent []byte
			signal := make([]int16, 57)
			for range 250 {
				digit := dtmfDigits[rng.IntN(16)]
				sent = append(sent, digit)
				signal = append(signal, c.press.sound(rate, digit)...)
				signal = append(signal, make([]int16, rng.IntN(int(rate)/100))...)
			}
			signal = append(signal, make([]int16, int(rate)/10)...)
			if c.noise > 0 {
				signal = lineAdd(signal, lineNoise(2, c.noise, len(signal)))
			}
			if c.law {
				wire := make([]byte, len(signal))
				EncodeALaw(wire, signal)
				DecodeALaw(signal, wire)
			}
			require.Equal(t, string(sent), dtmfHeard(t, rate, signal), "%s at %d Hz", c.name, rate)
		}
		t.Logf("%s: 500 of 500 digits once", c.name)
	}
}

func TestDTMFGeneratorIsHeard(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k} {
		var signal []int16
		for _, digit := range []byte(dtmfDigits) {
			g, err := NewDTMF(rate, digit, DTMFLength)
			require.NoError(t, err)
			signal = append(signal, toneRun(g, rate, DTMFLength+DTMFGap)...)
			require.True(t, g.Done())
		}
		require.Equal(t, dtmfDigits, dtmfHeard(t, rate, signal))
	}
	_, err := NewDTMF(Rate8k, 'x', DTMFLength)
	require.Error(t, err)
}

func TestDTMFDownSpansThePress(t *testing.T) {
	t.Parallel()
	d, err := NewDTMFDetector(Rate8k)
	require.NoError(t, err)
	signal := dtmfPress{length: 200 * time.Millisecond, gap: 200 * time.Millisecond, level: -11}.sound(Rate8k, '5')
	var down []byte
	for ; len(signal) > 0; signal = signal[160:] {
		d.Detect(signal[:160])
		down = append(down, d.Down())
	}
	require.Equal(t, byte('5'), down[2])
	require.Equal(t, byte('5'), down[9])
	require.Zero(t, down[12])
	d.Reset()
	require.Zero(t, d.Down())
}

func TestDTMFDoesNotTalkOff(t *testing.T) {
	t.Parallel()
	seconds := 0
	for seed := range uint64(12) {
		for _, rate := range []Rate{Rate8k, Rate16k} {
			pitch := 85 + 20*float64(seed)
			require.Empty(t, dtmfHeard(t, rate, lineVoice(rate, seed, pitch, 20*int(rate))), "pitch %.0f", pitch)
			seconds += 20
		}
	}
	t.Logf("no digit in %d s of speech-like sound", seconds)
	for name, signal := range map[string][]int16{
		"20 ms":         dtmfPress{length: 20 * time.Millisecond, gap: time.Second, level: -11}.sound(Rate8k, '5'),
		"twist 16 dB":   dtmfPress{length: time.Second, twist: 16, level: -20}.sound(Rate8k, '5'),
		"twist -10 dB":  dtmfPress{length: time.Second, twist: -10, level: -11}.sound(Rate8k, '5'),
		"3.5 % high":    dtmfPress{length: time.Second, shift: 0.035, level: -11}.sound(Rate8k, '1'),
		"3.5 % low":     dtmfPress{length: time.Second, shift: -0.035, level: -11}.sound(Rate8k, '1'),
		"one tone":      lineTone(Rate8k, 770, 8000, 8000),
		"too faint":     dtmfPress{length: time.Second, level: -55}.sound(Rate8k, '5'),
		"ringback":      toneRun(NewRingback(Rate8k, RegionUS), Rate8k, 7*time.Second),
		"busy":          toneRun(NewBusy(Rate8k, RegionUS), Rate8k, 5*time.Second),
		"noise":         lineNoise(3, 0.3, 80000),
		"with harmonic": lineAdd(dtmfPress{length: time.Second, level: -12}.sound(Rate8k, '5'), lineTone(Rate8k, 2*1336, 4000, 8000)),
	} {
		require.Empty(t, dtmfHeard(t, Rate8k, signal), name)
	}
}

func TestDTMFDetectorRates(t *testing.T) {
	t.Parallel()
	_, err := NewDTMFDetector(Rate48k)
	require.Error(t, err)
	d, err := NewDTMFDetector(Rate8k)
	require.NoError(t, err)
	_, ok := d.Detect(nil)
	require.False(t, ok)
}

func TestDTMFAllocatesNothing(t *testing.T) {
	d, err := NewDTMFDetector(Rate16k)
	require.NoError(t, err)
	frame := dtmfPress{length: FrameDuration, level: -11}.sound(Rate16k, '5')
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Detect(frame) }))
}

func BenchmarkDTMFDetector(b *testing.B) {
	for _, rate := range []Rate{Rate8k, Rate16k} {
		b.Run(fmt.Sprint(int(rate)), func(b *testing.B) {
			d, err := NewDTMFDetector(rate)
			require.NoError(b, err)
			frame := lineVoice(rate, 1, 120, rate.FrameSamples())
			b.ReportAllocs()
			for b.Loop() {
				d.Detect(frame)
			}
		})
	}
}
