package elevenlabs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Speaker is text to speech with the times of its words.
type Speaker struct{ p *Provider }

// mostSound bounds the answer to one sentence.
const mostSound = 64 << 20

// request is what the service is asked.
type request struct {
	Text     string   `json:"text"`
	Model    string   `json:"model_id"`
	Language string   `json:"language_code,omitempty"`
	Voice    settings `json:"voice_settings"`
}

type settings struct {
	Stability  float64 `json:"stability"`
	Similarity float64 `json:"similarity_boost"`
	Speed      float64 `json:"speed"`
}

// Speak streams a sentence.
func (s *Speaker) Speak(ctx context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	format, decode, err := output(u.Rate)
	if err != nil {
		return err
	}
	ctx, watch := wire.Watch(ctx, s.p.options.Silence)
	defer watch.Stop()
	r, err := s.p.request(ctx, u, format)
	if err != nil {
		return err
	}
	response, err := s.p.client.Do(r)
	if err != nil {
		return s.p.explain(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return s.p.refused(response)
	}
	sentence := &sentence{rate: u.Rate, decode: decode, emit: emit}
	pieces := json.NewDecoder(io.LimitReader(response.Body, mostSound))
	for {
		var c chunk
		err := pieces.Decode(&c)
		switch {
		case errors.Is(err, io.EOF) && ctx.Err() == nil:
			return sentence.finish()
		case err != nil:
			return s.p.explain(ctx, err)
		}
		watch.Heard()
		if c.Detail != nil {
			return s.p.explain(ctx, fmt.Errorf("the service gave up: %s", c.Detail.Message))
		}
		sentence.take(&c)
	}
}

// request is the question for one sentence.
func (p *Provider) request(ctx context.Context, u converse.Utterance, format string) (*http.Request, error) {
	if !isVoice(u.Voice) {
		return nil, fmt.Errorf("%s: there is no voice %q", who, u.Voice)
	}
	q := request{Text: u.Text, Model: p.options.Model, Voice: settings{Stability: u.Stability, Similarity: u.Similarity, Speed: u.Speed}}
	if u.Speed <= 0 {
		q.Voice.Speed = 1
	}
	// Only these models take a language; the others hear it in the text.
	if strings.HasSuffix(q.Model, "_v2_5") || strings.HasSuffix(q.Model, "_v3") {
		q.Language = u.Language
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("%s: a setting of the voice is not a number", who)
	}
	address := p.base.JoinPath("v1", "text-to-speech", u.Voice, "stream", "with-timestamps")
	address.RawQuery = "output_format=" + format
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: the address cannot be used", who)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Xi-Api-Key", p.options.APIKey)
	return r, nil
}

// isVoice keeps what is not a voice's id out of the address.
func isVoice(id string) bool {
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// output is how sound of a rate is asked for, and what makes samples of it: telephone
// sound as telephones carry it, anything better as bare samples.
func output(rate audio.Rate) (format string, decode func([]byte) []int16, err error) {
	switch rate {
	case audio.Rate8k:
		return "ulaw_8000", wire.FromMuLaw, nil
	case audio.Rate16k, audio.Rate24k, audio.Rate48k:
		half := wire.Halves{}
		return fmt.Sprintf("pcm_%d", rate), half.Samples, nil
	default:
		return "", nil, fmt.Errorf("%s: no sampling rate of %d Hz", who, rate)
	}
}
