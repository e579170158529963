// Package elevenlabs is ElevenLabs' text to speech.
//
// It uses the HTTP stream with timings and not the WebSocket: the engine hands over
// whole sentences, for which the vendor itself advises HTTP, and a kept connection
// saves the handshake that a socket per sentence would cost.
//
// The package must not know the turn engine's state, the database or where its
// settings come from.
package elevenlabs

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"parley/internal/provider/wire"
)

// Options are the provider's settings.
type Options struct {
	APIKey  string
	BaseURL string // https://api.elevenlabs.io unless set
	Model   string // eleven_flash_v2_5 unless set

	// Silence is the longest wait for the first sound of a sentence and for each
	// piece after it; 10 s unless set.
	Silence time.Duration
	Client  *http.Client // a new one unless set
}

const (
	ownBaseURL = "https://api.elevenlabs.io"
	model      = "eleven_flash_v2_5"
	silence    = 10 * time.Second
)

// Provider is the vendor: make one, and share it between all calls.
type Provider struct {
	options Options
	base    *url.URL
	client  *http.Client
}

// New makes a provider. It does not reach for the network.
func New(o Options) (*Provider, error) {
	if o.APIKey == "" {
		return nil, errors.New("elevenlabs: a key is needed")
	}
	if o.BaseURL == "" {
		o.BaseURL = ownBaseURL
	}
	if o.Model == "" {
		o.Model = model
	}
	if o.Silence <= 0 {
		o.Silence = silence
	}
	base, err := wire.Base("elevenlabs", o.BaseURL, ownBaseURL, false)
	if err != nil {
		return nil, err
	}
	return &Provider{options: o, base: base, client: wire.Client(o.Client)}, nil
}

// Speaker is the vendor's text to speech.
func (p *Provider) Speaker() *Speaker { return &Speaker{p} }

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
