package audio

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// AmbientSound names a background that is mixed under an assistant's voice, as the
// assistant's ambient_sound setting spells it.
type AmbientSound string

// The backgrounds.
const (
	AmbientOff         AmbientSound = "off"
	AmbientOffice      AmbientSound = "office"
	AmbientCity        AmbientSound = "city"
	AmbientForest      AmbientSound = "forest"
	AmbientCrowdedRoom AmbientSound = "crowded_room"
	AmbientCafe        AmbientSound = "cafe"
	AmbientNature      AmbientSound = "nature"
)

// AmbientSounds are all values of the setting, off first.
func AmbientSounds() []AmbientSound {
	return []AmbientSound{
		AmbientOff, AmbientOffice, AmbientCity, AmbientForest, AmbientCrowdedRoom, AmbientCafe, AmbientNature,
	}
}

const (
	// AmbientLoop is how long a background lasts until it comes round.
	AmbientLoop = 24 * time.Second
	// AmbientLevel is the RMS level in dBFS of every background at volume 1, some
	// 4 to 6 dB under a voice.
	AmbientLevel = -26.0
)

// Ambience makes the backgrounds and keeps them for all calls of a process: a loop
// is rendered when a call first wants it at its rate and is only read from then on.
// Rendering takes 0.05 to 0.3 s at 8 kHz, the crowd longest, and six times that at
// 48 kHz: a call is given its Background while it rings, or before, and never in
// the middle of a frame. Loops weigh 0.4 MB at 8 kHz and 2.3 MB at 48 kHz.
//
// One seed always makes the same sound.
type Ambience struct {
	loops map[ambientKey]func() []int16
}

type ambientKey struct {
	sound AmbientSound
	rate  Rate
}

// NewAmbience prepares all loops and renders none.
func NewAmbience(seed uint64) *Ambience {
	a := &Ambience{loops: map[ambientKey]func() []int16{}}
	for _, sound := range AmbientSounds()[1:] {
		for _, rate := range []Rate{Rate8k, Rate16k, Rate24k, Rate48k} {
			a.loops[ambientKey{sound, rate}] = sync.OnceValue(func() []int16 {
				return renderAmbient(sound, rate, seed)
			})
		}
	}
	return a
}

// Background gives a call its own place in a shared loop, at a volume from 0 to 1.
// The place follows from the call's number, so that two calls side by side do not
// share the same clatter of cups. AmbientOff gives a Background that adds nothing.
func (a *Ambience) Background(sound AmbientSound, rate Rate, volume float32, call uint64) (*Background, error) {
	if sound == AmbientOff {
		return &Background{fader: NewFader(rate, ambientFade, 0)}, nil
	}
	render, ok := a.loops[ambientKey{sound, rate}]
	if !ok {
		return nil, fmt.Errorf("audio: no ambient sound %q at %d Hz", sound, int(rate))
	}
	b := &Background{loop: render(), fader: NewFader(rate, ambientFade, 0)}
	b.at = rand.New(rand.NewPCG(call, 0)).IntN(len(b.loop))
	b.SetVolume(volume)
	return b, nil
}

// ambientFade is how long a background takes to come in or to change its volume.
const ambientFade = 400 * time.Millisecond

// A Background is one call's ambient sound.
type Background struct {
	loop  []int16
	at    int
	fader Fader
}

// SetVolume fades to another volume; what is outside 0 to 1 is held to it.
func (b *Background) SetVolume(volume float32) {
	if !(volume > 0) {
		volume = 0
	}
	b.fader.To(min(1, volume))
}

// Mix adds the next piece of background to a frame of any length.
func (b *Background) Mix(frame []int16) {
	for len(frame) > 0 && len(b.loop) > 0 {
		n := min(len(frame), len(b.loop)-b.at)
		b.fader.Mix(frame[:n], b.loop[b.at:b.at+n])
		if b.at += n; b.at == len(b.loop) {
			b.at = 0
		}
		frame = frame[n:]
	}
}

// Read fills a frame with the background alone.
func (b *Background) Read(frame []int16) {
	clear(frame)
	b.Mix(frame)
}
