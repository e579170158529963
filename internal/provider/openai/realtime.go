package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Duplex is a speech-to-speech model over the Realtime interface, a WebSocket per call.
type Duplex struct{ p *Provider }

const (
	realtimeRate = audio.Rate24k // of bare samples, the only one that the service takes
	// mostUnsent is how many messages may wait to be sent: ten seconds of sound.
	mostUnsent = 500
)

// object is a message to the service.
type object = map[string]any

// Converse opens a session: it is of use once the service has taken its settings. A
// telephone's sound goes as it is, anything better as samples at 24 kHz.
func (d *Duplex) Converse(ctx context.Context, o converse.DuplexOptions, emit func(converse.DuplexEvent)) (converse.DuplexSession, error) {
	who := d.p.options.Name + " duplex"
	s, err := newSession(d.p, who, o, emit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	header := http.Header{}
	if d.p.options.APIKey != "" {
		header.Set("Authorization", "Bearer "+d.p.options.APIKey)
	}
	s.stream, err = wire.Open(ctx, wire.StreamOptions{
		Who: who, Key: d.p.options.APIKey, Client: d.p.client, OpenLimit: d.p.options.OpenLimit, Queue: mostUnsent,
		Address: d.p.options.BaseURL + "realtime?model=" + url.QueryEscape(o.Prompt.Model), Header: header,
		Refused: func(body []byte, _ http.Header) string { message, _ := messageOf(body); return message },
		Closed:  closedBecause,
	}, s.take, s.lost)
	if err != nil {
		return nil, err
	}
	if err := s.begin(o); err != nil {
		return nil, errors.Join(err, s.stream.Close())
	}
	if err := s.stream.Await(ctx, s.ready); err != nil {
		return nil, err
	}
	return s, nil
}

// closedBecause is what the service means by closing a session. It opens one for
// anybody and may refuse a wrong key by closing it again.
func closedBecause(code int, reason string) string {
	if strings.Contains(reason, "invalid_api_key") {
		return fmt.Sprintf("the key was refused (%d)", code)
	}
	return ""
}

// begin tells the service who it is and what has been said so far.
func (s *session) begin(o converse.DuplexOptions) error {
	err := s.stream.SendJSON(object{"type": "session.update", "session": s.settings(o)})
	for _, m := range o.Prompt.Messages {
		for _, item := range items(m) {
			err = errors.Join(err, s.stream.SendJSON(object{"type": "conversation.item.create", "item": item}))
		}
	}
	return err
}

func (s *session) settings(o converse.DuplexOptions) object {
	format := object{"type": "audio/pcm", "rate": int(realtimeRate)}
	if o.Utterance.Rate == audio.Rate8k {
		format = object{"type": "audio/pcmu"}
	}
	transcription := object{"model": s.p.options.TranscriptionModel}
	if o.Utterance.Language != "" {
		transcription["language"] = o.Utterance.Language
	}
	input := object{"format": format, "transcription": transcription, "turn_detection": nil}
	if s.gate == nil {
		// The service's opinion is heard; who answers when is the engine's to say.
		input["turn_detection"] = object{"type": s.p.options.TurnDetection, "create_response": false, "interrupt_response": false}
	}
	output := object{"format": format}
	if o.Utterance.Voice != "" {
		output["voice"] = o.Utterance.Voice
	}
	if o.Utterance.Speed > 0 && o.Utterance.Speed != 1 {
		output["speed"] = o.Utterance.Speed
	}
	functions := []object{}
	for _, t := range o.Prompt.Tools {
		functions = append(functions, object{"type": "function", "name": t.Name, "description": t.Description, "parameters": wire.SchemaObject(t.Params)})
	}
	return object{
		"type": "realtime", "output_modalities": []string{"audio"}, "instructions": o.Prompt.System,
		"audio": object{"input": input, "output": output}, "tools": functions, "tool_choice": "auto",
	}
}

// items are a message as parts of the service's conversation.
func items(m converse.Message) (items []object) {
	switch m.Role {
	case converse.RoleTool:
		return []object{{"type": "function_call_output", "call_id": m.ToolCallID, "output": m.Text}}
	case converse.RoleAssistant:
		if m.Text != "" {
			items = append(items, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": m.Text}}})
		}
		for _, c := range m.ToolCalls {
			items = append(items, object{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": arguments(c.Arguments)})
		}
		return items
	default:
		return []object{said(m.Text)}
	}
}

// said is something that the customer said, or that the model must know.
func said(text string) object {
	return object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": text}}}
}
