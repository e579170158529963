package sandbox

import (
	"math"
	"slices"
	"sync"
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
	period int // samples of one turn of toneStep, after which every tone repeats
	symbol int // samples of a symbol
	// A symbol's length of coded tones, from any place of their period: those of the
	// groups below the chip's by the lower half of a byte, those above by the upper.
	low, high [16][]float32
	chip      [4][]float32
	turn      [turnSize]float32 // one turn of a sine
	fade      []float32         // of the passage from one symbol to the next
	throats   sync.Pool         // that are not speaking
}

func newWaves(rate audio.Rate) *waves {
	w := &waves{rate: rate, period: int(rate) / toneStep, symbol: rate.Samples(symbolTime)}
	tone := func(group, which int) int { return firstTone + group*groupTones + which }
	for i := range 16 {
		w.low[i] = w.chord(tone(0, i&3), tone(1, i>>2))
		w.high[i] = w.chord(tone(3, i&3), tone(4, i>>2))
	}
	for i := range w.chip {
		w.chip[i] = w.chord(tone(chipGroup, i))
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

// chord is the sound of some coded tones together.
func (w *waves) chord(tones ...int) []float32 {
	out := make([]float32, w.period+w.symbol)
	for i := range out {
		sum := 0.0
		for _, k := range tones {
			// Quadratic phases keep the tones from peaking together.
			turns := math.Mod(float64(k*i)/float64(w.period)+float64(k*k)/24, 1)
			sum += toneAmplitude * math.Sin(2*math.Pi*turns)
		}
		out[i] = float32(sum)
	}
	return out
}

// supported says whether symbols and tones are whole numbers of samples.
func supported(rate audio.Rate) bool { return rate >= audio.Rate8k && rate%1000 == 0 && rate <= 96000 }

// chords are the sound of a symbol: two tones, one and two. None at all is silence.
type chords struct{ low, chip, high []float32 }

func (c *chords) silent() bool { return c.chip == nil }

// compose chooses the tones of a symbol.
func (w *waves) compose(data, chip byte) chords {
	return chords{low: w.low[data&15], chip: w.chip[chip], high: w.high[data>>4]}
}

// throat is one utterance being made audible. It serves one after another.
type throat struct {
	w      *waves
	pitch  float64
	waver  float64 // of the pitch
	at     int     // samples since the utterance began
	before chords  // the symbol before
	volume float32
	voice  [turnSize]float32 // one turn of the pitch: the sum of its harmonics
	phase  uint32            // of the voice
	step   uint32            // by which it goes on with every sample

	script  []coded
	samples []int16 // of the word
	words   [1]converse.SpokenWord
}

// throat makes one ready for an utterance.
func (w *waves) throat(u converse.Utterance) *throat {
	t, ok := w.throats.Get().(*throat)
	if !ok {
		t = &throat{w: w}
	}
	t.at, t.before, t.phase = 0, chords{}, 0
	t.waver = 0.04 * (1 - min(1, max(0, u.Stability)))
	if t.pitch, ok = pitches[u.Voice]; !ok {
		t.pitch = pitches[defaultVoice]
	}
	t.tune(min(1, max(0, u.Similarity)))
	return t
}

// tune makes the voice. The more alike it is to be, the softer its upper harmonics.
func (t *throat) tune(similarity float64) {
	soften := 1 - 0.5*similarity
	power, strength := 0.0, 1.0
	first, last := int(math.Ceil(lowestVoiced/t.pitch)), int(topVoiced/t.pitch)
	for range last - first + 1 {
		power += strength * strength / 2
		strength *= soften
	}
	clear(t.voice[:])
	strength = math.Sqrt((1 - toneShare) / power)
	for h := first; h <= last; h++ {
		for i := range t.voice {
			t.voice[i] += float32(strength) * t.w.turn[h*i%turnSize]
		}
		strength *= soften
	}
}

// say appends a coded word and the pause behind it.
func (t *throat) say(book *codebook, c *coded) {
	chips := &book.chips[c.n][c.grade]
	begin := loudness * t.w.swell(0, c.n)
	for i := range c.n {
		t.intone()
		end := loudness * t.w.swell(i+1, c.n)
		t.utter(t.w.compose(c.data[i], chips.at(c.n-1-i)), begin, end)
		begin = end
	}
	for range c.pause {
		t.utter(chords{}, 0, 0)
	}
}

// loudness makes every word as loud in the mean as speech is: a swell over whole
// syllables has the mean power shallow^2 + shallow*(1-shallow) + (1-shallow)^2*3/8,
// however many they are.
const loudness = speechLevel / 0.71305

// swell is the syllables' envelope at a place of a word of n symbols.
func (w *waves) swell(at, n int) float32 {
	count := max(1, (n+syllable/2)/syllable)
	square := 0.5 - 0.5*w.turn[(at*count*turnSize/n+turnSize/4)%turnSize] // of the sine
	return shallow + (1-shallow)*square
}

// intone sets the pitch of the next symbol: it falls slowly as an utterance goes
// on, and wavers the more the less stable the voice is.
func (t *throat) intone() {
	seconds := float64(t.at) / float64(t.w.rate)
	fall := 0.06 * seconds / (seconds + 1.5)
	waver := t.waver * float64(t.w.turn[int(4.7*turnSize*seconds)%turnSize])
	t.step = uint32(t.pitch * (1 - fall + waver) / float64(t.w.rate) * (1 << 32))
}

// utter appends one symbol, or a silence of its length, whose volume goes from
// begin to end.
func (t *throat) utter(now chords, begin, end float32) {
	n := len(t.samples)
	t.samples = slices.Grow(t.samples, t.w.symbol)[:n+t.w.symbol]
	out, from := t.samples[n:], t.at%t.w.period
	t.at += t.w.symbol
	if now.silent() {
		clear(out)
		begin, end = t.volume, t.volume // of the symbol that fades away
		if t.before.silent() {
			return
		}
	}
	volume, slope, phase := begin, (end-begin)/float32(len(out)), t.phase
	for i, in := range t.w.fade {
		hum := t.voice[phase>>turnShift]
		out[i] = int16(volume * (in*now.sample(from+i, hum) + (1-in)*t.before.sample(from+i, hum)))
		volume += slope
		phase += t.step
	}
	if !now.silent() {
		low, chip, high := now.low[from:], now.chip[from:], now.high[from:]
		for i := len(t.w.fade); i < len(out) && i < len(low) && i < len(chip) && i < len(high); i++ {
			out[i] = int16(volume * (low[i] + chip[i] + high[i] + t.voice[phase>>turnShift]))
			volume += slope
			phase += t.step
		}
	}
	t.before, t.volume, t.phase = now, end, phase
}

// sample is one of a symbol's tones and the voice under them; a silent one has neither.
func (c *chords) sample(i int, hum float32) float32 {
	if c.silent() {
		return 0
	}
	return c.low[i] + c.chip[i] + c.high[i] + hum
}
