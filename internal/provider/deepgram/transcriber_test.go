package deepgram_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/providertest"
)

const key = "dg-secret-0123456789"

// bench is a provider and its service, and how to take both down.
func bench(handler providertest.Handler, o deepgram.Options) (*deepgram.Provider, *providertest.Server, func()) {
	return providertest.On(handler, func(url string) (*deepgram.Provider, error) {
		o.APIKey, o.BaseURL = key, url
		return deepgram.New(o)
	})
}

// listen opens a stream to a service for the length of a test.
func listen(t *testing.T, handler providertest.Handler, o deepgram.Options, l converse.ListenOptions) (converse.Listener, chan converse.Heard, *providertest.Server) {
	t.Helper()
	p, server, release := bench(handler, o)
	t.Cleanup(release)
	heard := make(chan converse.Heard, 16)
	listener, err := p.Transcriber().Listen(t.Context(), l, func(h converse.Heard) { heard <- h })
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener, heard, server
}

func results(text string, final, speechFinal, fromFinalize bool) string {
	return fmt.Sprintf(`{"type":"Results","channel_index":[0,1],"duration":1.02,"start":0.0,"is_final":%t,"speech_final":%t,"from_finalize":%t,
		"channel":{"alternatives":[{"transcript":%q,"confidence":0.99,"words":[]}]},"metadata":{"request_id":"r"}}`, final, speechFinal, fromFinalize, text)
}

// service answers Finalize with final words.
func service(ctx context.Context, socket *websocket.Conn) {
	for {
		kind, body, err := socket.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageText && strings.Contains(string(body), "Finalize") {
			providertest.SendText(ctx, socket, results("Good morning.", true, false, true))
		}
	}
}

func phone() converse.ListenOptions {
	return converse.ListenOptions{Language: "en", Rate: audio.Rate8k}
}

func TestTheTranscriberKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, o deepgram.Options) func() (converse.Transcriber, func()) {
		return func() (converse.Transcriber, func()) {
			p, _, release := bench(h, o)
			return p.Transcriber(), release
		}
	}
	for _, c := range providertest.Transcriber(providertest.Rig[converse.Transcriber]{
		Name: "deepgram", Working: rig(providertest.Sockets(service), deepgram.Options{}),
		Stalled:   rig(providertest.Sockets(providertest.Drain), deepgram.Options{}),
		Unopened:  rig(providertest.Stall, deepgram.Options{}),
		Impatient: rig(providertest.Stall, deepgram.Options{OpenLimit: 30 * time.Millisecond}),
	}, phone(), make([]int16, 1600)) {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func TestWhatTheServiceIsSentFromATelephone(t *testing.T) {
	got := make(chan providertest.Received, 64)
	o := phone()
	o.Hints = []string{"Parley", "Ada Lovelace"}
	l, _, server := listen(t, providertest.Record(got), deepgram.Options{}, o)
	r := server.Requests()[0]
	require.Equal(t, "/v1/listen", r.Path)
	require.Equal(t, "Token "+key, r.Header.Get("Authorization"))
	q, err := url.ParseQuery(r.Query)
	require.NoError(t, err)
	require.Equal(t, url.Values{
		"model": {"nova-3"}, "encoding": {"mulaw"}, "sample_rate": {"8000"}, "channels": {"1"}, "language": {"en"},
		"interim_results": {"true"}, "smart_format": {"true"}, "vad_events": {"true"}, "endpointing": {"300"}, "utterance_end_ms": {"1000"},
		"keyterm": {"Parley", "Ada Lovelace"},
	}, q)

	frame := []int16{0, 1000, -1000, 32000}
	want := make([]byte, len(frame))
	audio.EncodeMuLaw(want, frame)
	require.NoError(t, l.Write(frame))
	require.NoError(t, l.Flush())
	require.Equal(t, providertest.Received{Kind: websocket.MessageBinary, Body: string(want)}, <-got)
	require.Equal(t, providertest.Received{Kind: websocket.MessageText, Body: `{"type":"Finalize"}`}, <-got)
	require.NoError(t, l.Close())
	require.Equal(t, providertest.Received{Kind: websocket.MessageText, Body: `{"type":"CloseStream"}`}, <-got)
	_, more := <-got
	require.False(t, more)
}

func TestWhatTheServiceIsSentFromAWideLine(t *testing.T) {
	got := make(chan providertest.Received, 64)
	l, _, server := listen(t, providertest.Record(got), deepgram.Options{Model: "nova-2", Endpointing: 50 * time.Millisecond}, converse.ListenOptions{Rate: audio.Rate16k, Hints: []string{"Ada"}})
	q, err := url.ParseQuery(server.Requests()[0].Query)
	require.NoError(t, err)
	require.Equal(t, "linear16", q.Get("encoding"))
	require.Equal(t, "16000", q.Get("sample_rate"))
	require.Equal(t, "Ada", q.Get("keywords"))
	require.Equal(t, "50", q.Get("endpointing"))
	require.NoError(t, l.Write([]int16{1, -2, 0x1234}))
	require.Equal(t, providertest.Received{Kind: websocket.MessageBinary, Body: "\x01\x00\xfe\xff\x34\x12"}, <-got)
}

func TestAStreamWithoutSoundIsKeptAlive(t *testing.T) {
	got := make(chan providertest.Received, 64)
	listen(t, providertest.Record(got), deepgram.Options{KeepAlive: 10 * time.Millisecond}, phone())
	for range 2 {
		require.Equal(t, providertest.Received{Kind: websocket.MessageText, Body: `{"type":"KeepAlive"}`}, <-got)
	}
}

// saying sends events and then drains.
func saying(events ...string) providertest.Handler {
	return providertest.Sockets(func(ctx context.Context, socket *websocket.Conn) {
		providertest.SendText(ctx, socket, events...)
		providertest.Drain(ctx, socket)
	})
}

func TestWhatIsHeard(t *testing.T) {
	_, heard, _ := listen(t, saying(
		`{"type":"SpeechStarted","channel":[0],"timestamp":0.1}`,
		results("", false, false, false),
		results("my number", false, false, false),
		results("My number is", true, false, false),
		results("", true, false, false),
		results("4711.", true, true, false),
		`{"type":"UtteranceEnd","channel":[0,1],"last_word_end":2.1}`,
		results("", true, true, true),
		`{"type":"SomethingNew"}`,
		`{"type":"Metadata","request_id":"r"}`,
		results("Yes.", true, true, true),
	), deepgram.Options{}, phone())
	for _, want := range []converse.Heard{
		{Text: "my number"},
		{Text: "My number is", Final: true},
		{Text: "4711.", Final: true, EndTurn: true},
		{Final: true, EndTurn: true},
		{Final: true}, // the answer to a flush, though there was nothing to say
		{Text: "Yes.", Final: true},
	} {
		require.Equal(t, want, <-heard)
	}
}

func TestAStreamThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		script func(ctx context.Context, socket *websocket.Conn)
		want   string
	}{
		"malformed event": {func(ctx context.Context, s *websocket.Conn) {
			providertest.SendText(ctx, s, `{"type":`)
			providertest.Drain(ctx, s)
		}, "deepgram transcriber: the service sent what is not an event"},
		"malformed transcript": {func(ctx context.Context, s *websocket.Conn) {
			providertest.SendText(ctx, s, `{"type":"Results","channel":[0]}`)
			providertest.Drain(ctx, s)
		}, "a transcript that cannot be read"},
		"error event": {func(ctx context.Context, s *websocket.Conn) {
			providertest.SendText(ctx, s, `{"type":"Error","description":"bad `+key+`","variant":"X"}`)
			providertest.Drain(ctx, s)
		}, "the service failed: bad ***"},
		"no sound came": {func(_ context.Context, s *websocket.Conn) {
			_ = s.Close(1011, "NET-0001")
		}, "the service ended the stream: NET-0001"},
		"closed without a word": {func(_ context.Context, s *websocket.Conn) {
			_ = s.Close(1000, "")
		}, "the service ended the stream (1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			l, heard, _ := listen(t, providertest.Sockets(c.script), deepgram.Options{}, phone())
			h := <-heard
			require.ErrorContains(t, h.Err, c.want)
			require.True(t, strings.HasPrefix(h.Err.Error(), "deepgram transcriber: "))
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
		"wrong key":   {providertest.Refuse(401, `{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials `+key+`"}`), "deepgram transcriber: the key was refused (401)"},
		"bad request": {providertest.Refuse(400, `{"err_code":"Bad Request","err_msg":"no such language"}`), "the request was refused (400): no such language"},
		"header only": {providertest.Refuse(400, ``, "Dg-Error", "bad encoding"), "the request was refused (400): bad encoding"},
		"too many":    {providertest.Refuse(429, `{"err_msg":"Too many requests"}`, "Retry-After", "3"), "(429), to be tried again after 3 s: Too many requests"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, release := bench(c.handler, deepgram.Options{})
			defer release()
			_, err := p.Transcriber().Listen(t.Context(), phone(), func(converse.Heard) {})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestSettingsThatCannotWork(t *testing.T) {
	_, err := deepgram.New(deepgram.Options{})
	require.ErrorContains(t, err, "a key is needed")
	_, err = deepgram.New(deepgram.Options{APIKey: key, BaseURL: "ftp://example.com"})
	require.ErrorContains(t, err, "base URL")
	p, err := deepgram.New(deepgram.Options{APIKey: key})
	require.NoError(t, err)
	_, err = p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: 4000}, func(converse.Heard) {})
	require.ErrorContains(t, err, "no sampling rate of 4000 Hz")
}
