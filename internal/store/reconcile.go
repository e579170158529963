package store

import (
	"context"
	"slices"

	"parley"
)

// Reconcile makes the catalogue what the providers offer now. What they no longer
// offer is hidden, and what comes back has its old id. Of providers that could not be
// asked everything stays as it was.
func (s *System) Reconcile(ctx context.Context, c parley.Catalogue) error {
	return s.Tx(ctx, func(s *System) error {
		r := reconciliation{s: s, offer: c}
		for _, step := range []func(context.Context) error{r.languages, r.models, r.voices} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

type reconciliation struct {
	s     *System
	offer parley.Catalogue
	byISO map[string]parley.ID
}

// stays reports that a provider's offer is not known.
func (r *reconciliation) stays(provider string) bool {
	return slices.Contains(r.offer.Unknown, provider)
}

func (r *reconciliation) languages(ctx context.Context) error {
	offered := map[string]bool{}
	for _, l := range r.offer.Languages {
		offered[l.Name] = true
		_, err := r.s.exec(ctx, "INSERT INTO languages (name, iso_2) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET hidden = 0", l.Name, l.ISO2)
		if err != nil {
			return err
		}
	}
	all, err := list(ctx, r.s.session, scanLanguage, "SELECT id, name, iso_2 FROM languages ORDER BY id")
	if err != nil {
		return err
	}
	r.byISO = map[string]parley.ID{}
	for _, l := range all {
		r.byISO[l.ISO2] = l.ID
		if !offered[l.Name] {
			if err := r.hide(ctx, "languages", l.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// models are known by their provider and key. A name belongs to whoever had it first:
// the same model of another provider is called by both.
func (r *reconciliation) models(ctx context.Context) error {
	all, err := list(ctx, r.s.session, scanModel, "SELECT id, name, provider, key FROM models ORDER BY id")
	if err != nil {
		return err
	}
	type identity struct{ provider, key string }
	gone, names := map[identity]parley.ID{}, map[string]identity{}
	for _, m := range all {
		names[m.Name] = identity{m.Provider, m.Key}
		if !r.stays(m.Provider) {
			gone[identity{m.Provider, m.Key}] = m.ID
		}
	}
	for _, m := range r.offer.Models {
		id := identity{m.Provider, m.Key}
		delete(gone, id)
		name := m.Name
		if other, taken := names[name]; taken && other != id {
			name = m.Provider + "/" + m.Name
		}
		names[name] = id
		_, err := r.s.exec(ctx, "INSERT INTO models (name, provider, key) VALUES (?, ?, ?) ON CONFLICT (provider, key) DO UPDATE SET hidden = 0", name, m.Provider, m.Key)
		if err != nil {
			return err
		}
	}
	for _, id := range gone {
		if err := r.hide(ctx, "models", id); err != nil {
			return err
		}
	}
	return nil
}

// voices are known by their provider, mode and key. A user's own are hidden and shown
// with their provider: no provider lists them.
func (r *reconciliation) voices(ctx context.Context) error {
	all, err := list(ctx, r.s.session, scanVoice, "SELECT "+voiceColumns+" FROM voices ORDER BY id")
	if err != nil {
		return err
	}
	type identity struct {
		provider string
		mode     parley.Mode
		key      string
	}
	gone := map[identity]parley.ID{}
	for _, v := range all {
		switch {
		case v.UserID != nil && slices.Contains(r.offer.Providers, v.Provider):
			_, err = r.s.exec(ctx, "UPDATE voices SET hidden = 0 WHERE id = ? AND hidden = 1", v.ID)
		case v.UserID != nil:
			err = r.hide(ctx, "voices", v.ID)
		case !r.stays(v.Provider):
			gone[identity{v.Provider, v.Mode, v.Key}] = v.ID
		}
		if err != nil {
			return err
		}
	}
	for _, v := range r.offer.Voices {
		delete(gone, identity{v.Provider, v.Mode, v.Key})
		var language *parley.ID
		if id, known := r.byISO[v.Language]; known {
			language = &id
		}
		_, err := r.s.exec(ctx, "INSERT INTO voices (name, mode, provider, key, language_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (provider, mode, key) WHERE user_id IS NULL DO UPDATE SET name = excluded.name, language_id = excluded.language_id, hidden = 0",
			v.Name, v.Mode, v.Provider, v.Key, language)
		if err != nil {
			return err
		}
	}
	for _, id := range gone {
		if err := r.hide(ctx, "voices", id); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciliation) hide(ctx context.Context, table string, id parley.ID) error {
	_, err := r.s.exec(ctx, "UPDATE "+table+" SET hidden = 1 WHERE id = ? AND hidden = 0", id)
	return err
}
