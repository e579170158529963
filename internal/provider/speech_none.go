//go:build !speech

package provider

import (
	"errors"

	"parley/internal/converse"
)

func newLocal(string) (*vendor, error) {
	return nil, errors.New("PARLEY_SPEECH is set, but this build cannot hear and speak by itself; make one that can with make speech")
}

// Local is the voice and the ears of local speech: this build has none.
func (*Registry) Local() (voice converse.Provider[converse.Speaker], ears converse.Provider[converse.Transcriber], able bool) {
	return voice, ears, false
}
