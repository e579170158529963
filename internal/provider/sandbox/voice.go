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
	turnSize     = 1024
	turnShift    = 32 - 10
	passage      = 1000 // parts of a second that the passage between symbols takes
	syllable     = 20   // symbols
	shallow      = 0.35 // how loud the edge of a syllable is; much louder, and noise suppressors take the voice for noise
)

// pitches are the voices by name, in Hz.
var pitches = map[string]float64{"soprano": 262, "alto": 196, "tenor": 131, "bass": 98}

const defaultVoice = "alto"

// Of a mixture of m equal tones with the power p, each has the amplitude sqrt(2p/m):
// here sqrt(2 * 0.65 / 5).
const toneAmplitude = 0.5099

// waves are the sounds of one sampling rate. They never change once made.
type waves struct {
	rate   audio.Rate
	period int                 // samples of one turn of toneStep, after which every tone repeats
	symbol int                 // samples of a symbol
	tone   [lastTone][]float32 // a symbol's length of each coded tone, from any place of its period
	turn   [turnSize]float32   // one turn of a sine
	fade   []float32           // of the passage from one symbol to the next
}

func newWaves(rate audio.Rate) *waves {
	w := &waves{rate: rate, period: int(rate) / toneStep, symbol: rate.Samples(symbolTime)}
	for k := firstTone; k < lastTone; k++ {
		w.tone[k] = make([]float32, w.period+w.symbol)
		// Quadratic phases keep the tones from peaking together.
		phase := float64(k*k) / 24
		for i := range w.tone[k] {
			turns := math.Mod(float64(k*i)/float64(w.period)+phase, 1)
			w.tone[k][i] = float32(toneAmplitude * math.Sin(2*math.Pi*turns))
		}
	}
	for i := range w.turn {
		w.turn[i] = float32(math.Sin(2 * math.Pi * float64(i) / turnSize))
	}
	w.fade = make([]float32, int(rate)/passage)
	for i := range w.fade {
		w.fade[i] = float32(0.5 - 0.5*math.Cos(math.Pi*(float64(i)+0.5)/float64(len(w.fade))))
	}
	return w
}

// supported says whether symbols and tones are whole numbers of samples.
func supported(rate audio.Rate) bool { return rate >= audio.Rate8k && rate%1000 == 0 && rate <= 96000 }

// tones are the five tones of a symbol; a zero is silence.
type tones [groups]int

func (t tones) silent() bool { return t[0] == 0 }

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
	manner converse.Utterance
	pitch  float64
	at     int   // samples since the utterance began
	before tones // the symbol before
	volume float32
	// The harmonics of the pitch: where each is in its turn, how fast it turns and
	// how strong it is.
	voiced   int
	phases   [maxVoiced]uint32
	steps    [maxVoiced]uint32
	strength [maxVoiced]float32
	voice    []float32
	sound    []float32 // of the symbol
	passing  []float32 // of the symbol before, as it fades
}

const maxVoiced = 5

func newThroat(w *waves, book *codebook, u converse.Utterance) *throat {
	pitch, ok := pitches[u.Voice]
	if !ok {
		pitch = pitches[defaultVoice]
	}
	t := &throat{w: w, book: book, pitch: pitch, manner: u}
	t.voice, t.sound, t.passing = make([]float32, w.symbol), make([]float32, w.symbol), make([]float32, len(w.fade))
	// The more alike a voice is to be, the softer its upper harmonics.
	soften := 1 - 0.5*min(1, max(0, u.Similarity))
	power, strength := 0.0, 1.0
	for h := math.Ceil(lowestVoiced / pitch); h*pitch <= topVoiced; h++ {
		t.strength[t.voiced] = float32(strength)
		power += strength * strength / 2
		strength *= soften
		t.voiced++
	}
	for i := range t.voiced {
		t.strength[i] *= float32(math.Sqrt((1 - toneShare) / power))
	}
	return t
}

// say appends a coded word and the pause behind it.
func (t *throat) say(out []int16, c *coded) []int16 {
	loud := t.loudness(c.n)
	chips := &t.book.chips[c.n][c.grade]
	for i := range c.n {
		t.intone()
		begin, end := loud*swell(float64(i), c.n), loud*swell(float64(i+1), c.n)
		out = t.utter(out, compose(c.data[i], chips.at(c.n-1-i)), begin, end)
	}
	for range c.pause {
		out = t.utter(out, tones{}, 0, 0)
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
	seconds := t.w.rate.Duration(t.at).Seconds()
	fall := 0.06 * (1 - math.Exp(-seconds/2))
	waver := 0.04 * (1 - min(1, max(0, t.manner.Stability))) * math.Sin(2*math.Pi*4.7*seconds)
	pitch := t.pitch * (1 - fall + waver) / float64(t.w.rate) * (1 << 32)
	first := math.Ceil(lowestVoiced / t.pitch)
	for i := range t.voiced {
		t.steps[i] = uint32(pitch * (first + float64(i)))
	}
}

// utter appends one symbol, or a silence of its length, whose volume goes from
// begin to end.
func (t *throat) utter(out []int16, now tones, begin, end float32) []int16 {
	if now.silent() && t.before.silent() {
		t.at += t.w.symbol
		return append(out, make([]int16, t.w.symbol)...)
	}
	t.hum()
	t.mix(t.passing, t.before)
	t.mix(t.sound, now)
	for i, in := range t.w.fade {
		t.sound[i] = t.sound[i]*in + t.passing[i]*(1-in)
	}
	if now.silent() {
		begin, end = t.volume, t.volume // of the symbol that fades away
	}
	volume, slope := begin, (end-begin)/float32(t.w.symbol)
	for _, x := range t.sound {
		out = append(out, int16(volume*x))
		volume += slope
	}
	t.at += t.w.symbol
	t.before, t.volume = now, end
	return out
}

// hum writes the harmonics of the pitch.
func (t *throat) hum() {
	clear(t.voice)
	for h := range t.voiced {
		phase, step, strength := t.phases[h], t.steps[h], t.strength[h]
		for i := range t.voice {
			t.voice[i] += strength * t.w.turn[phase>>turnShift]
			phase += step
		}
		t.phases[h] = phase
	}
}

// mix writes a symbol's tones and the voice under them; a silent one has neither.
func (t *throat) mix(out []float32, s tones) {
	if s.silent() {
		clear(out)
		return
	}
	from := t.at % t.w.period
	a, b, c := t.w.tone[s[0]][from:], t.w.tone[s[1]][from:], t.w.tone[s[2]][from:]
	d, e := t.w.tone[s[3]][from:], t.w.tone[s[4]][from:]
	n := len(out)
	a, b, c, d, e = a[:n], b[:n], c[:n], d[:n], e[:n]
	voice := t.voice[:n]
	for i := range out {
		out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + voice[i]
	}
}
