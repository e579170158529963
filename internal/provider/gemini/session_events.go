package gemini

import (
	"encoding/json"
	"errors"

	"parley/internal/converse"
)

// event is what the service says; several of its parts may come at once.
type event struct {
	SetupComplete *struct{} `json:"setupComplete"`
	Content       *struct {
		Turn struct {
			Parts []struct {
				Thought bool `json:"thought"`
				Data    struct {
					Bytes []byte `json:"data"`
				} `json:"inlineData"`
			} `json:"parts"`
		} `json:"modelTurn"`
		Input       transcription `json:"inputTranscription"`
		Output      transcription `json:"outputTranscription"`
		Interrupted bool          `json:"interrupted"`
		Generated   bool          `json:"generationComplete"`
		Complete    bool          `json:"turnComplete"`
	} `json:"serverContent"`
	ToolCall *struct {
		Calls []struct {
			ID        string         `json:"id"`
			Name      string         `json:"name"`
			Arguments map[string]any `json:"args"`
		} `json:"functionCalls"`
	} `json:"toolCall"`
	Cancelled struct {
		IDs []string `json:"ids"`
	} `json:"toolCallCancellation"`
	Usage *struct {
		Prompt   int `json:"promptTokenCount"`
		Response int `json:"responseTokenCount"`
		Thoughts int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	GoAway *struct{} `json:"goAway"`
}

type transcription struct {
	Text     string `json:"text"`
	Finished bool   `json:"finished"`
}

// take takes an event. An error ends the session.
func (s *session) take(body []byte) error {
	var e event
	if json.Unmarshal(body, &e) != nil {
		return errors.New(liveName + ": the service sent what is not an event")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.SetupComplete != nil && !s.opened {
		s.opened = true
		close(s.ready)
	}
	if u := e.Usage; u != nil {
		s.usage.InputTokens += u.Prompt
		s.usage.OutputTokens += u.Response + u.Thoughts
	}
	for _, id := range e.Cancelled.IDs {
		delete(s.open, id)
	}
	s.leaving = s.leaving || e.GoAway != nil
	s.hear(&e)
	s.sound(&e)
	s.call(&e)
	return s.settle(&e)
}

// hear takes pieces of the customer's words. They come in no order with the answer,
// so they are final when it is complete, unless the service says so before.
func (s *session) hear(e *event) {
	c := e.Content
	if c == nil {
		return
	}
	if c.Input.Text != "" {
		s.heard += c.Input.Text
		s.emit(converse.DuplexEvent{Customer: &converse.Heard{Text: s.heard}})
	}
	if c.Input.Finished || c.Generated || c.Complete || c.Interrupted {
		s.final()
	}
}

func (s *session) final() {
	if s.heard != "" {
		s.emit(converse.DuplexEvent{Customer: &converse.Heard{Text: s.heard, Final: true}})
	}
	s.heard = ""
}

// sound takes a piece of the answer under way, unless nobody wants it any more. A
// model also goes on by itself, when it no longer waits for a tool.
func (s *session) sound(e *event) {
	if e.Content == nil || s.answer == nil && len(e.Content.Turn.Parts) == 0 {
		return
	}
	if s.answer == nil {
		s.begin()
	}
	a := s.answer
	if len(e.Content.Turn.Parts) > 0 {
		a.begun, s.closing = true, false
	}
	if a.void {
		return
	}
	for _, part := range e.Content.Turn.Parts {
		if !part.Thought && len(part.Data.Bytes) > 0 {
			s.spoken = a
			s.say(a, a.speech.Bytes(part.Data.Bytes))
		}
	}
	if e.Content.Output.Text != "" {
		s.say(a, a.speech.Text(e.Content.Output.Text))
	}
}

func (s *session) say(a *spokenAnswer, sound *converse.Sound) {
	if sound == nil {
		return
	}
	a.words = append(a.words, sound.Words...)
	s.emit(converse.DuplexEvent{Sound: sound})
}

// call asks for tools. The answer so far is complete with it, and goes on as another
// once they have answered.
func (s *session) call(e *event) {
	if e.ToolCall == nil || s.answer != nil && s.answer.void {
		return
	}
	s.final()
	if a := s.answer; a != nil {
		s.say(a, a.speech.Finish())
	}
	for _, c := range e.ToolCall.Calls {
		call := converse.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if call.Arguments == nil {
			call.Arguments = map[string]any{}
		}
		s.open[call.ID] = call.Name
		s.emit(converse.DuplexEvent{ToolCall: &call})
	}
	s.done()
}

// done tells that an answer is complete.
func (s *session) done() {
	s.answer = nil
	usage := s.usage
	s.usage = converse.Usage{}
	s.emit(converse.DuplexEvent{Done: &usage})
}

// settle ends the answer under way and has the next one begun. A service that reckons
// with the time of playing tells the end of the turn long after all of it has come.
func (s *session) settle(e *event) error {
	a, c := s.answer, e.Content
	if c != nil && (c.Generated || c.Complete || c.Interrupted) {
		late := s.closing && (a == nil || !a.begun)
		s.closing = !c.Complete && (c.Generated || s.closing)
		switch {
		case a == nil || late:
		case a.void:
			// Interrupted comes before the end of the turn, if the service takes it so.
			if c.Complete {
				s.answer = nil
			}
		default:
			s.say(a, a.speech.Finish())
			s.done()
		}
	}
	if s.leaving && s.answer == nil {
		return errors.New(liveName + ": the service ends the session")
	}
	return s.ask()
}

// lost tells that the session has failed. One that was not open yet says so by itself.
func (s *session) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		s.emit(converse.DuplexEvent{Err: err})
	}
}
