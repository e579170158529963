package media

import (
	"math"

	"parley/internal/audio"
)

// power is the share of x's energy that lies at one frequency: 1 for a pure tone
// (Goertzel's algorithm), 0 for silence.
func power(x []int16, rate audio.Rate, hertz float64) float64 {
	turn := 2 * math.Cos(2*math.Pi*hertz/float64(rate))
	var now, old, energy float64
	for _, sample := range x {
		v := float64(sample)
		now, old = v+turn*now-old, now
		energy += v * v
	}
	if energy == 0 {
		return 0
	}
	return (now*now + old*old - turn*now*old) / (energy * float64(len(x)) / 2)
}

// share is the same over each 100 ms by itself: a tone that was stretched or
// squeezed in between has another phase afterwards, but is there all the same.
func share(x []int16, rate audio.Rate, hertz float64) float64 {
	n := int(rate) / 10
	var at, all float64
	for ; len(x) >= n; x = x[n:] {
		energy := level(x[:n]) * level(x[:n])
		at += power(x[:n], rate, hertz) * energy
		all += energy
	}
	return at / max(all, 1)
}

// level is the root mean square.
func level(x []int16) float64 {
	var energy float64
	for _, sample := range x {
		energy += float64(sample) * float64(sample)
	}
	return math.Sqrt(energy / float64(max(1, len(x))))
}
