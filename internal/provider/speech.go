//go:build speech

package provider

import (
	"context"

	"parley"
	"parley/internal/converse"
	"parley/internal/provider/local"
)

// newLocal is the provider that hears and speaks English by itself.
func newLocal(folder string) (*vendor, error) {
	p, err := local.New(local.Options{Folder: folder})
	if err != nil {
		return nil, err
	}
	return &vendor{
		name: localName, setting: settingOf[localName], transcriber: p.Transcriber(), speaker: p.Speaker(),
		hears: func(iso string) bool { return iso == "en" },
		offer: func(context.Context) (o offer, err error) {
			for _, key := range local.Voices() {
				o.Voices = append(o.Voices, parley.OfferedVoice{Voice: parley.Voice{Name: "Local " + key, Mode: parley.Pipeline, Provider: localName, Key: key}, Language: "en"})
			}
			return o, nil
		},
		close: p.Close,
	}, nil
}

// Local is the voice and the ears of local speech, if this process has them.
func (r *Registry) Local() (voice converse.Provider[converse.Speaker], ears converse.Provider[converse.Transcriber], able bool) {
	v, err := r.find(localName)
	if err != nil {
		return voice, ears, false
	}
	voice.Name, voice.Key, voice.Use = localName, local.Voices()[0], v.speaker
	ears.Name, ears.Use = localName, v.transcriber
	return voice, ears, true
}
