package deepgram

import (
	"encoding/json"
	"fmt"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// event is what the service says. Which fields there are depends on the type.
type event struct {
	Type         string          `json:"type"`
	IsFinal      bool            `json:"is_final"`
	SpeechFinal  bool            `json:"speech_final"`
	FromFinalize bool            `json:"from_finalize"`
	Channel      json.RawMessage `json:"channel"` // an object in Results, a list elsewhere
	Description  string          `json:"description"`
	Message      string          `json:"message"`
}

type channel struct {
	Alternatives []struct {
		Transcript string `json:"transcript"`
	} `json:"alternatives"`
}

// understand makes words of an event; ok is false for one that brings none.
func (p *Provider) understand(body []byte) (heard converse.Heard, ok bool, err error) {
	var e event
	if json.Unmarshal(body, &e) != nil {
		return heard, false, fmt.Errorf("%s: the service sent what is not an event", who)
	}
	switch e.Type {
	case "Results":
		return results(&e)
	case "UtteranceEnd":
		// Comes when the pause was not heard but the words have stopped: on noisy lines.
		return converse.Heard{Final: true, EndTurn: true}, true, nil
	case "Error":
		text := e.Description
		if text == "" {
			text = e.Message
		}
		return heard, false, fmt.Errorf("%s: the service failed: %s", who, wire.Clean(text, p.options.APIKey))
	default: // Metadata, SpeechStarted and whatever is yet to come
		return heard, false, nil
	}
}

// results makes words of a transcript. Silence is transcribed as well, to nothing,
// and is told only when somebody waits for it.
func results(e *event) (converse.Heard, bool, error) {
	var c channel
	if json.Unmarshal(e.Channel, &c) != nil {
		return converse.Heard{}, false, fmt.Errorf("%s: the service sent a transcript that cannot be read", who)
	}
	heard := converse.Heard{Final: e.IsFinal, EndTurn: e.SpeechFinal && !e.FromFinalize}
	if len(c.Alternatives) > 0 {
		heard.Text = c.Alternatives[0].Transcript
	}
	told := heard.Text != "" || e.FromFinalize || heard.EndTurn
	return heard, told, nil
}
