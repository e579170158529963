// Package cartesia is Cartesia's text to speech over WebSockets, with the times of
// its words.
//
// The package must not know the turn engine's state, the database or where its
// settings come from.
package cartesia

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
	BaseURL string // wss://api.cartesia.ai unless set; http and https are taken as ws and wss
	Model   string // sonic-3 unless set

	// Silence is the longest wait for a connection, for the first sound of a sentence
	// and for each piece after it; 10 s unless set.
	Silence time.Duration
	Client  *http.Client // for the opening; a new one unless set
}

const (
	ownBaseURL = "wss://api.cartesia.ai"
	model      = "sonic-3"
	version    = "2025-04-16" // of the interface
	silence    = 10 * time.Second
)

// Provider is the vendor: make one, and share it between all calls.
type Provider struct {
	options Options
	base    *url.URL // of requests
	address string   // of sentences
	client  *http.Client
	idle    pool
}

// New makes a provider. It does not reach for the network.
func New(o Options) (*Provider, error) {
	if o.APIKey == "" {
		return nil, errors.New("cartesia: a key is needed")
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
	base, err := wire.Base("cartesia", o.BaseURL, ownBaseURL, true)
	if err != nil {
		return nil, err
	}
	return &Provider{options: o, base: wire.HTTP(base), address: base.JoinPath("tts", "websocket").String(), client: wire.Client(o.Client)}, nil
}

// Speaker is the vendor's text to speech.
func (p *Provider) Speaker() *Speaker { return &Speaker{p} }

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.idle.close()
	p.client.CloseIdleConnections()
	return nil
}
