package main

import (
	"context"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider"
	"parley/internal/store"
)

// equipment gives assistants the providers of their voice and model, also when those
// are offered no more.
func equipment(db *store.DB, providers *provider.Registry) func(context.Context, *parley.Assistant) (converse.Config, error) {
	ambience := audio.NewAmbience(1)
	return func(ctx context.Context, a *parley.Assistant) (converse.Config, error) {
		voice, model, err := db.Tenant(a.UserID).Outfit(ctx, a)
		if err != nil {
			return converse.Config{}, err
		}
		c, err := providers.Equip(a, voice, model)
		c.Ambience = ambience
		return c, err
	}
}
