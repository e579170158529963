package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Duplex is a speech-to-speech model over the Live interface, a WebSocket per call.
type Duplex struct{ p *Provider }

const (
	liveName = name + " duplex"
	livePath = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	// mostUnsent is how many messages may wait to be sent: ten seconds of sound.
	mostUnsent = 500
)

// object is a message to the service.
type object = map[string]any

// Converse opens a session: it is of use once the service has taken its settings.
func (d *Duplex) Converse(ctx context.Context, o converse.DuplexOptions, emit func(converse.DuplexEvent)) (converse.DuplexSession, error) {
	gate, err := wire.NewGate(o.Utterance.Rate)
	if err != nil {
		return nil, fmt.Errorf("%s: no sampling rate of %d Hz", liveName, o.Utterance.Rate)
	}
	down, err := wire.NewConverter(audio.Rate24k, o.Utterance.Rate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", liveName, err)
	}
	s := &session{rate: o.Utterance.Rate, emit: emit, ready: make(chan struct{}), gate: gate, down: down, open: map[string]string{}}
	s.stream, err = wire.Open(ctx, wire.StreamOptions{
		Who: liveName, Key: d.p.options.APIKey, Client: d.p.client, OpenLimit: d.p.options.OpenLimit, Queue: mostUnsent,
		Address: strings.TrimSuffix(d.p.options.BaseURL, "/") + "/" + livePath, Header: http.Header{"X-Goog-Api-Key": {d.p.options.APIKey}},
		Refused: func(body []byte, _ http.Header) string { return messageOf(body) }, Closed: closedBecause,
	}, s.take, s.lost)
	if err != nil {
		return nil, err
	}
	if err := s.stream.SendJSON(object{"setup": setup(o)}); err != nil {
		return nil, errors.Join(err, s.stream.Close())
	}
	if err := s.stream.Await(ctx, s.ready); err != nil {
		return nil, err
	}
	if past := past(o.Prompt.Messages); len(past) > 0 {
		if err := s.stream.SendJSON(content(false, past...)); err != nil {
			return nil, errors.Join(err, s.stream.Close())
		}
	}
	return s, nil
}

// closedBecause is what the service means by closing a session. It opens one for
// anybody and refuses a wrong key by closing it again.
func closedBecause(code int, reason string) string {
	if strings.Contains(reason, "API key") {
		return fmt.Sprintf("the key was refused (%d)", code)
	}
	return ""
}

// setup is everything the model is told of a call. Who has the floor is the engine's
// to say: the ends of turns are told, and nothing but being told interrupts.
func setup(o converse.DuplexOptions) object {
	generation := object{"responseModalities": []string{"AUDIO"}, "temperature": o.Prompt.Temperature}
	if o.Utterance.Voice != "" {
		generation["speechConfig"] = object{"voiceConfig": object{"prebuiltVoiceConfig": object{"voiceName": o.Utterance.Voice}}}
	}
	s := object{
		"model":            "models/" + strings.TrimPrefix(o.Prompt.Model, "models/"),
		"generationConfig": generation,
		"realtimeInputConfig": object{
			"automaticActivityDetection": object{"disabled": true}, "activityHandling": "NO_INTERRUPTION",
		},
		"inputAudioTranscription": object{}, "outputAudioTranscription": object{},
		"contextWindowCompression": object{"slidingWindow": object{}}, // else a session ends after 15 minutes
	}
	if o.Prompt.System != "" {
		s["systemInstruction"] = object{"parts": []object{{"text": o.Prompt.System}}}
	}
	if len(o.Prompt.Tools) > 0 {
		var functions []object
		for _, t := range o.Prompt.Tools {
			f := object{"name": t.Name, "description": t.Description}
			if len(t.Params) > 0 { // an object without properties is refused
				f["parameters"] = parameters(t.Params)
			}
			functions = append(functions, f)
		}
		s["tools"] = []object{{"functionDeclarations": functions}}
	}
	return s
}

// parameters are a tool's parameters; this interface takes no JSON schema.
func parameters(params []converse.ParamSpec) *genai.Schema {
	s := &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{}}
	for _, p := range params {
		s.Properties[p.Name] = &genai.Schema{Type: kind(p.Type), Description: p.Description}
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return s
}

// past is the conversation before this session, tools told in words: their calls are
// those of another session.
func past(messages []converse.Message) (turns []object) {
	for _, m := range messages {
		role, text := genai.RoleUser, m.Text
		switch m.Role {
		case converse.RoleAssistant:
			role = genai.RoleModel
		case converse.RoleTool:
			text = toolSaid + m.Text + ")"
		}
		if text != "" {
			turns = append(turns, turn(role, text))
		}
	}
	return turns
}

const toolSaid = "(A tool has answered: "

func turn(role, text string) object { return object{"role": role, "parts": []object{{"text": text}}} }

// content adds to the conversation; with answer the model answers it.
func content(answer bool, turns ...object) object {
	return object{"clientContent": object{"turns": turns, "turnComplete": answer}}
}
