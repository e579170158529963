//go:build speech

package main

import (
	"parley/internal/converse"
	"parley/internal/provider/local"
	"parley/internal/simulator"
)

// speechFlags are there in a build that can hear and speak by itself.
type speechFlags struct {
	Speech string `type:"path" help:"Folder of the speech models (build/speech). The customer then speaks English, and the assistant understands it by ear."`
}

// speech is the models, or nothing where none are asked for.
type speech struct{ models *local.Provider }

func (f speechFlags) load() (speech, error) {
	if f.Speech == "" {
		return speech{}, nil
	}
	models, err := local.New(local.Options{Folder: f.Speech})
	return speech{models}, err
}

// equip gives the customer a voice and the assistant ears for it. The assistant keeps
// the sandbox's voice, because simulated customers understand no other.
func (s speech) equip(carrier *simulator.Carrier, call *converse.Config) {
	if s.models == nil {
		return
	}
	carrier.SpeakWith(s.models.Speaker(), "rms")
	call.Transcribers = []converse.Provider[converse.Transcriber]{{Name: "local", Use: s.models.Transcriber()}}
}

func (s speech) close() {
	if s.models != nil {
		_ = s.models.Close()
	}
}
