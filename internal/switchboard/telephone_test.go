package switchboard_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/sip"
	"parley/internal/switchboard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// connected are two nodes, each of which knows the other as its carrier.
func connected(t *testing.T, incoming func(*switchboard.Telephone, context.Context, *sip.Incoming)) (caller, callee *switchboard.Telephone) {
	t.Helper()
	nobody := func(_ *switchboard.Telephone, _ context.Context, in *sip.Incoming) { _ = in.Refuse(480, 0) }
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

// customer is a person at the other end, with the sandbox's ears and voice: each
// sentence that was heard is answered with the next line.
type customer struct {
	lines   []string
	hangsUp bool // after a few words

	mu    sync.Mutex
	heard []string
	queue []int16
	leave func()
}

// answer takes a call and lives through it.
func (c *customer) answer(phone *switchboard.Telephone, ctx context.Context, in *sip.Incoming) {
	session, err := phone.Media.Open(loopback)
	if err != nil {
		return
	}
	defer session.Close()
	ears, err := sandbox.New(sandbox.Options{}).Transcriber().Listen(ctx, converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, c.hear)
	if err != nil {
		return
	}
	defer ears.Close()
	// A telephone listens before it says that it has been picked up.
	err = session.Start(media.Params{Codec: media.PCMA, Remote: in.Offer.Remote, EventType: in.Offer.Event.Payload}, media.Callbacks{
		Frame: func(frame []int16) {
			_ = ears.Write(frame)
			session.Send(c.next(len(frame)))
		},
	})
	if err != nil {
		return
	}
	local := session.Local()
	over := make(chan struct{})
	call, err := in.Answer(sip.Media{Address: local.Addr(), Port: local.Port(), Codecs: []sip.Codec{sip.PCMA(), sip.TelephoneEvent()}},
		sip.Hooks{Ended: func(sip.End) { close(over) }})
	if err != nil {
		return
	}
	c.mu.Lock()
	c.leave = sync.OnceFunc(func() { go func() { _ = call.Hangup(context.WithoutCancel(ctx)) }() })
	c.mu.Unlock()
	<-over
}

// hear answers each sentence with the next line.
func (c *customer) hear(h converse.Heard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hangsUp && c.leave != nil && strings.Count(h.Text, " ") >= 2 {
		c.leave()
	}
	if !h.Final || h.Text == "" {
		return
	}
	c.heard = append(c.heard, h.Text)
	if len(c.lines) == 0 {
		return
	}
	u := converse.Utterance{Text: c.lines[0], Voice: "tenor", Language: "en", Rate: audio.Rate8k, Speed: 1}
	c.lines = c.lines[1:]
	_ = sandbox.New(sandbox.Options{}).Speaker().Speak(context.Background(), u, func(s converse.Sound) { c.queue = append(c.queue, s.Samples...) })
}

func (c *customer) next(samples int) []int16 {
	frame := make([]int16, samples)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = c.queue[copy(frame, c.queue):]
	return frame
}

// within bounds a call that would otherwise hang a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A whole call over real SIP and RTP: what the transcript holds went through both.
func TestACallFromRingToGoodbye(t *testing.T) {
	person := &customer{lines: []string{"What are your hours?", "Thank you, goodbye."}}
	caller, callee := connected(t, person.answer)
	result, err := caller.Place(within(t), trunkTo(2, callee), "+12025550100", "+12025550180", assistant(t, nil))
	require.NoError(t, err)
	t.Logf("%s\n%s, %s after %s; the customer heard %q; %+v", result.Transcript, result.EndReason, result.EndedBy, result.Duration, person.heard, result.ToolRuns)
	require.True(t, result.Answered)
	require.Contains(t, result.Transcript, "AI: Hello, this is Acme.\nCustomer: What are your hours?\nAI: We open at nine.")
	require.Contains(t, result.Transcript, "Customer: Thank you, goodbye.")
	require.Equal(t, converse.ByAssistant, result.EndedBy)
	require.Equal(t, converse.EndGoodbye, result.EndReason)
	require.Contains(t, person.heard[0], "this is Acme.", "the customer heard the greeting")
	require.Zero(t, caller.SIP.Counters().Active)
	require.Zero(t, caller.Media.Sessions())
}

// What the transcript keeps of a sentence that was cut off is what was heard.
func TestCustomerHangsUpInTheMiddle(t *testing.T) {
	person := &customer{hangsUp: true}
	caller, callee := connected(t, person.answer)
	result, err := caller.Place(within(t), trunkTo(2, callee), "+12025550106", "+12025550180", assistant(t, func(a *parley.Assistant) {
		a.InitialMessage = "Hello, this is Acme, and we have a long story to tell you about everything that happened since."
	}))
	require.NoError(t, err)
	require.Equal(t, converse.ByCustomer, result.EndedBy)
	require.Equal(t, converse.EndHungUp, result.EndReason)
	require.Contains(t, result.Transcript, "AI: Hello, this is Acme")
	require.NotContains(t, result.Transcript, "happened since")
}

func TestCallsThatAreNotAnswered(t *testing.T) {
	for _, c := range []struct {
		status  int
		outcome sip.Outcome
		fault   sip.Fault
	}{{486, sip.Busy, sip.FaultCallee}, {404, sip.NoSuchNumber, sip.FaultCallee}, {503, sip.CarrierFailed, sip.FaultCarrier}} {
		caller, callee := connected(t, func(_ *switchboard.Telephone, _ context.Context, in *sip.Incoming) { _ = in.Refuse(c.status, 0) })
		result, err := caller.Place(within(t), trunkTo(2, callee), "+12025550101", "+12025550180", assistant(t, nil))
		var failure *sip.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, c.outcome, failure.Outcome)
		require.Equal(t, c.fault, failure.Fault)
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
	result, err := caller.Place(ctx, trunkTo(2, callee), "+12025550102", "+12025550180", assistant(t, nil))
	require.Error(t, err)
	require.False(t, result.Answered)
}

// The same engine answers: two assistants talk to each other over SIP and RTP.
func TestAnIncomingCallIsAnswered(t *testing.T) {
	answered := make(chan converse.Result, 1)
	caller, callee := connected(t, func(phone *switchboard.Telephone, ctx context.Context, in *sip.Incoming) {
		result, err := phone.Answer(ctx, in, assistant(t, func(a *parley.Assistant) {
			a.Type, a.InitialMessage = parley.Inbound, "Acme, good morning."
		}))
		if err != nil {
			t.Errorf("answer: %v", err)
		}
		answered <- result
	})
	_, err := caller.Place(within(t), trunkTo(2, callee), "+12025550180", "+12025550100", assistant(t, func(a *parley.Assistant) {
		a.WaitForCustomer, a.InitialMessage = true, "Goodbye then."
	}))
	require.NoError(t, err)
	result := <-answered
	require.True(t, result.Answered)
	require.Contains(t, result.Transcript, "AI: Acme, good morning.")
	require.Contains(t, result.Transcript, "Customer: Goodbye then.")
}
