package sandbox

import (
	"fmt"
	"sync"
	"time"

	"parley/internal/audio"
)

// Options are the provider's settings. The zero value is a good one.
type Options struct {
	WordsPerMinute float64 // speaking pace at speed 1; 170 unless set
	Delays         Delays
	Seed           uint64 // of the faults by chance

	SpeakerFaults     Faults
	TranscriberFaults Faults
	ModelFaults       Faults
}

const (
	defaultWordsPerMinute = 170
	defaultFinal          = 150 * time.Millisecond
	slowest, fastest      = 0.5, 2.0 // speeds outside are taken as the nearest
)

// Provider is the sandbox: make one, and share it between all calls.
type Provider struct {
	options  Options
	book     *codebook
	spectrum *spectrum

	speakerFaults, transcriberFaults, modelFaults *roulette

	mu     sync.Mutex
	byRate map[audio.Rate]*waves
}

// New makes a provider.
func New(o Options) *Provider {
	if o.WordsPerMinute <= 0 {
		o.WordsPerMinute = defaultWordsPerMinute
	}
	switch {
	case o.Delays.Final == 0:
		o.Delays.Final = defaultFinal
	case o.Delays.Final < 0:
		o.Delays.Final = 0
	}
	return &Provider{
		options: o, book: newCodebook(), spectrum: newSpectrum(),
		speakerFaults:     newRoulette(o.SpeakerFaults, o.Seed, 1),
		transcriberFaults: newRoulette(o.TranscriberFaults, o.Seed, 2),
		modelFaults:       newRoulette(o.ModelFaults, o.Seed, 3),
		byRate:            map[audio.Rate]*waves{},
	}
}

// Speaker is the sandbox's text to speech.
func (p *Provider) Speaker() *Speaker { return &Speaker{p} }

// Transcriber is the sandbox's speech to text.
func (p *Provider) Transcriber() *Transcriber { return &Transcriber{p} }

// Model is the sandbox's language model.
func (p *Provider) Model() *Model { return &Model{p} }

// Duplex is the sandbox's speech-to-speech model.
func (p *Provider) Duplex() *Duplex { return &Duplex{p} }

// waves are the tables of a sampling rate, made when it is first spoken at.
func (p *Provider) waves(rate audio.Rate) (*waves, error) {
	if !supported(rate) {
		return nil, fmt.Errorf("sandbox speaker: no sampling rate of %d Hz, only whole kilohertz from 8 to 96", rate)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.byRate[rate]
	if w == nil {
		w = newWaves(rate)
		p.byRate[rate] = w
	}
	return w, nil
}

// pace is the speaking pace at a speed; no speed at all is 1.
func (p *Provider) pace(speed float64) pace {
	if speed <= 0 {
		speed = 1
	}
	return newPace(p.options.WordsPerMinute, min(fastest, max(slowest, speed)))
}
