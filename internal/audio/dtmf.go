package audio

import (
	"fmt"
	"strings"
	"time"
)

// dtmfDigits are the sixteen digits in the order of their RFC 4733 event codes
// (section 3.2).
const dtmfDigits = "0123456789*#ABCD"

// dtmfPad is the keypad: a digit is the tone of its row and that of its column
// (ITU-T Q.23).
const dtmfPad = "123A" + "456B" + "789C" + "*0#D"

var (
	dtmfRows    = [4]float64{697, 770, 852, 941}
	dtmfColumns = [4]float64{1209, 1336, 1477, 1633}
)

// Timing and level of digits that Parley makes.
const (
	// DTMFLength and DTMFGap are a press and the pause after it: twice the 40 ms
	// that every receiver must accept (ITU-T Q.24, table A-1), and some.
	DTMFLength = 100 * time.Millisecond
	DTMFGap    = 80 * time.Millisecond

	dtmfLevel = -11.0 // of each tone, in dB below full scale: about -8 dBm0
)

// DTMFEvent is the RFC 4733 event code of a digit (0 to 9, *, #, A to D; small
// letters too).
func DTMFEvent(digit byte) (code byte, ok bool) {
	if digit >= 'a' && digit <= 'd' {
		digit -= 'a' - 'A'
	}
	i := strings.IndexByte(dtmfDigits, digit)
	return byte(max(i, 0)), i >= 0
}

// DTMFDigit is the digit of an RFC 4733 event code. Codes from 16 on are no
// digits.
func DTMFDigit(code byte) (digit byte, ok bool) {
	if int(code) >= len(dtmfDigits) {
		return 0, false
	}
	return dtmfDigits[code], true
}

// NewDTMF makes the in-band tone of a digit, once, for lines that take no
// telephone events.
func NewDTMF(rate Rate, digit byte, length time.Duration) (*ToneGenerator, error) {
	code, ok := DTMFEvent(digit)
	if !ok {
		return nil, fmt.Errorf("audio: %q is no DTMF digit", digit)
	}
	key := strings.IndexByte(dtmfPad, dtmfDigits[code])
	g := NewDualTone(rate, dtmfRows[key/4], dtmfColumns[key%4], dtmfLevel)
	g.cadence[0], g.once = max(1, rate.Samples(length)), true
	return g, nil
}
