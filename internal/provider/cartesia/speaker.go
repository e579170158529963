package cartesia

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Speaker is text to speech with the times of its words.
type Speaker struct{ p *Provider }

const mostMessage = 4 << 20 // bytes of one event

// request is what the service is asked.
type request struct {
	Model      string      `json:"model_id"`
	Transcript string      `json:"transcript"`
	Voice      voice       `json:"voice"`
	Language   string      `json:"language,omitempty"`
	Context    string      `json:"context_id"`
	Output     output      `json:"output_format"`
	Timestamps bool        `json:"add_timestamps"`
	Continue   bool        `json:"continue"`
	Generation *generation `json:"generation_config,omitempty"`
}

type voice struct {
	Mode string `json:"mode"`
	ID   string `json:"id"`
}

type output struct {
	Container string `json:"container"`
	Encoding  string `json:"encoding"`
	Rate      int    `json:"sample_rate"`
}

type generation struct {
	Speed float64 `json:"speed"`
}

// Speak streams a sentence. A kept connection that turns out to be dead is replaced
// once, by a new one.
func (s *Speaker) Speak(ctx context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	switch u.Rate {
	case audio.Rate8k, audio.Rate16k, audio.Rate24k, audio.Rate48k:
	default:
		return fmt.Errorf("%s: no sampling rate of %d Hz", who, u.Rate)
	}
	ctx, watch := wire.Watch(ctx, s.p.options.Silence)
	defer watch.Stop()
	sentence := &sentence{context: rand.Text(), emit: emit, watch: watch}
	if socket := s.p.idle.take(); socket != nil {
		err := s.speak(ctx, socket, u, sentence)
		if err == nil {
			return nil
		}
		if sentence.answered || ctx.Err() != nil {
			return s.p.explain(ctx, err)
		}
	}
	socket, err := s.p.dial(ctx)
	if err == nil {
		err = s.speak(ctx, socket, u, sentence)
	}
	if err != nil {
		return s.p.explain(ctx, err)
	}
	return nil
}

// dial opens a connection.
func (p *Provider) dial(ctx context.Context) (*websocket.Conn, error) {
	//nolint:bodyclose // the library has closed it
	socket, response, err := websocket.Dial(ctx, p.address, &websocket.DialOptions{
		HTTPClient: p.client,
		HTTPHeader: http.Header{"X-Api-Key": {p.options.APIKey}, "Cartesia-Version": {version}},
	})
	switch {
	case err == nil:
		socket.SetReadLimit(mostMessage)
		return socket, nil
	case response != nil:
		return nil, wire.ReadRefusal(response, func([]byte) string { return "" })
	default:
		return nil, errUnreachable
	}
}

// speak has the sentence spoken over a connection, and keeps that if all went well.
// One that did not is cut, which also stops the service from going on.
func (s *Speaker) speak(ctx context.Context, socket *websocket.Conn, u converse.Utterance, sentence *sentence) error {
	err := s.exchange(ctx, socket, u, sentence)
	if err != nil {
		_ = socket.CloseNow()
		return err
	}
	s.p.idle.give(socket)
	return nil
}

func (s *Speaker) exchange(ctx context.Context, socket *websocket.Conn, u converse.Utterance, sentence *sentence) error {
	body, err := json.Marshal(s.p.request(u, sentence.context))
	if err != nil {
		return err
	}
	if err := socket.Write(ctx, websocket.MessageText, body); err != nil {
		return err
	}
	for {
		_, body, err := socket.Read(ctx)
		if err != nil {
			return err
		}
		done, err := sentence.take(body)
		if done || err != nil {
			return err
		}
	}
}

func (p *Provider) request(u converse.Utterance, id string) request {
	r := request{
		Model: p.options.Model, Transcript: u.Text, Language: u.Language, Context: id, Timestamps: true,
		Voice:  voice{Mode: "id", ID: u.Voice},
		Output: output{Container: "raw", Encoding: "pcm_s16le", Rate: int(u.Rate)},
	}
	if u.Speed > 0 && u.Speed != 1 {
		r.Generation = &generation{Speed: u.Speed}
	}
	return r
}
