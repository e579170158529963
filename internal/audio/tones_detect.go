package audio

import (
	"fmt"
	"math"
	"sync"
)

// Tone is what a ToneDetector hears on the line.
type Tone uint8

// The tones that matter to a call that is being placed.
const (
	ToneNone     Tone = iota
	ToneBeep          // an answering machine starts to record; said once, just after the beep
	ToneRingback      // the other side rings; said while it rings, pauses included
	ToneBusy          // busy or congested; said while it sounds, pauses included
)

// String names the tone for logs.
func (t Tone) String() string {
	switch t {
	case ToneBeep:
		return "beep"
	case ToneRingback:
		return "ringback"
	case ToneBusy:
		return "busy"
	default:
		return "none"
	}
}

// All detection happens at 8 kHz in windows of 20 ms: the tones of interest lie
// below 2.2 kHz.
const (
	toneRate   = 8000
	toneWindow = 160
	toneFloor  = 1e4 * toneWindow / 2 // energy of a sine at -50 dBFS: below it is silence
)

// ToneDetector finds voicemail beeps, ringback and busy tones. It must hear every
// frame of the line in order.
type ToneDetector struct {
	rate     Rate
	window   [toneWindow]int16 // a window that came in pieces
	filled   int
	half     halfRate
	beep     beepFinder
	progress progressFinder
}

// NewToneDetector makes a detector for a line of 8 or 16 kHz.
func NewToneDetector(rate Rate) (*ToneDetector, error) {
	if rate != Rate8k && rate != Rate16k {
		return nil, fmt.Errorf("audio: no tone detection at %d Hz", rate)
	}
	return &ToneDetector{rate: rate}, nil
}

// Reset starts a new line.
func (d *ToneDetector) Reset() { *d = ToneDetector{rate: d.rate} }

// Detect takes the next frame and says what the line sounds like at its end. A
// beep wins over the others.
func (d *ToneDetector) Detect(frame []int16) Tone {
	beep := false
	for len(frame) > 0 {
		if d.rate == Rate8k && d.filled == 0 && len(frame) >= toneWindow {
			beep = d.hear((*[toneWindow]int16)(frame)) || beep
			frame = frame[toneWindow:]
			continue
		}
		frame = d.fill(frame)
		if d.filled < toneWindow {
			break
		}
		d.filled = 0
		beep = d.hear(&d.window) || beep
	}
	if beep {
		return ToneBeep
	}
	return d.progress.verdict
}

func (d *ToneDetector) hear(window *[toneWindow]int16) (beep bool) {
	energy := squareSum(window[:])
	d.progress.hear(window, energy)
	return d.beep.hear(window, energy)
}

// fill moves samples into the window until either ends.
func (d *ToneDetector) fill(frame []int16) (rest []int16) {
	if d.rate == Rate8k {
		n := copy(d.window[d.filled:], frame)
		d.filled += n
		return frame[n:]
	}
	for i, v := range frame {
		out, ok := d.half.next(v)
		if !ok {
			continue
		}
		d.window[d.filled] = out
		if d.filled++; d.filled == toneWindow {
			return frame[i+1:]
		}
	}
	return nil
}

// halfRate halves 16 kHz by a seven-tap half-band filter: flat to 2.2 kHz, and at
// least 20 dB down where what is above would fold onto that.
type halfRate struct {
	past [7]int16
	odd  bool
}

func (h *halfRate) next(v int16) (int16, bool) {
	p := &h.past
	p[0], p[1], p[2], p[3], p[4], p[5], p[6] = p[1], p[2], p[3], p[4], p[5], p[6], v
	h.odd = !h.odd
	if h.odd {
		return 0, false
	}
	sum := 16*int(p[3]) + 9*(int(p[2])+int(p[4])) - (int(p[0]) + int(p[6]))
	return int16(clip16((sum + 16) >> 5)), true
}

// A beep is one steady tone, alone, that then stops. Speech is none of the four
// for long: its energy spreads over harmonics, its pitch moves by more than half
// a percent within a tenth of a second, and it fades rather than stops. Melodies
// and the three tones of an "unobtainable" announcement (ITU-T E.180) are not
// alone.
const (
	beepBin     = toneRate / toneWindow // 50 Hz between bins
	beepLowest  = 8                     // the bins a beep may be nearest to, 400 Hz ...
	beepHighest = 45                    // ... to 2250 Hz

	beepPurity    = 0.80 // share of the energy in the tone: noise at 6 dB SNR passes
	beepMinFrames = 5    // whole windows that lie in 120 ms however it is cut
	beepMaxFrames = 150  // 3 s; longer is a modem, a fax or a dial tone
	beepAlone     = 5    // windows without another tone before it
	beepNoTone    = 3    // fewer windows than this are chance, or a ragged start
	beepAfter     = 3    // windows after it in which it must be gone
)

// beepFinder follows one steady tone at a time.
type beepFinder struct {
	frames int     // windows the tone has lasted
	hertz  float64 // its mean frequency
	energy float64 // its mean energy per window
	single bool    // no other tone came right before it
	gone   int     // windows since it stopped; 0 while it sounds
	crowd  int     // windows to go until a new tone counts as alone
}

// hear takes a window and says whether it is the one that confirms a beep.
func (b *beepFinder) hear(window *[toneWindow]int16, energy float64) bool {
	hertz, pure := 0.0, false
	if energy > toneFloor {
		hertz, pure = pureTone(window, energy)
	}
	if pure && b.frames > 0 && b.continues(hertz, energy) {
		b.frames += b.gone + 1
		b.gone = 0
		share := 1 / float64(b.frames)
		b.hertz += (hertz - b.hertz) * share
		b.energy += (energy - b.energy) * share
		return false
	}
	if pure {
		b.begin(hertz, energy)
		return false
	}
	if b.frames == 0 {
		b.crowd = max(0, b.crowd-1)
		return false
	}
	return b.fades(window, energy)
}

func (b *beepFinder) continues(hertz, energy float64) bool {
	return math.Abs(hertz-b.hertz) < max(6, 0.006*b.hertz) && energy < 4*b.energy && energy > b.energy/4
}

func (b *beepFinder) begin(hertz, energy float64) {
	alone := b.crowd == 0
	if b.frames > 0 {
		alone = b.single && b.frames < beepNoTone
	}
	*b = beepFinder{frames: 1, hertz: hertz, energy: energy, single: alone}
}

// fades judges the windows after the tone. The first may hold its last part; in
// the others both the tone and the sound as a whole must be gone.
func (b *beepFinder) fades(window *[toneWindow]int16, energy float64) bool {
	b.gone++
	if b.gone == 1 {
		return false
	}
	tone := goertzelPower(window[:], goertzelTurn(toneRate, b.hertz)) * 2 / toneWindow
	stopped := energy < b.energy/4 && tone < b.energy/16
	if stopped && b.gone < beepAfter {
		return false
	}
	progress := math.Abs(b.hertz-425) < 8 // Europe's ringback and busy tones
	found := stopped && b.single && !progress && b.frames >= beepMinFrames && b.frames <= beepMaxFrames
	crowd := 0
	if b.frames >= beepNoTone {
		crowd = beepAlone
	}
	*b = beepFinder{crowd: crowd}
	return found
}

// beepCoarse is the share of its power that a pure tone shows in the nearest bin of
// beepSearch at least: 72 % of it when it lies half-way between two, less what noise
// takes away.
const beepCoarse = 0.56

// pureTone finds the strongest frequency of the window and says whether it is
// nearly all there is.
func pureTone(window *[toneWindow]int16, energy float64) (hertz float64, pure bool) {
	whole := energy * toneWindow / 2 // what a pure tone would show
	coarse, power := beepSearch(window)
	if power < beepCoarse*beepPurity*whole {
		return 0, false
	}
	// The strongest of four bins around it, none of the outer ones, and its
	// neighbours tell the frequency.
	first := int(coarse/beepBin) - 1
	var turn, now, old [4]float64
	for i := range turn {
		turn[i] = goertzelTurn(toneRate, float64((first+i)*beepBin))
	}
	goertzelFour(window[:], &turn, &now, &old)
	best := 1
	if goertzelEnd(now[2], old[2], turn[2]) > goertzelEnd(now[1], old[1], turn[1]) {
		best = 2
	}
	if first+best < beepLowest || first+best > beepHighest {
		return 0, false
	}
	bin := func(i int) complex128 { return beepSpectrum(first+i, now[i], old[i]) }
	left, mid, right := bin(best-1), bin(best), bin(best+1)
	offset := real((left - right) / (2*mid - left - right)) // Jacobsen's estimate
	hertz = (float64(first+best) + max(-1, min(1, offset))) * beepBin
	return hertz, goertzelPower(window[:], goertzelTurn(toneRate, hertz)) > beepPurity*whole
}

// beepSpectrum is the complex value of a bin, which Goertzel's two numbers hold up
// to a turn.
func beepSpectrum(bin int, now, old float64) complex128 {
	sin, cos := math.Sincos(2 * math.Pi * float64(bin) / toneWindow)
	return complex(cos*now-old, sin*now)
}

var beepBlocks = sync.Pool{New: func() any { return new([beepBlock / 2]complex64) }}

const beepBlock = 256 // the window, and silence up to the next power of two

// beepSearch is the strongest frequency from 300 to 2350 Hz, to 16 Hz, and its power.
// A whole transform costs less than forty frequencies by Goertzel.
func beepSearch(window *[toneWindow]int16) (hertz, power float64) {
	block, _ := beepBlocks.Get().(*[beepBlock / 2]complex64)
	defer beepBlocks.Put(block)
	f := fft256()
	clear(block[:])
	for i := range toneWindow / 2 {
		block[f.order[i]] = complex(float32(window[2*i]), float32(window[2*i+1]))
	}
	f.forward(block[:])
	best, most := 0, float32(0)
	for k := 300 * beepBlock / toneRate; k <= 2350*beepBlock/toneRate; k++ {
		v := block[k]
		if p := real(v)*real(v) + imag(v)*imag(v); p > most {
			best, most = k, p
		}
	}
	return float64(best) * toneRate / beepBlock, float64(most)
}
