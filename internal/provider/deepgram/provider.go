// Package deepgram is Deepgram's streaming speech to text over a WebSocket.
//
// The package must not know the turn engine's state, the database or where its
// settings come from.
package deepgram

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
	BaseURL string // wss://api.deepgram.com unless set; http and https are taken as ws and wss
	Model   string // nova-3 unless set

	// Endpointing is the pause after which the service calls an utterance over; 300
	// ms unless set.
	Endpointing time.Duration
	// OpenLimit bounds the opening of a stream; 5 s unless set.
	OpenLimit time.Duration
	// KeepAlive is how long the stream may be without sound before the service is
	// told that it is still wanted; 5 s unless set, and the service gives up after 10.
	KeepAlive time.Duration
	Client    *http.Client // for the opening; a new one unless set
}

const (
	ownBaseURL  = "wss://api.deepgram.com"
	model       = "nova-3"
	endpointing = 300 * time.Millisecond
	openLimit   = 5 * time.Second
	keepAlive   = 5 * time.Second
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
		return nil, errors.New("deepgram: a key is needed")
	}
	o = o.withDefaults()
	base, err := wire.Base("deepgram", o.BaseURL, ownBaseURL, true)
	if err != nil {
		return nil, err
	}
	return &Provider{options: o, base: base, client: wire.Client(o.Client)}, nil
}

func (o Options) withDefaults() Options {
	if o.BaseURL == "" {
		o.BaseURL = ownBaseURL
	}
	if o.Model == "" {
		o.Model = model
	}
	if o.Endpointing <= 0 {
		o.Endpointing = endpointing
	}
	if o.OpenLimit <= 0 {
		o.OpenLimit = openLimit
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = keepAlive
	}
	return o
}

// Transcriber is the vendor's speech to text.
func (p *Provider) Transcriber() *Transcriber { return &Transcriber{p} }

// Check asks the service whether it takes the key.
func (p *Provider) Check(ctx context.Context) error {
	ctx, watch := wire.Watch(ctx, p.options.OpenLimit)
	defer watch.Stop()
	var projects struct{}
	address := wire.HTTP(p.base).JoinPath("v1", "projects").String()
	header := http.Header{"Authorization": {"Token " + p.options.APIKey}}
	if err := wire.Get(ctx, p.client, address, header, func(body []byte) string { return refused(body, nil) }, &projects); err != nil {
		return wire.Explain(ctx, "deepgram", p.options.APIKey, err)
	}
	return nil
}

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
