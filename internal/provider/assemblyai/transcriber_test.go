package assemblyai_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/providertest"
)

const key = "aai-secret-0123456789"

// bench is a provider and its service, and how to take both down.
func bench(handler providertest.Handler, o assemblyai.Options) (*assemblyai.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*assemblyai.Provider, error) {
		o.APIKey, o.BaseURL = key, url
		return assemblyai.New(o)
	})
}

// listen opens a stream to a service for the length of a test.
func listen(t *testing.T, handler providertest.Handler, o assemblyai.Options, l converse.ListenOptions) (converse.Listener, chan converse.Heard, *providertest.Server) {
	t.Helper()
	p, server, release := bench(handler, o)
	t.Cleanup(release)
	heard := make(chan converse.Heard, 16)
	listener, err := p.Transcriber().Listen(t.Context(), l, func(h converse.Heard) { heard <- h })
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener, heard, server
}

// turn is a Turn event; each word of the text is told on its own as well.
func turn(text string, end, formatted bool, words ...string) string {
	list := []map[string]any{}
	for _, w := range words {
		list = append(list, map[string]any{"text": w, "start": 1, "end": 2, "confidence": 0.9, "word_is_final": false})
	}
	b, _ := json.Marshal(map[string]any{
		"type": "Turn", "turn_order": 0, "turn_is_formatted": formatted, "end_of_turn": end,
		"transcript": text, "end_of_turn_confidence": 0.5, "words": list, "utterance": "",
	})
	return string(b)
}

// service answers ForceEndpoint with final words.
func service(ctx context.Context, socket *websocket.Conn) {
	for {
		kind, body, err := socket.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageText && strings.Contains(string(body), "ForceEndpoint") {
			providertest.SendText(ctx, socket, turn("good morning", true, false), turn("Good morning.", true, true))
		}
	}
}

func phone() converse.ListenOptions {
	return converse.ListenOptions{Language: "en", Rate: audio.Rate8k}
}

func TestTheTranscriberKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, o assemblyai.Options) func() (converse.Transcriber, func()) {
		return func() (converse.Transcriber, func()) {
			p, _, release := bench(h, o)
			return p.Transcriber(), release
		}
	}
	for _, c := range providertest.Transcriber(providertest.Rig[converse.Transcriber]{
		Name: "assemblyai", Working: rig(providertest.Sockets(service), assemblyai.Options{}),
		Stalled:   rig(providertest.Sockets(providertest.Drain), assemblyai.Options{}),
		Unopened:  rig(providertest.Stall, assemblyai.Options{}),
		Impatient: rig(providertest.Stall, assemblyai.Options{OpenLimit: 30 * time.Millisecond}),
	}, phone(), make([]int16, 1600)) {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func TestWhatTheServiceIsSentFromATelephone(t *testing.T) {
	got := make(chan providertest.Received, 64)
	o := phone()
	o.Hints = []string{"Parley", "Ada Lovelace"}
	l, _, server := listen(t, providertest.Record(got), assemblyai.Options{}, o)
	r := server.Requests()[0]
	require.Equal(t, "/v3/ws", r.Path)
	require.Equal(t, key, r.Header.Get("Authorization"))
	q, err := url.ParseQuery(r.Query)
	require.NoError(t, err)
	require.Equal(t, url.Values{
		"sample_rate": {"8000"}, "encoding": {"pcm_mulaw"}, "format_turns": {"true"},
		"speech_model": {"universal-streaming-english"}, "keyterms_prompt": {`["Parley","Ada Lovelace"]`},
	}, q)

	frame := make([]int16, 160)
	for i := range frame {
		frame[i] = int16(100 * i)
	}
	code := make([]byte, 160)
	audio.EncodeMuLaw(code, frame)
	for range 4 {
		require.NoError(t, l.Write(frame))
	}
	require.NoError(t, l.Flush())
	require.Equal(t, providertest.Received{Kind: websocket.MessageBinary, Body: strings.Repeat(string(code), 3)}, <-got)
	require.Equal(t, providertest.Received{Kind: websocket.MessageBinary, Body: string(code) + strings.Repeat("\xff", 240)}, <-got, "filled up to 50 ms")
	require.Equal(t, providertest.Received{Kind: websocket.MessageText, Body: `{"type":"ForceEndpoint"}`}, <-got)
	require.NoError(t, l.Close())
	require.Equal(t, providertest.Received{Kind: websocket.MessageText, Body: `{"type":"Terminate"}`}, <-got)
	_, more := <-got
	require.False(t, more)
}

func TestWhatTheServiceIsSentFromAWideLine(t *testing.T) {
	got := make(chan providertest.Received, 64)
	l, _, server := listen(t, providertest.Record(got), assemblyai.Options{}, converse.ListenOptions{Language: "de", Rate: audio.Rate16k})
	q, err := url.ParseQuery(server.Requests()[0].Query)
	require.NoError(t, err)
	require.Equal(t, "pcm_s16le", q.Get("encoding"))
	require.Equal(t, "16000", q.Get("sample_rate"))
	require.Equal(t, "universal-streaming-multilingual", q.Get("speech_model"))
	frame := make([]int16, 960)
	frame[0], frame[1] = -2, 0x1234
	require.NoError(t, l.Write(frame))
	first := <-got
	require.Len(t, first.Body, 1920)
	require.Equal(t, "\xfe\xff\x34\x12", first.Body[:4])
}

func TestWhatIsHeard(t *testing.T) {
	l, heard, _ := listen(t, providertest.Sockets(func(ctx context.Context, socket *websocket.Conn) {
		providertest.SendText(ctx, socket,
			`{"type":"Begin","id":"x","expires_at":1}`,
			`{"type":"SpeechStarted","timestamp":1}`,
			turn("", false, false),
			turn("", false, false, "my"),
			turn("my", false, false, "my", "number"),
			turn("my number", true, false),
			turn("My number.", true, true),
			`{"type":"SomethingNew"}`)
		service(ctx, socket)
	}), assemblyai.Options{}, phone())
	for _, want := range []converse.Heard{
		{Text: "my"}, {Text: "my number"}, {Text: "my number"},
		{Text: "My number.", Final: true, EndTurn: true},
	} {
		require.Equal(t, want, <-heard)
	}
	require.NoError(t, l.Flush())
	require.Equal(t, converse.Heard{Text: "good morning"}, <-heard)
	require.Equal(t, converse.Heard{Text: "Good morning.", Final: true}, <-heard, "words that we asked for are no opinion")
}

func TestAStreamThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		script func(ctx context.Context, socket *websocket.Conn)
		want   string
	}{
		"malformed event": {func(ctx context.Context, s *websocket.Conn) {
			providertest.SendText(ctx, s, `{"type":`)
			providertest.Drain(ctx, s)
		}, "assemblyai transcriber: the service sent what is not an event"},
		"error event": {func(ctx context.Context, s *websocket.Conn) {
			providertest.SendText(ctx, s, `{"type":"Error","error_code":3006,"error":"bad `+key+`"}`)
			providertest.Drain(ctx, s)
		}, "the service failed: bad ***"},
		"wrong key": {func(_ context.Context, s *websocket.Conn) {
			_ = s.Close(1008, "Unauthorized Connection: "+key)
		}, "the key was refused (1008)"},
		"too long": {func(_ context.Context, s *websocket.Conn) {
			_ = s.Close(3005, "Session Cancelled: An error occurred")
		}, "the service ended the stream: Session Cancelled"},
		"closed without a word": {func(_ context.Context, s *websocket.Conn) {
			_ = s.Close(1000, "")
		}, "the service ended the stream (1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			l, heard, _ := listen(t, providertest.Sockets(c.script), assemblyai.Options{}, phone())
			h := <-heard
			require.ErrorContains(t, h.Err, c.want)
			require.True(t, strings.HasPrefix(h.Err.Error(), "assemblyai transcriber: "))
			require.NotContains(t, h.Err.Error(), key)
			require.Equal(t, h.Err, l.Write(make([]int16, 160)))
			require.NoError(t, l.Close())
		})
	}
}

func TestAStreamThatIsNotOpened(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":   {providertest.Refuse(401, `{"error":"Invalid credentials `+key+`"}`), "assemblyai transcriber: the key was refused (401)"},
		"bad request": {providertest.Refuse(400, `{"error":"no such model"}`), "the request was refused (400): no such model"},
		"too many":    {providertest.Refuse(429, `{"error":"Too many requests"}`, "Retry-After", "3"), "(429), to be tried again after 3 s: Too many requests"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, release := bench(c.handler, assemblyai.Options{})
			defer release()
			_, err := p.Transcriber().Listen(t.Context(), phone(), func(converse.Heard) {})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestSettingsThatCannotWork(t *testing.T) {
	_, err := assemblyai.New(assemblyai.Options{})
	require.ErrorContains(t, err, "a key is needed")
	_, err = assemblyai.New(assemblyai.Options{APIKey: key, BaseURL: "ftp://example.com"})
	require.ErrorContains(t, err, "base URL")
	p, err := assemblyai.New(assemblyai.Options{APIKey: key})
	require.NoError(t, err)
	_, err = p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: 4000}, func(converse.Heard) {})
	require.ErrorContains(t, err, "no sampling rate of 4000 Hz")
}
