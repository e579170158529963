package cartesia

import (
	"encoding/json"
	"time"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// event is what the service says. Which fields there are depends on the type.
type event struct {
	Type       string `json:"type"`
	Context    string `json:"context_id"`
	Data       []byte `json:"data"`
	StatusCode int    `json:"status_code"`
	Error      string `json:"error"`
	Message    string `json:"message"`
	Words      *struct {
		Words  []string  `json:"words"`
		Starts []float64 `json:"start"`
		Ends   []float64 `json:"end"`
	} `json:"word_timestamps"`
}

// sentence is a sentence on its way from the service.
type sentence struct {
	context  string
	emit     func(converse.Sound)
	watch    *wire.Patience
	answered bool // the service has said something of it
	samples  int
	halves   wire.Halves
}

// take takes an event; done is true for the last one. Events of another sentence on
// the same connection are remains, and left alone.
func (s *sentence) take(body []byte) (done bool, err error) {
	var e event
	if json.Unmarshal(body, &e) != nil {
		return false, errMalformed
	}
	if e.Context != "" && e.Context != s.context {
		return false, nil
	}
	s.answered = true
	s.watch.Heard()
	switch e.Type {
	case "chunk":
		if samples := s.halves.Samples(e.Data); len(samples) > 0 {
			s.samples += len(samples)
			s.emit(converse.Sound{Samples: samples})
		}
	case "timestamps":
		if words := e.words(); len(words) > 0 {
			s.emit(converse.Sound{Words: words})
		}
	case "error":
		if e.Message == "" {
			e.Message = e.Error
		}
		return false, &wire.RefusalError{Status: e.StatusCode, Message: e.Message}
	case "done":
		if s.samples == 0 {
			return false, errEmpty
		}
		return true, nil
	}
	return false, nil
}

// words are the event's words with their times, from the start of the sentence.
func (e *event) words() (words []converse.SpokenWord) {
	if e.Words == nil {
		return nil
	}
	for i := range min(len(e.Words.Words), len(e.Words.Starts), len(e.Words.Ends)) {
		start, end := seconds(e.Words.Starts[i]), seconds(e.Words.Ends[i])
		words = append(words, converse.SpokenWord{Text: e.Words.Words[i], Start: start, End: max(start, end)})
	}
	return words
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
