package audio

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toneHeard runs a detector over a signal and gives its word on every frame.
func toneHeard(t testing.TB, rate Rate, signal []int16) []Tone {
	d, err := NewToneDetector(rate)
	require.NoError(t, err)
	var heard []Tone
	for n := rate.FrameSamples(); len(signal) >= n; signal = signal[n:] {
		heard = append(heard, d.Detect(signal[:n]))
	}
	return heard
}

func toneCount(heard []Tone, tone Tone) (n int) {
	for _, h := range heard {
		if h == tone {
			n++
		}
	}
	return n
}

// beepCall is a voicemail: a second of greeting, a pause, the beep at an odd
// place in its frame, then the quiet of a machine that records.
func beepCall(rate Rate, seed uint64, hertz float64, length time.Duration, level, noise float64) (signal []int16, end int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	signal = lineVoice(rate, seed, 90+float64(seed%7)*25, int(rate))
	signal = append(signal, make([]int16, int(rate)/5+rng.IntN(rate.FrameSamples()))...)
	beep := NewBeep(rate, hertz, length)
	for i := range beep.waves {
		beep.waves[i] = newOscillator(rate, hertz, 32767*math.Pow(10, level/20))
	}
	beep.waves[1] = oscillator{}
	signal = append(signal, toneRun(beep, rate, length)...)
	end = len(signal)
	signal = append(signal, make([]int16, int(rate)/2)...)
	if noise > 0 {
		signal = lineAdd(signal, lineNoise(seed, noise*math.Pow(10, (level-3)/20), len(signal)))
	}
	return signal, end
}

func TestBeepIsFoundOnce(t *testing.T) {
	t.Parallel()
	frequencies := []float64{400, 440, 480, 523.25, 660, 800, 941, 1000, 1174.7, 1400, 1633, 1850, 2000, 2100}
	for _, c := range []struct {
		name  string
		rate  Rate
		noise float64 // of the beep's level: 0.32 is 10 dB below it
		line  bool    // through mu-law
		level float64
	}{
		{"clean", Rate8k, 0, false, -12},
		{"clean at 16 kHz", Rate16k, 0, false, -12},
		{"noise 10 dB below", Rate8k, 0.316, false, -20},
		{"noise 10 dB below at 16 kHz", Rate16k, 0.316, false, -20},
		{"mu-law, faint", Rate8k, 0.1, true, -36},
	} {
		tried, found, late := 0, 0, time.Duration(0)
		for i, hertz := range frequencies {
			for j, ms := range []int{120, 200, 500, 1500} {
				signal, end := beepCall(c.rate, uint64(100*i+j), hertz, time.Duration(ms)*time.Millisecond, c.level, c.noise)
				if c.line {
					wire := make([]byte, len(signal))
					EncodeMuLaw(wire, signal)
					DecodeMuLaw(signal, wire)
				}
				heard := toneHeard(t, c.rate, signal)
				tried++
				if toneCount(heard, ToneBeep) != 1 {
					t.Logf("%s: %.0f Hz, %d ms: %d beeps", c.name, hertz, ms, toneCount(heard, ToneBeep))
					continue
				}
				for k, h := range heard {
					if h == ToneBeep {
						after := time.Duration(k+1)*FrameDuration - c.rate.Duration(end)
						late = max(late, after)
						require.Positive(t, after, "only a tone that stopped is a beep")
					}
				}
				found++
			}
		}
		t.Logf("%s: %d of %d beeps, at most %v after their end", c.name, found, tried, late.Round(time.Millisecond))
		require.Equal(t, tried, found, c.name)
		require.LessOrEqual(t, late, 100*time.Millisecond)
	}
}

func TestSpeechIsNoBeep(t *testing.T) {
	t.Parallel()
	seconds := 0
	for seed := range uint64(12) {
		pitch := 85 + 20*float64(seed)
		for _, rate := range []Rate{Rate8k, Rate16k} {
			voice := lineVoice(rate, seed, pitch, 20*int(rate))
			heard := toneHeard(t, rate, voice)
			require.Zero(t, len(heard)-toneCount(heard, ToneNone), "pitch %.0f", pitch)
			seconds += 20
		}
	}
	t.Logf("no tone in %d s of speech-like sound", seconds)
}

func TestOtherSoundsAreNoBeep(t *testing.T) {
	t.Parallel()
	second := 8000
	quiet := make([]int16, second)
	join := func(parts ...[]int16) (all []int16) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return append(all, quiet...)
	}
	tone := func(hertz float64, ms int) []int16 { return lineTone(Rate8k, hertz, 8000, 8*ms) }
	chirp := make([]int16, second)
	for i := range chirp {
		x := float64(i) / 8000
		chirp[i] = int16(8000 * math.Sin(2*math.Pi*(500*x+400*x*x)))
	}
	for name, signal := range map[string][]int16{
		"a click":                {0, 0, 30000, -30000, 0},
		"60 ms":                  tone(1000, 60),
		"a tone without end":     tone(1000, 10000),
		"DTMF":                   toneRun(NewDualTone(Rate8k, 770, 1336, -12), Rate8k, 300*time.Millisecond),
		"US ringback":            toneRun(NewRingback(Rate8k, RegionUS), Rate8k, 12*time.Second),
		"EU ringback":            toneRun(NewRingback(Rate8k, RegionEU), Rate8k, 10*time.Second),
		"US busy":                toneRun(NewBusy(Rate8k, RegionUS), Rate8k, 5*time.Second),
		"EU busy":                toneRun(NewBusy(Rate8k, RegionEU), Rate8k, 5*time.Second),
		"special information":    join(tone(950, 330), tone(1400, 330), tone(1800, 330)),
		"a melody":               join(tone(523, 250), tone(659, 250), tone(784, 250), tone(1046, 250)),
		"a siren":                chirp,
		"noise":                  lineNoise(1, 0.2, 10*second),
		"hum":                    lineTone(Rate8k, 50, 5000, 10*second),
		"a whistle that changes": lineAdd(lineTone(Rate8k, 1000, 5000, second), lineTone(Rate8k, 1060, 5000, second)),
	} {
		heard := toneHeard(t, Rate8k, join(quiet, signal))
		require.Zero(t, toneCount(heard, ToneBeep), name)
	}
}

func TestProgressTonesAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		make   func(Rate, ToneRegion) *ToneGenerator
		region ToneRegion
		want   Tone
		within time.Duration
	}{
		{"US ringback", NewRingback, RegionUS, ToneRingback, 400 * time.Millisecond},
		{"EU ringback", NewRingback, RegionEU, ToneRingback, 1100 * time.Millisecond},
		{"US busy", NewBusy, RegionUS, ToneBusy, 400 * time.Millisecond},
		{"EU busy", NewBusy, RegionEU, ToneBusy, 1800 * time.Millisecond},
	} {
		for _, rate := range []Rate{Rate8k, Rate16k} {
			lead := int(rate)/3 + 77
			signal := append(make([]int16, lead), toneRun(c.make(rate, c.region), rate, 15*time.Second)...)
			signal = lineAdd(signal, lineNoise(5, 0.004, len(signal)))
			heard := toneHeard(t, rate, signal)
			first := 0
			for heard[first] != c.want {
				require.Equal(t, ToneNone, heard[first], c.name)
				first++
			}
			after := time.Duration(first+1)*FrameDuration - rate.Duration(lead)
			t.Logf("%s at %d Hz: known after %v", c.name, rate, after.Round(time.Millisecond))
			require.LessOrEqual(t, after, c.within, c.name)
			for _, h := range heard[first:] {
				require.Equal(t, c.want, h, "%s: held through its pauses", c.name)
			}
		}
	}
}

func TestAnswerEndsRingback(t *testing.T) {
	t.Parallel()
	signal := toneRun(NewRingback(Rate8k, RegionUS), Rate8k, 8*time.Second)
	rung := len(signal) / 160
	signal = append(signal, lineVoice(Rate8k, 9, 120, 16000)...)
	heard := toneHeard(t, Rate8k, signal)
	require.Equal(t, ToneRingback, heard[rung-1])
	require.Equal(t, ToneNone, heard[rung+25], "half a second of voice")
}

func TestToneDetectorTakesAnyLength(t *testing.T) {
	t.Parallel()
	_, err := NewToneDetector(Rate48k)
	require.Error(t, err)
	d, err := NewToneDetector(Rate16k)
	require.NoError(t, err)
	require.Equal(t, ToneNone, d.Detect(nil))
	signal, _ := beepCall(Rate16k, 3, 1000, 300*time.Millisecond, -12, 0)
	beeps := 0
	for n := 1; len(signal) > 0; n = n*7%997 + 1 {
		n = min(n, len(signal))
		if d.Detect(signal[:n]) == ToneBeep {
			beeps++
		}
		signal = signal[n:]
	}
	require.Equal(t, 1, beeps)
}

func TestToneDetectorAllocatesNothing(t *testing.T) {
	d, err := NewToneDetector(Rate16k)
	require.NoError(t, err)
	frame := lineTone(Rate16k, 1000, 8000, 320)
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Detect(frame) }))
}

func BenchmarkToneDetector(b *testing.B) {
	for name, rate := range map[string]Rate{"8k": Rate8k, "16k": Rate16k} {
		b.Run(name, func(b *testing.B) {
			d, err := NewToneDetector(rate)
			require.NoError(b, err)
			frame := lineVoice(rate, 1, 120, rate.FrameSamples())
			b.ReportAllocs()
			for b.Loop() {
				d.Detect(frame)
			}
		})
	}
}
