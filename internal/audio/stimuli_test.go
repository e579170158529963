package audio

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
)

// The stimuli of this package's tests. Levels are RMS in dBFS except where a tone
// gives its peak; every random one is fixed by its seed.

func stimRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eed)) }

func stimFloats(x []int16) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// stimAt scales x to an RMS level and rounds it to samples.
func stimAt(x []float64, level float64) []int16 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	out := make([]int16, len(x))
	if sum == 0 {
		return out
	}
	gain := 32768 * math.Pow(10, level/20) / math.Sqrt(sum/float64(len(x)))
	for i, v := range x {
		out[i] = int16(math.Round(math.Max(-32768, math.Min(32767, v*gain))))
	}
	return out
}

func stimWhite(seed uint64, n int, level float64) []int16 {
	rng := stimRand(seed)
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return stimAt(x, level)
}

// stimPink is Kellet's pink filter over white noise: -3 dB per octave.
func stimPink(seed uint64, n int, level float64) []int16 {
	rng := stimRand(seed)
	x := make([]float64, n)
	var b [3]float64
	for i := range x {
		w := rng.NormFloat64()
		b[0] = 0.99765*b[0] + w*0.0990460
		b[1] = 0.96300*b[1] + w*0.2965164
		b[2] = 0.57000*b[2] + w*1.0526913
		x[i] = b[0] + b[1] + b[2] + w*0.1848
	}
	return stimAt(x, level)
}

// stimTone is a sine with a peak level in dBFS.
func stimTone(rate Rate, hertz float64, n int, peak float64) []int16 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Sin(2 * math.Pi * hertz * float64(i) / float64(rate))
	}
	return stimAt(x, peak-3.0103)
}

// stimSum adds sounds of any length; the result is as long as the longest.
func stimSum(sounds ...[]int16) []int16 {
	n := 0
	for _, s := range sounds {
		n = max(n, len(s))
	}
	out := make([]int16, n)
	for _, s := range sounds {
		Mix(out, s, 1)
	}
	return out
}

func stimGain(x []int16, decibels float64) []int16 {
	out := append([]int16(nil), x...)
	Scale(out, GainOf(decibels))
	return out
}

func stimDelay(x []int16, samples int) []int16 {
	return append(make([]int16, samples), x...)
}

// stimGated lets x through for on, then not for off samples, over and over, with
// edges of 2 ms at 8 kHz.
func stimGated(x []int16, on, off int) []int16 {
	out := make([]int16, len(x))
	const edge = 16
	for i, v := range x {
		p := i % (on + off)
		g := math.Min(float64(p)/edge, float64(on-p)/edge)
		out[i] = int16(float64(v) * math.Max(0, math.Min(1, g)))
	}
	return out
}

// stimPartial is one sine, made by turning a pointer: a call of math.Sin for every
// sample of every partial would be most of the tests' time.
type stimPartial struct{ now, turn complex128 }

func newStimPartial(rate Rate, hertz, phase float64) stimPartial {
	return stimPartial{cmplx.Rect(1, phase), cmplx.Rect(1, 2*math.Pi*hertz/float64(rate))}
}

func (p *stimPartial) next() float64 {
	v := imag(p.now)
	p.now *= p.turn
	return v
}

// stimHum is mains hum with odd and even harmonics that fall.
func stimHum(rate Rate, mains float64, n int, level float64) []int16 {
	x := make([]float64, n)
	for h := 1; h <= 12; h++ {
		partial := newStimPartial(rate, mains*float64(h), float64(h*h))
		for i := range x {
			x[i] += partial.next() / float64(h)
		}
	}
	return stimAt(x, level)
}

// stimDigits is a row of keypad digits, 100 ms on and 100 ms off.
func stimDigits(rate Rate, n int, level float64) []int16 {
	low, high := []float64{697, 770, 852, 941}, []float64{1209, 1336, 1477, 1633}
	x := make([]float64, n)
	period := int(rate) / 5
	for i := range x {
		digit := i / period * 7
		l, h := low[digit%4], high[digit/4%4]
		s := float64(i) / float64(rate)
		x[i] = math.Sin(2*math.Pi*l*s) + 1.2*math.Sin(2*math.Pi*h*s)
	}
	return stimGated(stimAt(x, level), period/2, period/2)
}

// stimRingback is 440 + 480 Hz, two seconds on and four off, or the European 425.
func stimRingback(rate Rate, n int, level float64, hertz ...float64) []int16 {
	var x []int16
	for _, f := range hertz {
		x = stimSum(x, stimTone(rate, f, n, level))
	}
	return stimGated(x, 2*int(rate), 4*int(rate))
}

// stimChords is music on hold: a new four-note chord every beat, each note with
// six harmonics and the slow decay of a struck string.
func stimChords(rate Rate, n int, level float64, beat float64) []int16 {
	roots := []float64{220, 174.61, 261.63, 196, 146.83, 233.08}
	shape := []float64{1, 1.2599, 1.4983, 2}
	x := make([]float64, n)
	length := int(beat * float64(rate))
	for start := 0; start < n; start += length {
		chord := x[start:min(n, start+length)]
		for _, ratio := range shape {
			f := roots[start/length%len(roots)] * ratio
			for h := 1.0; h <= 6 && f*h < 3700; h++ {
				partial := newStimPartial(rate, f*h, 2*math.Pi*math.Mod(f*h*float64(start)/float64(rate), 1))
				for i := range chord {
					chord[i] += partial.next() / (h * h)
				}
			}
		}
		for i := range chord {
			s := float64(i) / float64(rate)
			chord[i] *= math.Min(1, s/0.01) * math.Exp(-s/1.2)
		}
	}
	return stimAt(x, level)
}

// stimSyllables is speech as far as a telephone knows it: a gliding pitch with
// harmonics under two formants, four syllables a second, every third begun by a
// hiss, a pause after each phrase.
func stimSyllables(seed uint64, rate Rate, n int, pitch, level float64) []int16 {
	rng := stimRand(seed)
	x := make([]float64, n)
	amp := make([]float64, int(3600/pitch))
	phase, glide, hiss := 0.0, 0.0, false
	syllable := int(rate) / 4
	for i := range x {
		at, index := i%syllable, i/syllable
		if at == 0 {
			f1, f2 := 300+500*rng.Float64(), 900+1600*rng.Float64()
			for h := range amp {
				f := float64(h+1) * pitch
				amp[h] = 1/(1+(f-f1)/120*((f-f1)/120)) + 0.5/(1+(f-f2)/180*((f-f2)/180)) + 0.02
			}
			glide, hiss = rng.Float64()*0.3-0.15, rng.IntN(3) == 0
		}
		where := float64(at) / float64(syllable)
		phase += pitch * (1 + glide*where) / float64(rate)
		switch {
		case index%9 >= 7: // the pause after a phrase
		case where < 0.2 && hiss:
			x[i] = 0.15 * rng.NormFloat64()
		default:
			env := math.Max(0, math.Sin(math.Pi*(where*1.25-0.25)))
			x[i] = env * harmonicSum(amp, 2*math.Pi*phase)
		}
	}
	return stimAt(x, level)
}

// stimClicks is typing: bursts of noise of 3 to 12 ms, 60 to 260 ms apart, with a
// rest now and then.
func stimClicks(seed uint64, rate Rate, n int, level float64) []int16 {
	rng := stimRand(seed)
	x := make([]float64, n)
	for at := 0; at < n; {
		length := int((0.003 + 0.009*rng.Float64()) * float64(rate))
		loud, last, dark := 0.3+rng.Float64(), 0.0, rng.Float64()
		for i := at; i < min(n, at+length); i++ {
			last = dark*last + loud*rng.NormFloat64()
			x[i] = last * math.Exp(-3*float64(i-at)/float64(length))
		}
		at += int((0.06 + 0.2*rng.Float64()) * float64(rate))
		if rng.IntN(15) == 0 {
			at += int(rate)
		}
	}
	return stimAt(x, level)
}

// stimFlutter is noise whose level swings as fast as syllables do, which a detector
// of levels alone takes for speech.
func stimFlutter(seed uint64, rate Rate, n int, level, hertz float64) []int16 {
	noise := stimPink(seed, n, -20)
	x := make([]float64, n)
	for i, v := range noise {
		swing := 0.5 - 0.5*math.Cos(2*math.Pi*hertz*float64(i)/float64(rate))
		x[i] = float64(v) * swing * swing
	}
	return stimAt(x, level)
}

// notSpeech is every sound that a detector must not take for a voice, by name.
func notSpeech(seed uint64, rate Rate, n int, level float64) map[string][]int16 {
	second := int(rate)
	return map[string][]int16{
		"white":        stimWhite(seed, n, level),
		"pink":         stimPink(seed+1, n, level),
		"white bursts": stimGated(stimWhite(seed+2, n, level), 3*second/2, second),
		"pink bursts":  stimGated(stimPink(seed+3, n, level), 3*second, second),
		"hum 50":       stimHum(rate, 50, n, level),
		"hum 60":       stimHum(rate, 60, n, level),
		"digits":       stimDigits(rate, n, level),
		"ringback us":  stimRingback(rate, n, level, 440, 480),
		"ringback eu":  stimRingback(rate, n, level, 425),
		"busy":         stimGated(stimTone(rate, 480, n, level), second/2, second/2),
		"clicks":       stimClicks(seed+4, rate, n, level-8),
		"flutter 3":    stimFlutter(seed+5, rate, n, level, 3),
		"flutter 7":    stimFlutter(seed+6, rate, n, level, 7),
		"tone 1000":    stimTone(rate, 1000, n, level),
		"chords 0.25":  stimChords(rate, n, level, 0.25),
		"chords 0.5":   stimChords(rate, n, level, 0.5),
		"chords 2":     stimChords(rate, n, level, 2),
	}
}
