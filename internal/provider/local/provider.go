//go:build speech

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Options are the provider's settings.
type Options struct {
	Folder string // where install.sh put its files
	// Workers is how many sentences are transcribed or spoken at the same time by all
	// calls together; one for each core unless set.
	Workers int
}

// Provider is the models in memory: make one, and share it between all calls.
type Provider struct {
	moonshine *moonshine
	silero    *silero
	flite     *flite
	work      pool // transcribing and speaking, a core for a good part of a second
	glances   pool // looking for speech, a core for a fraction of a millisecond
}

// New loads the models, which takes about a second.
func New(o Options) (*Provider, error) {
	if err := installed(o.Folder); err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	p := &Provider{work: newPool(o.Workers), glances: newPool(o.Workers)}
	err := loadRuntime(filepath.Join(o.Folder, "onnxruntime"))
	if err == nil {
		p.moonshine, err = loadMoonshine(o.Folder)
	}
	if err == nil {
		p.silero, err = loadSilero(filepath.Join(o.Folder, "voice.onnx"))
	}
	if err == nil {
		p.flite, err = loadFlite(filepath.Join(o.Folder, "flite.wasm"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("local: %w", err), p.Close())
	}
	return p, nil
}

// installed says what to do where the files are not there.
func installed(folder string) error {
	if folder == "" {
		return errors.New("local: the folder of the speech models must be set")
	}
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		return fmt.Errorf("local: %s holds no speech models; run make speech", folder)
	}
	return nil
}

// Transcriber is Moonshine.
func (p *Provider) Transcriber() *Transcriber { return &Transcriber{p} }

// Speaker is flite.
func (p *Provider) Speaker() *Speaker { return &Speaker{p} }

// Close lets go of the models. No call may be using them.
func (p *Provider) Close() error {
	var errs []error
	if p.moonshine != nil {
		errs = append(errs, p.moonshine.close())
	}
	if p.silero != nil {
		errs = append(errs, p.silero.close())
	}
	if p.flite != nil {
		errs = append(errs, p.flite.close())
	}
	return errors.Join(errs...)
}

// pool bounds how many calls work at the same time: each takes a place and gives it
// back.
type pool chan struct{}

func newPool(places int) pool { return make(pool, places) }

// take waits for a place.
func (p pool) take(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spare takes a place only if another one stays free.
func (p pool) spare() bool {
	if len(p)+1 >= cap(p) {
		return false
	}
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p pool) leave() { <-p }
