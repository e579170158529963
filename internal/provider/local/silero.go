//go:build speech

package local

import (
	"errors"

	ort "github.com/yalue/onnxruntime_go"
)

// silero is the voice detector: how likely it is that somebody speaks.
type silero struct{ session *ort.DynamicAdvancedSession }

const (
	glance = 512 // samples it takes at a time, 32 ms
	before = 64  // samples before them that it sees as well
	memory = 2 * 128
)

func loadSilero(file string) (*silero, error) {
	session, err := loadModel(file, []string{"input", "state", "sr"}, []string{"output", "stateN"})
	if err != nil {
		return nil, err
	}
	return &silero{session}, nil
}

func (s *silero) close() error { return s.session.Destroy() }

// watcher is the detector on one call.
type watcher struct {
	silero *silero
	state  []float32
	sound  []float32 // the last of the glance before, and this one
}

func (s *silero) watch() *watcher {
	return &watcher{silero: s, state: make([]float32, memory), sound: make([]float32, before+glance)}
}

// likelihood of speech in the next glance.
func (w *watcher) likelihood(samples []float32) (float32, error) {
	copy(w.sound, w.sound[glance:])
	copy(w.sound[before:], samples)
	sound, err := ort.NewTensor(ort.NewShape(1, before+glance), w.sound)
	if err != nil {
		return 0, err
	}
	defer release(sound)
	state, err := ort.NewTensor(ort.NewShape(2, 1, memory/2), w.state)
	if err != nil {
		return 0, err
	}
	defer release(state)
	rate, err := ort.NewTensor(ort.NewShape(1), []int64{int64(hearingRate)})
	if err != nil {
		return 0, err
	}
	defer release(rate)
	outputs := make([]ort.Value, 2)
	if err := w.silero.session.Run([]ort.Value{sound, state, rate}, outputs); err != nil {
		return 0, err
	}
	defer release(outputs...)
	likelihood, ok := outputs[0].(*ort.Tensor[float32])
	next, also := outputs[1].(*ort.Tensor[float32])
	if !ok || !also || len(likelihood.GetData()) != 1 || len(next.GetData()) != memory {
		return 0, errors.New("silero gave no likelihood")
	}
	copy(w.state, next.GetData())
	return likelihood.GetData()[0], nil
}
