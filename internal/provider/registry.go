// Package provider turns an operator's settings into the providers that calls use: it
// knows which vendors are configured, what they offer, and which of them an assistant
// needs. It must not know the database: what is offered is told, and what an
// assistant has chosen is given.
package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/converse"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/gemini"
	"parley/internal/provider/openai"
	"parley/internal/provider/sandbox"
)

// Registry is the configured providers: make one, and share it between all calls.
type Registry struct {
	vendors []*vendor // in the order of preference for hearing
	chains  chains
	every   time.Duration

	stop context.CancelFunc // ends the warming up
	life context.Context    //nolint:containedctx // bounds what outlives the calls that start it
	work sync.WaitGroup

	mu     sync.Mutex
	offers map[string]offer
	asked  map[string]error // how the last question to each vendor ended
	warmed map[string]time.Time
}

// vendor is one provider with the parts it has; the others are nil.
type vendor struct {
	name    string
	setting string // that configures it

	transcriber converse.Transcriber
	model       converse.Model
	speaker     converse.Speaker
	duplex      converse.Duplex

	hears func(iso string) bool                    // nil for every language
	offer func(ctx context.Context) (offer, error) // asks what there is, and so whether the key is good
	check func(ctx context.Context) error          // whether the key is good, where offer does not tell
	warm  func(ctx context.Context) error          // opens a connection early; nil if calls open their own
	close func() error
}

// settingOf is which setting configures each provider.
var settingOf = map[string]string{
	"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY", "deepgram": "DEEPGRAM_API_KEY",
	"assemblyai": "ASSEMBLYAI_API_KEY", "elevenlabs": "ELEVENLABS_API_KEY", "cartesia": "CARTESIA_API_KEY", parley.Sandbox: "PARLEY_SANDBOX", localName: "PARLEY_SPEECH",
}

// localName is the provider of local speech, in builds that have it.
const localName = "local"

// New makes the providers that are configured. It does not reach for the network.
func New(s Settings) (*Registry, error) {
	r := &Registry{offers: map[string]offer{}, asked: map[string]error{}, warmed: map[string]time.Time{}, every: time.Duration(s.CatalogueEveryMin) * time.Minute}
	if s.CatalogueEveryMin < 1 {
		r.every = time.Hour
	}
	r.life, r.stop = context.WithCancel(context.Background())
	err := r.connect(s)
	if err == nil {
		r.chains, err = r.parse(s)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// connect makes a vendor of each account. Those that transcribe come in the order in
// which they are preferred: streams before files.
func (r *Registry) connect(s Settings) error {
	for _, c := range []struct {
		prefix  string
		account Account
		make    func(a Account, s Settings) (*vendor, error)
	}{
		{"DEEPGRAM_", s.Deepgram, newDeepgram},
		{"ASSEMBLYAI_", s.AssemblyAI, newAssemblyAI},
		{"OPENAI_", s.OpenAI, newOpenAI},
		{"ANTHROPIC_", s.Anthropic, newAnthropic},
		{"GEMINI_", s.Gemini, newGemini},
		{"ELEVENLABS_", s.ElevenLabs, newElevenLabs},
		{"CARTESIA_", s.Cartesia, newCartesia},
	} {
		if !c.account.set() {
			continue
		}
		key, err := c.account.key(c.prefix)
		if err != nil {
			return err
		}
		c.account.APIKey = key
		v, err := c.make(c.account, s)
		if err != nil {
			return fmt.Errorf("%w; see %sAPI_KEY and %sBASE_URL", err, c.prefix, c.prefix)
		}
		v.setting = settingOf[v.name]
		r.vendors = append(r.vendors, v)
	}
	if s.Speech != "" {
		v, err := newLocal(s.Speech)
		if err != nil {
			return err
		}
		r.vendors = append(r.vendors, v)
	}
	if s.Sandbox != "off" {
		r.vendors = append(r.vendors, newSandbox())
	}
	if len(r.vendors) == 0 {
		return errors.New("PARLEY_SANDBOX is off and no provider is configured; set OPENAI_API_KEY, say")
	}
	return nil
}

func newDeepgram(a Account, _ Settings) (*vendor, error) {
	p, err := deepgram.New(deepgram.Options{APIKey: a.APIKey, BaseURL: a.BaseURL})
	if err != nil {
		return nil, err
	}
	return &vendor{name: "deepgram", transcriber: p.Transcriber(), offer: nothing(p.Check), close: p.Close}, nil
}

func newAssemblyAI(a Account, _ Settings) (*vendor, error) {
	p, err := assemblyai.New(assemblyai.Options{APIKey: a.APIKey, BaseURL: a.BaseURL})
	if err != nil {
		return nil, err
	}
	hears := func(iso string) bool { return slices.Contains([]string{"en", "es", "fr", "de", "it", "pt"}, iso) }
	return &vendor{name: "assemblyai", transcriber: p.Transcriber(), hears: hears, offer: nothing(p.Check), close: p.Close}, nil
}

func newOpenAI(a Account, s Settings) (*vendor, error) {
	p, err := openai.New(openai.Options{
		APIKey: a.APIKey, BaseURL: a.BaseURL, SpeechModel: s.OpenAISpeechModel,
		TranscriptionModel: s.OpenAITranscriptionModel, TurnDetection: s.OpenAITurnDetection,
	})
	if err != nil {
		return nil, err
	}
	if a.APIKey == "" && p.Own() {
		return nil, errors.New("openai: a key is needed")
	}
	return &vendor{
		name: "openai", transcriber: p.Transcriber(), model: p.Model(), speaker: p.Speaker(), duplex: p.Duplex(),
		offer: func(ctx context.Context) (offer, error) { return offerOfOpenAI(ctx, p, s) },
		check: func(ctx context.Context) error { _, err := p.Models(ctx); return err }, warm: p.Warm, close: p.Close,
	}, nil
}

func newAnthropic(a Account, _ Settings) (*vendor, error) {
	p, err := anthropic.New(anthropic.Options{APIKey: a.APIKey, BaseURL: a.BaseURL})
	if err != nil {
		return nil, err
	}
	return &vendor{name: "anthropic", model: p.Model(), warm: p.Warm, close: p.Close, offer: func(ctx context.Context) (o offer, err error) {
		names, err := p.Models(ctx)
		o.models("anthropic", names)
		return o, err
	}}, nil
}

func newGemini(a Account, _ Settings) (*vendor, error) {
	p, err := gemini.New(gemini.Options{APIKey: a.APIKey, BaseURL: a.BaseURL})
	if err != nil {
		return nil, err
	}
	return &vendor{name: "gemini", model: p.Model(), duplex: p.Duplex(), warm: p.Warm, close: p.Close, offer: func(ctx context.Context) (o offer, err error) {
		text, live, err := p.Models(ctx)
		o.models("gemini", text)
		o.live("gemini", live, gemini.Voices())
		return o, err
	}}, nil
}

func newElevenLabs(a Account, _ Settings) (*vendor, error) {
	p, err := elevenlabs.New(elevenlabs.Options{APIKey: a.APIKey, BaseURL: a.BaseURL})
	if err != nil {
		return nil, err
	}
	return &vendor{name: "elevenlabs", speaker: p.Speaker(), offer: voices(p.Voices), warm: p.Warm, close: p.Close}, nil
}

func newCartesia(a Account, _ Settings) (*vendor, error) {
	p, err := cartesia.New(cartesia.Options{APIKey: a.APIKey, BaseURL: a.BaseURL})
	if err != nil {
		return nil, err
	}
	return &vendor{name: "cartesia", speaker: p.Speaker(), offer: voices(p.Voices), warm: p.Warm, close: p.Close}, nil
}

func newSandbox() *vendor {
	p := sandbox.New(sandbox.Options{})
	return &vendor{
		name: parley.Sandbox, setting: settingOf[parley.Sandbox], transcriber: p.Transcriber(), model: p.Model(), speaker: p.Speaker(), duplex: p.Duplex(),
		offer: func(context.Context) (o offer, err error) {
			for _, v := range parley.SandboxVoices {
				o.Voices = append(o.Voices, parley.OfferedVoice{Voice: v})
			}
			o.Models = parley.SandboxModels
			return o, nil
		},
		close: func() error { return nil },
	}
}

// find is a configured provider. The error names the setting that is missing.
func (r *Registry) find(name string) (*vendor, error) {
	for _, v := range r.vendors {
		if v.name == name {
			return v, nil
		}
	}
	setting, known := settingOf[name]
	switch {
	case !known:
		return nil, fmt.Errorf("there is no provider %s; there are %s", name, strings.Join(r.names(), ", "))
	case name == parley.Sandbox:
		return nil, errors.New("the provider sandbox is switched off; set PARLEY_SANDBOX to on")
	}
	return nil, fmt.Errorf("the provider %s is not configured; set %s", name, setting)
}

// names are the configured providers.
func (r *Registry) names() (names []string) {
	for _, v := range r.vendors {
		names = append(names, v.name)
	}
	return names
}

// Close ends the warming up and lets go of all connections.
func (r *Registry) Close() (err error) {
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.work.Wait()
	for _, v := range r.vendors {
		err = errors.Join(err, v.close())
	}
	return err
}
