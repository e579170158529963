package openai

import (
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// session is one call's conversation with a speech-to-speech model. The service makes
// one answer at a time, so those that are wanted wait for their turn.
type session struct {
	p       *Provider
	who     string
	options converse.Utterance
	stream  *wire.Stream
	ready   chan struct{} // closed when the service has taken the settings

	mu      sync.Mutex // also held while emitting, which keeps events in order
	emit    func(converse.DuplexEvent)
	opened  bool
	up      *wire.Converter // to the service's rate; nil from a telephone
	down    *wire.Converter // and back
	gate    *wire.Gate      // nil if the service looks for the ends of turns
	unheard time.Duration   // of sound sent and not yet committed as a turn
	turned  bool            // the service has found the end of a turn that nobody has answered
	commits int             // our own ends of turns that the service has not confirmed
	partial map[string]string
	wants   []object      // answers to be asked for
	answer  *spokenAnswer // under way
	spoken  *spokenAnswer // the latest with sound
	open    map[string]bool
	owed    converse.Usage // of interrupted answers
}

// spokenAnswer is one response of the service.
type spokenAnswer struct {
	speech *wire.Speech
	items  []item
	void   bool // interrupted
}

// item is a part of the conversation with sound: what was not heard of it is cut off.
type item struct {
	id           string
	from, length time.Duration
}

const (
	// least is what the service takes for a turn.
	least = 100 * time.Millisecond
	// mayFail marks a message that comes too late if the service is faster: an error
	// about it is no failure.
	mayFail = "may-fail"
	// commitMayFail is the same for the end of a turn.
	commitMayFail = "commit-may-fail"
	// verbatim has the model say a given text.
	verbatim = "Say exactly the following text to the customer, word for word, in its own language, and nothing else:\n\n"
)

func newSession(p *Provider, who string, o converse.DuplexOptions, emit func(converse.DuplexEvent)) (*session, error) {
	s := &session{
		p: p, who: who, options: o.Utterance, emit: emit, ready: make(chan struct{}),
		partial: map[string]string{}, open: map[string]bool{},
	}
	var err error
	from := audio.Rate8k
	if o.Utterance.Rate != audio.Rate8k {
		from = realtimeRate
		if s.up, err = wire.NewConverter(o.Utterance.Rate, from); err != nil {
			return nil, fmt.Errorf("no sampling rate of %d Hz", o.Utterance.Rate)
		}
	}
	if s.down, err = wire.NewConverter(from, o.Utterance.Rate); err != nil {
		return nil, err
	}
	if p.options.TurnDetection == "" {
		if s.gate, err = wire.NewGate(o.Utterance.Rate); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Write sends a frame, if somebody speaks in it.
func (s *session) Write(frame []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		frame = s.gate.Add(frame)
	}
	return s.send(frame)
}

func (s *session) send(sound []int16) error {
	if len(sound) == 0 {
		return s.stream.Alive()
	}
	s.unheard += s.options.Rate.Duration(len(sound))
	var body []byte
	if s.up == nil {
		body = wire.MuLaw(sound)
	} else {
		body = wire.Samples(s.up.Convert(sound))
	}
	return s.stream.SendText(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(body) + `"}`)
}

// EndTurn has the customer's turn answered, which is what was sent since the last one.
func (s *session) EndTurn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.commit(); err != nil {
		return err
	}
	s.turned = false
	return s.want(object{})
}

// commit makes a turn of the sound so far. Where the service has found the end of the
// turn by itself it has done so already.
func (s *session) commit() error {
	if s.turned {
		return s.stream.Alive()
	}
	if s.gate != nil {
		if rest := s.gate.Rest(); s.unheard == 0 && len(rest) > 0 {
			if err := s.send(rest); err != nil {
				return err
			}
		}
	}
	if s.unheard == 0 {
		return s.stream.Alive()
	}
	if short := least - s.unheard; short > 0 {
		if err := s.send(make([]int16, s.options.Rate.Samples(short))); err != nil {
			return err
		}
	}
	s.unheard = 0
	s.commits++
	return s.stream.SendJSON(object{"type": "input_audio_buffer.commit", "event_id": commitMayFail})
}

// Say has the model say a text. It is not shown the conversation for it, which would
// only tempt it to say something else.
func (s *session) Say(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want(object{"instructions": verbatim + text, "input": []object{}, "tool_choice": "none"})
}

// ToolResult answers a tool call; when it was the last one open, the model goes on. A
// call that another session has made is told as a remark.
func (s *session) ToolResult(id, result string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	item := object{"type": "function_call_output", "call_id": id, "output": result}
	if !s.open[id] {
		item = said("(The tool that was still running has answered: " + result + ")")
	}
	delete(s.open, id)
	if err := s.stream.SendJSON(object{"type": "conversation.item.create", "item": item}); err != nil {
		return err
	}
	if len(s.open) > 0 {
		return nil
	}
	return s.want(object{})
}

// Interrupt stops the answer under way and has the service forget what was not heard.
func (s *session) Interrupt(heard time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stream.Alive(); err != nil {
		return err
	}
	s.wants = nil
	var err error
	stopped := s.answer != nil && !s.answer.void
	if stopped {
		s.answer.void = true
		err = s.stream.SendJSON(object{"type": "response.cancel", "event_id": mayFail})
	}
	a := s.spoken
	s.spoken = nil
	if a == nil {
		return err
	}
	for n, i := range a.items {
		// Of an answer that was stopped the service may have made more than came here.
		unfinished := stopped && a == s.answer && n == len(a.items)-1
		if heard >= i.from+i.length && !unfinished {
			continue
		}
		end := min(max(heard-i.from, 0), i.length)
		err = errors.Join(err, s.stream.SendJSON(object{
			"type": "conversation.item.truncate", "event_id": mayFail, "item_id": i.id, "content_index": 0, "audio_end_ms": end.Milliseconds(),
		}))
	}
	return err
}

// Close ends the session and waits until nothing of it runs any more.
func (s *session) Close() error { return s.stream.Close() }

// want has an answer made after those before it.
func (s *session) want(response object) error {
	if err := s.stream.Alive(); err != nil {
		return err
	}
	s.wants = append(s.wants, response)
	return s.ask()
}

// ask asks for the next answer, unless one is under way.
func (s *session) ask() error {
	if s.answer != nil || len(s.wants) == 0 {
		return nil
	}
	s.answer = &spokenAnswer{speech: wire.NewSpeech(s.down, s.options.Speed)}
	next := s.wants[0]
	s.wants = s.wants[1:]
	return s.stream.SendJSON(object{"type": "response.create", "response": next})
}
