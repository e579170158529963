package media

import (
	"fmt"

	"parley/internal/audio"
)

// dialMost bounds how many keys may wait.
const dialMost = 256

// dialPause is the pause after a key, in frames.
const dialPause = int(audio.DTMFGap / audio.FrameDuration)

// dialer sends keys one after another: as telephone-events, or as tones where
// none were agreed on.
type dialer struct {
	digits []byte
	rate   audio.Rate
	events bool
	sender audio.EventSender
	sound  *audio.ToneGenerator
	pause  int // frames until the next key
}

// agree says how keys are sent from now on. A key whose packets the peer would not
// understand any more is given up; those that wait are not.
func (d *dialer) agree(rate audio.Rate, events bool) {
	d.rate, d.events = rate, events
	if !events {
		d.sender = audio.EventSender{}
	}
}

// dial queues keys. Nothing is queued when one of them is none.
func (d *dialer) dial(digits string) error {
	if len(d.digits)+len(digits) > dialMost {
		return fmt.Errorf("media: more than %d keys wait to be sent", dialMost)
	}
	for i := range len(digits) {
		if _, ok := audio.DTMFEvent(digits[i]); !ok {
			return fmt.Errorf("media: %q is no key", digits[i])
		}
	}
	d.digits = append(d.digits, digits...)
	return nil
}

// event is the packet to send now instead of sound, if there is one.
func (d *dialer) event(timestamp uint32) (audio.EventPacket, bool) {
	if !d.sender.Active() && d.events && d.sound == nil && len(d.digits) > 0 && d.pause == 0 {
		if d.sender.Start(d.take(), clockRate, timestamp, audio.DTMFLength) != nil {
			return audio.EventPacket{}, false
		}
	}
	packet, ok := d.sender.Next()
	if ok && !d.sender.Active() {
		d.pause = dialPause
	}
	return packet, ok
}

// tone overwrites the frame with the key that is being played, or with the pause
// after a key, and says whether it did.
func (d *dialer) tone(frame []int16) bool {
	if d.pause > 0 {
		d.pause--
		clear(frame)
		return true
	}
	if d.sound == nil && !d.events && len(d.digits) > 0 {
		sound, err := audio.NewDTMF(d.rate, d.take(), audio.DTMFLength)
		if err != nil {
			return false
		}
		d.sound = sound
	}
	if d.sound == nil {
		return false
	}
	d.sound.Fill(frame)
	if d.sound.Done() {
		d.sound, d.pause = nil, dialPause
	}
	return true
}

func (d *dialer) take() byte {
	digit := d.digits[0]
	d.digits = d.digits[:copy(d.digits, d.digits[1:])]
	return digit
}
