package store

import (
	"context"

	"parley"
)

const voiceColumns = "id, name, mode, provider, key, language_id, user_id"

// VoiceFilter narrows a list of voices; empty fields do not.
type VoiceFilter struct {
	Mode       parley.Mode
	LanguageID parley.ID // also matches the voices that speak every language
}

// Voices are everybody's and the user's own. What no provider offers any more is
// neither listed nor found, but for the assistants that have it.
func (t *Tenant) Voices(ctx context.Context, f VoiceFilter) ([]parley.Voice, error) {
	query, args := "SELECT "+voiceColumns+" FROM voices WHERE hidden = 0 AND (user_id IS NULL OR user_id = ?)", []any{t.user}
	if f.Mode != "" {
		query, args = query+" AND mode = ?", append(args, string(f.Mode))
	}
	if f.LanguageID != 0 {
		query, args = query+" AND (language_id IS NULL OR language_id = ?)", append(args, f.LanguageID)
	}
	return list(ctx, t.session, scanVoice, query+" ORDER BY id", args...)
}

// Voice is one that the user may use.
func (t *Tenant) Voice(ctx context.Context, id parley.ID) (*parley.Voice, error) {
	return one(ctx, t.session, "Voice", scanVoice, "SELECT "+voiceColumns+" FROM voices WHERE hidden = 0 AND (user_id IS NULL OR user_id = ?) AND id = ?", t.user, id)
}

func scanVoice(row scanner, v *parley.Voice) error {
	return row.Scan(&v.ID, &v.Name, &v.Mode, &v.Provider, &v.Key, &v.LanguageID, &v.UserID)
}

// Models are all the language models.
func (t *Tenant) Models(ctx context.Context) ([]parley.Model, error) {
	return list(ctx, t.session, scanModel, "SELECT id, name, provider, key FROM models WHERE hidden = 0 ORDER BY id")
}

// ModelNamed is a model by its name.
func (t *Tenant) ModelNamed(ctx context.Context, name string) (*parley.Model, error) {
	return one(ctx, t.session, "Model", scanModel, "SELECT id, name, provider, key FROM models WHERE hidden = 0 AND name = ?", name)
}

// Model is a model by its id.
func (t *Tenant) Model(ctx context.Context, id parley.ID) (*parley.Model, error) {
	return one(ctx, t.session, "Model", scanModel, "SELECT id, name, provider, key FROM models WHERE hidden = 0 AND id = ?", id)
}

func scanModel(row scanner, m *parley.Model) error {
	return row.Scan(&m.ID, &m.Name, &m.Provider, &m.Key)
}

// Languages are all the languages.
func (t *Tenant) Languages(ctx context.Context) ([]parley.Language, error) {
	return list(ctx, t.session, scanLanguage, "SELECT id, name, iso_2 FROM languages WHERE hidden = 0 ORDER BY id")
}

// LanguageNamed is a language by its name.
func (t *Tenant) LanguageNamed(ctx context.Context, name string) (*parley.Language, error) {
	return one(ctx, t.session, "Language", scanLanguage, "SELECT id, name, iso_2 FROM languages WHERE hidden = 0 AND name = ?", name)
}

// Language is a language by its id.
func (t *Tenant) Language(ctx context.Context, id parley.ID) (*parley.Language, error) {
	return one(ctx, t.session, "Language", scanLanguage, "SELECT id, name, iso_2 FROM languages WHERE hidden = 0 AND id = ?", id)
}

func scanLanguage(row scanner, l *parley.Language) error {
	return row.Scan(&l.ID, &l.Name, &l.ISO2)
}

// Outfit is what an assistant speaks and thinks with, even if nobody offers it any more.
func (t *Tenant) Outfit(ctx context.Context, a *parley.Assistant) (*parley.Voice, *parley.Model, error) {
	voice, err := one(ctx, t.session, "Voice", scanVoice, "SELECT "+voiceColumns+" FROM voices WHERE (user_id IS NULL OR user_id = ?) AND id = ?", t.user, a.VoiceID)
	if err != nil {
		return nil, nil, err
	}
	model, err := one(ctx, t.session, "Model", scanModel, "SELECT id, name, provider, key FROM models WHERE id = ?", a.LLMModelID)
	return voice, model, err
}

// SeedCatalogue adds what the catalogue of every installation has and this one lacks.
func (s *System) SeedCatalogue(ctx context.Context) error {
	return s.Tx(ctx, func(s *System) error {
		for _, l := range parley.Languages {
			if _, err := s.exec(ctx, "INSERT INTO languages (name, iso_2) VALUES (?, ?) ON CONFLICT DO NOTHING", l.Name, l.ISO2); err != nil {
				return err
			}
		}
		for _, m := range parley.SandboxModels {
			if _, err := s.exec(ctx, "INSERT INTO models (name, provider, key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", m.Name, m.Provider, m.Key); err != nil {
				return err
			}
		}
		for _, v := range parley.SandboxVoices {
			if err := s.AddVoice(ctx, &v); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddVoice adds a voice unless it is there already.
func (s *System) AddVoice(ctx context.Context, v *parley.Voice) error {
	_, err := s.exec(ctx, "INSERT INTO voices (name, mode, provider, key, language_id, user_id) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		v.Name, v.Mode, v.Provider, v.Key, v.LanguageID, v.UserID)
	return err
}
