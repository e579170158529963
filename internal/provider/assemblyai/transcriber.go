package assemblyai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Transcriber is streaming speech to text, a WebSocket per call.
type Transcriber struct{ p *Provider }

const (
	who       = "assemblyai transcriber"
	mostHints = 100 // that the service takes
)

// Listen opens a stream for one call.
func (t *Transcriber) Listen(ctx context.Context, o converse.ListenOptions, hear func(converse.Heard)) (converse.Listener, error) {
	if o.Rate < audio.Rate8k || o.Rate > audio.Rate48k {
		return nil, fmt.Errorf("%s: no sampling rate of %d Hz", who, o.Rate)
	}
	l := &listener{parcel: newParcel(o.Rate)}
	stream, err := wire.Open(ctx, wire.StreamOptions{
		Who: who, Key: t.p.options.APIKey, Client: t.p.client, OpenLimit: t.p.options.OpenLimit, Queue: mostWaiting,
		Address: t.p.address(o), Header: http.Header{"Authorization": {t.p.options.APIKey}},
		Refused: refused, Closed: closed, Goodbye: terminate,
	}, func(body []byte) error {
		heard, ok, err := t.p.understand(body)
		if ok {
			hear(l.judge(heard))
		}
		return err
	}, func(err error) { hear(converse.Heard{Err: err}) })
	if err != nil {
		return nil, err
	}
	l.stream = stream
	return l, nil
}

// address is where a stream is opened, with all that the service must know of it.
func (p *Provider) address(o converse.ListenOptions) string {
	q := url.Values{}
	q.Set("sample_rate", strconv.Itoa(int(o.Rate)))
	q.Set("encoding", encoding(o.Rate))
	q.Set("format_turns", "true")
	q.Set("speech_model", p.model(o.Language))
	if len(o.Hints) > 0 {
		hints, _ := json.Marshal(o.Hints[:min(len(o.Hints), mostHints)]) //nolint:errchkjson // texts only
		q.Set("keyterms_prompt", string(hints))
	}
	address := p.base.JoinPath("v3", "ws")
	address.RawQuery = q.Encode()
	return address.String()
}

// model is the speech model for a language.
func (p *Provider) model(language string) string {
	switch {
	case p.options.Model != "":
		return p.options.Model
	case language == "" || language == "en":
		return english
	default:
		return multilingual
	}
}

// encoding is how sound of a rate is sent: telephone sound as telephones send it, in
// half the bytes, anything better as it is.
func encoding(rate audio.Rate) string {
	if rate == audio.Rate8k {
		return "pcm_mulaw"
	}
	return "pcm_s16le"
}
