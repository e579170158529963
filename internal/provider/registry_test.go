package provider_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/converse"
	"parley/internal/provider"
	"parley/internal/provider/providertest"
)

const key = "secret-0123456789"

// lists are what the vendors answer when they are asked what they offer.
var lists = map[string]string{
	"/openai/v1/models":                        `{"object":"list","data":[{"id":"llama3.2","object":"model"},{"id":"my-realtime","object":"model"}]}`,
	"/anthropic/v1/models":                     `{"data":[{"id":"claude-x","type":"model","display_name":"Claude X","created_at":"2025-01-01T00:00:00Z"}],"has_more":false,"first_id":"claude-x","last_id":"claude-x"}`,
	"/gemini/v1beta/models":                    `{"models":[{"name":"models/gemini-flash","supportedGenerationMethods":["generateContent"]},{"name":"models/gemini-flash-live","supportedGenerationMethods":["bidiGenerateContent"]},{"name":"models/gemini-tts","supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}`,
	"/deepgram/v1/projects":                    `{"projects":[]}`,
	"/assemblyai/v3/token":                     `{"token":"t","expires_in_seconds":60}`,
	"/elevenlabs/v2/voices":                    `{"voices":[{"voice_id":"e1","name":"Rachel"}],"has_more":true,"next_page_token":"p2"}`,
	"/elevenlabs/v2/voices?next_page_token=p2": `{"voices":[{"voice_id":"e2","name":"Adam"}],"has_more":false}`,
	"/cartesia/voices":                         `{"data":[{"id":"c1","name":"Hans","language":"de"}],"has_more":true}`,
	"/cartesia/voices?starting_after=c1":       `{"data":[{"id":"c2","name":"Jane","language":"en"}],"has_more":false}`,
}

// world is all vendors at one address; those named in dark answer with an error.
func world(t *testing.T, dark *atomic.Value) (*providertest.Server, provider.Settings) {
	t.Helper()
	server := providertest.Serve(func(_ context.Context, w http.ResponseWriter, r *http.Request) {
		vendor := strings.Split(r.URL.Path, "/")[1]
		if down, _ := dark.Load().(string); down == vendor {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		q := r.URL.Query()
		for _, noise := range []string{"limit", "page_size", "pageSize", "expires_in_seconds"} {
			q.Del(noise)
		}
		at := r.URL.Path
		if len(q) > 0 {
			at += "?" + q.Encode()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, lists[at])
	})
	t.Cleanup(server.Close)
	account := func(vendor string) provider.Account {
		return provider.Account{APIKey: key, BaseURL: server.URL + "/" + vendor}
	}
	return server, provider.Settings{
		OpenAI: account("openai/v1"), Anthropic: account("anthropic"), Gemini: account("gemini"), Deepgram: account("deepgram"),
		AssemblyAI: account("assemblyai"), ElevenLabs: account("elevenlabs"), Cartesia: account("cartesia"),
	}
}

func registry(t *testing.T, s provider.Settings) *provider.Registry {
	t.Helper()
	r, err := provider.New(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func names(c parley.Catalogue) (voices, models []string) {
	for _, v := range c.Voices {
		if v.Provider != parley.Sandbox {
			voices = append(voices, v.Provider+"/"+string(v.Mode)+"/"+v.Name)
		}
	}
	for _, m := range c.Models {
		models = append(models, m.Provider+"/"+m.Key)
	}
	return voices, models
}

func TestTheCatalogueIsAskedOfTheVendors(t *testing.T) {
	var dark atomic.Value
	server, s := world(t, &dark)
	s.OpenAIVoices = []string{"af_bella"}
	r := registry(t, s)
	c := r.Catalogue(t.Context())
	voices, models := names(c)
	require.Equal(t, []string{"openai/llama3.2", "openai/my-realtime", "anthropic/claude-x", "gemini/gemini-flash", "gemini/gemini-flash-live", "sandbox/instant", "sandbox/realistic"}, models)
	require.Contains(t, voices, "openai/pipeline/af_bella")
	require.Contains(t, voices, "openai/multimodal/marin")
	require.Contains(t, voices, "gemini/multimodal/Kore")
	require.Subset(t, voices, []string{"elevenlabs/pipeline/Rachel", "elevenlabs/pipeline/Adam", "cartesia/pipeline/Hans", "cartesia/pipeline/Jane"})
	require.Empty(t, c.Unknown)
	require.Equal(t, parley.Languages, c.Languages)
	for _, v := range c.Voices {
		if v.Name == "Hans" {
			require.Equal(t, "de", v.Language)
		}
	}
	headers := map[string][2]string{
		"openai": {"Authorization", "Bearer " + key}, "anthropic": {"X-Api-Key", key}, "gemini": {"X-Goog-Api-Key", key}, "deepgram": {"Authorization", "Token " + key},
		"assemblyai": {"Authorization", key}, "elevenlabs": {"Xi-Api-Key", key}, "cartesia": {"X-Api-Key", key},
	}
	for _, q := range server.Requests() {
		header := headers[strings.Split(q.Path, "/")[1]]
		require.Equal(t, header[1], q.Header.Get(header[0]), q.Path)
		if strings.HasPrefix(q.Path, "/cartesia") {
			require.Equal(t, "2025-04-16", q.Header.Get("Cartesia-Version"))
		}
	}

	asked := len(server.Requests())
	r.Catalogue(t.Context())
	require.Len(t, server.Requests(), asked, "what is known is not asked again")
	dark.Store("elevenlabs")
	again, err := r.Refresh(t.Context())
	require.EqualError(t, err, "elevenlabs voices: the key was refused (401)")
	require.Equal(t, c, again, "what it offered before stays")
}

func TestAVendorThatWasNeverReachedIsUnknown(t *testing.T) {
	var dark atomic.Value
	dark.Store("anthropic")
	_, s := world(t, &dark)
	r := registry(t, provider.Settings{Anthropic: s.Anthropic, AssemblyAI: s.AssemblyAI, Sandbox: "off"})
	kept := make(chan parley.Catalogue, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var log strings.Builder
	r.Run(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(_ context.Context, c parley.Catalogue) error {
		kept <- c
		cancel()
		return nil
	})
	c := <-kept
	require.Equal(t, []string{"anthropic"}, c.Unknown)
	require.Equal(t, []string{"assemblyai", "anthropic"}, c.Providers)
	require.Len(t, c.Languages, 6, "those that somebody hears")
	require.Contains(t, log.String(), "anthropic models: the key was refused (401)")
	require.NotContains(t, log.String(), key)
}

func pipeline(language string) *parley.Assistant {
	return &parley.Assistant{Mode: parley.Pipeline, Settings: parley.Settings{Language: language}}
}

func voice(vendor, key string) *parley.Voice {
	return &parley.Voice{Name: "the voice", Provider: vendor, Key: key}
}

func model(vendor, key string) *parley.Model {
	return &parley.Model{Name: key, Provider: vendor, Key: key}
}

// used are the providers of a chain, by name and key.
func used[T any](chain []converse.Provider[T]) (all []string) {
	for _, p := range chain {
		all = append(all, strings.TrimSuffix(p.Name+"/"+p.Key+"@"+p.Voice, "@"))
	}
	return all
}

func TestAnAssistantIsGivenItsProviders(t *testing.T) {
	var dark atomic.Value
	_, s := world(t, &dark)
	s.FallbackModels = []string{"anthropic/claude-x", " openai/llama3.2"}
	s.FallbackVoices = []string{"cartesia/c1"}
	s.FallbackLive = []string{"openai/my-realtime@marin"}
	r := registry(t, s)

	c, err := r.Equip(pipeline("German"), voice("elevenlabs", "e1"), model("anthropic", "claude-x"))
	require.NoError(t, err)
	require.Equal(t, []string{"anthropic/claude-x", "openai/llama3.2"}, used(c.Models), "the first choice is not its own fallback")
	require.Equal(t, []string{"elevenlabs/e1", "cartesia/c1"}, used(c.Speakers))
	require.Equal(t, []string{"deepgram/", "assemblyai/", "openai/"}, used(c.Transcribers), "streams before files")
	require.NotNil(t, c.Models[0].Use)

	c, err = r.Equip(pipeline("Finnish"), voice("cartesia", "c2"), model("openai", "llama3.2"))
	require.NoError(t, err)
	require.Equal(t, []string{"deepgram/", "openai/"}, used(c.Transcribers), "who does not hear the language is left out")

	c, err = r.Equip(pipeline("English"), voice("sandbox", "alto"), model("openai", "llama3.2"))
	require.NoError(t, err)
	require.Equal(t, []string{"sandbox/"}, used(c.Transcribers), "nobody else understands who answers in the sandbox's voice")
	require.Equal(t, []string{"sandbox/alto", "cartesia/c1"}, used(c.Speakers))

	live := &parley.Assistant{Mode: parley.Multimodal}
	c, err = r.Equip(live, voice("gemini", "Kore"), model("gemini", "gemini-flash-live"))
	require.NoError(t, err)
	require.Equal(t, []string{"gemini/gemini-flash-live@Kore", "openai/my-realtime@marin"}, used(c.Duplexes))
	require.Equal(t, []string{"anthropic/claude-x", "openai/llama3.2"}, used(c.Models), "for the evaluation")
}

func TestALiveModelsCallIsEvaluatedByItsProvider(t *testing.T) {
	var dark atomic.Value
	_, s := world(t, &dark)
	r := registry(t, s)
	r.Catalogue(t.Context())
	live := &parley.Assistant{Mode: parley.Multimodal}
	c, err := r.Equip(live, voice("gemini", "Kore"), model("gemini", "gemini-flash-live"))
	require.NoError(t, err)
	require.Equal(t, []string{"gemini/gemini-flash"}, used(c.Models))
	c, err = r.Equip(live, voice("sandbox", "alto"), model("sandbox", "instant"))
	require.NoError(t, err)
	require.Equal(t, []string{"sandbox/instant@alto"}, used(c.Duplexes))
	require.Equal(t, []string{"sandbox/instant"}, used(c.Models))
}

func TestAnAssistantThatCannotBeEquippedSaysWhatToSet(t *testing.T) {
	var dark atomic.Value
	_, s := world(t, &dark)
	some := registry(t, provider.Settings{Anthropic: s.Anthropic, ElevenLabs: s.ElevenLabs, AssemblyAI: s.AssemblyAI, Sandbox: "off"})
	deaf := registry(t, provider.Settings{Anthropic: s.Anthropic, ElevenLabs: s.ElevenLabs})
	live := &parley.Assistant{Mode: parley.Multimodal}
	for name, c := range map[string]struct {
		registry  *provider.Registry
		assistant *parley.Assistant
		voice     *parley.Voice
		model     *parley.Model
		want      string
	}{
		"model":        {some, pipeline("English"), voice("elevenlabs", "e1"), model("openai", "gpt-4o"), "the model gpt-4o cannot be used: the provider openai is not configured; set OPENAI_API_KEY"},
		"voice":        {some, pipeline("English"), voice("cartesia", "c1"), model("anthropic", "claude-x"), "the voice the voice cannot be used: the provider cartesia is not configured; set CARTESIA_API_KEY"},
		"sandbox":      {some, pipeline("English"), voice("sandbox", "alto"), model("anthropic", "claude-x"), "the provider sandbox is switched off; set PARLEY_SANDBOX to on"},
		"gone":         {some, pipeline("English"), voice("acme", "c1"), model("anthropic", "claude-x"), "there is no provider acme"},
		"language":     {some, pipeline("Finnish"), voice("elevenlabs", "e1"), model("anthropic", "claude-x"), "no configured provider transcribes Finnish"},
		"deaf":         {deaf, pipeline("English"), voice("elevenlabs", "e1"), model("anthropic", "claude-x"), "no provider that transcribes is configured; set DEEPGRAM_API_KEY"},
		"wrong mode":   {some, pipeline("English"), voice("elevenlabs", "e1"), model("openai", "gpt-realtime"), "it needs the engine type multimodal"},
		"wrong voice":  {some, live, voice("elevenlabs", "e1"), model("openai", "gpt-realtime"), "a speech-to-speech model has its own voices"},
		"not live":     {some, live, voice("anthropic", "x"), model("anthropic", "claude-x"), "the provider anthropic does not do this"},
		"live, no key": {some, live, voice("gemini", "Kore"), model("gemini", "gemini-live"), "set GEMINI_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.registry.Validate(c.assistant, c.voice, c.model)
			require.ErrorContains(t, err, c.want)
			_, err = c.registry.Equip(c.assistant, c.voice, c.model)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConnectionsAreOpenedBeforeTheTelephoneRings(t *testing.T) {
	server := providertest.Serve(func(context.Context, http.ResponseWriter, *http.Request) {})
	t.Cleanup(server.Close)
	r, err := provider.New(provider.Settings{Anthropic: provider.Account{APIKey: key, BaseURL: server.URL}})
	require.NoError(t, err)
	equip := func() {
		_, err := r.Equip(pipeline("English"), voice("sandbox", "alto"), model("anthropic", "claude-x"))
		require.NoError(t, err)
	}
	equip()
	require.Eventually(t, func() bool { return len(server.Requests()) > 0 }, providertest.Soon, providertest.Soon/1000)
	equip()
	require.NoError(t, r.Close())
	equip()
	require.Len(t, server.Requests(), 1, "one that was opened lately is not opened again, and none once all is over")
	require.Equal(t, "HEAD", server.Requests()[0].Method)
}

func TestProvidersAreChecked(t *testing.T) {
	var dark atomic.Value
	dark.Store("deepgram")
	_, s := world(t, &dark)
	s.OpenAIModels = []string{"llama3.2"}
	r := registry(t, s)
	byName := map[string]provider.Finding{}
	for _, f := range r.Check(t.Context()) {
		byName[f.Provider] = f
		require.NotContains(t, f.Message, key)
	}
	require.Equal(t, provider.Finding{Provider: "deepgram", Setting: "DEEPGRAM_API_KEY", Message: "deepgram: the key was refused (401); see DEEPGRAM_API_KEY"}, byName["deepgram"])
	require.Equal(t, provider.Finding{Provider: "assemblyai", Setting: "ASSEMBLYAI_API_KEY", OK: true, Message: "the key is good"}, byName["assemblyai"])
	require.Equal(t, provider.Finding{Provider: "elevenlabs", Setting: "ELEVENLABS_API_KEY", OK: true, Message: "2 voices, 0 models"}, byName["elevenlabs"])
	require.True(t, byName["sandbox"].OK)
	dark.Store("openai")
	for _, f := range r.Check(t.Context()) {
		require.Equal(t, f.Provider != "openai", f.OK, "models that are set are offered unasked, but the key is checked: %s", f.Message)
	}
	deaf := registry(t, provider.Settings{Anthropic: s.Anthropic, Sandbox: "off"}).Check(t.Context())
	require.Contains(t, deaf[len(deaf)-1].Message, "nobody transcribes")
}

func TestSettingsHaveTheNamesThatPeopleUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://127.0.0.1:11434/v1", "OPENAI_MODELS": "llama3.2,qwen3", "ANTHROPIC_API_KEY_FILE": file,
		"GEMINI_API_KEY": key, "DEEPGRAM_API_KEY": key, "ASSEMBLYAI_API_KEY": key, "ELEVENLABS_API_KEY": key, "CARTESIA_API_KEY": key,
		"CARTESIA_BASE_URL": "wss://example.com", "PARLEY_SANDBOX": "off", "PARLEY_TRANSCRIBERS": "openai,deepgram", "PARLEY_FALLBACK_MODELS": "anthropic/claude-x",
	} {
		t.Setenv(name, value)
	}
	var config struct {
		Providers provider.Settings `embed:""`
	}
	parser, err := kong.New(&config)
	require.NoError(t, err)
	_, err = parser.Parse(nil)
	require.NoError(t, err)
	r := registry(t, config.Providers)
	c, err := r.Equip(pipeline("English"), voice("cartesia", "c1"), model("openai", "qwen3"))
	require.NoError(t, err)
	require.Equal(t, []string{"openai/", "deepgram/"}, used(c.Transcribers))
	require.Equal(t, []string{"openai/qwen3", "anthropic/claude-x"}, used(c.Models))
	require.Equal(t, 60, config.Providers.CatalogueEveryMin)
}

func TestSettingsThatCannotWork(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte(" \n"), 0o600))
	for want, s := range map[string]provider.Settings{
		"PARLEY_SANDBOX is off and no provider is configured":                               {Sandbox: "off"},
		"OPENAI_API_KEY and OPENAI_API_KEY_FILE are both set":                               {OpenAI: provider.Account{APIKey: key, APIKeyFile: "x"}},
		"GEMINI_API_KEY_FILE cannot be read: no such file":                                  {Gemini: provider.Account{APIKeyFile: "/no/such/file"}},
		"GEMINI_API_KEY_FILE is empty":                                                      {Gemini: provider.Account{APIKeyFile: empty}},
		"anthropic: a key is needed; see ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL":          {Anthropic: provider.Account{BaseURL: "https://example.com"}},
		"openai: a key is needed":                                                           {OpenAI: provider.Account{BaseURL: "https://api.openai.com/v1"}},
		"the base URL must be like":                                                         {Deepgram: provider.Account{APIKey: key, BaseURL: "ftp://x"}},
		"turn detection must be":                                                            {OpenAI: provider.Account{APIKey: key}, OpenAITurnDetection: "mine"},
		"PARLEY_TRANSCRIBERS: the provider deepgram is not configured":                      {Transcribers: []string{"deepgram"}},
		"PARLEY_FALLBACK_MODELS: \"claude\" is not like provider/model":                     {FallbackModels: []string{"claude"}},
		"PARLEY_FALLBACK_MODELS: the provider openai is not configured; set OPENAI_API_KEY": {FallbackModels: []string{"openai/gpt-4o"}},
		"PARLEY_FALLBACK_VOICES: the provider deepgram does not do this":                    {Deepgram: provider.Account{APIKey: key}, FallbackVoices: []string{"deepgram/x"}},
		"PARLEY_FALLBACK_LIVE: there is no provider acme; there are sandbox":                {FallbackLive: []string{"acme/x@y"}},
	} {
		_, err := provider.New(s)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), key)
	}
}
