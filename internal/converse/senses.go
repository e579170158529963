package converse

import (
	"hash/fnv"

	"parley/internal/audio"
)

// senses are what the engine makes of raw sound. Each works on one 20 ms frame and
// allocates nothing.
type senses struct {
	voice   func(frame []int16) bool         // does somebody speak?
	own     func(frame []int16) bool         // is it our own sound come back?
	sent    func(frame []int16)              // remembers what we sent
	clean   func(frame []int16)              // takes the noise out, in place
	beep    func(frame []int16) bool         // did an answering machine's tone just end?
	digit   func(frame []int16) (byte, bool) // was a key just pressed?
	ambient func(frame []int16)              // puts the background under, in place
}

// newSenses gives a call its senses, but for those that a test has put in. Lines are
// heard at 8 or 16 kHz: every sense judges the telephone band.
func newSenses(cfg *Config) (senses, error) {
	s := cfg.senses
	var err error
	if s.voice == nil {
		if s.voice, err = newVoiceSense(cfg.Rate); err != nil {
			return s, err
		}
	}
	if s.own == nil {
		s.own, s.sent = newEchoSense(cfg.Rate)
	}
	if s.clean == nil {
		if s.clean, err = newCleanSense(cfg); err != nil {
			return s, err
		}
	}
	if s.beep == nil {
		tones, err := audio.NewToneDetector(cfg.Rate)
		if err != nil {
			return s, err
		}
		s.beep = func(frame []int16) bool { return tones.Detect(frame) == audio.ToneBeep }
	}
	if s.digit == nil {
		if s.digit, err = newDigitSense(cfg); err != nil {
			return s, err
		}
	}
	if s.ambient == nil {
		if s.ambient, err = newAmbientSense(cfg); err != nil {
			return s, err
		}
	}
	return s, nil
}

// newVoiceSense is the detector with its edges: a voice must be clear for 60 ms to
// begin, so that a click does not hold the mouth, and may fade before it ends.
func newVoiceSense(rate audio.Rate) (func([]int16) bool, error) {
	vad, err := audio.NewVAD(rate)
	if err != nil {
		return nil, err
	}
	rule := audio.DefaultEdgeRule()
	sure, faint := 0, pauseFrames
	return func(frame []int16) bool {
		likely := vad.Process(frame).Speech
		if faint < pauseFrames { // within speech
			if likely >= rule.Stop {
				faint = 0
				return true
			}
			faint++
			sure = 0
			return false
		}
		if likely < rule.Start {
			sure = 0
			return false
		}
		if sure++; sure*int(audio.FrameDuration) < int(rule.Least) {
			return false
		}
		faint = 0
		return true
	}, nil
}

// newEchoSense remembers what was sent and recognises it. It must see every frame of
// both directions.
func newEchoSense(rate audio.Rate) (own func([]int16) bool, sent func([]int16)) {
	echo := audio.NewEchoReference(rate)
	return func(frame []int16) bool { return echo.Received(frame).Explained > 0.5 }, echo.Sent
}

// newCleanSense suppresses noise where the assistant wants it.
func newCleanSense(cfg *Config) (func([]int16), error) {
	if !cfg.Assistant.EnableNoiseCancellation {
		return func([]int16) {}, nil
	}
	denoiser, err := audio.NewDenoiser(cfg.Rate)
	if err != nil {
		return nil, err
	}
	return denoiser.Process, nil
}

// newDigitSense listens for keys in the sound of lines that carry them there.
func newDigitSense(cfg *Config) (func([]int16) (byte, bool), error) {
	if !cfg.InbandDigits {
		return func([]int16) (byte, bool) { return 0, false }, nil
	}
	detector, err := audio.NewDTMFDetector(cfg.Rate)
	if err != nil {
		return nil, err
	}
	return detector.Detect, nil
}

// newAmbientSense is the background behind the assistant's voice, each call at its
// own place in it.
func newAmbientSense(cfg *Config) (func([]int16), error) {
	a := &cfg.Assistant
	if a.AmbientSound == "" || a.AmbientSound == string(audio.AmbientOff) {
		return func([]int16) {}, nil
	}
	ambience := cfg.Ambience
	if ambience == nil {
		ambience = audio.NewAmbience(1)
	}
	place := fnv.New64a()
	_, _ = place.Write([]byte(cfg.Call.CallID))
	background, err := ambience.Background(audio.AmbientSound(a.AmbientSound), cfg.Rate, float32(a.AmbientSoundVolume), place.Sum64())
	if err != nil {
		return nil, err
	}
	return background.Mix, nil
}
