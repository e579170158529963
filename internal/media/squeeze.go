package media

import (
	"time"

	"parley/internal/audio"
)

// Times of squeezing: a pitch period of most voices, found by comparing a few
// milliseconds, and joined over as much.
const (
	squeezeLeast = 2500 * time.Microsecond
	squeezeMost  = 12500 * time.Microsecond
	squeezeJoin  = 5 * time.Millisecond
)

// squeezer takes a piece out of sound where what follows resembles what goes, and
// overlaps the edges, so that a voice goes on at its pitch and is only shorter
// (the way WSOLA shortens).
type squeezer struct{ least, most, join int }

func newSqueezer(rate audio.Rate) squeezer {
	return squeezer{least: rate.Samples(squeezeLeast), most: rate.Samples(squeezeMost), join: rate.Samples(squeezeJoin)}
}

// shorten removes at most so many samples from the front part of x, in place, and
// returns how many remain.
func (s squeezer) shorten(x []int16, most int) int {
	most = min(most, s.most, len(x)-s.join)
	if most < s.least {
		return len(x)
	}
	gone := s.bestLag(x, most)
	for i := range s.join {
		share := int32(i+1) * 256 / int32(s.join+1)
		x[i] = int16((int32(x[i])*(256-share) + int32(x[i+gone])*share) / 256)
	}
	return s.join + copy(x[s.join:], x[s.join+gone:])
}

func (s squeezer) bestLag(x []int16, most int) int {
	best, alike := s.least, -1.0
	for lag := s.least; lag <= most; lag++ {
		var product, energy int64
		for i := range s.join {
			a, b := int64(x[i]), int64(x[i+lag])
			product += a * b
			energy += b * b
		}
		if product <= 0 {
			continue
		}
		if score := float64(product) * float64(product) / float64(energy+1); score > alike {
			best, alike = lag, score
		}
	}
	return best
}
