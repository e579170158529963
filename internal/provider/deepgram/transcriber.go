package deepgram

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"parley/internal/audio"
	"parley/internal/converse"
)

// Transcriber is streaming speech to text, a WebSocket per call.
type Transcriber struct{ p *Provider }

const (
	mostMessage = 1 << 20 // bytes of one event
	mostHints   = 100     // the service takes 500 tokens of key terms
	// utteranceEnd is the silence after which the service says that an utterance
	// ended, by the times of its words; it takes no less than a second.
	utteranceEnd = "1000"
)

// Listen opens a stream for one call.
func (t *Transcriber) Listen(ctx context.Context, o converse.ListenOptions, hear func(converse.Heard)) (converse.Listener, error) {
	if o.Rate < audio.Rate8k || o.Rate > audio.Rate48k {
		return nil, fmt.Errorf("%s: no sampling rate of %d Hz", who, o.Rate)
	}
	opening, cancel := context.WithTimeout(ctx, t.p.options.OpenLimit)
	defer cancel()
	//nolint:bodyclose // the library has closed it, and left the beginning of it to be read
	socket, response, err := websocket.Dial(opening, t.p.address(o), &websocket.DialOptions{
		HTTPClient: t.p.client,
		HTTPHeader: http.Header{"Authorization": {"Token " + t.p.options.APIKey}},
	})
	if err != nil {
		return nil, t.p.refused(ctx, response, err)
	}
	socket.SetReadLimit(mostMessage)
	return newListener(ctx, t.p, socket, encoder(o.Rate), hear), nil
}

// address is where a stream is opened, with all that the service must know of it.
func (p *Provider) address(o converse.ListenOptions) string {
	q := url.Values{}
	q.Set("model", p.options.Model)
	q.Set("encoding", encoding(o.Rate))
	q.Set("sample_rate", strconv.Itoa(int(o.Rate)))
	q.Set("channels", "1")
	q.Set("interim_results", "true")
	q.Set("smart_format", "true")
	q.Set("vad_events", "true")
	q.Set("endpointing", strconv.FormatInt(p.options.Endpointing.Milliseconds(), 10))
	q.Set("utterance_end_ms", utteranceEnd)
	if o.Language != "" {
		q.Set("language", o.Language)
	}
	hints := "keywords" // what models before nova-3 call them
	if strings.HasPrefix(p.options.Model, "nova-3") {
		hints = "keyterm"
	}
	for _, h := range o.Hints[:min(len(o.Hints), mostHints)] {
		q.Add(hints, h)
	}
	address := p.base.JoinPath("v1", "listen")
	address.RawQuery = q.Encode()
	return address.String()
}

// encoding is how sound of a rate is sent: telephone sound as telephones send it, in
// half the bytes, anything better as it is.
func encoding(rate audio.Rate) string {
	if rate == audio.Rate8k {
		return "mulaw"
	}
	return "linear16"
}

func encoder(rate audio.Rate) func(frame []int16) []byte {
	if rate == audio.Rate8k {
		return func(frame []int16) []byte {
			b := make([]byte, len(frame))
			audio.EncodeMuLaw(b, frame)
			return b
		}
	}
	return func(frame []int16) []byte {
		b := make([]byte, 2*len(frame))
		for i, s := range frame {
			b[2*i], b[2*i+1] = byte(s), byte(s>>8)
		}
		return b
	}
}
