package cartesia_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/providertest"
)

const key = "sk_car_secret_0123456789"

// bench is a provider and its service, and how to take both down.
func bench(handler providertest.Handler, silence time.Duration) (*cartesia.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*cartesia.Provider, error) {
		return cartesia.New(cartesia.Options{APIKey: key, BaseURL: url, Silence: silence})
	})
}

// service answers every request on a connection with these events; %s is the context.
func service(asked chan<- string, events ...string) providertest.Handler {
	return providertest.Sockets(func(ctx context.Context, socket *websocket.Conn) {
		for {
			_, body, err := socket.Read(ctx)
			if err != nil {
				return
			}
			if asked != nil {
				asked <- string(body)
			}
			var q struct {
				Context string `json:"context_id"`
			}
			_ = json.Unmarshal(body, &q)
			for _, e := range events {
				providertest.SendText(ctx, socket, strings.ReplaceAll(e, "%s", q.Context))
			}
		}
	})
}

// Four samples, cut in the middle of the third.
const (
	first  = `{"type":"chunk","data":"AQACAP8=","done":false,"status_code":206,"step_time":12,"context_id":"%s"}`
	second = `{"type":"chunk","data":"/wMA","done":false,"status_code":206,"step_time":12,"context_id":"%s"}`
	words  = `{"type":"timestamps","done":false,"status_code":206,"context_id":"%s","word_timestamps":{"words":["Hello","world"],"start":[0,0.5],"end":[0.4,0.9]}}`
	over   = `{"type":"done","done":true,"status_code":206,"context_id":"%s"}`
)

func utterance() converse.Utterance {
	return converse.Utterance{Text: "Hello world", Voice: "a0e99841", Language: "en", Rate: audio.Rate8k, Speed: 1.1}
}

func speak(t *testing.T, p *cartesia.Provider) (samples []int16, spoken []converse.SpokenWord, err error) {
	t.Helper()
	err = p.Speaker().Speak(t.Context(), utterance(), func(s converse.Sound) {
		samples = append(samples, s.Samples...)
		spoken = append(spoken, s.Words...)
	})
	return samples, spoken, err
}

func TestTheSpeakerKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, silence time.Duration) func() (converse.Speaker, func()) {
		return func() (converse.Speaker, func()) {
			p, _, release := bench(h, silence)
			return p.Speaker(), release
		}
	}
	for _, c := range providertest.Speaker(providertest.Rig[converse.Speaker]{
		Name: "cartesia", Working: rig(service(nil, first, words, second, over), time.Minute),
		Stalled: rig(providertest.Sockets(providertest.Drain), time.Minute), Impatient: rig(providertest.Stall, 30*time.Millisecond),
	}, utterance()) {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func TestWhatTheServiceIsAskedAndSays(t *testing.T) {
	asked := make(chan string, 4)
	p, server, release := bench(service(asked, `{"type":"chunk","data":"AAAA","context_id":"of another sentence"}`, first, words, `{"type":"flush_done"}`, second, over), time.Minute)
	defer release()
	for range 2 {
		samples, spoken, err := speak(t, p)
		require.NoError(t, err)
		require.Equal(t, []int16{1, 2, -1, 3}, samples)
		require.Equal(t, []converse.SpokenWord{
			{Text: "Hello", Start: 0, End: 400 * time.Millisecond},
			{Text: "world", Start: 500 * time.Millisecond, End: 900 * time.Millisecond},
		}, spoken)
	}
	require.Len(t, server.Requests(), 1, "the connection is kept for the next sentence")
	r := server.Requests()[0]
	require.Equal(t, "/tts/websocket", r.Path)
	require.Empty(t, r.Query, "the key belongs in no address")
	require.Equal(t, key, r.Header.Get("X-Api-Key"))
	require.Equal(t, "2025-04-16", r.Header.Get("Cartesia-Version"))

	var contexts []string
	for range 2 {
		var q map[string]any
		require.NoError(t, json.Unmarshal([]byte(<-asked), &q))
		contexts = append(contexts, fmt.Sprint(q["context_id"]))
		delete(q, "context_id")
		got, err := json.Marshal(q)
		require.NoError(t, err)
		require.JSONEq(t, `{"model_id":"sonic-3","transcript":"Hello world","voice":{"mode":"id","id":"a0e99841"},"language":"en",
			"output_format":{"container":"raw","encoding":"pcm_s16le","sample_rate":8000},"add_timestamps":true,"continue":false,
			"generation_config":{"speed":1.1}}`, string(got))
	}
	require.NotEqual(t, contexts[0], contexts[1])
}

func TestAKeptConnectionThatHasDiedIsReplaced(t *testing.T) {
	var opened atomic.Int32
	once := providertest.Sockets(func(ctx context.Context, socket *websocket.Conn) {
		opened.Add(1)
		_, body, err := socket.Read(ctx)
		if err != nil {
			return
		}
		var q struct {
			Context string `json:"context_id"`
		}
		_ = json.Unmarshal(body, &q)
		for _, e := range []string{first, second, over} {
			providertest.SendText(ctx, socket, strings.ReplaceAll(e, "%s", q.Context))
		}
	})
	p, _, release := bench(once, time.Minute)
	defer release()
	for range 3 {
		samples, _, err := speak(t, p)
		require.NoError(t, err)
		require.Len(t, samples, 4)
	}
	require.EqualValues(t, 3, opened.Load())
}

func TestErrorsNameTheProviderAndKeepTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":     {providertest.Refuse(401, key), "the key was refused (401)"},
		"no credit":     {providertest.Refuse(402, ""), "no credit left (402)"},
		"too many":      {providertest.Refuse(429, "", "Retry-After", "4"), "too many requests or no credit left (429), to be tried again after 4 s"},
		"failure":       {providertest.Refuse(500, ""), "the service failed (500)"},
		"error event":   {service(nil, `{"type":"error","done":true,"title":"Invalid model","message":"not valid `+key+`","status_code":400,"context_id":"%s"}`), "the request was refused (400): not valid ***"},
		"older error":   {service(nil, `{"type":"error","done":true,"error":"Invalid model","status_code":400}`), "the request was refused (400): Invalid model"},
		"in the middle": {service(nil, first, `{"type":"error","message":"lost","status_code":500,"context_id":"%s"}`), "the service failed (500): lost"},
		"malformed":     {service(nil, `{"type":`), "what is not an event"},
		"empty":         {service(nil, over), "the service sent no sound"},
		"closed":        {providertest.Sockets(func(_ context.Context, s *websocket.Conn) { _ = s.Close(1011, "x") }), "the service ended the connection (1011)"},
		"cut":           {providertest.Sockets(func(ctx context.Context, s *websocket.Conn) { _, _, _ = s.Read(ctx) }), "the connection was lost"},
		"half open":     {service(nil, first), "no word from the service for 200ms"},
		"no socket":     {func(context.Context, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the service cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, release := bench(c.handler, 200*time.Millisecond)
			defer release()
			_, _, err := speak(t, p)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "cartesia speaker: "), err.Error())
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestSettingsThatCannotWork(t *testing.T) {
	_, err := cartesia.New(cartesia.Options{})
	require.ErrorContains(t, err, "a key is needed")
	_, err = cartesia.New(cartesia.Options{APIKey: key, BaseURL: "ftp://example.com"})
	require.ErrorContains(t, err, "base URL")
	p, err := cartesia.New(cartesia.Options{APIKey: key})
	require.NoError(t, err)
	err = p.Speaker().Speak(t.Context(), converse.Utterance{Rate: 22050}, func(converse.Sound) {})
	require.EqualError(t, err, "cartesia speaker: no sampling rate of 22050 Hz")
}
