package simulator_test

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	"parley/internal/switchboard"
)

// Calls wait far more than they compute: more of them run at once than there are cores.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var loopback = netip.MustParseAddr("127.0.0.1")

// newTelephone is a node on loopback.
func newTelephone(t *testing.T, settings sip.Settings) *switchboard.Telephone {
	t.Helper()
	phone := &switchboard.Telephone{Host: loopback}
	var err error
	phone.Media, err = media.New(media.Config{})
	require.NoError(t, err)
	t.Cleanup(phone.Media.Close)
	settings.Listen, settings.OptionsEvery = []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, -1
	phone.SIP, err = sip.New(settings)
	require.NoError(t, err)
	require.NoError(t, phone.SIP.Start())
	t.Cleanup(func() { require.NoError(t, phone.SIP.Close()) })
	return phone
}

// newCarrier is a carrier that ends with the test.
func newCarrier(t *testing.T, own ...simulator.Callee) *simulator.Carrier {
	t.Helper()
	carrier, err := simulator.Start(own...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, carrier.Close()) })
	return carrier
}

// assistant is a conversation with the sandbox's voice, ears and mind.
func assistant(change func(*parley.Assistant)) converse.Config {
	a := parley.Assistant{Name: "Front desk", Type: parley.Outbound, Mode: parley.Pipeline}
	parley.AssistantForm.SetDefaults(&a)
	a.Language, a.Timezone = "English", "UTC"
	a.InitialMessage = "Hello, this is Acme."
	a.SystemPrompt = "When asked about name or reason or calling, say: This is Acme, about your appointment."
	a.SpeechSpeed = 1.2               // tests wait for every word
	a.EnableNoiseCancellation = false // the costliest part of a call, and these are many at once
	a.MaxSilenceDuration = 10
	if change != nil {
		change(&a)
	}
	p := sandbox.New(sandbox.Options{})
	return converse.Config{
		Assistant: a, Call: converse.Facts{CallID: "1", CustomerPhone: "+12025550100", AssistantPhone: "+12025550180", Direction: a.Type},
		OptOutDigit:  '9',
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

const long = "Hello, this is Acme, and we would like to tell you a rather long story about your order and its delivery."

// call is a call to a callee, and what must become of it.
type call struct {
	callee    string
	assistant func(*parley.Assistant)
	change    func(*simulator.Callee) // where the real one takes too long
	check     func(t require.TestingT, r converse.Result, heard simulator.Outcome)
}

// ended checks how a call ended.
func ended(t require.TestingT, r converse.Result, by converse.Party, reason converse.EndReason, answeredBy converse.Answerer) {
	require.True(t, r.Answered)
	require.Equal(t, by, r.EndedBy)
	require.Equal(t, reason, r.EndReason)
	require.Equal(t, answeredBy, r.AnsweredBy)
}

// interrupted are the assistant's turns that were cut off.
func interrupted(r converse.Result) (texts []string) {
	for _, turn := range r.Turns {
		if turn.Sender == converse.Bot && turn.Interrupted {
			texts = append(texts, turn.Text)
		}
	}
	return texts
}

// Sound that arrives late on a busy machine may cost a word, which shows as "…":
// never another word. So words are looked for one by one, and any may be missing.
const orLost = `|…`

var answered = []call{
	{callee: "00", check: func(t require.TestingT, r converse.Result, heard simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndGoodbye, converse.AnsweredByHuman)
		require.Regexp(t, `(?s)^AI: Hello, this is Acme\.\nCustomer: .*(Yes|course`+orLost+`).*\nAI: .*\nCustomer: .*(?i:goodbye|thank`+orLost+`).*\nAI: .*Goodbye\.$`, r.Transcript)
		require.Regexp(t, `Acme`+orLost, heard.Heard)
		require.False(t, heard.HungUp)
	}},
	{callee: "04", check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.BySystem, converse.EndVoicemail, converse.AnsweredByMachine)
	}},
	{callee: "04", assistant: func(a *parley.Assistant) { a.EndCallOnVoicemail = false }, check: func(t require.TestingT, r converse.Result, heard simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndMessageLeft, converse.AnsweredByMachine)
		require.Regexp(t, `Customer: .*(reached|message`+orLost+`)`, r.Transcript)
		require.Equal(t, 4, heard.Steps, "greeting, pause, beep, and the tape runs")
		require.Regexp(t, `Acme.*2 0 2`+orLost, heard.Heard, "the message with a number is on the tape")
	}},
	{callee: "05", assistant: func(a *parley.Assistant) { a.InitialMessage = long }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndGoodbye, converse.AnsweredByHuman)
		require.NotEmpty(t, interrupted(r))
		require.True(t, strings.HasPrefix(r.Transcript, "AI: Hello, this is Acme"), r.Transcript)
		require.NotContains(t, r.Transcript, "its delivery", "what was cut off was not heard")
		require.Regexp(t, `Customer: .*(interrupt|calling`+orLost+`)`, r.Transcript)
	}},
	{callee: "06", assistant: func(a *parley.Assistant) { a.InitialMessage = long }, check: func(t require.TestingT, r converse.Result, heard simulator.Outcome) {
		ended(t, r, converse.ByCustomer, converse.EndHungUp, converse.AnsweredByUnknown)
		require.Contains(t, r.Transcript, "AI: Hello, this")
		require.NotContains(t, r.Transcript, "its delivery")
		require.True(t, heard.HungUp)
	}},
	{callee: "07", assistant: func(a *parley.Assistant) { a.MaxSilenceDuration = 2 }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.BySystem, converse.EndMaxSilence, converse.AnsweredByUnknown)
		require.NotContains(t, r.Transcript, "Customer")
	}},
	{callee: "08", check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		require.Equal(t, converse.EndOptOut, r.EndReason)
		require.True(t, r.OptOut)
	}},
	{callee: "09", check: func(t require.TestingT, r converse.Result, heard simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndGoodbye, converse.AnsweredByHuman)
		require.Contains(t, heard.Keys, "1")
		require.Regexp(t, `Customer: .*(Anna`+orLost+`)`, r.Transcript, "a person was put through")
	}},
	{callee: "10", check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		require.Equal(t, converse.EndGoodbye, r.EndReason)
		require.Regexp(t, `Customer: .*(Tom`+orLost+`)`, r.Transcript, "a person was put through")
	}},
	{callee: "11", assistant: func(a *parley.Assistant) { a.EnableNoiseCancellation = true }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		require.Equal(t, converse.EndGoodbye, r.EndReason)
		require.Regexp(t, `(?i)Customer: .*(goodbye|thank`+orLost+`)`, r.Transcript)
	}},
	{callee: "12", check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		require.Equal(t, converse.EndGoodbye, r.EndReason)
		require.Regexp(t, `(?i)Customer: .*(goodbye|thank`+orLost+`)`, r.Transcript)
	}},
	{callee: "13", assistant: func(a *parley.Assistant) { a.InitialMessage = long }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndGoodbye, converse.AnsweredByHuman)
		require.Contains(t, r.Transcript, long, "neither a cough nor a sign of listening interrupts")
		require.Empty(t, interrupted(r))
	}},
	{callee: "14", assistant: func(a *parley.Assistant) { a.EndpointType = "ai" }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		require.Equal(t, converse.EndGoodbye, r.EndReason)
		require.Regexp(t, `Customer: .*(number is`+orLost+`).*(one`+orLost+`)`, r.Transcript, "one turn in spite of the pauses")
	}},
	{callee: "16", check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndGoodbye, converse.AnsweredByHuman)
		require.Equal(t, "4711#", r.Digits)
		require.Contains(t, r.Transcript, "Customer: [pressed 4711]")
	}},
	{callee: "16", change: func(c *simulator.Callee) { c.Script = []simulator.Step{{Press: "9", AtOnce: true}} }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		require.Equal(t, converse.EndOptOut, r.EndReason, "a key that is pressed at once is understood")
	}},
	{callee: "17", change: func(c *simulator.Callee) { c.Rings = time.Second }, check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.ByAssistant, converse.EndGoodbye, converse.AnsweredByHuman)
	}},
	{callee: "18", check: func(t require.TestingT, r converse.Result, _ simulator.Outcome) {
		ended(t, r, converse.BySystem, converse.EndVoicemail, converse.AnsweredByMachine)
	}},
}

// lived is a call that is over, as both sides knew it.
type lived struct {
	converse.Result
	heard simulator.Outcome
	err   error
}

// starved says that the machine did not carry every word in time: some are missing, or
// the call ended because nothing was heard any more.
func (l *lived) starved() bool {
	said := l.heard.Heard
	for _, turn := range l.Turns {
		if turn.Sender == converse.Human {
			said += turn.Text
		}
	}
	return strings.Contains(said, sandbox.Damage) ||
		slices.Contains([]converse.EndReason{converse.EndMaxSilence, converse.EndMediaFailure, converse.EndStopped}, l.EndReason)
}

// rounds is how often calls are made that the machine starved.
const rounds = 3

// steadily makes calls, all at once, and again those that went wrong because words were
// lost on a busy machine. One that went wrong otherwise is not made again.
func steadily(calls int, place func(i int) lived, check func(t require.TestingT, i int, l lived)) []lived {
	made, due := make([]lived, calls), make([]int, calls)
	for i := range due {
		due[i] = i
	}
	for round := 1; round <= rounds && len(due) > 0; round++ {
		var all sync.WaitGroup
		for _, i := range due {
			all.Go(func() { made[i] = place(i) })
		}
		all.Wait()
		due = slices.DeleteFunc(due, func(i int) bool {
			return !made[i].starved() || tried(func(t require.TestingT) { check(t, i, made[i]) }) == ""
		})
	}
	return made
}

// trial is a test that may fail.
type trial struct{ wrong string }

func (t *trial) Errorf(format string, args ...any) { t.wrong += fmt.Sprintf(format, args...) }
func (t *trial) FailNow()                          { runtime.Goexit() }

// tried is what was wrong.
func tried(check func(require.TestingT)) string {
	t, done := &trial{}, make(chan struct{})
	go func() {
		defer close(done)
		check(t)
	}()
	<-done
	return t.wrong
}

// Every callee that picks up, called by a real assistant over SIP and RTP: what the
// transcript holds went through both. All are called at once.
func TestCalleesThatAnswer(t *testing.T) {
	t.Parallel()
	own, over := make([]simulator.Callee, len(answered)), make([]chan simulator.Outcome, len(answered))
	for i, c := range answered {
		who, known := simulator.FindCallee(c.callee)
		require.True(t, known)
		if c.change != nil {
			c.change(&who)
		}
		over[i] = make(chan simulator.Outcome, 1)
		who.Code, who.Ended = strconv.Itoa(50+i), func(o simulator.Outcome) { over[i] <- o }
		own[i] = who
	}
	phone, carrier := newTelephone(t, sip.Settings{}), newCarrier(t, own...)
	place := func(i int) (l lived) {
		r, err := phone.Place(within(t), switchboard.Attempt{Trunk: carrier.Trunk(), To: "+120255501" + own[i].Code, From: "+12025550180"}, assistant(answered[i].assistant))
		l.Result, l.err = r.Result, err
		if l.err == nil {
			l.heard = <-over[i]
		}
		return l
	}
	check := func(t require.TestingT, i int, l lived) {
		require.NoError(t, l.err)
		answered[i].check(t, l.Result, l.heard)
	}
	for i, l := range steadily(len(answered), place, check) {
		t.Run(answered[i].callee, func(t *testing.T) {
			t.Logf("%s\n%s by %s after %s, answered by %s\nheard: %+v", l.Transcript, l.EndReason, l.EndedBy, l.Duration, l.AnsweredBy, l.heard)
			check(t, i, l)
		})
	}
	require.Zero(t, phone.Media.Sessions())
}
