package deepgram

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Transcriber is streaming speech to text, a WebSocket per call.
type Transcriber struct{ p *Provider }

const (
	who       = "deepgram transcriber"
	mostHints = 100 // the service takes 500 tokens of key terms
	// mostWaiting is how many frames may wait to be sent: five seconds.
	mostWaiting = 250
	// utteranceEnd is the silence after which the service says that an utterance
	// ended, by the times of its words; it takes no less than a second.
	utteranceEnd = "1000"
)

// Messages to the service.
const (
	finalize    = `{"type":"Finalize"}`
	staying     = `{"type":"KeepAlive"}`
	closeStream = `{"type":"CloseStream"}`
)

// Listen opens a stream for one call.
func (t *Transcriber) Listen(ctx context.Context, o converse.ListenOptions, hear func(converse.Heard)) (converse.Listener, error) {
	if o.Rate < audio.Rate8k || o.Rate > audio.Rate48k {
		return nil, fmt.Errorf("%s: no sampling rate of %d Hz", who, o.Rate)
	}
	stream, err := wire.Open(ctx, wire.StreamOptions{
		Who: who, Key: t.p.options.APIKey, Client: t.p.client, OpenLimit: t.p.options.OpenLimit, Queue: mostWaiting,
		Address: t.p.address(o), Header: http.Header{"Authorization": {"Token " + t.p.options.APIKey}},
		Refused:   refused,
		KeepAlive: t.p.options.KeepAlive, Staying: staying, Goodbye: closeStream,
	}, func(body []byte) error {
		heard, ok, err := t.p.understand(body)
		if ok {
			hear(heard)
		}
		return err
	}, func(err error) { hear(converse.Heard{Err: err}) })
	if err != nil {
		return nil, err
	}
	return &listener{stream, o.Rate}, nil
}

// refused finds the service's words in the answer to an opening.
func refused(body []byte, header http.Header) string {
	var told struct {
		Message string `json:"err_msg"`
	}
	if json.Unmarshal(body, &told) != nil || told.Message == "" {
		return header.Get("Dg-Error")
	}
	return told.Message
}

// listener is one call's stream.
type listener struct {
	*wire.Stream

	rate audio.Rate
}

// Write sends a frame.
func (l *listener) Write(frame []int16) error { return l.SendSound(wire.TelephoneSound(l.rate, frame)) }

// Flush asks for the final words now.
func (l *listener) Flush() error { return l.SendText(finalize) }

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
