package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func offeredVoice(provider, key, name, language string) parley.OfferedVoice {
	return parley.OfferedVoice{Voice: parley.Voice{Name: name, Mode: parley.Pipeline, Provider: provider, Key: key}, Language: language}
}

func TestTheCatalogueFollowsTheProviders(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		require.NoError(t, db.System().AddVoice(ctx, &parley.Voice{Name: "Cloned", Mode: parley.Pipeline, Provider: "acme", Key: "own", UserID: &user.ID}))
		reconcile := func(c parley.Catalogue) (voices map[string]parley.Voice, models map[string]parley.ID) {
			t.Helper()
			require.NoError(t, db.System().Reconcile(ctx, c))
			all, err := tenant.Voices(ctx, store.VoiceFilter{})
			require.NoError(t, err)
			voices = map[string]parley.Voice{}
			for _, v := range all {
				voices[v.Name] = v
			}
			list, err := tenant.Models(ctx)
			require.NoError(t, err)
			models = map[string]parley.ID{}
			for _, m := range list {
				models[m.Name] = m.ID
			}
			return voices, models
		}
		full := parley.Catalogue{
			Providers: []string{"acme", "other"},
			Voices:    []parley.OfferedVoice{offeredVoice("acme", "v1", "Ada", "de"), offeredVoice("acme", "v2", "Bob", "xx")},
			Models:    []parley.Model{{Name: "big", Provider: "acme", Key: "big-1"}, {Name: "big", Provider: "other", Key: "big"}},
			Languages: []parley.Language{{Name: "German", ISO2: "de"}, {Name: "English", ISO2: "en"}},
		}
		voices, models := reconcile(full)
		require.Len(t, voices, 3, "the sandbox is not configured and so not listed")
		german, err := tenant.LanguageNamed(ctx, "German")
		require.NoError(t, err)
		require.Equal(t, german.ID, *voices["Ada"].LanguageID)
		require.Nil(t, voices["Bob"].LanguageID)
		require.Contains(t, voices, "Cloned")
		require.Len(t, models, 2)
		require.Contains(t, models, "other/big", "a name belongs to whoever had it first")
		languages, err := tenant.Languages(ctx)
		require.NoError(t, err)
		require.Len(t, languages, 2)
		_, err = tenant.LanguageNamed(ctx, "French")
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))

		less := full
		less.Voices, less.Models = full.Voices[:1], full.Models[:1]
		fewer, fewerModels := reconcile(less)
		require.Len(t, fewer, 2)
		require.Len(t, fewerModels, 1)
		gone := voices["Bob"]
		_, err = tenant.Voice(ctx, gone.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err), "nobody can choose it")
		voice, model, err := tenant.Outfit(ctx, &parley.Assistant{VoiceID: gone.ID, LLMModelID: models["other/big"]})
		require.NoError(t, err, "an assistant that has it still says so")
		require.Equal(t, "v2", voice.Key)
		require.Equal(t, "other", model.Provider)

		dark := parley.Catalogue{Providers: []string{"acme", "other"}, Unknown: []string{"acme"}, Languages: full.Languages}
		left, leftModels := reconcile(dark)
		require.Equal(t, fewer, left, "what is known of a provider that cannot be asked stays")
		require.Equal(t, fewerModels, leftModels)

		without, _ := reconcile(parley.Catalogue{})
		require.Empty(t, without, "a user's own voice goes with its provider")

		back, backModels := reconcile(full)
		require.Equal(t, voices, back, "what comes back has its old id")
		require.Equal(t, models, backModels)
		renamed := full
		renamed.Voices = []parley.OfferedVoice{offeredVoice("acme", "v1", "Adele", "")}
		again, _ := reconcile(renamed)
		require.Equal(t, voices["Ada"].ID, again["Adele"].ID)
		require.Nil(t, again["Adele"].LanguageID)
	})
}
