package elevenlabs_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/providertest"
)

const key = "xi-secret-0123456789"

// bench is a provider and its service, and how to take both down.
func bench(handler providertest.Handler, o elevenlabs.Options) (*elevenlabs.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*elevenlabs.Provider, error) {
		o.APIKey, o.BaseURL = key, url
		return elevenlabs.New(o)
	})
}

// piece is a chunk of the stream; each character lasts a tenth of a second.
func piece(sound []byte, text string, start float64) string {
	c := map[string]any{"audio_base64": base64.StdEncoding.EncodeToString(sound), "alignment": nil, "normalized_alignment": nil}
	if text != "" {
		var characters []string
		var starts, ends []float64
		for i, r := range []rune(text) {
			characters = append(characters, string(r))
			starts = append(starts, start+float64(i)/10)
			ends = append(ends, start+float64(i+1)/10)
		}
		c["alignment"] = map[string]any{"characters": characters, "character_start_times_seconds": starts, "character_end_times_seconds": ends}
	}
	b, _ := json.Marshal(c)
	return string(b) + "\n\n"
}

// speaking streams pieces.
func speaking(pieces ...string) providertest.Handler {
	return func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func utterance(rate audio.Rate) converse.Utterance {
	return converse.Utterance{Text: "Hi you.", Voice: "JBFqnCBsd6RMkjVDRZzb", Language: "en", Rate: rate, Speed: 1.1, Stability: 0.7, Similarity: 0.5}
}

func speak(t *testing.T, p *elevenlabs.Provider, u converse.Utterance) (samples []int16, words []converse.SpokenWord, err error) {
	t.Helper()
	err = p.Speaker().Speak(t.Context(), u, func(s converse.Sound) {
		samples = append(samples, s.Samples...)
		words = append(words, s.Words...)
	})
	return samples, words, err
}

func TestTheSpeakerKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, silence time.Duration) func() (converse.Speaker, func()) {
		return func() (converse.Speaker, func()) {
			p, _, release := bench(h, elevenlabs.Options{Silence: silence})
			return p.Speaker(), release
		}
	}
	for _, c := range providertest.Speaker(providertest.Rig[converse.Speaker]{
		Name: "elevenlabs", Working: rig(speaking(piece(make([]byte, 5600), "Hi you.", 0)), time.Minute),
		Stalled: rig(providertest.Stall, time.Minute), Impatient: rig(providertest.Stall, 30*time.Millisecond),
	}, utterance(audio.Rate8k)) {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func TestWhatTheServiceIsAsked(t *testing.T) {
	p, server, release := bench(speaking(piece([]byte{0xff, 0x00, 0x80}, "", 0)), elevenlabs.Options{})
	defer release()
	samples, words, err := speak(t, p, utterance(audio.Rate8k))
	require.NoError(t, err)
	require.Equal(t, []int16{0, -32124, 32124}, samples)
	require.Empty(t, words)
	r := server.Requests()[0]
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb/stream/with-timestamps", r.Path)
	require.Equal(t, "output_format=ulaw_8000", r.Query)
	require.Equal(t, key, r.Header.Get("Xi-Api-Key"))
	require.JSONEq(t, `{"text":"Hi you.","model_id":"eleven_flash_v2_5","language_code":"en","voice_settings":{"stability":0.7,"similarity_boost":0.5,"speed":1.1}}`, string(r.Body))
}

func TestAModelThatTakesNoLanguageIsToldNone(t *testing.T) {
	p, server, release := bench(speaking(piece(make([]byte, 8), "", 0)), elevenlabs.Options{Model: "eleven_multilingual_v2"})
	defer release()
	_, _, err := speak(t, p, utterance(audio.Rate8k))
	require.NoError(t, err)
	require.NotContains(t, string(server.Requests()[0].Body), "language_code")
}

func TestBareSamplesMayBeCutAnywhere(t *testing.T) {
	for _, rate := range []audio.Rate{audio.Rate16k, audio.Rate24k, audio.Rate48k} {
		p, server, release := bench(speaking(piece([]byte{1, 0, 2}, "", 0), piece([]byte{0, 0xff}, "", 0), piece([]byte{0xff}, "", 0)), elevenlabs.Options{})
		samples, _, err := speak(t, p, utterance(rate))
		require.NoError(t, err)
		require.Equal(t, []int16{1, 2, -1}, samples)
		require.Contains(t, server.Requests()[0].Query, "output_format=pcm_")
		release()
	}
}

func TestWordsAreKnownByTheirCharacters(t *testing.T) {
	const tenth = 100 * time.Millisecond
	want := []converse.SpokenWord{{Text: "Hi", Start: 0, End: 2 * tenth}, {Text: "you.", Start: 3 * tenth, End: 7 * tenth}}
	for name, second := range map[string]float64{"from the sentence's start": 0.5, "from the piece's start": 0} {
		t.Run(name, func(t *testing.T) {
			// A tenth of a second is 800 bytes; "yo" ends one piece and "u." is the next.
			p, _, release := bench(speaking(piece(make([]byte, 4000), "Hi yo", 0), piece(make([]byte, 1600), "u.", second)), elevenlabs.Options{})
			defer release()
			_, words, err := speak(t, p, utterance(audio.Rate8k))
			require.NoError(t, err)
			require.Len(t, words, 2)
			for i, w := range words {
				require.Equal(t, want[i].Text, w.Text)
				require.InDelta(t, want[i].Start, w.Start, float64(time.Millisecond))
				require.InDelta(t, want[i].End, w.End, float64(time.Millisecond))
			}
		})
	}
}

func TestErrorsNameTheProviderAndKeepTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":     {providertest.Refuse(401, `{"detail":{"status":"invalid_api_key","message":"Invalid API key `+key+`"}}`), "the key was refused (401)"},
		"no credit":     {providertest.Refuse(401, `{"detail":{"status":"quota_exceeded","message":"This request exceeds your quota"}}`), "no credit left (401)"},
		"forbidden":     {providertest.Refuse(403, `{}`), "the key does not allow this (403)"},
		"no such voice": {providertest.Refuse(404, `{"detail":{"status":"voice_not_found","message":"A voice was not found."}}`), "the request was refused (404): A voice was not found."},
		"wrong field":   {providertest.Refuse(422, `{"detail":[{"loc":["body","speed"],"msg":"too fast"}]}`), "the request was refused (422): too fast"},
		"busy":          {providertest.Refuse(429, `{"detail":{"status":"too_many_concurrent_requests","message":"Too many"}}`, "Retry-After", "2"), "too many requests or no credit left (429), to be tried again after 2 s: Too many"},
		"failure":       {providertest.Refuse(500, "oops "+key), "the service failed (500)"},
		"in the stream": {speaking(piece(make([]byte, 80), "", 0), `{"detail":{"status":"x","message":"lost `+key+`"}}`), "the service gave up: lost ***"},
		"not JSON":      {speaking("<html>"), "what is not JSON"},
		"wrong types":   {speaking(`{"audio_base64":7}`), "what is not JSON"},
		"half a piece":  {speaking(`{"audio_base64":"AAAA`), "the connection was lost"},
		"empty":         {speaking(), "the service sent no sound"},
		"silent":        {speaking(piece(nil, "Hi", 0)), "the service sent no sound"},
		"cut": {func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, piece(make([]byte, 80), "", 0))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "the connection was lost"},
		"half open": {func(ctx context.Context, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, piece(make([]byte, 80), "", 0))
			_ = http.NewResponseController(w).Flush()
			<-ctx.Done()
		}, "no word from the service for 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, release := bench(c.handler, elevenlabs.Options{Silence: 200 * time.Millisecond})
			defer release()
			_, _, err := speak(t, p, utterance(audio.Rate8k))
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "elevenlabs speaker: "), err.Error())
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestWhatCannotBeSpoken(t *testing.T) {
	p, server, release := bench(providertest.Stall, elevenlabs.Options{})
	defer release()
	u := utterance(44100)
	_, _, err := speak(t, p, u)
	require.EqualError(t, err, "elevenlabs speaker: no sampling rate of 44100 Hz")
	for _, voice := range []string{"", "../../v1/user", "a/b", "a?b"} {
		u := utterance(audio.Rate8k)
		u.Voice = voice
		_, _, err := speak(t, p, u)
		require.ErrorContains(t, err, "there is no voice")
	}
	require.Empty(t, server.Requests())
}

func TestSettingsThatCannotWork(t *testing.T) {
	_, err := elevenlabs.New(elevenlabs.Options{})
	require.ErrorContains(t, err, "a key is needed")
	_, err = elevenlabs.New(elevenlabs.Options{APIKey: key, BaseURL: "nowhere"})
	require.ErrorContains(t, err, "base URL")
}
