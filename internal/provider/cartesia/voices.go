package cartesia

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"parley"
	"parley/internal/provider/wire"
)

// mostPages of voices are asked for.
const mostPages = 20

// Voices are those of the vendor and of the account, each with its language.
func (p *Provider) Voices(ctx context.Context) (voices []parley.OfferedVoice, err error) {
	ctx, watch := wire.Watch(ctx, p.options.Silence)
	defer watch.Stop()
	query := url.Values{"limit": {"100"}}
	for range mostPages {
		address := p.base.JoinPath("voices")
		address.RawQuery = query.Encode()
		var page struct {
			Voices []struct {
				ID       string `json:"id"`
				Name     string `json:"name"`
				Language string `json:"language"`
			} `json:"data"`
			More bool `json:"has_more"`
		}
		header := http.Header{"X-Api-Key": {p.options.APIKey}, "Cartesia-Version": {version}}
		if err := wire.Get(ctx, p.client, address.String(), header, messageOf, &page); err != nil {
			return nil, wire.Explain(ctx, "cartesia voices", p.options.APIKey, err)
		}
		watch.Heard()
		for _, v := range page.Voices {
			voices = append(voices, parley.OfferedVoice{Language: v.Language, Voice: parley.Voice{Name: v.Name, Mode: parley.Pipeline, Provider: "cartesia", Key: v.ID}})
		}
		if !page.More || len(page.Voices) == 0 {
			return voices, nil
		}
		query.Set("starting_after", page.Voices[len(page.Voices)-1].ID)
	}
	return nil, errors.New("cartesia voices: the list has no end")
}

// messageOf finds the vendor's words in the body of an error.
func messageOf(body []byte) string {
	var top struct {
		Message string `json:"message"`
		Title   string `json:"title"`
	}
	_ = json.Unmarshal(body, &top) // what is not JSON says nothing
	if top.Message == "" {
		return top.Title
	}
	return top.Message
}

// Warm opens a connection for the first sentence of a call, unless one is idle.
func (p *Provider) Warm(ctx context.Context) error {
	socket := p.idle.take()
	if socket == nil {
		var err error
		if socket, err = p.dial(ctx); err != nil {
			return p.explain(ctx, err)
		}
	}
	p.idle.give(socket)
	return nil
}
