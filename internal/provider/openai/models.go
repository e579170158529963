package openai

import (
	"context"
	"strings"

	"parley/internal/provider/wire"
)

// Models asks the server for the names of its models.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	ctx, watch := wire.Watch(ctx, p.options.Silence)
	defer watch.Stop()
	page, err := p.models.List(ctx)
	if err != nil {
		return nil, p.explain(ctx, "models", err)
	}
	names := make([]string, 0, len(page.Data))
	for _, m := range page.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// Own reports that this is OpenAI's own service, whose models and voices are known.
func (p *Provider) Own() bool { return p.options.BaseURL == ownBaseURL }

// IsLive reports that a model of OpenAI's, by its name, hears and speaks.
func IsLive(model string) bool {
	return strings.Contains(model, "realtime") && !otherThanChat(model)
}

// IsChat reports that a model of OpenAI's, by its name, answers in text: the list of
// models does not say so.
func IsChat(model string) bool {
	if IsLive(model) || otherThanChat(model) || strings.Contains(model, "realtime") || strings.Contains(model, "audio") {
		return false
	}
	for _, family := range []string{"gpt-", "chatgpt-", "o1", "o3", "o4", "ft:gpt-"} {
		if strings.HasPrefix(model, family) {
			return true
		}
	}
	return false
}

// otherThanChat reports a name that begins like a chat model's and is something else.
func otherThanChat(model string) bool {
	for _, other := range []string{"transcribe", "translate", "whisper", "tts", "image", "instruct", "search", "embedding", "codex", "deep-research", "-pro"} {
		if strings.Contains(model, other) {
			return true
		}
	}
	return false
}

// Voices are the names of OpenAI's own voices: of speech, and of live models. The
// vendor lists them in its documentation alone.
func Voices() (speech, live []string) {
	live = []string{"alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"}
	return append([]string{"fable", "nova", "onyx"}, live...), live
}

// Warm opens a connection for the first request of a call.
func (p *Provider) Warm(ctx context.Context) error {
	return wire.Warm(ctx, p.client, p.options.BaseURL)
}
