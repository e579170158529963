package audio

import "math"

// Progress tones are told by their frequencies over 100 ms, which keeps apart the
// 440 and 480 Hz of a North American ringback, and Europe's single 425 Hz by its
// cadence.
const (
	progressWindows = 5  // windows of 20 ms in a block
	progressShare   = .7 // of a block's energy that must lie in the tone
	progressBoth    = .2 // and in each of two frequencies

	progressSettle   = 2  // blocks that make a dual tone certain
	progressRing425  = 8  // blocks of 425 Hz that are a ring rather than busy
	progressDial425  = 30 // blocks that are no ring either but a dial tone
	progressRingHold = 45 // blocks of pause inside ringing: 4 s, and some
	progressBusyHold = 9  // blocks of pause inside busy
	progressPause    = 32 // a pause is this much below the tone (15 dB): lines are not silent
	progressOther    = 3  // blocks of any other sound that end either
)

// progressSound is what a block holds.
type progressSound uint8

const (
	progressSilence progressSound = iota
	progressVoice                 // anything that is no progress tone
	progressRing                  // 440+480 (North America), 400+450 (United Kingdom)
	progressBusy                  // 480+620
	progress425                   // Europe; the cadence decides
)

// progressRate is what the tones are looked for at: sums of four samples each. What
// such a sum lets fold onto them from above loses 10 dB, and a tone must be nearly
// all there is.
const (
	progressFold = 4
	progressRate = toneRate / progressFold
)

// progressHertz are the frequencies of all progress tones; two places are left.
var progressHertz = [2][4]float64{{400, 425, 440, 450}, {480, 620, 0, 0}}

// progressTurns are their Goertzel coefficients, progressSums how much of their power
// the sums keep.
var progressTurns, progressSums = func() (turns, sums [2][4]float64) {
	for i, hertz := range progressHertz {
		for k, f := range hertz {
			turns[i][k] = goertzelTurn(progressRate, f)
			sums[i][k] = 1
			if x := math.Pi * f / toneRate; x > 0 {
				g := math.Sin(progressFold*x) / (progressFold * math.Sin(x))
				sums[i][k] = g * g
			}
		}
	}
	return turns, sums
}()

// progressFinder recognises ringback and busy.
type progressFinder struct {
	now, old [2][4]float64
	energy   float64
	windows  int

	loudness float64 // energy of the last block that was a tone

	verdict Tone
	last    progressSound
	length  int // blocks that last has lasted
	bursts  int // short bursts of 425 Hz so far
}

// hear takes a window; every fifth ends a block.
func (p *progressFinder) hear(window *[toneWindow]int16, energy float64) {
	if p.energy += energy; p.energy > 0 { // else there was nothing yet
		var sums [toneWindow / progressFold]int32
		for i := range sums {
			four := (*[progressFold]int16)(window[progressFold*i:])
			sums[i] = int32(four[0]) + int32(four[1]) + int32(four[2]) + int32(four[3])
		}
		for i := range p.now {
			goertzelFour(sums[:], &progressTurns[i], &p.now[i], &p.old[i])
		}
	}
	p.windows++
	if p.windows < progressWindows {
		return
	}
	sound := p.classify()
	if sound > progressVoice {
		p.loudness = p.energy
	}
	p.now, p.old, p.energy, p.windows = [2][4]float64{}, [2][4]float64{}, 0, 0
	p.follow(sound)
}

func (p *progressFinder) classify() progressSound {
	if p.energy < max(toneFloor*progressWindows, p.loudness/progressPause) {
		return progressSilence
	}
	var share [2][4]float64
	for i := range share {
		for k := range share[i] {
			power := goertzelEnd(p.now[i][k], p.old[i][k], progressTurns[i][k]) / progressSums[i][k]
			share[i][k] = power / (p.energy * progressWindows * toneWindow / 2)
		}
	}
	both := func(a, b float64) bool { return a+b > progressShare && min(a, b) > progressBoth }
	switch {
	case both(share[0][2], share[1][0]), both(share[0][0], share[0][3]):
		return progressRing
	case both(share[1][0], share[1][1]):
		return progressBusy
	case share[0][1] > progressShare:
		return progress425
	default:
		return progressVoice
	}
}

// follow moves the verdict by one block.
func (p *progressFinder) follow(sound progressSound) {
	if sound == p.last {
		p.length++
	} else {
		p.ended()
		p.last, p.length = sound, 1
	}
	switch sound {
	case progressRing:
		if p.length >= progressSettle {
			p.verdict = ToneRingback
		}
	case progressBusy:
		if p.length >= progressSettle {
			p.verdict = ToneBusy
		}
	case progress425:
		p.follow425()
	case progressSilence:
		if p.verdict == ToneRingback && p.length > progressRingHold || p.verdict != ToneRingback && p.length > progressBusyHold {
			p.forget()
		}
	case progressVoice:
		if p.length >= progressOther {
			p.forget()
		}
	}
}

func (p *progressFinder) forget() { p.verdict, p.bursts, p.loudness = ToneNone, 0, 0 }

// follow425 decides by the length of the tone while it still sounds.
func (p *progressFinder) follow425() {
	switch {
	case p.length > progressDial425:
		p.forget()
	case p.length >= progressRing425:
		p.verdict, p.bursts = ToneRingback, 0
	}
}

// ended looks back at a sound that is over: two short bursts of 425 Hz are busy.
func (p *progressFinder) ended() {
	if p.last != progress425 || p.length < 2 || p.length >= progressRing425 {
		return
	}
	if p.bursts++; p.bursts >= 2 {
		p.verdict = ToneBusy
	}
}
