package audio

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"sync"
)

// Limits of a digit, after ITU-T Q.24 table A-1. A block of 12.75 ms gives a
// candidate by limits that leave room for its leakage; two in a row are then
// measured as one, which tells frequencies apart twice as well. Speech meets the
// limits of a block now and then, those of two hardly ever.
const (
	dtmfBlockShare = 51.0 / 4000 // of a second: two blocks lie in 40 ms however it is cut
	dtmfFaintest   = 300.0       // peak of each tone: about -38 dBm0
	dtmfApart      = 6.3         // the tone over the others of its group, 8 dB
	dtmfHarmonic   = 0.1         // harmonics of the tones at most, -10 dB
	dtmfRelease    = 2           // blocks without a digit that end it
	dtmfNone       = 0

	dtmfBlockPurity  = 0.65 // share of a block's energy in the two tones
	dtmfBlockTwist   = 14.0 // column over row: 8 dB, and 3.5 that leak from the louder tone
	dtmfBlockReverse = 5.0  // row over column: 4 dB, and 3

	dtmfDrift   = 0.022 // of a frequency; 1.5 % must pass and 3.5 % must not
	dtmfPurity  = 0.88  // share of both blocks' energy: noise 12 dB below passes
	dtmfTwist   = 8.0   // 9 dB
	dtmfReverse = 3.2   // 5 dB
)

// DTMFDetector finds the digits in a line's sound. It must hear every frame in
// order.
type DTMFDetector struct {
	tones           *dtmfTones
	window          []int16 // the last block, then the one being filled
	filled          int
	candidate, down byte          // digit of the last block; digit that is pressed
	misses          int           // blocks without the pressed digit
	was, is         [2]complex128 // row and column of the last two blocks, for their phase
}

// dtmfTones are the Goertzel coefficients of one rate, which all calls share.
type dtmfTones struct {
	rate          float64
	size          int // samples of a block
	rows, columns [4]float64
	rowThirds     [4]float64
	columnSeconds [4]float64
}

var (
	dtmf8k  = sync.OnceValue(func() *dtmfTones { return newDTMFTones(Rate8k) })
	dtmf16k = sync.OnceValue(func() *dtmfTones { return newDTMFTones(Rate16k) })
)

func newDTMFTones(rate Rate) *dtmfTones {
	t := &dtmfTones{rate: float64(rate), size: int(float64(rate) * dtmfBlockShare)}
	for i := range dtmfRows {
		t.rows[i] = goertzelTurn(t.rate, dtmfRows[i])
		t.columns[i] = goertzelTurn(t.rate, dtmfColumns[i])
		t.rowThirds[i] = goertzelTurn(t.rate, 3*dtmfRows[i])
		t.columnSeconds[i] = goertzelTurn(t.rate, 2*dtmfColumns[i])
	}
	return t
}

// NewDTMFDetector makes a detector for a line of 8 or 16 kHz.
func NewDTMFDetector(rate Rate) (*DTMFDetector, error) {
	d := &DTMFDetector{}
	switch rate {
	case Rate8k:
		d.tones = dtmf8k()
	case Rate16k:
		d.tones = dtmf16k()
	default:
		return nil, fmt.Errorf("audio: no DTMF detection at %d Hz", rate)
	}
	d.window = make([]int16, 2*d.tones.size)
	return d, nil
}

// Reset starts a new line.
func (d *DTMFDetector) Reset() {
	d.filled, d.candidate, d.down, d.misses = 0, dtmfNone, dtmfNone, 0
}

// Down is the digit that is being pressed now, zero when none is. What is heard
// meanwhile is the keypad and not the caller's voice.
func (d *DTMFDetector) Down() byte { return d.down }

// Detect takes the next frame and says which digit began in it, once per press.
// A digit takes 26 ms to be sure of, so that a frame has one at most.
func (d *DTMFDetector) Detect(frame []int16) (digit byte, ok bool) {
	for len(frame) > 0 {
		size := d.tones.size
		n := copy(d.window[size+d.filled:], frame)
		d.filled += n
		frame = frame[n:]
		if d.filled == size {
			if began := d.follow(d.judge()); began != dtmfNone {
				digit, ok = began, true
			}
			d.filled = 0
			copy(d.window, d.window[size:])
		}
	}
	return digit, ok
}

// follow moves the press by one block and gives a digit that became certain.
func (d *DTMFDetector) follow(heard byte) byte {
	sure := heard != dtmfNone && heard == d.candidate && heard != d.down && d.confirm(heard)
	d.candidate, d.was = heard, d.is
	if heard == d.down {
		d.misses = 0
		return dtmfNone
	}
	if d.misses++; d.misses >= dtmfRelease {
		d.down = dtmfNone
	}
	if !sure {
		return dtmfNone
	}
	d.down, d.misses = heard, 0
	return heard
}

// judge gives the digit of a full block, zero when it holds none.
func (d *DTMFDetector) judge() byte {
	t := d.tones
	block := d.window[t.size:]
	whole := squareSum(block) * float64(t.size) / 2 // what a pure tone would show
	faintest := dtmfFaintest * float64(t.size) / 2
	if whole < 2*faintest*faintest {
		return dtmfNone
	}
	row, low, lowRest, lowWave := dtmfStrongest(block, &t.rows)
	column, high, highRest, highWave := dtmfStrongest(block, &t.columns)
	d.is = [2]complex128{lowWave, highWave}
	switch {
	case min(low, high) < faintest*faintest,
		high > dtmfBlockTwist*low, low > dtmfBlockReverse*high,
		lowRest*dtmfApart > low, highRest*dtmfApart > high,
		low+high < dtmfBlockPurity*whole:
		return dtmfNone
	}
	// A voice whose harmonics fall on two of the tones has more of them.
	if goertzelPower(block, t.rowThirds[row]) > dtmfHarmonic*low ||
		goertzelPower(block, t.columnSeconds[column]) > dtmfHarmonic*high {
		return dtmfNone
	}
	return dtmfPad[4*row+column]
}

// confirm measures the last two blocks as one. The phase by which each tone
// advanced between them gives its true frequency; at the true frequencies the two
// tones of a keypad are nearly all there is, while those of a voice, which glides,
// are not.
func (d *DTMFDetector) confirm(digit byte) bool {
	key := strings.IndexByte(dtmfPad, digit)
	size := float64(d.tones.size)
	var power [2]float64
	for i, hertz := range [2]float64{dtmfRows[key/4], dtmfColumns[key%4]} {
		step := 2 * math.Pi * hertz / d.tones.rate
		drift := cmplx.Phase(d.is[i]*cmplx.Conj(d.was[i])) - step*size
		drift = math.Remainder(drift, 2*math.Pi) / size
		if math.Abs(drift) > dtmfDrift*step {
			return false
		}
		power[i] = goertzelPower(d.window, 2*math.Cos(step+drift))
	}
	low, high := power[0], power[1]
	return low+high > dtmfPurity*squareSum(d.window)*size &&
		high < dtmfTwist*low && low < dtmfReverse*high
}

// dtmfStrongest is the strongest tone of a group, its power, the power of the
// strongest other one, and the tone as a complex number.
func dtmfStrongest(block []int16, turns *[4]float64) (best int, power, rest float64, wave complex128) {
	var now, old [4]float64
	goertzelFour(block, turns, &now, &old)
	for i := range turns {
		p := goertzelEnd(now[i], old[i], turns[i])
		switch {
		case p > power:
			best, power, rest = i, p, power
		case p > rest:
			rest = p
		}
	}
	cos := turns[best] / 2
	sin := math.Sqrt(1 - cos*cos)
	return best, power, rest, complex(now[best]-cos*old[best], sin*old[best])
}
