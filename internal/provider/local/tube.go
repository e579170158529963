//go:build speech

package local

import (
	"fmt"

	"parley/internal/audio"
)

// tube brings sound from one rate to another as one stream. The filter's delay stays
// at the beginning: it is a hundredth of a second of silence.
type tube struct{ resampler *audio.Resampler }

func newTube(from, to audio.Rate) (tube, error) {
	resampler, err := audio.NewResampler(from, to)
	if err != nil {
		return tube{}, fmt.Errorf("%d Hz cannot be brought to %d Hz", from, to)
	}
	return tube{resampler}, nil
}

func (t tube) pass(samples []int16) []int16 {
	const block = 64 // more than the resampler's, at either rate
	out := make([]int16, t.resampler.OutputSamples(len(samples))+block)
	return out[:t.resampler.Resample(out, samples)]
}
