package audio

import (
	"fmt"
	"math"
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
	window   [toneWindow]float64
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
		frame = d.fill(frame)
		if d.filled < toneWindow {
			break
		}
		d.filled = 0
		energy := squareSum(d.window[:])
		d.progress.hear(d.window[:], energy)
		beep = d.beep.hear(&d.window, energy) || beep
	}
	if beep {
		return ToneBeep
	}
	return d.progress.verdict
}

// fill moves samples into the window until either ends.
func (d *ToneDetector) fill(frame []int16) (rest []int16) {
	if d.rate == Rate8k {
		n := min(len(frame), toneWindow-d.filled)
		for i, v := range frame[:n] {
			d.window[d.filled+i] = float64(v)
		}
		d.filled += n
		return frame[n:]
	}
	for i, v := range frame {
		out, ok := d.half.next(float64(v))
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
	past [7]float64
	odd  bool
}

func (h *halfRate) next(v float64) (float64, bool) {
	p := &h.past
	p[0], p[1], p[2], p[3], p[4], p[5], p[6] = p[1], p[2], p[3], p[4], p[5], p[6], v
	h.odd = !h.odd
	if h.odd {
		return 0, false
	}
	return (16*p[3] + 9*(p[2]+p[4]) - (p[0] + p[6])) / 32, true
}

// A beep is one steady tone, alone, that then stops. Speech is none of the four
// for long: its energy spreads over harmonics, its pitch moves by more than half
// a percent within a tenth of a second, and it fades rather than stops. Melodies
// and the three tones of an "unobtainable" announcement (ITU-T E.180) are not
// alone.
const (
	beepBin    = toneRate / toneWindow // 50 Hz between bins
	beepLowest = 7                     // the bins searched, 350 Hz ...
	beepCount  = 40                    // ... to 2300 Hz

	beepPurity    = 0.80 // share of the energy in the tone: noise at 6 dB SNR passes
	beepMinFrames = 5    // whole windows that lie in 120 ms however it is cut
	beepMaxFrames = 150  // 3 s; longer is a modem, a fax or a dial tone
	beepAlone     = 5    // windows without another tone before it
	beepNoTone    = 3    // fewer windows than this are chance, or a ragged start
	beepAfter     = 3    // windows after it in which it must be gone
)

var beepTurns = beepTurnTable()

func beepTurnTable() *[beepCount / 4][4]float64 {
	var table [beepCount / 4][4]float64
	for i := range beepCount {
		table[i/4][i%4] = goertzelTurn(toneRate, float64((beepLowest+i)*beepBin))
	}
	return &table
}

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
func (b *beepFinder) hear(window *[toneWindow]float64, energy float64) bool {
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
func (b *beepFinder) fades(window *[toneWindow]float64, energy float64) bool {
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

// pureTone finds the strongest frequency of the window and says whether it is
// nearly all there is.
func pureTone(window *[toneWindow]float64, energy float64) (hertz float64, pure bool) {
	var now, old [beepCount]float64
	best, most := 0, 0.0
	for i := range beepTurns {
		turn := &beepTurns[i]
		a, b := (*[4]float64)(now[4*i:]), (*[4]float64)(old[4*i:])
		goertzelFour(window[:], turn, a, b)
		for k := range turn {
			if p := goertzelEnd(a[k], b[k], turn[k]); p > most {
				best, most = 4*i+k, p
			}
		}
	}
	// Half-way between two bins a tone shows 40 % of itself in either.
	if best == 0 || best == beepCount-1 || most < 0.3*beepPurity*energy*toneWindow/2 {
		return 0, false
	}
	left, mid, right := beepSpectrum(best-1, &now, &old), beepSpectrum(best, &now, &old), beepSpectrum(best+1, &now, &old)
	offset := real((left - right) / (2*mid - left - right)) // Jacobsen's estimate
	hertz = (float64(beepLowest+best) + max(-1, min(1, offset))) * beepBin
	power := goertzelPower(window[:], goertzelTurn(toneRate, hertz))
	return hertz, power > beepPurity*energy*toneWindow/2
}

// beepSpectrum is the complex value of a bin, which Goertzel's two numbers hold up
// to a turn.
func beepSpectrum(i int, now, old *[beepCount]float64) complex128 {
	sin, cos := math.Sincos(2 * math.Pi * float64(beepLowest+i) / toneWindow)
	return complex(cos*now[i]-old[i], sin*now[i])
}
