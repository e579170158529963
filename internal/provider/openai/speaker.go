package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Speaker is text to speech over audio/speech. It knows no word times.
type Speaker struct{ p *Provider }

// Speak streams a sentence. The sound is asked for as bare samples, which come at 24
// kHz: they need no decoder, and the first of them can be heard at once.
func (s *Speaker) Speak(ctx context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	ctx, watch := wire.Watch(ctx, s.p.options.Silence)
	defer watch.Stop()
	params := sdk.AudioSpeechNewParams{
		Model: s.p.options.SpeechModel, Input: u.Text, ResponseFormat: sdk.AudioSpeechNewParamsResponseFormatPCM,
		Voice: sdk.AudioSpeechNewParamsVoiceUnion{OfString: sdk.String(u.Voice)},
	}
	if u.Speed > 0 && u.Speed != 1 {
		params.Speed = sdk.Float(u.Speed)
	}
	response, err := s.p.speech.New(ctx, params)
	if err != nil {
		return s.p.explain(ctx, "speaker", err)
	}
	defer response.Body.Close()
	if err := isSound(response.Header.Get("Content-Type")); err != nil {
		return s.wrong(err)
	}
	sound := newSound(u.Rate, emit)
	buffer := make([]byte, 8<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			watch.Heard()
			if err := sound.write(buffer[:n]); err != nil {
				return s.wrong(err)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && ctx.Err() == nil:
			if err := sound.finish(); err != nil {
				return s.wrong(err)
			}
			return nil
		case err != nil:
			return s.p.explain(ctx, "speaker", err)
		}
	}
}

func (s *Speaker) wrong(err error) error {
	return fmt.Errorf("%s speaker: %w", s.p.options.Name, err)
}

// isSound refuses what would be heard as noise. Servers name bare samples in many
// ways, or not at all.
func isSound(contentType string) error {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil //nolint:nilerr // a header that cannot be read says nothing
	}
	for _, compressed := range []string{"mpeg", "mp3", "ogg", "opus", "aac", "flac", "json", "text/"} {
		if strings.Contains(kind, compressed) {
			return fmt.Errorf("the server sent %s instead of bare samples", kind)
		}
	}
	return nil
}
