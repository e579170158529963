package gemini

import (
	"context"
	"slices"
	"strings"

	"parley/internal/provider/wire"
)

// Models asks the vendor for the names of its models: those that answer in text, and
// those that hear and speak.
func (p *Provider) Models(ctx context.Context) (text, live []string, err error) {
	ctx, watch := wire.Watch(ctx, p.options.Silence)
	defer watch.Stop()
	for m, err := range p.models.All(ctx) {
		if err != nil {
			return nil, nil, p.explain(ctx, name+" models", err)
		}
		watch.Heard()
		key := strings.TrimPrefix(m.Name, "models/")
		// Models that only speak or paint take the same request.
		if slices.Contains(m.SupportedActions, "generateContent") && !strings.Contains(key, "-tts") && !strings.Contains(key, "-image") {
			text = append(text, key)
		}
		if slices.Contains(m.SupportedActions, "bidiGenerateContent") {
			live = append(live, key)
		}
	}
	return text, live, nil
}

// Voices are the names of the voices that every live model speaks with. The vendor
// lists them in its documentation alone.
func Voices() []string {
	return []string{
		"Achernar", "Achird", "Algenib", "Algieba", "Alnilam", "Aoede", "Autonoe", "Callirrhoe", "Charon", "Despina",
		"Enceladus", "Erinome", "Fenrir", "Gacrux", "Iapetus", "Kore", "Laomedeia", "Leda", "Orus", "Puck",
		"Pulcherrima", "Rasalgethi", "Sadachbia", "Sadaltager", "Schedar", "Sulafat", "Umbriel", "Vindemiatrix", "Zephyr", "Zubenelgenubi",
	}
}

// Warm opens a connection for the first answer of a call.
func (p *Provider) Warm(ctx context.Context) error {
	return wire.Warm(ctx, p.client, p.options.BaseURL)
}
