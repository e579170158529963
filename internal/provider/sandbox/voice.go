package sandbox

import (
	"math"
	"time"

	"parley/internal/audio"
	"parley/internal/converse"
)

// The sound of a word. The coded tones are multiples of 125 Hz between 875 and
// 3250 Hz, where every telephone line is flat enough; below them lie harmonics of
// the voice's own pitch, which carry nothing but make it a voice: to a detector of
// voice activity, to an echo canceller, and to an ear. Both rise and fall together
// with the syllables.
//
// A symbol lasts 10 ms, of which its listener needs any 8: the first of them is
// the passage from the symbol before, the rest is room for a listener that is out
// of step by as much as 1 ms either way.
const (
	symbolTime   = 10 * time.Millisecond
	toneStep     = 125 // Hz
	firstTone    = 7   // times toneStep
	groups       = 5
	groupTones   = 4
	chipGroup    = 2 // in the middle of the band, farthest from its edges
	toneShare    = 0.65
	speechLevel  = 3277 // root mean square: 20 dB below full scale
	lowestVoiced = 250  // Hz
	topVoiced    = 565  // Hz: higher ones would leak into the lowest coded tones
	lastTone     = firstTone + groups*groupTones
	waveSize     = 1024
	waveShift    = 32 - 10
	passage      = 1000 // parts of a second that the passage between symbols takes
	syllable     = 20   // symbols
	shallow      = 0.55 // how loud the edge of a syllable is
)

// pitches are the voices by name, in Hz.
var pitches = map[string]float64{"soprano": 262, "alto": 196, "tenor": 131, "bass": 98}

const defaultVoice = "alto"

// waves are the sounds of one sampling rate. They never change once made.
type waves struct {
	rate    audio.Rate
	period  int       // samples of one turn of toneStep
	sine    []float32 // one turn of toneStep
	voice   [waveSize]float32
	fade    []float32 // of the passage from one symbol to the next
	perTone [lastTone]int
}

func newWaves(rate audio.Rate) *waves {
	w := &waves{rate: rate, period: int(rate) / toneStep}
	w.sine = make([]float32, w.period)
	for i := range w.sine {
		w.sine[i] = float32(math.Sin(2 * math.Pi * float64(i) / float64(w.period)))
	}
	for i := range w.voice {
		w.voice[i] = float32(math.Sin(2 * math.Pi * float64(i) / waveSize))
	}
	w.fade = make([]float32, int(rate)/passage)
	for i := range w.fade {
		w.fade[i] = float32(0.5 - 0.5*math.Cos(math.Pi*(float64(i)+0.5)/float64(len(w.fade))))
	}
	for k := range w.perTone {
		// Quadratic phases keep the tones from peaking together.
		w.perTone[k] = (k * k * w.period / 24) % w.period
	}
	return w
}

// supported says whether symbols and tones are whole numbers of samples.
func supported(rate audio.Rate) bool { return rate >= audio.Rate8k && rate%1000 == 0 && rate <= 96000 }

// tones are the five tones of a symbol; a zero is silence.
type tones [groups]int

// compose chooses the tones of a symbol.
func compose(data, chip byte) tones {
	var t tones
	for g := range groups {
		first := firstTone + g*groupTones
		if g == chipGroup {
			t[g] = first + int(chip)
			continue
		}
		t[g] = first + int(data&3)
		data >>= 2
	}
	return t
}

// throat is one utterance being made audible.
type throat struct {
	w      *waves
	book   *codebook
	at     int // samples since the utterance began
	before tones
	pitch  float64
	manner converse.Utterance
	phases [8]uint32
	steps  [8]uint32
	voiced int
	symbol int // symbols since the utterance began
	volume float32
}

func newThroat(w *waves, book *codebook, u converse.Utterance) *throat {
	pitch, ok := pitches[u.Voice]
	if !ok {
		pitch = pitches[defaultVoice]
	}
	t := &throat{w: w, book: book, pitch: pitch, manner: u}
	return t
}

// say appends a coded word and the pause behind it.
func (t *throat) say(out []int16, c *coded) []int16 {
	per := t.w.rate.Samples(symbolTime)
	loud := t.loudness(c.n)
	for i := range c.n {
		t.intone()
		chip := t.book.chips[c.n][c.grade].at(c.n - 1 - i)
		out = t.symbolOf(out, per, compose(c.data[i], chip), loud, i, c.n)
	}
	for range c.pause {
		out = t.symbolOf(out, per, tones{}, 0, 0, 1)
	}
	return out
}

// loudness makes every word equally loud in the mean, however many syllables it has.
func (t *throat) loudness(n int) float32 {
	power := 0.0
	const steps = 64
	for i := range steps {
		e := float64(swell((float64(i)+0.5)/steps*float64(n), n))
		power += e * e / steps
	}
	return float32(speechLevel / math.Sqrt(power))
}

// swell is the syllables' envelope at a place of a word of n symbols.
func swell(at float64, n int) float32 {
	count := max(1, (n+syllable/2)/syllable)
	s := math.Sin(math.Pi * at * float64(count) / float64(n))
	return float32(shallow + (1-shallow)*s*s)
}

// intone sets the pitch of the next symbol: it falls slowly as an utterance goes
// on, and wavers the more the less stable the voice is.
func (t *throat) intone() {
	seconds := float64(t.symbol) * symbolTime.Seconds()
	fall := 0.06 * (1 - math.Exp(-seconds/2))
	waver := 0.04 * (1 - min(1, max(0, t.manner.Stability))) * math.Sin(2*math.Pi*4.7*seconds)
	f0 := t.pitch * (1 - fall + waver)
	t.voiced = 0
	for h := 1; h <= 16 && t.voiced < len(t.steps); h++ {
		f := t.pitch * float64(h)
		if f < lowestVoiced {
			continue
		}
		if f > topVoiced {
			break
		}
		t.steps[t.voiced] = uint32(f0 * float64(h) / float64(t.w.rate) * (1 << 32))
		t.voiced++
	}
	t.symbol++
}

// symbolOf appends one symbol: the i-th of n in its word, or silence.
func (t *throat) symbolOf(out []int16, per int, now tones, loud float32, i, n int) []int16 {
	begin, end := float32(0), float32(0)
	if loud > 0 {
		begin, end = loud*swell(float64(i), n), loud*swell(float64(i+1), n)
	}
	// Of a mixture of m equal tones with power p, each has the amplitude sqrt(2p/m).
	tone := float32(math.Sqrt(2 * toneShare / groups))
	voice := float32(math.Sqrt(2 * (1 - toneShare) / float64(max(1, t.voiced))))
	var index, step, indexBefore, stepBefore [groups]int
	for g := range groups {
		step[g], stepBefore[g] = now[g], t.before[g]
		index[g] = (now[g]*t.at + t.w.perTone[now[g]]) % t.w.period
		indexBefore[g] = (t.before[g]*t.at + t.w.perTone[t.before[g]]) % t.w.period
	}
	silent, wasSilent := now[0] == 0, t.before[0] == 0
	slope := (end - begin) / float32(per)
	volume := begin
	fade := t.w.fade
	for s := range per {
		var coded, old float32
		if !silent {
			for g := range groups {
				coded += t.w.sine[index[g]]
				if index[g] += step[g]; index[g] >= t.w.period {
					index[g] -= t.w.period
				}
			}
		}
		in := float32(1)
		if s < len(fade) {
			in = fade[s]
			if !wasSilent {
				for g := range groups {
					old += t.w.sine[indexBefore[g]]
					if indexBefore[g] += stepBefore[g]; indexBefore[g] >= t.w.period {
						indexBefore[g] -= t.w.period
					}
				}
			}
		} else if silent {
			out = append(out, make([]int16, per-s)...)
			break
		}
		var hum float32
		for h := range t.voiced {
			hum += t.w.voice[t.phases[h]>>waveShift]
			t.phases[h] += t.steps[h]
		}
		x := volume * tone * coded * in
		switch {
		case silent:
			x = t.volume * (1 - in) * (tone*old + voice*hum)
		case wasSilent:
			x += volume * in * voice * hum
		default:
			x += volume * (tone*old*(1-in) + voice*hum)
		}
		out = append(out, int16(x))
		volume += slope
	}
	t.at += per
	t.before = now
	t.volume = end
	return out
}
