package elevenlabs

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"parley"
	"parley/internal/provider/wire"
)

// mostPages of voices are asked for.
const mostPages = 20

// Voices are those of the account. All of them speak every language of the model.
func (p *Provider) Voices(ctx context.Context) (voices []parley.OfferedVoice, err error) {
	ctx, watch := wire.Watch(ctx, p.options.Silence)
	defer watch.Stop()
	query := url.Values{"page_size": {"100"}}
	for range mostPages {
		address := p.base.JoinPath("v2", "voices")
		address.RawQuery = query.Encode()
		var page struct {
			Voices []struct {
				ID   string `json:"voice_id"`
				Name string `json:"name"`
			} `json:"voices"`
			More bool   `json:"has_more"`
			Next string `json:"next_page_token"`
		}
		err := wire.Get(ctx, p.client, address.String(), http.Header{"Xi-Api-Key": {p.options.APIKey}}, func(body []byte) string {
			_, message := detail(body)
			return message
		}, &page)
		if err != nil {
			return nil, wire.Explain(ctx, "elevenlabs voices", p.options.APIKey, err)
		}
		watch.Heard()
		for _, v := range page.Voices {
			voices = append(voices, parley.OfferedVoice{Voice: parley.Voice{Name: v.Name, Mode: parley.Pipeline, Provider: "elevenlabs", Key: v.ID}})
		}
		if !page.More || page.Next == "" {
			return voices, nil
		}
		query.Set("next_page_token", page.Next)
	}
	return nil, errors.New("elevenlabs voices: the list has no end")
}

// Warm opens a connection for the first sentence of a call.
func (p *Provider) Warm(ctx context.Context) error { return wire.Warm(ctx, p.client, p.base.String()) }
