package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// event is what the service says. Which fields there are depends on the type.
type event struct {
	Type       string    `json:"type"`
	ItemID     string    `json:"item_id"`
	Delta      string    `json:"delta"`
	Transcript string    `json:"transcript"`
	Response   response  `json:"response"`
	Item       function  `json:"item"`
	Error      complaint `json:"error"`
}

type response struct {
	Status  string `json:"status"`
	Details struct {
		Reason string    `json:"reason"`
		Error  complaint `json:"error"`
	} `json:"status_details"`
	Usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"usage"`
}

type function struct {
	Type      string `json:"type"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
}

type complaint struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	EventID string `json:"event_id"`
}

// take takes an event. An error ends the session.
func (s *session) take(body []byte) error {
	var e event
	if json.Unmarshal(body, &e) != nil {
		return errors.New(s.who + ": the service sent what is not an event")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type {
	case "session.updated":
		if !s.opened {
			s.opened = true
			close(s.ready)
		}
	case "error":
		return s.complained(e.Error)
	case "response.done":
		return s.done(&e.Response)
	case "input_audio_buffer.committed":
		s.committed()
	case "conversation.item.input_audio_transcription.delta":
		s.partial[e.ItemID] += e.Delta
		s.emit(converse.DuplexEvent{Customer: &converse.Heard{Text: s.partial[e.ItemID]}})
	case "conversation.item.input_audio_transcription.completed":
		delete(s.partial, e.ItemID)
		s.emit(converse.DuplexEvent{Customer: &converse.Heard{Text: e.Transcript, Final: true, EndTurn: s.turned}})
	case "conversation.item.input_audio_transcription.failed":
		delete(s.partial, e.ItemID)
		s.emit(converse.DuplexEvent{Customer: &converse.Heard{Final: true, EndTurn: s.turned, Damaged: true}})
	default:
		return s.answered(&e)
	}
	return nil
}

// committed takes the end of a turn: our own, or one that the service has found.
func (s *session) committed() {
	if s.commits > 0 {
		s.commits--
		return
	}
	s.turned, s.unheard = true, 0
}

// answered takes a piece of the answer under way, unless nobody wants it any more.
func (s *session) answered(e *event) error {
	a := s.answer
	if a == nil || a.void {
		return nil
	}
	switch e.Type {
	case "response.output_audio.delta":
		return s.sounded(a, e)
	case "response.output_audio_transcript.delta":
		s.say(a.speech.Text(e.Delta))
	case "response.output_item.done":
		if e.Item.Type != "function_call" {
			return nil
		}
		call := converse.ToolCall{ID: e.Item.CallID, Name: e.Item.Name, Arguments: map[string]any{}}
		if e.Item.Arguments != "" && json.Unmarshal([]byte(e.Item.Arguments), &call.Arguments) != nil {
			return fmt.Errorf("%s: the arguments of the tool call %s are not a JSON object", s.who, call.Name)
		}
		s.open[call.ID] = true
		s.emit(converse.DuplexEvent{ToolCall: &call})
	}
	return nil
}

func (s *session) sounded(a *spokenAnswer, e *event) error {
	var body []byte
	if json.Unmarshal([]byte(`"`+e.Delta+`"`), &body) != nil {
		return errors.New(s.who + ": the service sent sound that is not base64")
	}
	if len(a.items) == 0 || a.items[len(a.items)-1].id != e.ItemID {
		a.items = append(a.items, item{id: e.ItemID, from: a.speech.Length()})
	}
	s.spoken = a
	var sound *converse.Sound
	if s.up == nil {
		sound = a.speech.Samples(wire.FromMuLaw(body))
	} else {
		sound = a.speech.Bytes(body)
	}
	last := &a.items[len(a.items)-1]
	last.length = a.speech.Length() - last.from
	s.say(sound)
	return nil
}

func (s *session) say(sound *converse.Sound) {
	if sound != nil {
		s.emit(converse.DuplexEvent{Sound: sound})
	}
}

// done ends the answer under way and asks for the next. One that was interrupted is
// billed with the next.
func (s *session) done(r *response) error {
	a := s.answer
	s.answer = nil
	s.owed.InputTokens += r.Usage.Input
	s.owed.OutputTokens += r.Usage.Output
	switch {
	case a == nil || a.void:
		return s.ask()
	case r.Status == "failed":
		return s.complained(r.Details.Error)
	case r.Status == "incomplete" && a.speech.Length() == 0:
		return fmt.Errorf("%s: no answer (%s)", s.who, wire.Clean(r.Details.Reason, s.p.options.APIKey))
	}
	s.say(a.speech.Finish())
	usage := s.owed
	s.owed = converse.Usage{}
	s.emit(converse.DuplexEvent{Done: &usage})
	return s.ask()
}

// complained judges an error of the service; nil if it does no harm.
func (s *session) complained(c complaint) error {
	switch {
	case c.EventID == commitMayFail:
		s.commits--
		return nil
	case c.EventID == mayFail:
		return nil
	case c.Code == "invalid_api_key":
		return errors.New(s.who + ": the key was refused")
	case c.Code == "insufficient_quota":
		return errors.New(s.who + ": no credit left")
	}
	message := wire.Clean(c.Message, s.p.options.APIKey)
	if message == "" {
		message = wire.Clean(c.Code, s.p.options.APIKey)
	}
	return fmt.Errorf("%s: the service failed: %s", s.who, message)
}

// lost tells that the session has failed. One that was not open yet says so by itself.
func (s *session) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		s.emit(converse.DuplexEvent{Err: err})
	}
}
