//go:build speech

package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/providertest"
)

func run(t *testing.T, checks []providertest.Check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

func nothing() {}

func TestTheSpeaker(t *testing.T) {
	p := loaded(t)
	run(t, providertest.Speaker(providertest.Rig[converse.Speaker]{
		Name:    "local",
		Working: func() (converse.Speaker, func()) { return p.Speaker(), nothing },
		Stalled: func() (converse.Speaker, func()) { return busy(p).Speaker(), nothing },
	}, converse.Utterance{Text: "Good morning, this is Parley.", Language: "en", Rate: audio.Rate8k, Speed: 1}))
}

func TestTheTranscriber(t *testing.T) {
	p := loaded(t)
	run(t, providertest.Transcriber(providertest.Rig[converse.Transcriber]{
		Name:    "local",
		Working: func() (converse.Transcriber, func()) { return p.Transcriber(), nothing },
		Stalled: func() (converse.Transcriber, func()) { return busy(p).Transcriber(), nothing },
	}, converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, spoken(t, p, converse.Utterance{Text: "Yes, of course.", Language: "en", Rate: audio.Rate8k, Speed: 1})))
}
