package provider

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/provider/openai"
)

// offer is what one provider has.
type offer struct {
	Voices []parley.OfferedVoice
	Models []parley.Model
}

// askLimit bounds the question to one provider.
const askLimit = 20 * time.Second

func (o *offer) models(provider string, keys []string) {
	for _, key := range keys {
		o.Models = append(o.Models, parley.Model{Name: key, Provider: provider, Key: key})
	}
}

func (o *offer) voices(provider string, mode parley.Mode, keys []string) {
	for _, key := range keys {
		o.Voices = append(o.Voices, parley.OfferedVoice{Voice: parley.Voice{Name: key, Mode: mode, Provider: provider, Key: key}})
	}
}

// live adds speech-to-speech models and their voices, which are of no use without.
func (o *offer) live(provider string, models, voices []string) {
	if len(models) > 0 {
		o.models(provider, models)
		o.voices(provider, parley.Multimodal, voices)
	}
}

// nothing is the offer of a provider that only hears.
func nothing(check func(context.Context) error) func(context.Context) (offer, error) {
	return func(ctx context.Context) (offer, error) { return offer{}, check(ctx) }
}

// voices is the offer of a provider that only speaks.
func voices(list func(context.Context) ([]parley.OfferedVoice, error)) func(context.Context) (offer, error) {
	return func(ctx context.Context) (o offer, err error) {
		o.Voices, err = list(ctx)
		return o, err
	}
}

// offerOfOpenAI knows the models of OpenAI's own by their names. Any other server is
// believed to have language models alone, unless its voices are set.
func offerOfOpenAI(ctx context.Context, p *openai.Provider, s Settings) (o offer, err error) {
	names := s.OpenAIModels
	if len(names) == 0 {
		if names, err = p.Models(ctx); err != nil {
			return o, err
		}
	}
	speech, live := openai.Voices()
	if !p.Own() {
		speech = nil
	}
	if len(s.OpenAIVoices) > 0 {
		speech = s.OpenAIVoices
	}
	o.voices("openai", parley.Pipeline, speech)
	var talking []string
	for _, name := range names {
		switch {
		case openai.IsLive(name):
			talking = append(talking, name)
		case !p.Own() || openai.IsChat(name) || slices.Contains(s.OpenAIModels, name):
			o.models("openai", []string{name})
		}
	}
	o.live("openai", talking, live)
	return o, nil
}

// Catalogue is what the configured providers offer, as they were last asked; those
// that were never asked are asked now.
func (r *Registry) Catalogue(ctx context.Context) parley.Catalogue {
	r.ask(ctx, func(name string) bool {
		_, known := r.asked[name]
		return !known
	})
	return r.catalogue()
}

// Refresh asks every provider anew. What one offered before stays if it cannot be
// asked; the error says why.
func (r *Registry) Refresh(ctx context.Context) (parley.Catalogue, error) {
	r.ask(ctx, func(string) bool { return true })
	r.mu.Lock()
	var errs []error
	for _, v := range r.vendors {
		errs = append(errs, r.asked[v.name])
	}
	r.mu.Unlock()
	return r.catalogue(), errors.Join(errs...)
}

// Run keeps the catalogue up to date until ctx ends: at once, and then every hour or
// as set. Each one is given to keep.
func (r *Registry) Run(ctx context.Context, log *slog.Logger, keep func(context.Context, parley.Catalogue) error) {
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for {
		catalogue, err := r.Refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Warn("providers could not be asked what they offer", "error", err)
		}
		if err := keep(ctx, catalogue); err != nil && ctx.Err() == nil {
			log.Error("the catalogue could not be kept", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// ask asks some of the providers, all at once.
func (r *Registry) ask(ctx context.Context, which func(name string) bool) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var group sync.WaitGroup
	for _, v := range r.vendors {
		r.mu.Lock()
		wanted := which(v.name)
		r.mu.Unlock()
		if !wanted {
			continue
		}
		group.Go(func() {
			o, err := v.offer(ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked[v.name] = err
			if err == nil {
				r.offers[v.name] = o
			}
		})
	}
	group.Wait()
}

// catalogue puts together what is known.
func (r *Registry) catalogue() (c parley.Catalogue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.vendors {
		c.Providers = append(c.Providers, v.name)
		o, known := r.offers[v.name]
		if !known {
			c.Unknown = append(c.Unknown, v.name)
			continue
		}
		c.Voices = append(c.Voices, o.Voices...)
		c.Models = append(c.Models, o.Models...)
	}
	for _, l := range parley.Languages {
		if r.hears(l.ISO2) {
			c.Languages = append(c.Languages, l)
		}
	}
	return c
}

// hears reports that somebody understands a language: a transcriber, or a
// speech-to-speech model.
func (r *Registry) hears(iso string) bool {
	return slices.ContainsFunc(r.vendors, func(v *vendor) bool {
		return (v.transcriber != nil || v.duplex != nil) && (v.hears == nil || v.hears(iso))
	})
}
