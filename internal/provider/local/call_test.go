//go:build speech

package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/switchboard"
)

// newTelephone is a node on loopback; its incoming calls go to incoming.
func newTelephone(t *testing.T, incoming func(context.Context, *switchboard.Telephone, *sip.Incoming)) *switchboard.Telephone {
	t.Helper()
	phone := &switchboard.Telephone{Host: netip.MustParseAddr("127.0.0.1")}
	var err error
	phone.Media, err = media.New(media.Config{})
	require.NoError(t, err)
	t.Cleanup(phone.Media.Close)
	phone.SIP, err = sip.New(sip.Settings{
		Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1,
		Incoming: func(ctx context.Context, in *sip.Incoming) { incoming(ctx, phone, in) },
	})
	require.NoError(t, err)
	require.NoError(t, phone.SIP.Start())
	t.Cleanup(func() { require.NoError(t, phone.SIP.Close()) })
	return phone
}

func nobody(_ context.Context, _ *switchboard.Telephone, in *sip.Incoming) { _ = in.Refuse(480, 0) }

// trunkTo leads to another node, and lets it call back.
func trunkTo(other *switchboard.Telephone) parley.Trunk {
	return parley.Trunk{ID: 1, Address: other.SIP.Addr("udp").String(), Transport: "udp", AllowedInbound: []string{"127.0.0.1"},
		CallingFormat: "+e164", MaxChannels: 10, CallsPerSecond: 100}
}

// assistant has ears of ours, the sandbox's mind, and one of the two voices.
func assistant(p *Provider, kind parley.Direction, greeting string, speaker converse.Provider[converse.Speaker]) converse.Config {
	a := parley.Assistant{Name: "Front desk", Type: kind, Mode: parley.Pipeline}
	parley.AssistantForm.SetDefaults(&a)
	a.Language, a.Timezone = "English", "UTC"
	a.InitialMessage, a.SystemPrompt = greeting, "When asked about hours, say: We open at nine in the morning."
	return converse.Config{
		Assistant: a, Call: converse.Facts{CallID: "1", CustomerPhone: "+12025550100", Direction: a.Type},
		Transcribers: []converse.Provider[converse.Transcriber]{{Name: "local", Use: p.Transcriber()}},
		Models:       []converse.Provider[converse.Model]{{Name: "sandbox", Key: "instant", Use: sandbox.New(sandbox.Options{}).Model()}},
		Speakers:     []converse.Provider[converse.Speaker]{speaker},
	}
}

// within bounds a call that would otherwise hang a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// rehearsed is a speaker that knows its lines: the simulator has a callee's line
// rendered within a frame.
type rehearsed map[string][]int16

func (r rehearsed) Speak(_ context.Context, u converse.Utterance, emit func(converse.Sound)) error {
	emit(converse.Sound{Samples: r[u.Text]})
	return nil
}

// tried gives a call three chances: it runs in real time, and where other work takes
// the cores, words come late.
func tried(t *testing.T, call func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = call(); err == nil {
			return
		}
		t.Logf("this call failed: %v", err)
	}
	t.Fatal("three calls failed")
}

// A customer who speaks with flite is understood over real SIP and RTP.
func TestASimulatedCustomerIsUnderstood(t *testing.T) {
	p := loaded(t)
	said := []string{"Yes, of course.", "No, thank you, goodbye."}
	lines := rehearsed{}
	for _, line := range append(said, "Goodbye.") {
		lines[line] = spoken(t, p, converse.Utterance{Text: line, Voice: "rms", Language: "en", Rate: 8000, Speed: 1})
	}
	carrier, err := simulator.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, carrier.Close()) })
	carrier.SpeakWith(lines, "rms")
	phone := newTelephone(t, nobody)
	// The simulated customer understands the sandbox's voice alone.
	voice := converse.Provider[converse.Speaker]{Name: "sandbox", Key: "alto", Use: sandbox.New(sandbox.Options{}).Speaker()}
	config := assistant(p, parley.Outbound, "Hello, this is Acme. May I ask you something?", voice)
	tried(t, func() error {
		result, err := phone.Place(within(t), switchboard.Attempt{Trunk: carrier.Trunk(), To: "+12025550100", From: "+12025550180"}, config)
		require.NoError(t, err)
		t.Logf("%s\n%s after %s", result.Transcript, result.EndReason, result.Duration)
		var heard []string
		for _, turn := range result.Turns {
			if turn.Sender == converse.Human {
				heard = append(heard, turn.Text)
				continue
			}
			t.Logf("answered %v after the end of speech, the words were final after %v", turn.Latency.FirstAudio, turn.Latency.Transcript)
		}
		if len(heard) < len(said) || result.EndReason != converse.EndGoodbye {
			return fmt.Errorf("the customer said %d things and the call ended by %s", len(heard), result.EndReason)
		}
		for i, line := range said {
			if distance(plainWords(line), plainWords(heard[i])) > 1 { // sound that comes late may cost a word
				return fmt.Errorf("%q was heard as %q", line, heard[i])
			}
		}
		return nil
	})
}

// Two assistants who can only hear and speak English understand each other.
func TestTwoAssistantsTalk(t *testing.T) {
	p := loaded(t)
	answered := make(chan string, 1)
	callee := newTelephone(t, func(ctx context.Context, phone *switchboard.Telephone, in *sip.Incoming) {
		voice := converse.Provider[converse.Speaker]{Name: "local", Key: "rms", Use: p.Speaker()}
		config := assistant(p, parley.Inbound, "", voice)
		config.Assistant.WaitForCustomer = true
		result, err := phone.Answer(ctx, in, switchboard.Signals{}, config)
		if err != nil {
			t.Errorf("answer: %v", err)
		}
		answered <- result.Transcript
	})
	caller := newTelephone(t, nobody)
	callee.SIP.SetTrunks([]parley.Trunk{trunkTo(caller)})
	voice := converse.Provider[converse.Speaker]{Name: "local", Key: "kal16", Use: p.Speaker()}
	tried(t, func() error {
		ctx, hangUp := context.WithCancel(within(t))
		defer hangUp()
		config := assistant(p, parley.Outbound, "Good morning, what are your opening hours?", voice)
		config.Watch = func(e converse.Event) {
			if e.Turn != nil && e.Turn.Sender == converse.Human {
				hangUp() // the question was answered
			}
		}
		result, err := caller.Place(ctx, switchboard.Attempt{Trunk: trunkTo(callee), To: "+12025550180", From: "+12025550100"}, config)
		require.NoError(t, err)
		question, answer := <-answered, result.Transcript
		t.Logf("the caller's:\n%s", answer)
		t.Logf("the callee's:\n%s", question)
		if !regexp.MustCompile(`Customer: .*(?i:opening hours)`).MatchString(question) || !regexp.MustCompile(`Customer: .*(?i:nine in the morning)`).MatchString(answer) {
			return errors.New("they did not understand each other")
		}
		return nil
	})
}
