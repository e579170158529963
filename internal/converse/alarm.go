package converse

import (
	"time"

	"parley/internal/audio"
)

// alarm names a moment that the conversation waits for. There is at most one of
// each, so they live in a small array and a single timer serves them all: a call
// costs no timer per frame.
type alarm int

const (
	alarmEndOfTurn   alarm = iota // the pause is long enough
	alarmWords                    // the transcriber owes words
	alarmEarly                    // a partial transcript has stood still
	alarmConfirm                  // the customer has spoken long enough to interrupt
	alarmResume                   // the customer did not mean to interrupt
	alarmFiller                   // the answer is slow
	alarmPatience                 // the answer is late
	alarmReengage                 // reengagement_interval
	alarmMaxSilence               // max_silence_duration
	alarmClosing                  // the closing sentence must begin, or be rendered
	alarmMaxDuration              // max_duration
	alarmLeave                    // the goodbye has had its time
	alarmTail                     // the goodbye has been heard
	alarmDigits                   // no further digit came
	alarmNoise                    // a voice has come to no words
	alarmMachine                  // the answering machine's greeting should be over
	alarms
)

const never = time.Duration(1<<63 - 1)

// clock holds the alarms of a conversation as times since its start.
type clock struct {
	at    [alarms]time.Duration
	first time.Duration // the earliest of them
	timer *time.Timer
	set   time.Duration // what the timer is set to
}

func newClock() *clock {
	k := &clock{first: never, set: never, timer: time.NewTimer(time.Hour)}
	k.timer.Stop()
	for i := range k.at {
		k.at[i] = never
	}
	return k
}

func (k *clock) wake(a alarm, at time.Duration) {
	k.at[a] = at
	k.find()
}

func (k *clock) cancel(a alarm) {
	if k.at[a] != never {
		k.at[a] = never
		k.find()
	}
}

func (k *clock) armed(a alarm) bool { return k.at[a] != never }

func (k *clock) find() {
	k.first = never
	for _, at := range k.at {
		k.first = min(k.first, at)
	}
}

// round brings an alarm forward that would ring less than half a frame after this one: an
// answer that is ready then leaves with this frame, and not with the next, 20 ms later.
func (k *clock) round(a alarm, frame time.Duration) {
	if k.at[a] > frame && k.at[a]-frame < audio.FrameDuration/2 {
		k.wake(a, frame)
	}
}

// due takes the earliest alarm that is due, if any.
func (k *clock) due(now time.Duration) (alarm, bool) {
	if k.first > now {
		return 0, false
	}
	for a, at := range k.at {
		if at == k.first {
			k.cancel(alarm(a))
			return alarm(a), true
		}
	}
	return 0, false
}

// rest sets the timer for the earliest alarm.
func (k *clock) rest(now time.Duration) {
	if k.first == k.set {
		return
	}
	k.set = k.first
	if k.first == never {
		k.timer.Stop()
		return
	}
	k.timer.Reset(k.first - now)
}

// rang is called after the timer has fired, so that it is set again.
func (k *clock) rang() { k.set = never }
