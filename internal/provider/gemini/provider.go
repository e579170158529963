// Package gemini is Google's Gemini over the Gemini API: as a language model, and as a
// speech-to-speech model over the Live WebSocket.
//
// The package must not know the turn engine's state, the database or where its
// settings come from. The vendor's client looks at the environment as well, but
// everything it could find there is set here and so has no effect.
package gemini

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/genai"

	"parley/internal/provider/wire"
)

// Options are the provider's settings.
type Options struct {
	APIKey  string
	BaseURL string // https://generativelanguage.googleapis.com unless set

	// OpenLimit bounds the opening of a Live session; 5 s unless set.
	OpenLimit time.Duration
	// Silence is the longest wait for the first piece of an answer and for each
	// one after it; 15 s unless set.
	Silence time.Duration
	Client  *http.Client // a new one unless set
}

const (
	name       = "gemini"
	ownBaseURL = "https://generativelanguage.googleapis.com"
	silence    = 15 * time.Second
	openLimit  = 5 * time.Second
)

// Provider is the vendor: make one, and share it between all calls.
type Provider struct {
	options    Options
	client     *http.Client
	models     *genai.Models
	signatures *signatures
}

// New makes a provider. It does not reach for the network.
func New(o Options) (*Provider, error) {
	if o.APIKey == "" {
		return nil, errors.New(name + ": a key is needed")
	}
	if o.BaseURL == "" {
		o.BaseURL = ownBaseURL
	}
	if o.Silence <= 0 {
		o.Silence = silence
	}
	if o.OpenLimit <= 0 {
		o.OpenLimit = openLimit
	}
	if _, err := wire.Base(name, o.BaseURL, ownBaseURL, false); err != nil {
		return nil, err
	}
	p := &Provider{options: o, client: wire.Client(o.Client), signatures: newSignatures()}
	// No retries are configured: the engine knows how much time is left.
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: o.APIKey, Backend: genai.BackendGeminiAPI, HTTPClient: quiet(p.client),
		HTTPOptions: genai.HTTPOptions{BaseURL: o.BaseURL},
	})
	if err != nil {
		return nil, errors.New(name + ": the settings were refused") // the vendor's words hold the key
	}
	p.models = client.Models
	return p, nil
}

// Model is the vendor's language models.
func (p *Provider) Model() *Model { return &Model{p} }

// Duplex is the vendor's speech-to-speech models.
func (p *Provider) Duplex() *Duplex { return &Duplex{p} }

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
