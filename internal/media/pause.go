package media

import "parley/internal/audio"

const (
	// pauseShare is how far below the loudest of the last seconds a pause is: 18 dB,
	// more than the valleys inside a word.
	pauseShare = 8
	// pauseFloor is a level, of mean magnitude, that is silence whatever was before.
	pauseFloor = 32
	// pauseMemory is how many frames the loudest is remembered, some five seconds.
	pauseMemory = 256

	// A frame that is left out is joined over an eighth of its length.
	joinShare = 8
	joinMost  = int(audio.Rate48k) / 50 / joinShare
)

// pauseMeter tells the pauses of a voice from its words, by loudness alone: who is
// wrong now and then costs nobody a word.
type pauseMeter struct{ loudest int }

func (m *pauseMeter) quiet(frame []int16) bool {
	sum := 0
	for _, v := range frame {
		sum += max(int(v), -int(v))
	}
	mean := sum / len(frame)
	m.loudest = max(mean, m.loudest-m.loudest/pauseMemory)
	return mean < pauseFloor || mean*pauseShare < m.loudest
}
