package provider

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Settings are everything an operator can set about providers. The tags name the
// flags and the environment variables; the names are those that people already use.
type Settings struct {
	OpenAI     Account `embed:"" prefix:"openai-" envprefix:"OPENAI_"`
	Anthropic  Account `embed:"" prefix:"anthropic-" envprefix:"ANTHROPIC_"`
	Gemini     Account `embed:"" prefix:"gemini-" envprefix:"GEMINI_"`
	Deepgram   Account `embed:"" prefix:"deepgram-" envprefix:"DEEPGRAM_"`
	AssemblyAI Account `embed:"" prefix:"assemblyai-" envprefix:"ASSEMBLYAI_"`
	ElevenLabs Account `embed:"" prefix:"elevenlabs-" envprefix:"ELEVENLABS_"`
	Cartesia   Account `embed:"" prefix:"cartesia-" envprefix:"CARTESIA_"`

	OpenAIModels             []string `name:"openai-models" env:"OPENAI_MODELS" help:"Models to offer; empty for all that the server lists."`
	OpenAIVoices             []string `name:"openai-voices" env:"OPENAI_VOICES" help:"Voices to offer, for servers other than OpenAI's own."`
	OpenAISpeechModel        string   `name:"openai-speech-model" env:"OPENAI_SPEECH_MODEL" help:"Model that speaks; gpt-4o-mini-tts unless set."`
	OpenAITranscriptionModel string   `name:"openai-transcription-model" env:"OPENAI_TRANSCRIPTION_MODEL" help:"Model that transcribes; gpt-4o-mini-transcribe unless set."`
	OpenAITurnDetection      string   `name:"openai-turn-detection" env:"OPENAI_TURN_DETECTION" help:"server_vad or semantic_vad has OpenAI's live models judge the ends of turns too."`

	Speech  string `name:"speech" env:"PARLEY_SPEECH" type:"path" help:"Folder of the local speech models, for a build that has them (make speech): English without a key."`
	Sandbox string `name:"sandbox" env:"PARLEY_SANDBOX" default:"on" enum:"on,off" help:"The providers that need no key: ${enum}."`

	Transcribers      []string `name:"transcribers" env:"PARLEY_TRANSCRIBERS" help:"Who hears the customers, the first choice first, such as deepgram,openai; empty for whoever is configured."`
	FallbackModels    []string `name:"fallback-models" env:"PARLEY_FALLBACK_MODELS" help:"Who answers when an assistant's model fails, as provider/model, the first choice first."`
	FallbackVoices    []string `name:"fallback-voices" env:"PARLEY_FALLBACK_VOICES" help:"Who speaks when an assistant's voice fails, as provider/voice."`
	FallbackLive      []string `name:"fallback-live" env:"PARLEY_FALLBACK_LIVE" help:"Who goes on when a speech-to-speech model fails, as provider/model@voice."`
	CatalogueEveryMin int      `name:"catalogue-every-minutes" env:"PARLEY_CATALOGUE_EVERY_MINUTES" default:"60" help:"How often the providers are asked what they offer."`
}

// Account is how one provider is reached. The key comes from the environment or from
// a file, never from the database.
type Account struct {
	APIKey     string `name:"api-key" env:"API_KEY" hidden:"" help:"The provider's key."`
	APIKeyFile string `name:"api-key-file" env:"API_KEY_FILE" hidden:"" help:"A file with the provider's key."`
	BaseURL    string `name:"base-url" env:"BASE_URL" hidden:"" help:"The provider's address, if not its own."`
}

// set reports that a provider is wanted.
func (a Account) set() bool { return a != Account{} }

// key reads the key, which may stand in a file. The setting's name is for the error.
func (a Account) key(prefix string) (string, error) {
	if a.APIKeyFile == "" {
		return strings.TrimSpace(a.APIKey), nil
	}
	if a.APIKey != "" {
		return "", fmt.Errorf("%sAPI_KEY and %sAPI_KEY_FILE are both set; set one of them", prefix, prefix)
	}
	text, err := os.ReadFile(a.APIKeyFile)
	if err != nil {
		return "", fmt.Errorf("%sAPI_KEY_FILE cannot be read: %w", prefix, errors.Unwrap(err))
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("%sAPI_KEY_FILE is empty", prefix)
	}
	return key, nil
}
