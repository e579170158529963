// Package audio is everything Parley does to sound: telephone codecs, resampling,
// voice activity, tones and digits, mixing, noise, concealment and recording.
//
// It is pure: no network, no goroutines, no clock. Whatever runs once per 20 ms
// frame works in place or into memory its owner made before, and allocates
// nothing: at a thousand calls on a core a frame has about 12 microseconds.
package audio

import "time"

// FrameDuration is the length of a frame everywhere in Parley: the packet time
// of nearly every telephone line.
const FrameDuration = 20 * time.Millisecond

// Rate is a sampling rate in hertz.
type Rate int

// The rates Parley meets: telephone lines, wideband lines and most transcribers,
// speech synthesis, and WebRTC.
const (
	Rate8k  Rate = 8000
	Rate16k Rate = 16000
	Rate24k Rate = 24000
	Rate48k Rate = 48000
)

// FrameSamples is how many samples a 20 ms frame holds at this rate.
func (r Rate) FrameSamples() int { return int(r) / 50 }

// Duration is how long n samples last at this rate.
func (r Rate) Duration(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(r)
}

// Samples is how many whole samples fit in d at this rate.
func (r Rate) Samples(d time.Duration) int {
	return int(d * time.Duration(r) / time.Second)
}
