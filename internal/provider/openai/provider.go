// Package openai speaks OpenAI's interface: a language model over chat completions, a
// speaker over audio/speech, a transcriber over audio/transcriptions and a
// speech-to-speech model over the Realtime WebSocket. Ollama, vLLM, llama.cpp, Groq and local Whisper, Kokoro and
// Piper servers speak the same interface, so the address and the name are settings.
//
// The package must not know the turn engine's state, the database or where its
// settings come from: it reads no environment, although the vendor's client would.
package openai

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"parley/internal/provider/wire"
)

// Options are the provider's settings.
type Options struct {
	Name    string // what errors call it; "openai" unless set
	APIKey  string // may be empty: local servers ask for none
	BaseURL string // with the version, as in http://127.0.0.1:11434/v1; OpenAI's own unless set

	SpeechModel        string // gpt-4o-mini-tts unless set
	TranscriptionModel string // gpt-4o-mini-transcribe unless set

	// TurnDetection has the Realtime service look for the ends of turns as well, by
	// server_vad or semantic_vad, and tell its opinion; nobody but the engine looks
	// unless set.
	TurnDetection string
	// OpenLimit bounds the opening of a Realtime session; 5 s unless set.
	OpenLimit time.Duration
	// Silence is the longest wait for the first piece of an answer and for each
	// one after it; 15 s unless set.
	Silence time.Duration
	Client  *http.Client // a new one unless set
}

const (
	ownBaseURL         = "https://api.openai.com/v1/"
	speechModel        = "gpt-4o-mini-tts"
	transcriptionModel = "gpt-4o-mini-transcribe"
	silence            = 15 * time.Second
	openLimit          = 5 * time.Second
)

// Provider is one server: make one, and share it between all calls.
type Provider struct {
	options       Options
	client        *http.Client
	chat          sdk.ChatCompletionService
	speech        sdk.AudioSpeechService
	transcription sdk.AudioTranscriptionService
	models        sdk.ModelService

	mu     sync.Mutex
	quirks map[string]quirks // by model
}

// New makes a provider. It does not reach for the network.
func New(o Options) (*Provider, error) {
	o = o.withDefaults()
	if _, err := wire.Base(o.Name, o.BaseURL, "https://api.openai.com/v1", false); err != nil {
		return nil, err
	}
	switch o.TurnDetection {
	case "", "server_vad", "semantic_vad":
	default:
		return nil, errors.New(o.Name + ": the turn detection must be server_vad, semantic_vad or empty")
	}
	p := &Provider{options: o, client: wire.Client(o.Client), quirks: map[string]quirks{}}
	// The services are made one by one, because the whole client reads the environment.
	settings := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(p.client),
		option.WithMaxRetries(0), // the engine knows how much time is left
		option.WithMiddleware(p.refuse),
	}
	if o.APIKey != "" {
		settings = append(settings, option.WithAPIKey(o.APIKey))
	}
	p.chat = sdk.NewChatCompletionService(settings...)
	p.speech = sdk.NewAudioSpeechService(settings...)
	p.transcription = sdk.NewAudioTranscriptionService(settings...)
	p.models = sdk.NewModelService(settings...)
	return p, nil
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "openai"
	}
	if o.BaseURL == "" {
		o.BaseURL = ownBaseURL
	}
	if !strings.HasSuffix(o.BaseURL, "/") {
		o.BaseURL += "/"
	}
	if o.SpeechModel == "" {
		o.SpeechModel = speechModel
	}
	if o.TranscriptionModel == "" {
		o.TranscriptionModel = transcriptionModel
	}
	if o.Silence <= 0 {
		o.Silence = silence
	}
	if o.OpenLimit <= 0 {
		o.OpenLimit = openLimit
	}
	return o
}

// Model is the server's language models.
func (p *Provider) Model() *Model { return &Model{p} }

// Speaker is the server's text to speech.
func (p *Provider) Speaker() *Speaker { return &Speaker{p} }

// Transcriber is the server's speech to text.
func (p *Provider) Transcriber() *Transcriber { return &Transcriber{p} }

// Duplex is the server's speech-to-speech models.
func (p *Provider) Duplex() *Duplex { return &Duplex{p} }

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
