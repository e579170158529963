package audio

import (
	"math"
	"math/rand/v2"
)

// Test signals and measures for what travels on a line. Everything is seeded:
// a failure repeats.

// lineTone is n samples of a sine at this frequency and peak.
func lineTone(rate Rate, hertz, peak float64, n int) []int16 {
	out := make([]int16, n)
	for i := range out {
		out[i] = int16(math.Round(peak * math.Sin(2*math.Pi*hertz*float64(i)/float64(rate))))
	}
	return out
}

// lineVoice is n samples shaped like speech: a glottal pulse train whose pitch
// wanders, through three formants that change every syllable, under a syllabic
// envelope with pauses, with noise bursts as consonants.
func lineVoice(rate Rate, seed uint64, pitch float64, n int) []int16 {
	rng := rand.New(rand.NewPCG(seed, 7))
	vowels := [][3]float64{{270, 2290, 3010}, {390, 1990, 2550}, {530, 1840, 2480}, {730, 1090, 2440}, {570, 840, 2410}, {300, 870, 2240}, {440, 1020, 2240}}
	out := make([]float64, n)
	var state [3][2]float64
	var turn, radius [3]float64
	phase, drift := 0.0, 0.0
	syllable := int(rate) / 5
	vowel, loud, next := vowels[0], 1.0, vowels[1]
	for i := range out {
		at := i % syllable
		if at == 0 {
			vowel, next = next, vowels[rng.IntN(len(vowels))]
			loud = 0.3 + 0.7*rng.Float64()
			if rng.IntN(5) == 0 {
				loud = 0
			}
			syllable = int(float64(rate) * (0.12 + 0.2*rng.Float64()))
			at = i % syllable
		}
		share := float64(at) / float64(syllable)
		drift += 0.0004 * rng.NormFloat64()
		drift *= 0.9999
		f0 := pitch * (1 + drift + 0.12*math.Sin(2*math.Pi*2.3*float64(i)/float64(rate)))
		phase += f0 / float64(rate)
		source := 0.02 * rng.NormFloat64()
		if phase >= 1 {
			phase--
			source += 1
		}
		if share < 0.15 {
			source = 0.25 * rng.NormFloat64()
		}
		v := source
		for k := range state {
			if i%32 == 0 {
				f := vowel[k] + (next[k]-vowel[k])*share
				radius[k] = math.Exp(-math.Pi * (60 + 40*float64(k)) / float64(rate))
				turn[k] = 2 * radius[k] * math.Cos(2*math.Pi*f/float64(rate))
			}
			r := radius[k]
			y := (1-r)*v + turn[k]*state[k][0] - r*r*state[k][1]
			state[k][1], state[k][0] = state[k][0], y
			v = y
		}
		out[i] = v * loud * math.Sin(math.Pi*share)
	}
	return lineNormal(out, 0.25)
}

// lineNormal scales x to this root mean square (1 is full scale) and rounds it.
func lineNormal(x []float64, level float64) []int16 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	gain := level * 32768 / math.Sqrt(sum/float64(len(x))+1e-30)
	out := make([]int16, len(x))
	for i, v := range x {
		out[i] = int16(math.Round(max(-32768, min(32767, v*gain))))
	}
	return out
}

// lineNoise is n samples of white noise at this root mean square.
func lineNoise(seed uint64, level float64, n int) []int16 {
	rng := rand.New(rand.NewPCG(seed, 3))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return lineNormal(x, level)
}

// lineAdd is the saturated sum of two signals, as long as the first.
func lineAdd(a, b []int16) []int16 {
	out := make([]int16, len(a))
	for i := range a {
		v := int(a[i])
		if i < len(b) {
			v += int(b[i])
		}
		out[i] = int16(max(-32768, min(32767, v)))
	}
	return out
}

// lineLevel is the root mean square of x in dB below full scale.
func lineLevel(x []int16) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return 10 * math.Log10(sum/float64(len(x))/(32768*32768)+1e-12)
}

// lineSNR is the ratio of want to its difference from got, in dB.
func lineSNR(want, got []int16) float64 {
	var signal, noise float64
	for i := range want {
		d := float64(want[i]) - float64(got[i])
		signal += float64(want[i]) * float64(want[i])
		noise += d * d
	}
	return 10 * math.Log10(signal/(noise+1e-9))
}

// lineAmplitude is the peak of the sinusoid of this frequency inside x, by
// correlation under a Blackman-Harris window (sidelobes below -90 dB).
func lineAmplitude(x []int16, rate Rate, hertz float64) float64 {
	var re, im, weight float64
	n := float64(len(x))
	for i, v := range x {
		p := 2 * math.Pi * float64(i) / n
		w := 0.35875 - 0.48829*math.Cos(p) + 0.14128*math.Cos(2*p) - 0.01168*math.Cos(3*p)
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / float64(rate))
		re += w * float64(v) * cos
		im += w * float64(v) * sin
		weight += w
	}
	return 2 * math.Hypot(re, im) / weight
}

// lineTHDN is the ratio of the sinusoid of this frequency (gain and phase free)
// to everything else in x, in dB.
func lineTHDN(x []int16, rate Rate, hertz float64) float64 {
	var ss, sc, cc, xs, xc, xx float64
	for i, v := range x {
		s, c := math.Sincos(2 * math.Pi * hertz * float64(i) / float64(rate))
		ss, sc, cc = ss+s*s, sc+s*c, cc+c*c
		xs, xc, xx = xs+float64(v)*s, xc+float64(v)*c, xx+float64(v)*float64(v)
	}
	det := ss*cc - sc*sc
	a, b := (xs*cc-xc*sc)/det, (xc*ss-xs*sc)/det
	tone := a*xs + b*xc
	return 10 * math.Log10(tone/max(xx-tone, 1e-9))
}

// lineMaxStep is the largest jump between two neighbouring samples.
func lineMaxStep(x []int16) int {
	step := 0
	for i := 1; i < len(x); i++ {
		step = max(step, int(math.Abs(float64(x[i])-float64(x[i-1]))))
	}
	return step
}
