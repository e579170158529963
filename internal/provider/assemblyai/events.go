package assemblyai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// event is what the service says. Which fields there are depends on the type.
type event struct {
	Type       string `json:"type"`
	Transcript string `json:"transcript"`
	EndOfTurn  bool   `json:"end_of_turn"`
	Formatted  bool   `json:"turn_is_formatted"`
	Words      []struct {
		Text string `json:"text"`
	} `json:"words"`
	Error string `json:"error"`
}

// understand makes words of an event; ok is false for one that brings none.
func (p *Provider) understand(body []byte) (heard converse.Heard, ok bool, err error) {
	var e event
	if json.Unmarshal(body, &e) != nil {
		return heard, false, fmt.Errorf("%s: the service sent what is not an event", who)
	}
	switch {
	case e.Type == "Turn":
		heard, ok = turn(&e)
		return heard, ok, nil
	case e.Type == "Error" || e.Type == "" && e.Error != "":
		return heard, false, fmt.Errorf("%s: the service failed: %s", who, wire.Clean(e.Error, p.options.APIKey))
	default: // Begin, SpeechStarted, Termination and whatever is yet to come
		return heard, false, nil
	}
}

// turn makes words of a turn so far. It ends twice, first as it was heard and then
// with punctuation: the second is final. While it goes on, the transcript has only
// the words that will not change, and the list of words has all.
func turn(e *event) (converse.Heard, bool) {
	if e.EndOfTurn && e.Formatted {
		return converse.Heard{Text: e.Transcript, Final: true}, true
	}
	words := make([]string, 0, len(e.Words))
	for _, w := range e.Words {
		words = append(words, w.Text)
	}
	text := strings.Join(words, " ")
	if text == "" {
		text = e.Transcript
	}
	return converse.Heard{Text: text}, text != ""
}
