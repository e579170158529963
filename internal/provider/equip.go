package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/converse"
	"parley/internal/provider/openai"
)

// chains are who is used when the first choice fails.
type chains struct {
	transcribers []converse.Provider[converse.Transcriber]
	models       []converse.Provider[converse.Model]
	speakers     []converse.Provider[converse.Speaker]
	duplexes     []converse.Provider[converse.Duplex]
}

const (
	// warmLimit bounds the opening of a connection before it is needed.
	warmLimit = 5 * time.Second
	// warmFor is how long a connection is taken to be open: most services close idle
	// ones after a minute or more.
	warmFor = 45 * time.Second
)

// parse reads the chains and refuses what cannot work.
func (r *Registry) parse(s Settings) (c chains, err error) {
	if c.transcribers, err = r.transcribers(s.Transcribers); err != nil {
		return c, err
	}
	for _, text := range s.FallbackModels {
		p, err := parseEntry(r, "PARLEY_FALLBACK_MODELS", text, "provider/model", func(v *vendor) converse.Model { return v.model })
		if err != nil {
			return c, err
		}
		c.models = append(c.models, p)
	}
	for _, text := range s.FallbackVoices {
		p, err := parseEntry(r, "PARLEY_FALLBACK_VOICES", text, "provider/voice", func(v *vendor) converse.Speaker { return v.speaker })
		if err != nil {
			return c, err
		}
		c.speakers = append(c.speakers, p)
	}
	for _, text := range s.FallbackLive {
		p, err := parseEntry(r, "PARLEY_FALLBACK_LIVE", text, "provider/model@voice", func(v *vendor) converse.Duplex { return v.duplex })
		if err != nil {
			return c, err
		}
		p.Key, p.Voice, _ = strings.Cut(p.Key, "@")
		c.duplexes = append(c.duplexes, p)
	}
	return c, nil
}

// parseEntry reads one provider of a chain.
func parseEntry[T comparable](r *Registry, setting, text, like string, part func(*vendor) T) (p converse.Provider[T], err error) {
	name, key, ok := strings.Cut(strings.TrimSpace(text), "/")
	if !ok || name == "" || key == "" {
		return p, fmt.Errorf("%s: %q is not like %s", setting, text, like)
	}
	p, err = use(r, name, part)
	if err != nil {
		return p, fmt.Errorf("%s: %w", setting, err)
	}
	p.Key = key
	return p, nil
}

// use is a part of a configured provider.
func use[T comparable](r *Registry, name string, part func(*vendor) T) (p converse.Provider[T], err error) {
	v, err := r.find(name)
	if err != nil {
		return p, err
	}
	var none T
	if part(v) == none {
		return p, fmt.Errorf("the provider %s does not do this", name)
	}
	return converse.Provider[T]{Name: name, Use: part(v)}, nil
}

// transcribers is who hears: those that are set, or all that are configured but the
// sandbox, which hears its own voice alone.
func (r *Registry) transcribers(names []string) (chain []converse.Provider[converse.Transcriber], err error) {
	if len(names) == 0 {
		for _, v := range r.vendors {
			if v.transcriber != nil && v.name != parley.Sandbox {
				names = append(names, v.name)
			}
		}
	}
	for _, name := range names {
		p, err := use(r, strings.TrimSpace(name), func(v *vendor) converse.Transcriber { return v.transcriber })
		if err != nil {
			return nil, fmt.Errorf("PARLEY_TRANSCRIBERS: %w", err)
		}
		chain = append(chain, p)
	}
	return chain, nil
}

// Equip gives an assistant the providers of its voice and its model, and begins to
// open connections to them: it is called before the telephone rings. The line, and
// what else a call needs, is for the caller to add.
func (r *Registry) Equip(a *parley.Assistant, voice *parley.Voice, model *parley.Model) (converse.Config, error) {
	c, err := r.resolve(a, voice, model)
	if err != nil {
		return c, err
	}
	var names []string
	if a.Mode == parley.Multimodal {
		names = append(names, c.Duplexes[0].Name)
	} else {
		names = append(names, c.Models[0].Name, c.Speakers[0].Name, c.Transcribers[0].Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		r.warm(name)
	}
	return c, nil
}

// Validate says why an assistant could not hold a call: which provider is not
// configured, and which setting would do so.
func (r *Registry) Validate(a *parley.Assistant, voice *parley.Voice, model *parley.Model) error {
	_, err := r.resolve(a, voice, model)
	return err
}

func (r *Registry) resolve(a *parley.Assistant, voice *parley.Voice, model *parley.Model) (c converse.Config, err error) {
	c.Assistant = *a
	if a.Mode == parley.Multimodal {
		return c, r.live(&c, voice, model)
	}
	if isLive(model.Provider, model.Key) {
		return c, fmt.Errorf("the model %s hears and speaks by itself; it needs the engine type multimodal", model.Name)
	}
	first, err := use(r, model.Provider, func(v *vendor) converse.Model { return v.model })
	if err != nil {
		return c, fmt.Errorf("the model %s cannot be used: %w", model.Name, err)
	}
	first.Key = model.Key
	c.Models = chain(first, r.chains.models)
	speaker, err := use(r, voice.Provider, func(v *vendor) converse.Speaker { return v.speaker })
	if err != nil {
		return c, fmt.Errorf("the voice %s cannot be used: %w", voice.Name, err)
	}
	speaker.Key = voice.Key
	c.Speakers = chain(speaker, r.chains.speakers)
	c.Transcribers, err = r.ears(a, voice)
	return c, err
}

// live equips a multimodal assistant. Its model evaluates the call too if it can do
// so in text; else the fallback models do.
func (r *Registry) live(c *converse.Config, voice *parley.Voice, model *parley.Model) error {
	if voice.Provider != model.Provider {
		return fmt.Errorf("the voice %s is of %s and the model %s of %s: a speech-to-speech model has its own voices", voice.Name, voice.Provider, model.Name, model.Provider)
	}
	first, err := use(r, model.Provider, func(v *vendor) converse.Duplex { return v.duplex })
	if err != nil {
		return fmt.Errorf("the model %s cannot be used: %w", model.Name, err)
	}
	if model.Provider != parley.Sandbox && !isLive(model.Provider, model.Key) {
		return fmt.Errorf("the model %s does not hear and speak; it needs the engine type pipeline", model.Name)
	}
	first.Key, first.Voice = model.Key, voice.Key
	c.Duplexes = chain(first, r.chains.duplexes)
	c.Models = r.chains.models
	if len(c.Models) == 0 {
		c.Models = r.evaluators(model)
	}
	return nil
}

// evaluators is a model of the same provider that answers in text.
func (r *Registry) evaluators(model *parley.Model) []converse.Provider[converse.Model] {
	p, err := use(r, model.Provider, func(v *vendor) converse.Model { return v.model })
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.offers[model.Provider].Models {
		if !isLive(m.Provider, m.Key) {
			p.Key = m.Key
			return []converse.Provider[converse.Model]{p}
		}
	}
	if model.Provider != parley.Sandbox {
		return nil
	}
	p.Key = model.Key
	return []converse.Provider[converse.Model]{p}
}

// ears are who hears the customer. Whoever is spoken to in the sandbox's voice answers
// in it, and nobody else understands that.
func (r *Registry) ears(a *parley.Assistant, voice *parley.Voice) ([]converse.Provider[converse.Transcriber], error) {
	if voice.Provider == parley.Sandbox {
		p, err := use(r, parley.Sandbox, func(v *vendor) converse.Transcriber { return v.transcriber })
		return []converse.Provider[converse.Transcriber]{p}, err
	}
	iso := isoOf(a.Language)
	var able []converse.Provider[converse.Transcriber]
	for _, p := range r.chains.transcribers {
		if v, err := r.find(p.Name); err == nil && (v.hears == nil || iso == "" || v.hears(iso)) {
			able = append(able, p)
		}
	}
	switch {
	case len(able) > 0:
		return able, nil
	case len(r.chains.transcribers) > 0:
		return nil, fmt.Errorf("no configured provider transcribes %s; set DEEPGRAM_API_KEY or OPENAI_API_KEY", a.Language)
	}
	return nil, errors.New("no provider that transcribes is configured; set DEEPGRAM_API_KEY, ASSEMBLYAI_API_KEY or OPENAI_API_KEY")
}

func isoOf(language string) string {
	for _, l := range parley.Languages {
		if l.Name == language {
			return l.ISO2
		}
	}
	return ""
}

// isLive reports that a model hears and speaks, by its name: an assistant's record
// says no more.
func isLive(provider, key string) bool {
	switch provider {
	case "openai":
		return openai.IsLive(key)
	case "gemini":
		return strings.Contains(key, "-live") || strings.Contains(key, "native-audio")
	}
	return false
}

// chain is the first choice and those after it.
func chain[T any](first converse.Provider[T], rest []converse.Provider[T]) []converse.Provider[T] {
	all := []converse.Provider[T]{first}
	for _, p := range rest {
		if p.Name != first.Name || p.Key != first.Key {
			all = append(all, p)
		}
	}
	return all
}

// warm opens a connection in the background, unless one was opened lately.
func (r *Registry) warm(name string) {
	v, err := r.find(name)
	if err != nil || v.warm == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil || time.Since(r.warmed[name]) < warmFor {
		return
	}
	r.warmed[name] = time.Now()
	r.work.Go(func() {
		ctx, cancel := context.WithTimeout(r.life, warmLimit)
		defer cancel()
		_ = v.warm(ctx) // the call itself finds out, and says so
	})
}
