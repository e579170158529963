package simulator_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/converse"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/switchboard"
)

// transfers are numbers that an assistant hands a customer over to, and what it is told
// where that comes to nothing.
var transfers = []struct{ what, to, fails string }{
	{"somebody", "+12025550100", ""},
	{"a voicemail", "+12025550104", ""},
	{"somebody who is busy", "+12025550101", "busy"},
	{"a number that does not exist", "+12025550103", "no_such_number"},
	{"somebody who declines", "+12025550190", "declined"},
}

// A customer is handed over to numbers of the simulated carrier: the assistant is told
// what became of it as a carrier tells, and talks on where it came to nothing.
func TestTheCarrierTransfers(t *testing.T) {
	t.Parallel()
	own, over := []simulator.Callee{{Code: "90", Refuses: 603}}, make([]chan simulator.Outcome, len(transfers))
	for i := range transfers {
		over[i] = make(chan simulator.Outcome, 1)
		own = append(own, simulator.Callee{Code: strconv.Itoa(60 + i), Ended: func(o simulator.Outcome) { over[i] <- o }, Script: []simulator.Step{
			{Say: "Can I speak to a human, please?"}, {Say: "Goodbye."}, {Say: "Goodbye."}, {HangUp: true},
		}})
	}
	phone, carrier := newTelephone(t, sip.Settings{}), newCarrier(t, own...)
	place := func(i int) (l lived) {
		config := assistant(func(a *parley.Assistant) { a.SystemPrompt = "Transfer to: " + transfers[i].to })
		config.CanTransfer = true
		r, err := phone.Place(within(t), switchboard.Attempt{Trunk: carrier.Trunk(), To: "+120255501" + strconv.Itoa(60+i), From: "+12025550180"}, config)
		l.Result, l.err = r.Result, err
		if l.err == nil {
			l.heard = <-over[i]
		}
		return l
	}
	check := func(t require.TestingT, i int, l lived) {
		require.NoError(t, l.err)
		require.NotEmpty(t, l.ToolRuns, l.Transcript)
		run, c := l.ToolRuns[0], transfers[i]
		require.Equal(t, "transfer_call", run.Name)
		require.Equal(t, c.fails != "", run.Failed, run.Result)
		if c.fails == "" {
			ended(t, l.Result, converse.ByAssistant, converse.EndTransferred, converse.AnsweredByHuman)
			require.Equal(t, c.to, l.heard.PutThrough)
			require.False(t, l.heard.HungUp)
			require.Regexp(t, `will connect`+orLost, l.heard.Heard)
			return
		}
		require.Contains(t, run.Result, c.fails)
		require.NotEqual(t, converse.EndTransferred, l.EndReason)
		require.Empty(t, l.heard.PutThrough)
		require.Regexp(t, `could not connect you`+orLost, l.heard.Heard, "the call goes on")
	}
	for i, l := range steadily(len(transfers), place, check) {
		t.Run(transfers[i].what, func(t *testing.T) {
			t.Log(l.Transcript, l.EndReason, l.heard)
			check(t, i, l)
		})
	}
}

// Somebody whom nobody answers is not kept waiting longer than an assistant waits.
func TestATransferThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	carrier := newCarrier(t)
	agent := newTelephone(t, sip.Settings{}).SIP
	call, err := agent.Dial(within(t), carrier.Trunk(), sip.Outgoing{To: "+12025550107", From: "+12025550180", Media: sip.Media{Address: loopback, Port: 9}})
	require.NoError(t, err)
	for to, want := range map[string]sip.Outcome{"reception": sip.NoSuchNumber, "+12025550102": sip.NoAnswer} {
		began := time.Now()
		var failure *sip.Failure
		require.ErrorAs(t, call.Transfer(within(t), to), &failure, to)
		require.Equal(t, want, failure.Outcome)
		require.Less(t, time.Since(began), 19*time.Second)
	}
	require.NoError(t, call.Hangup(within(t)))
}
