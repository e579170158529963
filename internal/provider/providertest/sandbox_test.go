package providertest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/providertest"
	"parley/internal/provider/sandbox"
)

func run(t *testing.T, checks []providertest.Check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) { require.NoError(t, c.Run(t.Context())) })
	}
}

// always makes every turn of a provider stall.
func always() sandbox.Faults {
	return sandbox.Faults{Probability: 1, Default: sandbox.Fault{Kind: sandbox.FaultStall}}
}

func nothing() {}

func TestTheSandboxModel(t *testing.T) {
	run(t, providertest.Model(providertest.Rig[converse.Model]{
		Name:    "sandbox",
		Working: func() (converse.Model, func()) { return sandbox.New(sandbox.Options{}).Model(), nothing },
		Stalled: func() (converse.Model, func()) {
			return sandbox.New(sandbox.Options{ModelFaults: always()}).Model(), nothing
		},
	}, converse.Prompt{Messages: []converse.Message{{Role: converse.RoleCustomer, Text: "Hello."}}}))
}

func utterance() converse.Utterance {
	return converse.Utterance{Text: "Good morning, this is Parley.", Rate: audio.Rate8k, Speed: 1}
}

func TestTheSandboxSpeaker(t *testing.T) {
	run(t, providertest.Speaker(providertest.Rig[converse.Speaker]{
		Name:    "sandbox",
		Working: func() (converse.Speaker, func()) { return sandbox.New(sandbox.Options{}).Speaker(), nothing },
		Stalled: func() (converse.Speaker, func()) {
			return sandbox.New(sandbox.Options{SpeakerFaults: always()}).Speaker(), nothing
		},
	}, utterance()))
}

func TestTheSandboxTranscriber(t *testing.T) {
	var speech []int16
	err := sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), utterance(), func(s converse.Sound) { speech = append(speech, s.Samples...) })
	require.NoError(t, err)
	run(t, providertest.Transcriber(providertest.Rig[converse.Transcriber]{
		Name:    "sandbox",
		Working: func() (converse.Transcriber, func()) { return sandbox.New(sandbox.Options{}).Transcriber(), nothing },
		Stalled: func() (converse.Transcriber, func()) {
			return sandbox.New(sandbox.Options{TranscriberFaults: always()}).Transcriber(), nothing
		},
	}, converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, speech))
}

func TestTheSandboxDuplex(t *testing.T) {
	run(t, providertest.Duplex(providertest.Rig[converse.Duplex]{
		Name:    "sandbox",
		Working: func() (converse.Duplex, func()) { return sandbox.New(sandbox.Options{}).Duplex(), nothing },
		Stalled: func() (converse.Duplex, func()) {
			return sandbox.New(sandbox.Options{ModelFaults: always()}).Duplex(), nothing
		},
	}, converse.DuplexOptions{Utterance: converse.Utterance{Rate: audio.Rate8k, Speed: 1}}))
}
