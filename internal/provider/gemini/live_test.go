package gemini_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/gemini"
	"parley/internal/provider/providertest"
	"parley/internal/provider/sandbox"
	"parley/internal/provider/wire"
)

const (
	setupComplete = `{"setupComplete":{}}`
	generated     = `{"serverContent":{"generationComplete":true}}`
	complete      = `{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":10,"responseTokenCount":20,"totalTokenCount":30}}`
)

// sounds is a piece of an answer's sound: this much silence at 24 kHz.
func sounds(length time.Duration) string {
	silence := base64.StdEncoding.EncodeToString(make([]byte, 48*length.Milliseconds()))
	return `{"serverContent":{"modelTurn":{"role":"model","parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + silence + `"}}]}}}`
}

func says(text string) string {
	return `{"serverContent":{"outputTranscription":{"text":"` + text + `"}}}`
}

// opens takes the settings, and leaves the rest to another.
func opens(then func(message map[string]any) []string) func(map[string]any) []string {
	return func(m map[string]any) []string {
		switch {
		case m == nil:
			return nil
		case m["setup"] != nil:
			return []string{setupComplete}
		case then == nil:
			return nil
		}
		return then(m)
	}
}

// wants reports that a message wants an answer.
func wants(m map[string]any) bool {
	if content, ok := m["clientContent"].(map[string]any); ok {
		return content["turnComplete"] == true
	}
	input, _ := m["realtimeInput"].(map[string]any)
	return m["toolResponse"] != nil || input["activityEnd"] != nil
}

// answers answers whatever wants an answer with these events.
func answers(events ...string) func(map[string]any) []string {
	return opens(func(m map[string]any) []string {
		if !wants(m) {
			return nil
		}
		return events
	})
}

func telephone() converse.DuplexOptions {
	return converse.DuplexOptions{
		Prompt:    converse.Prompt{Model: "gemini-live", System: "You are Ada.", Temperature: 0.5},
		Utterance: converse.Utterance{Voice: "Kore", Language: "en", Rate: audio.Rate8k, Speed: 1},
	}
}

func TestTheDuplexKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, limit time.Duration) func() (converse.Duplex, func()) {
		return func() (converse.Duplex, func()) {
			p, _, release := providertest.On(h, func(url string) (*gemini.Provider, error) {
				return gemini.New(gemini.Options{APIKey: key, BaseURL: url, OpenLimit: limit})
			})
			return p.Duplex(), release
		}
	}
	for _, rate := range []audio.Rate{audio.Rate8k, audio.Rate48k} {
		o := telephone()
		o.Utterance.Rate = rate
		for _, c := range providertest.Duplex(providertest.Rig[converse.Duplex]{
			Name: "gemini", Working: rig(providertest.Dialogue(nil, answers(sounds(200*time.Millisecond), says("Hello."), generated, complete)), time.Minute),
			Stalled:   rig(providertest.Dialogue(nil, opens(nil)), time.Minute),
			Unopened:  rig(providertest.Sockets(providertest.Drain), time.Minute),
			Impatient: rig(providertest.Sockets(providertest.Drain), 30*time.Millisecond),
		}, o) {
			t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
		}
	}
}

// live opens a session for the length of a test.
func live(t *testing.T, o converse.DuplexOptions, reply func(map[string]any) []string) (converse.DuplexSession, chan converse.DuplexEvent, chan map[string]any, *providertest.Server) {
	t.Helper()
	got := make(chan map[string]any, 512)
	p, server := provider(t, providertest.Dialogue(got, reply))
	events := make(chan converse.DuplexEvent, 512)
	session, err := p.Duplex().Converse(t.Context(), o, func(e converse.DuplexEvent) { events <- e })
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session, events, got, server
}

// next is the next message that the service got, as JSON.
func next(t *testing.T, got <-chan map[string]any) string {
	t.Helper()
	m, err := providertest.Next(got)
	require.NoError(t, err)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	return string(text)
}

func happens(t *testing.T, events <-chan converse.DuplexEvent) converse.DuplexEvent {
	t.Helper()
	e, err := providertest.Next(events)
	require.NoError(t, err)
	return e
}

// heard skips the sounds until something else happens.
func heard(t *testing.T, events <-chan converse.DuplexEvent) (samples int, words []string, e converse.DuplexEvent) {
	t.Helper()
	for {
		e = happens(t, events)
		if e.Sound == nil {
			return samples, words, e
		}
		samples += len(e.Sound.Samples)
		for _, w := range e.Sound.Words {
			words = append(words, w.Text)
		}
	}
}

func TestWhatALiveSessionIsTold(t *testing.T) {
	o := telephone()
	o.Prompt = prompt()
	o.Prompt.Model = "gemini-live"
	s, _, got, server := live(t, o, opens(nil))
	r := server.Requests()[0]
	require.Equal(t, "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", r.Path)
	require.Empty(t, r.Query, "a key in an address would be logged on the way")
	require.Equal(t, key, r.Header.Get("X-Goog-Api-Key"))
	require.JSONEq(t, `{"setup":{"model":"models/gemini-live",
		"generationConfig":{"responseModalities":["AUDIO"],"temperature":0.5,"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}}},
		"systemInstruction":{"parts":[{"text":"You are Ada."}]},
		"tools":[{"functionDeclarations":[
			{"name":"tables","description":"Free tables.","parameters":{"type":"OBJECT","required":["guests"],"properties":{"guests":{"type":"NUMBER","description":"How many."}}}},
			{"name":"weather","description":"The weather."}]}],
		"realtimeInputConfig":{"automaticActivityDetection":{"disabled":true},"activityHandling":"NO_INTERRUPTION"},
		"inputAudioTranscription":{},"outputAudioTranscription":{},"contextWindowCompression":{"slidingWindow":{}}}}`, next(t, got))
	require.JSONEq(t, `{"clientContent":{"turnComplete":false,"turns":[
		{"role":"model","parts":[{"text":"Hello."}]},
		{"role":"user","parts":[{"text":"Is a table free?"}]},
		{"role":"user","parts":[{"text":"(A tool has answered: {\"free\":true})"}]},
		{"role":"user","parts":[{"text":"(A tool has answered: rain)"}]}]}}`, next(t, got))

	var spoken []int16
	u := converse.Utterance{Text: "Good morning, this is Parley.", Rate: audio.Rate8k, Speed: 1}
	require.NoError(t, sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), u, func(s converse.Sound) { spoken = append(spoken, s.Samples...) }))
	spoken = spoken[:len(spoken)/160*160]
	for _, samples := range [][]int16{make([]int16, 8000), spoken} {
		for ; len(samples) > 0; samples = samples[160:] {
			require.NoError(t, s.Write(samples[:160]))
		}
	}
	require.NoError(t, s.EndTurn())
	require.JSONEq(t, `{"realtimeInput":{"activityStart":{}}}`, next(t, got))
	var sound []byte
	for {
		text := next(t, got)
		if strings.Contains(text, "activityEnd") {
			require.JSONEq(t, `{"realtimeInput":{"activityEnd":{}}}`, text)
			break
		}
		var m struct {
			Input struct {
				Audio struct {
					Type string `json:"mimeType"`
					Data []byte `json:"data"`
				} `json:"audio"`
			} `json:"realtimeInput"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		require.Equal(t, "audio/pcm;rate=8000", m.Input.Audio.Type)
		sound = append(sound, m.Input.Audio.Data...)
	}
	require.Equal(t, wire.Samples(spoken), sound[len(sound)-2*len(spoken):])
	require.LessOrEqual(t, len(sound)-2*len(spoken), 2*8000*6/10, "the silence before is left out")
}

func TestAnAnswerIsHeardAndTold(t *testing.T) {
	s, events, _, _ := live(t, telephone(), answers(
		`{"serverContent":{"inputTranscription":{"text":"Is a table"}}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"text":"thinking","thought":true}]}}}`,
		says("Yes, it "), sounds(500*time.Millisecond),
		`{"serverContent":{"inputTranscription":{"text":" free?"}}}`,
		says("is."), sounds(time.Second), generated, complete, `{"sessionResumptionUpdate":{}}`))
	require.NoError(t, s.EndTurn())
	require.Equal(t, &converse.Heard{Text: "Is a table"}, happens(t, events).Customer)
	before, early, e := heard(t, events)
	require.Equal(t, &converse.Heard{Text: "Is a table free?"}, e.Customer)
	samples, words, e := heard(t, events)
	require.Equal(t, &converse.Heard{Text: "Is a table free?", Final: true}, e.Customer)
	tail, late, e := heard(t, events)
	require.Equal(t, &converse.Usage{}, e.Done, "the usage comes with the end of the turn, and is told with the next")
	require.Equal(t, 12000, before+samples+tail)
	require.Equal(t, "Yes, it is.", strings.Join(append(append(early, words...), late...), " "))
	require.NoError(t, s.Say("Goodbye."))
	for e.Done == nil || e.Done.InputTokens == 0 {
		e = happens(t, events)
	}
	require.Equal(t, &converse.Usage{InputTokens: 10, OutputTokens: 20}, e.Done)
}

func TestAnInterruptedAnswerIsToldWhatWasHeard(t *testing.T) {
	asked := 0
	s, events, got, _ := live(t, telephone(), opens(func(m map[string]any) []string {
		if !wants(m) {
			return []string{sounds(time.Second), `{"serverContent":{"interrupted":true}}`, complete}
		}
		if asked++; asked == 1 {
			return []string{says("This is a very long story that nobody wants. "), sounds(2 * time.Second)}
		}
		return []string{says("Yes? "), sounds(time.Second), generated, complete}
	}))
	next(t, got)
	require.NoError(t, s.Say("A story."))
	require.JSONEq(t, `{"clientContent":{"turnComplete":true,"turns":[{"role":"user","parts":[{"text":"(Say exactly the following text to the customer now, word for word, in its own language, and nothing else:)\n\nA story."}]}]}}`, next(t, got))
	require.NotEmpty(t, happens(t, events).Sound.Words)
	require.NoError(t, s.Say("Never mind."))
	require.Empty(t, got, "a second wish would end the first")
	require.NoError(t, s.Interrupt(700*time.Millisecond))
	require.JSONEq(t, `{"clientContent":{"turnComplete":false,"turns":[{"role":"user","parts":[{"text":"(The customer has interrupted you. Of your last answer only this was heard: \"This is a\")"}]}]}}`, next(t, got))
	require.NoError(t, s.Say("Yes?"))
	require.Contains(t, next(t, got), "Yes?")
	samples, words, e := heard(t, events)
	require.NotNil(t, e.Done)
	require.Equal(t, 8000, samples, "nothing of the first is heard any more")
	require.Equal(t, []string{"Yes?"}, words)

	require.NoError(t, s.Interrupt(2*time.Second), "after all has been heard")
	require.Empty(t, got)
	require.NoError(t, s.Say("Once more."))
	next(t, got)
	_, _, e = heard(t, events)
	require.NotNil(t, e.Done)
	require.NoError(t, s.Interrupt(0), "while it is being played")
	require.Contains(t, next(t, got), "before anything of your last answer was heard")
}

func TestAnAnswerThatWasStoppedBeforeItBeganIsNotWaitedFor(t *testing.T) {
	asked := 0
	s, events, got, _ := live(t, telephone(), opens(func(m map[string]any) []string {
		if !wants(m) {
			return nil
		}
		if asked++; asked == 1 {
			return nil
		}
		return []string{complete, sounds(time.Second), generated}
	}))
	next(t, got)
	require.NoError(t, s.Say("A story."))
	require.NoError(t, s.Interrupt(0))
	require.NoError(t, s.Say("Yes?"))
	samples, _, e := heard(t, events)
	require.Equal(t, 8000, samples)
	require.NotNil(t, e.Done)
}

func TestAModelGoesOnWhenItsToolsHaveAnswered(t *testing.T) {
	s, events, got, _ := live(t, telephone(), opens(func(m map[string]any) []string {
		switch {
		case m["toolResponse"] != nil:
			return []string{sounds(time.Second), generated}
		case wants(m):
			return []string{sounds(time.Second), `{"toolCall":{"functionCalls":[{"id":"f1","name":"tables","args":{"guests":2}},{"id":"f2","name":"weather"}]}}`,
				`{"toolCallCancellation":{"ids":["f2"]}}`}
		}
		return nil
	}))
	next(t, got)
	require.NoError(t, s.EndTurn())
	for range 3 {
		next(t, got)
	}
	samples, _, e := heard(t, events)
	require.Equal(t, 8000, samples, "what was said before the call is said to its end")
	require.Equal(t, &converse.ToolCall{ID: "f1", Name: "tables", Arguments: map[string]any{"guests": 2.0}}, e.ToolCall)
	require.Equal(t, &converse.ToolCall{ID: "f2", Name: "weather", Arguments: map[string]any{}}, happens(t, events).ToolCall)
	require.NotNil(t, happens(t, events).Done)
	require.NoError(t, s.ToolResult("f1", `{"free":true}`))
	require.JSONEq(t, `{"toolResponse":{"functionResponses":[{"id":"f1","name":"tables","response":{"free":true}}]}}`, next(t, got))
	_, _, e = heard(t, events)
	require.NotNil(t, e.Done)
	require.NoError(t, s.ToolResult("f2", "rain"), "the service has forgotten it")
	require.JSONEq(t, `{"clientContent":{"turnComplete":true,"turns":[{"role":"user","parts":[{"text":"(A tool has answered: rain)"}]}]}}`, next(t, got))
}

func TestASessionThatEndsSoonEndsBetweenAnswers(t *testing.T) {
	s, events, _, _ := live(t, telephone(), answers(sounds(time.Second), `{"goAway":{"timeLeft":"10s"}}`, sounds(time.Second), generated))
	require.NoError(t, s.Say("Hello."))
	samples, _, e := heard(t, events)
	require.Equal(t, 16000, samples)
	require.NotNil(t, e.Done)
	require.EqualError(t, happens(t, events).Err, "gemini duplex: the service ends the session")
}

func TestASessionThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		script func(ctx context.Context, s *websocket.Conn)
		want   string
	}{
		"malformed": {func(ctx context.Context, s *websocket.Conn) { providertest.SendText(ctx, s, `{"serverContent":[`) }, "the service sent what is not an event"},
		"quota":     {func(_ context.Context, s *websocket.Conn) { _ = s.Close(1011, "You exceeded your current quota "+key) }, "the service ended the stream: You exceeded your current quota ***"},
		"cut":       {func(context.Context, *websocket.Conn) {}, "the connection was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := provider(t, providertest.Sockets(func(ctx context.Context, s *websocket.Conn) {
				providertest.SendText(ctx, s, setupComplete)
				_, _, _ = s.Read(ctx)
				_, _, _ = s.Read(ctx)
				c.script(ctx, s)
			}))
			events := make(chan converse.DuplexEvent, 8)
			s, err := p.Duplex().Converse(t.Context(), telephone(), func(e converse.DuplexEvent) { events <- e })
			require.NoError(t, err)
			defer s.Close()
			require.NoError(t, s.Say("Hello."))
			err = happens(t, events).Err
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "gemini duplex: "), err.Error())
			require.NotContains(t, err.Error(), key)
			require.Equal(t, err, s.EndTurn())
		})
	}
}

func TestASessionThatIsNotOpened(t *testing.T) {
	closing := func(code websocket.StatusCode, reason string) providertest.Handler {
		return providertest.Sockets(func(_ context.Context, s *websocket.Conn) { _ = s.Close(code, reason) })
	}
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"wrong key":     {closing(1007, "API key not valid. Please pass a valid API key."), "the key was refused (1007)"},
		"no such model": {closing(1008, "models/x is not found for API version v1beta"), "models/x is not found"},
		"forbidden":     {providertest.Refuse(403, `{"error":{"message":"no"}}`), "the key does not allow this (403)"},
		"overloaded":    {providertest.Refuse(503, `{"error":{"message":"later"}}`), "the service is overloaded (503): later"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := provider(t, c.handler)
			_, err := p.Duplex().Converse(t.Context(), telephone(), func(converse.DuplexEvent) { require.Fail(t, "nothing may happen") })
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "gemini duplex: "), err.Error())
		})
	}
	p, _ := provider(t, providertest.Stall)
	_, err := p.Duplex().Converse(t.Context(), converse.DuplexOptions{Utterance: converse.Utterance{Rate: 44100}}, func(converse.DuplexEvent) {})
	require.EqualError(t, err, "gemini duplex: no sampling rate of 44100 Hz")
}
