package switchboard_test

import (
	"context"
	"flag"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store/storetest"
	"parley/internal/switchboard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests stop their database before anybody looks for what is left running.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer storetest.Stop()
	_ = flag.Set("test.parallel", "8") // calls take time, not the processor
	return m.M.Run()
}

var loopback = netip.MustParseAddr("127.0.0.1")

// newTelephone is a node on loopback; its incoming calls go to incoming.
func newTelephone(t *testing.T, incoming func(*switchboard.Telephone, context.Context, *sip.Incoming)) *switchboard.Telephone {
	t.Helper()
	phone := &switchboard.Telephone{Host: loopback}
	var err error
	phone.Media, err = media.New(media.Config{})
	require.NoError(t, err)
	t.Cleanup(phone.Media.Close)
	phone.SIP, err = sip.New(sip.Settings{
		Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1,
		Incoming: func(ctx context.Context, in *sip.Incoming) { incoming(phone, ctx, in) },
	})
	require.NoError(t, err)
	require.NoError(t, phone.SIP.Start())
	t.Cleanup(func() { require.NoError(t, phone.SIP.Close()) })
	return phone
}

// trunkTo is the trunk that leads from one node to another, and lets it call back.
func trunkTo(id parley.ID, other *switchboard.Telephone) parley.Trunk {
	return parley.Trunk{ID: id, Address: other.SIP.Addr("udp").String(), Transport: "udp", AllowedInbound: []string{"127.0.0.1"},
		CallingFormat: "+e164", MaxChannels: 10, CallsPerSecond: 100}
}

// nobody is at home.
func nobody(_ *switchboard.Telephone, _ context.Context, in *sip.Incoming) { _ = in.Refuse(480, 0) }

// connected are two nodes, each of which knows the other as its carrier.
func connected(t *testing.T, incoming func(*switchboard.Telephone, context.Context, *sip.Incoming)) (caller, callee *switchboard.Telephone) {
	t.Helper()
	caller, callee = newTelephone(t, nobody), newTelephone(t, incoming)
	callee.SIP.SetTrunks([]parley.Trunk{trunkTo(1, caller)})
	caller.SIP.SetTrunks([]parley.Trunk{trunkTo(2, callee)})
	return caller, callee
}

// assistant is a conversation with the sandbox's voice, ears and mind.
func assistant(t *testing.T, change func(*parley.Assistant)) converse.Config {
	t.Helper()
	a := parley.Assistant{Name: "Front desk", Type: parley.Outbound, Mode: parley.Pipeline}
	parley.AssistantForm.SetDefaults(&a)
	a.Language, a.Timezone = "English", "UTC"
	a.InitialMessage, a.SystemPrompt = "Hello, this is Acme.", "Greeting: Hello.\nWhen asked about hours, say: We open at nine."
	if change != nil {
		change(&a)
	}
	p := sandbox.New(sandbox.Options{})
	return converse.Config{
		Assistant: a, Call: converse.Facts{CallID: "1", CustomerPhone: "+12025550100", Direction: a.Type},
		Transcribers: []converse.Provider[converse.Transcriber]{{Name: "sandbox", Use: p.Transcriber()}},
		Models:       []converse.Provider[converse.Model]{{Name: "sandbox", Key: "instant", Use: p.Model()}},
		Speakers:     []converse.Provider[converse.Speaker]{{Name: "sandbox", Key: "alto", Use: p.Speaker()}},
	}
}

// within bounds a call that would otherwise hang a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// called are a node and a simulated carrier that it can call.
func called(t *testing.T) (*switchboard.Telephone, parley.Trunk) {
	t.Helper()
	carrier, err := simulator.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, carrier.Close()) })
	return newTelephone(t, nobody), carrier.Trunk()
}

// A whole call over real SIP and RTP: what the transcript holds went through both.
func TestACallFromRingToGoodbye(t *testing.T) {
	caller, trunk := called(t)
	result, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunk, To: "+12025550100", From: "+12025550180"}, assistant(t, nil))
	require.NoError(t, err)
	t.Logf("%s\n%s after %s", result.Transcript, result.EndReason, result.Duration)
	require.True(t, result.Answered)
	// Sound that arrives late on a busy machine may cost a word, which shows as "…": never another one.
	require.Regexp(t, `(?s)^AI: Hello, this is Acme\.\nCustomer: .*(Yes|course|…).*\nAI: .*\nCustomer: .*(?i:goodbye).*\nAI: .*Goodbye\.$`, result.Transcript)
	require.Equal(t, converse.ByAssistant, result.EndedBy)
	require.Equal(t, converse.EndGoodbye, result.EndReason)
	require.Zero(t, caller.SIP.Counters().Active)
	require.Zero(t, caller.Media.Sessions())
}

// What the transcript keeps of a sentence that was cut off is what was heard.
func TestCustomerHangsUpInTheMiddle(t *testing.T) {
	caller, trunk := called(t)
	result, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunk, To: "+12025550106", From: "+12025550180"}, assistant(t, func(a *parley.Assistant) {
		a.InitialMessage = "Hello, this is Acme, and we have a long story to tell you about everything that happened since."
	}))
	require.NoError(t, err)
	require.Equal(t, converse.ByCustomer, result.EndedBy)
	require.Equal(t, converse.EndHungUp, result.EndReason)
	require.Contains(t, result.Transcript, "AI: Hello, this")
	require.NotContains(t, result.Transcript, "happened since")
}

func TestNeverCallMeAgain(t *testing.T) {
	caller, trunk := called(t)
	result, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunk, To: "+12025550108", From: "+12025550180"}, assistant(t, nil))
	require.NoError(t, err)
	require.True(t, result.OptOut, result.Transcript)
	require.Equal(t, converse.EndOptOut, result.EndReason)
}

func TestSilenceEndsTheCall(t *testing.T) {
	caller, trunk := called(t)
	result, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunk, To: "+12025550107", From: "+12025550180"}, assistant(t, func(a *parley.Assistant) { a.MaxSilenceDuration = 2 }))
	require.NoError(t, err)
	require.Equal(t, converse.EndMaxSilence, result.EndReason)
	require.Equal(t, converse.BySystem, result.EndedBy)
}

func TestCallsThatAreNotAnswered(t *testing.T) {
	caller, trunk := called(t)
	for number, outcome := range map[string]sip.Outcome{"+12025550101": sip.Busy, "+12025550103": sip.NoSuchNumber} {
		result, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunk, To: number, From: "+12025550180"}, assistant(t, nil))
		var failure *sip.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, outcome, failure.Outcome)
		require.Equal(t, sip.FaultCallee, failure.Fault)
		require.False(t, result.Answered)
		require.Empty(t, result.Transcript)
		require.Zero(t, caller.Media.Sessions())
	}
}

// A caller that gives up while it rings leaves nothing behind.
func TestGivingUpWhileItRings(t *testing.T) {
	ringing := make(chan struct{})
	caller, callee := connected(t, func(_ *switchboard.Telephone, ctx context.Context, in *sip.Incoming) {
		_ = in.Ring()
		close(ringing)
		<-ctx.Done()
	})
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-ringing
		cancel()
	}()
	result, err := caller.Place(ctx, switchboard.Attempt{Trunk: trunkTo(2, callee), To: "+12025550102", From: "+12025550180"}, assistant(t, nil))
	require.Error(t, err)
	require.False(t, result.Answered)
}

// The same engine answers: two assistants talk to each other over SIP and RTP.
func TestAnIncomingCallIsAnswered(t *testing.T) {
	answered := make(chan switchboard.Result, 1)
	caller, callee := connected(t, func(phone *switchboard.Telephone, ctx context.Context, in *sip.Incoming) {
		result, err := phone.Answer(ctx, in, switchboard.Signals{}, assistant(t, func(a *parley.Assistant) {
			a.Type, a.InitialMessage = parley.Inbound, "Acme, good morning."
		}))
		if err != nil {
			t.Errorf("answer: %v", err)
		}
		answered <- result
	})
	_, err := caller.Place(within(t), switchboard.Attempt{Trunk: trunkTo(2, callee), To: "+12025550180", From: "+12025550100"}, assistant(t, func(a *parley.Assistant) {
		a.WaitForCustomer, a.InitialMessage = true, "Goodbye then."
	}))
	require.NoError(t, err)
	result := <-answered
	require.True(t, result.Answered)
	require.Contains(t, result.Transcript, "AI: Acme, good morning.")
	require.Regexp(t, `Customer: .*(Goodbye|then|…)`, result.Transcript)
}
