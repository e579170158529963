package gemini

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// session is one call's conversation with a speech-to-speech model. The service drops
// the answer under way for a new one, so those that are wanted wait for their turn.
type session struct {
	rate   audio.Rate
	stream *wire.Stream
	ready  chan struct{} // closed when the service has taken the settings

	mu      sync.Mutex // also held while emitting, which keeps events in order
	emit    func(converse.DuplexEvent)
	opened  bool
	gate    *wire.Gate
	down    *wire.Converter // from the service's rate
	talking bool            // the service knows that the customer speaks
	heard   string          // of the customer, in pieces; not yet final
	wants   []object        // what is to be answered
	answer  *spokenAnswer   // under way
	spoken  *spokenAnswer   // the latest with sound
	closing bool            // the end of a turn is still to be told whose answer is complete
	leaving bool            // the service will end the session soon
	open    map[string]string
	usage   converse.Usage // not yet told
}

// spokenAnswer is an answer, and what is said in it.
type spokenAnswer struct {
	speech *wire.Speech
	words  []converse.SpokenWord
	begun  bool
	void   bool // interrupted
}

const verbatim = "(Say exactly the following text to the customer now, word for word, in its own language, and nothing else:)\n\n"

// Write sends a frame, if somebody speaks in it.
func (s *session) Write(frame []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(s.gate.Add(frame))
}

func (s *session) send(sound []int16) error {
	if len(sound) == 0 {
		return s.stream.Alive()
	}
	if !s.talking {
		s.final()
		s.talking = true
		if err := s.stream.SendText(`{"realtimeInput":{"activityStart":{}}}`); err != nil {
			return err
		}
	}
	return s.stream.SendText(fmt.Sprintf(`{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=%d","data":"%s"}}}`,
		s.rate, base64.StdEncoding.EncodeToString(wire.Samples(sound))))
}

// EndTurn has the customer's turn answered, which is what was sent since the last one.
func (s *session) EndTurn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.gate.Rest()
	if !s.talking {
		if len(rest) == 0 {
			rest = make([]int16, s.rate.FrameSamples()) // there is no turn without sound
		}
		if err := s.send(rest); err != nil {
			return err
		}
	}
	s.talking = false
	return s.want(object{"realtimeInput": object{"activityEnd": object{}}})
}

// Say has the model say a text.
func (s *session) Say(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want(content(true, turn(genai.RoleUser, verbatim+text)))
}

// ToolResult answers a tool call; when it was the last one open, the model goes on by
// itself. A call that is not known any more is told as a remark.
func (s *session) ToolResult(id, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tool, open := s.open[id]
	if !open {
		return s.want(content(true, turn(genai.RoleUser, toolSaid+text+")")))
	}
	delete(s.open, id)
	if len(s.open) == 0 && s.answer == nil {
		s.begin()
	}
	return s.stream.SendJSON(object{"toolResponse": object{"functionResponses": []object{{"id": id, "name": tool, "response": result(text)}}}})
}

// Interrupt stops the answer under way. The service cannot be told to forget, so it is
// told what was heard; that stops the answer as well.
func (s *session) Interrupt(heard time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stream.Alive(); err != nil {
		return err
	}
	s.wants = nil
	a := s.answer
	stopped := a != nil && !a.void
	if stopped {
		a.void = true
	} else {
		a = s.spoken
	}
	s.spoken = nil
	if a == nil || !stopped && heard >= a.speech.Length() {
		return nil
	}
	var kept []string
	for _, w := range a.words {
		if w.Start < heard {
			kept = append(kept, w.Text)
		}
	}
	note := "(The customer has interrupted you before anything of your last answer was heard.)"
	if len(kept) > 0 {
		note = `(The customer has interrupted you. Of your last answer only this was heard: "` + strings.Join(kept, " ") + `")`
	}
	return s.stream.SendJSON(content(false, turn(genai.RoleUser, note)))
}

// Close ends the session and waits until nothing of it runs any more.
func (s *session) Close() error { return s.stream.Close() }

// want has something answered after what was wanted before it. An interrupted answer
// of which nothing had come is not waited for: the service may have dropped it without
// a word.
func (s *session) want(message object) error {
	if err := s.stream.Alive(); err != nil {
		return err
	}
	if s.answer != nil && s.answer.void && !s.answer.begun {
		s.answer, s.closing = nil, true
	}
	s.wants = append(s.wants, message)
	return s.ask()
}

// ask has the next thing answered, unless an answer is under way.
func (s *session) ask() error {
	if s.answer != nil || len(s.wants) == 0 {
		return nil
	}
	next := s.wants[0]
	s.wants = s.wants[1:]
	s.begin()
	return s.stream.SendJSON(next)
}

// begin expects an answer.
func (s *session) begin() { s.answer = &spokenAnswer{speech: wire.NewSpeech(s.down, 1)} }
