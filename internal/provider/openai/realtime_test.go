package openai_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/openai"
	"parley/internal/provider/providertest"
	"parley/internal/provider/wire"
)

const (
	created = `{"type":"session.created","event_id":"e1","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime"}}`
	updated = `{"type":"session.updated","event_id":"e2","session":{"type":"realtime","id":"sess_1"}}`
)

// sounds is a piece of an answer's sound: this much silence as mu-law.
func sounds(item string, length time.Duration) string {
	return soundOf(item, []byte(strings.Repeat("\xff", int(length/time.Millisecond)*8)))
}

func soundOf(item string, b []byte) string {
	return `{"type":"response.output_audio.delta","event_id":"e3","response_id":"resp_1","item_id":"` + item + `","output_index":0,"content_index":0,"delta":"` + base64.StdEncoding.EncodeToString(b) + `"}`
}

func says(text string) string {
	return `{"type":"response.output_audio_transcript.delta","event_id":"e4","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"` + text + `"}`
}

func completes(input, output int) string {
	return fmt.Sprintf(`{"type":"response.done","event_id":"e5","response":{"object":"realtime.response","id":"resp_1","status":"completed","status_details":null,"output":[],"usage":{"total_tokens":%d,"input_tokens":%d,"output_tokens":%d}}}`, input+output, input, output)
}

const began = `{"type":"response.created","event_id":"e6","response":{"object":"realtime.response","id":"resp_1","status":"in_progress"}}`

// opens takes the settings, and leaves the rest to another.
func opens(then func(message map[string]any) []string) func(map[string]any) []string {
	return func(m map[string]any) []string {
		switch {
		case m == nil:
			return []string{created}
		case m["type"] == "session.update":
			return []string{updated}
		case then == nil:
			return nil
		}
		return then(m)
	}
}

// answers answers every request for an answer with these events.
func answers(events ...string) func(map[string]any) []string {
	return opens(func(m map[string]any) []string {
		if m["type"] != "response.create" {
			return nil
		}
		return append([]string{began}, events...)
	})
}

func telephone() converse.DuplexOptions {
	return converse.DuplexOptions{
		Prompt:    converse.Prompt{Model: "gpt-realtime", System: "You are Ada."},
		Utterance: converse.Utterance{Voice: "marin", Language: "en", Rate: audio.Rate8k, Speed: 1},
	}
}

func TestTheDuplexKeepsTheContract(t *testing.T) {
	rig := func(h providertest.Handler, limit time.Duration) func() (converse.Duplex, func()) {
		return func() (converse.Duplex, func()) {
			p, _, release := at(h, openai.Options{OpenLimit: limit})
			return p.Duplex(), release
		}
	}
	run(t, providertest.Duplex(providertest.Rig[converse.Duplex]{
		Name:     "openai",
		Working:  rig(providertest.Dialogue(nil, answers(sounds("item_1", 200*time.Millisecond), says("Hello."), completes(1, 1))), patient),
		Stalled:  rig(providertest.Dialogue(nil, opens(nil)), patient),
		Unopened: rig(providertest.Sockets(providertest.Drain), patient), Impatient: rig(providertest.Sockets(providertest.Drain), impatient),
	}, telephone()))
	run(t, providertest.Duplex(providertest.Rig[converse.Duplex]{
		Name: "openai", Working: rig(providertest.Dialogue(nil, answers(sounds("item_1", time.Second), completes(1, 1))), patient),
		Stalled: rig(providertest.Dialogue(nil, opens(nil)), patient), Unopened: rig(providertest.Stall, patient), Impatient: rig(providertest.Stall, impatient),
	}, converse.DuplexOptions{Utterance: converse.Utterance{Rate: audio.Rate16k}}))
}

// duplex opens a session for the length of a test.
func duplex(t *testing.T, o openai.Options, d converse.DuplexOptions, reply func(map[string]any) []string) (converse.DuplexSession, chan converse.DuplexEvent, chan map[string]any, *providertest.Server) {
	t.Helper()
	got := make(chan map[string]any, 512)
	p, server, release := at(providertest.Dialogue(got, reply), o)
	t.Cleanup(release)
	events := make(chan converse.DuplexEvent, 512)
	session, err := p.Duplex().Converse(t.Context(), d, func(e converse.DuplexEvent) { events <- e })
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

func talk(t *testing.T, s converse.DuplexSession, samples []int16, rate audio.Rate) {
	t.Helper()
	for n := rate.FrameSamples(); len(samples) >= n; samples = samples[n:] {
		require.NoError(t, s.Write(samples[:n]))
	}
}

// sent gathers the sound until the end of the turn.
func sent(t *testing.T, got <-chan map[string]any) (sound []byte) {
	t.Helper()
	for {
		var m struct {
			Type    string `json:"type"`
			Audio   []byte `json:"audio"`
			EventID string `json:"event_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(next(t, got)), &m))
		if m.Type == "input_audio_buffer.commit" {
			return sound
		}
		require.Equal(t, "input_audio_buffer.append", m.Type)
		sound = append(sound, m.Audio...)
	}
}

func TestWhatARealtimeSessionIsToldFromATelephone(t *testing.T) {
	o := telephone()
	o.Prompt = prompt()
	o.Prompt.Model = "gpt-realtime 2"
	o.Utterance.Speed = 1.1
	s, _, got, server := duplex(t, openai.Options{}, o, opens(nil))
	r := server.Requests()[0]
	require.Equal(t, "/v1/realtime", r.Path)
	require.Equal(t, "model=gpt-realtime+2", r.Query)
	require.Equal(t, "Bearer "+key, r.Header.Get("Authorization"))
	require.JSONEq(t, `{"type":"session.update","session":{"type":"realtime","output_modalities":["audio"],"instructions":"You are Ada.",
		"audio":{
			"input":{"format":{"type":"audio/pcmu"},"transcription":{"model":"gpt-4o-mini-transcribe","language":"en"},"turn_detection":null},
			"output":{"format":{"type":"audio/pcmu"},"voice":"marin","speed":1.1}},
		"tools":[{"type":"function","name":"tables","description":"Free tables.","parameters":{"type":"object","required":["guests"],
			"properties":{"guests":{"type":"number","description":"How many."},"terrace":{"type":"boolean","description":""}}}}],
		"tool_choice":"auto"}}`, next(t, got))
	for _, item := range []string{
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Is a table free?"}]}`,
		`{"type":"function_call","call_id":"c1","name":"tables","arguments":"{\"guests\":2}"}`,
		`{"type":"function_call_output","call_id":"c1","output":"{\"free\":true}"}`,
	} {
		require.JSONEq(t, `{"type":"conversation.item.create","item":`+item+`}`, next(t, got))
	}
	talk(t, s, make([]int16, 8000), audio.Rate8k) // nobody speaks
	spoken := speech(t)
	talk(t, s, spoken, audio.Rate8k)
	require.NoError(t, s.EndTurn())
	whole := len(spoken) / 160 * 160
	sound := sent(t, got)
	require.Equal(t, wire.MuLaw(spoken[:whole]), sound[len(sound)-whole:])
	require.LessOrEqual(t, len(sound)-whole, 8000*6/10, "the silence before is left out")
	require.JSONEq(t, `{"type":"response.create","response":{}}`, next(t, got))
	require.NoError(t, s.EndTurn(), "a turn without a voice")
	require.NoError(t, s.Interrupt(0))
	require.JSONEq(t, `{"type":"response.cancel","event_id":"may-fail"}`, next(t, got))
}

func TestWhatARealtimeSessionIsToldFromAWideLine(t *testing.T) {
	o := telephone()
	o.Utterance.Rate = audio.Rate16k
	s, events, got, _ := duplex(t, openai.Options{TurnDetection: "semantic_vad"}, o, answers(soundOf("item_1", tone(48000)), completes(1, 1)))
	var update struct {
		Session struct {
			Audio json.RawMessage `json:"audio"`
		} `json:"session"`
	}
	require.NoError(t, json.Unmarshal([]byte(next(t, got)), &update))
	require.JSONEq(t, `{
		"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"gpt-4o-mini-transcribe","language":"en"},
			"turn_detection":{"type":"semantic_vad","create_response":false,"interrupt_response":false}},
		"output":{"format":{"type":"audio/pcm","rate":24000},"voice":"marin"}}`, string(update.Session.Audio))
	talk(t, s, make([]int16, 16000), audio.Rate16k)
	require.NoError(t, s.EndTurn())
	require.InDelta(t, 48000, len(sent(t, got)), 1000, "with a service that looks for turns itself nothing is held back")
	samples := 0
	for {
		e := happens(t, events)
		if e.Done != nil {
			break
		}
		samples += len(e.Sound.Samples)
	}
	require.Equal(t, 16000, samples, "one second is one second")
}

func TestAnAnswerIsHeardAndTold(t *testing.T) {
	s, events, _, _ := duplex(t, openai.Options{}, telephone(), answers(
		`{"type":"input_audio_buffer.committed","event_id":"e7","item_id":"item_0"}`,
		`{"type":"conversation.item.input_audio_transcription.delta","item_id":"item_0","content_index":0,"delta":"Is a"}`,
		`{"type":"conversation.item.input_audio_transcription.delta","item_id":"item_0","content_index":0,"delta":" table free?"}`,
		says("Yes, "), sounds("item_1", 500*time.Millisecond), says("it is."), sounds("item_1", time.Second),
		`{"type":"conversation.item.input_audio_transcription.completed","item_id":"item_0","content_index":0,"transcript":"Is a table free?","usage":{"type":"tokens"}}`,
		`{"type":"response.output_item.done","response_id":"resp_1","item":{"id":"item_2","type":"function_call","status":"completed","name":"tables","call_id":"call_1","arguments":"{\"guests\":2}"}}`,
		`{"type":"rate_limits.updated","rate_limits":[]}`,
		completes(20, 30)))
	require.NoError(t, s.Write(make([]int16, 160)))
	require.NoError(t, s.EndTurn())
	require.Equal(t, &converse.Heard{Text: "Is a"}, happens(t, events).Customer)
	require.Equal(t, &converse.Heard{Text: "Is a table free?"}, happens(t, events).Customer)
	var words []string
	var heard *converse.Heard
	var call *converse.ToolCall
	var usage *converse.Usage
	samples := 0
	for usage == nil {
		e := happens(t, events)
		switch {
		case e.Sound != nil:
			samples += len(e.Sound.Samples)
			for _, w := range e.Sound.Words {
				require.LessOrEqual(t, w.End, 1500*time.Millisecond)
				words = append(words, w.Text)
			}
		case e.Customer != nil:
			heard = e.Customer
		case e.ToolCall != nil:
			call = e.ToolCall
		case e.Done != nil:
			usage = e.Done
		}
	}
	require.Equal(t, 12000, samples)
	require.Equal(t, "Yes, it is.", strings.Join(words, " "))
	require.Equal(t, &converse.Heard{Text: "Is a table free?", Final: true}, heard)
	require.Equal(t, &converse.ToolCall{ID: "call_1", Name: "tables", Arguments: map[string]any{"guests": 2.0}}, call)
	require.Equal(t, &converse.Usage{InputTokens: 20, OutputTokens: 30}, usage)
}

func TestAnInterruptedAnswerIsCutToWhatWasHeard(t *testing.T) {
	asked := 0
	s, events, got, _ := duplex(t, openai.Options{}, telephone(), opens(func(m map[string]any) []string {
		switch m["type"] {
		case "response.create":
			if asked++; asked == 1 {
				return []string{began, sounds("item_1", time.Second), sounds("item_2", 400*time.Millisecond)}
			}
			return []string{began, sounds("item_3", time.Second), completes(3, 4)}
		case "response.cancel":
			return []string{sounds("item_2", time.Second), // was on its way
				`{"type":"response.done","response":{"id":"resp_1","status":"cancelled","status_details":{"type":"cancelled","reason":"client_cancelled"},"usage":{"input_tokens":10,"output_tokens":20}}}`}
		case "conversation.item.truncate":
			return []string{`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","message":"Audio content of 400ms is already shorter than 450ms","event_id":"may-fail"}}`}
		}
		return nil
	}))
	next(t, got)
	require.NoError(t, s.Say("This is a long story."))
	require.JSONEq(t, `{"type":"response.create","response":{"instructions":"Say exactly the following text to the customer, word for word, in its own language, and nothing else:\n\nThis is a long story.","input":[],"tool_choice":"none"}}`, next(t, got))
	require.NotNil(t, happens(t, events).Sound)
	require.NotNil(t, happens(t, events).Sound)
	require.NoError(t, s.EndTurn(), "waits for the end of the one under way")
	require.NoError(t, s.Interrupt(1250*time.Millisecond))
	require.JSONEq(t, `{"type":"response.cancel","event_id":"may-fail"}`, next(t, got))
	require.JSONEq(t, `{"type":"conversation.item.truncate","event_id":"may-fail","item_id":"item_2","content_index":0,"audio_end_ms":250}`, next(t, got))
	require.NoError(t, s.Say("Yes?"))
	require.Contains(t, next(t, got), "Yes?", "the turn was dropped with the interruption")
	require.Len(t, happens(t, events).Sound.Samples, 8000)
	require.Equal(t, &converse.Usage{InputTokens: 13, OutputTokens: 24}, happens(t, events).Done, "what was interrupted is billed as well")

	require.NoError(t, s.Interrupt(300*time.Millisecond), "while it is being played")
	require.JSONEq(t, `{"type":"conversation.item.truncate","event_id":"may-fail","item_id":"item_3","content_index":0,"audio_end_ms":300}`, next(t, got))
	require.NoError(t, s.Interrupt(0), "what was cut once is not cut again")
	require.Empty(t, got)
}

func TestAModelGoesOnWhenItsToolsHaveAnswered(t *testing.T) {
	call := func(id string) string {
		return `{"type":"response.output_item.done","item":{"type":"function_call","name":"tables","call_id":"` + id + `","arguments":""}}`
	}
	s, events, got, _ := duplex(t, openai.Options{}, telephone(), answers(call("c1"), call("c2"), completes(1, 1)))
	next(t, got)
	require.NoError(t, s.EndTurn())
	require.JSONEq(t, `{"type":"response.create","response":{}}`, next(t, got))
	require.Equal(t, "c1", happens(t, events).ToolCall.ID)
	require.Equal(t, "c2", happens(t, events).ToolCall.ID)
	require.NotNil(t, happens(t, events).Done)
	require.NoError(t, s.ToolResult("c1", `{"free":true}`))
	require.JSONEq(t, `{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c1","output":"{\"free\":true}"}}`, next(t, got))
	require.NoError(t, s.ToolResult("c2", "no"))
	require.Contains(t, next(t, got), `"call_id":"c2"`)
	require.JSONEq(t, `{"type":"response.create","response":{}}`, next(t, got))
	require.NoError(t, s.ToolResult("of another session", "42"))
	require.JSONEq(t, `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"(The tool that was still running has answered: 42)"}]}}`, next(t, got))
}

func TestTheServiceHasAnOpinionOnTheTurn(t *testing.T) {
	frames := 0
	s, events, got, _ := duplex(t, openai.Options{TurnDetection: "server_vad"}, telephone(), opens(func(m map[string]any) []string {
		if m["type"] != "input_audio_buffer.append" {
			return nil
		}
		if frames++; frames > 1 {
			return nil
		}
		return []string{`{"type":"input_audio_buffer.speech_stopped","item_id":"item_0"}`, `{"type":"input_audio_buffer.committed","item_id":"item_0"}`,
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"item_0","transcript":"Yes."}`}
	}))
	next(t, got)
	require.NoError(t, s.Write(make([]int16, 160)))
	require.Equal(t, &converse.Heard{Text: "Yes.", Final: true, EndTurn: true}, happens(t, events).Customer)
	require.Contains(t, next(t, got), "append")
	require.NoError(t, s.Write(make([]int16, 160)), "the silence goes on")
	require.Contains(t, next(t, got), "append")
	require.NoError(t, s.EndTurn())
	require.JSONEq(t, `{"type":"response.create","response":{}}`, next(t, got), "the service has made a turn of it already")
}

func TestASessionThatFails(t *testing.T) {
	for name, c := range map[string]struct{ event, want string }{
		"malformed event": {`{"type":`, "the service sent what is not an event"},
		"error":           {`{"type":"error","error":{"type":"server_error","code":"x","message":"bad ` + key + `"}}`, "the service failed: bad ***"},
		"expired":         {`{"type":"error","error":{"code":"session_expired","message":"Your session hit the maximum duration of 60 minutes."}}`, "maximum duration of 60 minutes"},
		"only a code":     {`{"type":"error","error":{"code":"session_expired"}}`, "session_expired"},
		"wrong key":       {`{"type":"error","error":{"code":"invalid_api_key","message":"Incorrect API key provided: ` + key + `"}}`, "the key was refused"},
		"no credit":       {`{"type":"response.done","response":{"status":"failed","status_details":{"type":"failed","error":{"type":"insufficient_quota","code":"insufficient_quota"}}}}`, "no credit left"},
		"rate limit":      {`{"type":"response.done","response":{"status":"failed","status_details":{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}}}`, "Rate limit reached"},
		"withheld":        {`{"type":"response.done","response":{"status":"incomplete","status_details":{"reason":"content_filter"}}}`, "no answer (content_filter)"},
		"not sound":       {`{"type":"response.output_audio.delta","item_id":"i","delta":"%%%"}`, "not base64"},
		"bad arguments":   {`{"type":"response.output_item.done","item":{"type":"function_call","name":"tables","call_id":"c","arguments":"[1]"}}`, "the arguments of the tool call tables are not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			s, events, _, _ := duplex(t, openai.Options{}, telephone(), answers(c.event))
			require.NoError(t, s.EndTurn())
			err := happens(t, events).Err
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "openai duplex: "), err.Error())
			require.NotContains(t, err.Error(), key)
			require.Equal(t, err, s.Write(make([]int16, 160)))
			require.Equal(t, err, s.Say("Hello."))
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
		"wrong key":            {providertest.Refuse(401, `{"error":{"message":"`+key+`"}}`), "the key was refused (401)"},
		"wrong key, told late": {closing(3000, "invalid_request_error.invalid_api_key"), "the key was refused (3000)"},
		"no such model": {providertest.Dialogue(nil, func(map[string]any) []string {
			return []string{`{"type":"error","error":{"code":"model_not_found","message":"The model does not exist"}}`}
		}), "The model does not exist"},
		"too many": {providertest.Refuse(429, `{}`, "Retry-After", "3"), "to be tried again after 3 s"},
		"closed":   {closing(1011, ""), "the service ended the stream (1011)"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := provider(t, c.handler)
			_, err := p.Duplex().Converse(t.Context(), telephone(), func(converse.DuplexEvent) { require.Fail(t, "nothing may happen") })
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "openai duplex: "), err.Error())
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestADuplexNeedsItsRate(t *testing.T) {
	p, _ := provider(t, providertest.Stall)
	_, err := p.Duplex().Converse(t.Context(), converse.DuplexOptions{Utterance: converse.Utterance{Rate: 44100}}, func(converse.DuplexEvent) {})
	require.EqualError(t, err, "openai duplex: no sampling rate of 44100 Hz")
	_, err = openai.New(openai.Options{TurnDetection: "mine"})
	require.ErrorContains(t, err, "turn detection")
}
