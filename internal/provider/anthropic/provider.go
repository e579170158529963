// Package anthropic is Anthropic's Claude as a language model, over its Messages
// interface.
//
// The package must not know the turn engine's state, the database or where its
// settings come from: it reads no environment, although the vendor's client would.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"parley/internal/provider/wire"
)

// Options are the provider's settings.
type Options struct {
	APIKey  string
	BaseURL string // https://api.anthropic.com unless set

	// MostTokens bounds an answer, which the vendor demands; 4096 unless set.
	MostTokens int
	// Silence is the longest wait for the first piece of an answer and for each
	// one after it; 15 s unless set.
	Silence time.Duration
	Client  *http.Client // a new one unless set
}

const (
	name       = "anthropic"
	ownBaseURL = "https://api.anthropic.com"
	mostTokens = 4096
	silence    = 15 * time.Second
)

// Provider is the vendor: make one, and share it between all calls.
type Provider struct {
	options  Options
	client   *http.Client
	messages sdk.MessageService
	models   sdk.ModelService

	mu     sync.Mutex
	cooler map[string]bool // models that take no temperature
}

// New makes a provider. It does not reach for the network.
func New(o Options) (*Provider, error) {
	o = o.withDefaults()
	if o.APIKey == "" {
		return nil, errors.New(name + ": a key is needed")
	}
	if _, err := wire.Base(name, o.BaseURL, ownBaseURL, false); err != nil {
		return nil, err
	}
	p := &Provider{options: o, client: wire.Client(o.Client), cooler: map[string]bool{}}
	// The services are made one by one, because the whole client reads the environment.
	settings := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithAPIKey(o.APIKey),
		option.WithHTTPClient(p.client),
		option.WithMaxRetries(0), // the engine knows how much time is left
		option.WithMiddleware(p.refuse),
		option.WithoutOpenTelemetry(), // its spans may carry what was said
	}
	p.messages = sdk.NewMessageService(settings...)
	p.models = sdk.NewModelService(settings...)
	return p, nil
}

func (o Options) withDefaults() Options {
	if o.BaseURL == "" {
		o.BaseURL = ownBaseURL
	}
	if o.MostTokens <= 0 {
		o.MostTokens = mostTokens
	}
	if o.Silence <= 0 {
		o.Silence = silence
	}
	return o
}

// Model is the vendor's language models.
func (p *Provider) Model() *Model { return &Model{p} }

// Models asks the vendor for the names of its models.
func (p *Provider) Models(ctx context.Context) (names []string, err error) {
	ctx, watch := wire.Watch(ctx, p.options.Silence)
	defer watch.Stop()
	pages := p.models.ListAutoPaging(ctx, sdk.ModelListParams{Limit: sdk.Int(1000)})
	for pages.Next() {
		watch.Heard()
		names = append(names, pages.Current().ID)
	}
	if err := pages.Err(); err != nil {
		return nil, wire.Explain(ctx, name+" models", p.options.APIKey, err)
	}
	return names, nil
}

// Warm opens a connection for the first answer of a call.
func (p *Provider) Warm(ctx context.Context) error {
	return wire.Warm(ctx, p.client, p.options.BaseURL)
}

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
