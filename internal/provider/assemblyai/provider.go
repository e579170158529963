// Package assemblyai is AssemblyAI's streaming speech to text, version 3, over a
// WebSocket.
//
// The package must not know the turn engine's state, the database or where its
// settings come from.
package assemblyai

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"parley/internal/provider/wire"
)

// Options are the provider's settings.
type Options struct {
	APIKey  string
	BaseURL string // wss://streaming.assemblyai.com unless set; http and https are taken as ws and wss
	// Model is the speech model; unless set it is the streaming one for English, or
	// the one for several languages if another is spoken.
	Model string

	// OpenLimit bounds the opening of a stream; 5 s unless set.
	OpenLimit time.Duration
	Client    *http.Client // for the opening; a new one unless set
}

const (
	ownBaseURL   = "wss://streaming.assemblyai.com"
	english      = "universal-streaming-english"
	multilingual = "universal-streaming-multilingual"
	openLimit    = 5 * time.Second
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
		return nil, errors.New("assemblyai: a key is needed")
	}
	if o.BaseURL == "" {
		o.BaseURL = ownBaseURL
	}
	if o.OpenLimit <= 0 {
		o.OpenLimit = openLimit
	}
	base, err := wire.Base("assemblyai", o.BaseURL, ownBaseURL, true)
	if err != nil {
		return nil, err
	}
	return &Provider{options: o, base: base, client: wire.Client(o.Client)}, nil
}

// Transcriber is the vendor's speech to text.
func (p *Provider) Transcriber() *Transcriber { return &Transcriber{p} }

// Check asks the service whether it takes the key: it makes a token that nobody uses.
func (p *Provider) Check(ctx context.Context) error {
	ctx, watch := wire.Watch(ctx, p.options.OpenLimit)
	defer watch.Stop()
	var token struct{}
	address := wire.HTTP(p.base).JoinPath("v3", "token")
	address.RawQuery = "expires_in_seconds=60"
	header := http.Header{"Authorization": {p.options.APIKey}}
	if err := wire.Get(ctx, p.client, address.String(), header, func(body []byte) string { return refused(body, nil) }, &token); err != nil {
		return wire.Explain(ctx, "assemblyai", p.options.APIKey, err)
	}
	return nil
}

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
