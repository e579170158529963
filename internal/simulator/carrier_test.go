package simulator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/converse"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/switchboard"
)

// The callees that never pick up. Where the caller has to give up, this one's patience
// is short: 17 takes 20 s.
func TestCalleesThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	carrier := newCarrier(t)
	patient := newTelephone(t, sip.Settings{})
	hasty := newTelephone(t, sip.Settings{RingTimeout: 8 * time.Second, T1: 20 * time.Millisecond})
	for _, c := range []struct {
		callee  string
		phone   *switchboard.Telephone
		status  int
		outcome sip.Outcome
		fault   sip.Fault
	}{
		{"01", patient, 486, sip.Busy, sip.FaultCallee},
		{"02", hasty, 0, sip.NoAnswer, sip.FaultCallee},
		{"03", patient, 404, sip.NoSuchNumber, sip.FaultCallee},
		{"15", hasty, 0, sip.Unreachable, sip.FaultCarrier}, // given up without having been heard
		{"17", hasty, 0, sip.NoAnswer, sip.FaultCallee},
	} {
		t.Run(c.callee, func(t *testing.T) {
			t.Parallel()
			r, err := c.phone.Place(within(t), switchboard.Attempt{Trunk: carrier.Trunk(), To: "+120255501" + c.callee, From: "+12025550180"}, assistant(nil))
			var failure *sip.Failure
			require.ErrorAs(t, err, &failure)
			require.Equal(t, c.outcome, failure.Outcome)
			require.Equal(t, c.fault, failure.Fault)
			require.Equal(t, c.status, failure.Status)
			require.False(t, r.Answered)
			require.Equal(t, converse.EndNotAnswered, r.EndReason)
		})
	}
}

// The contract's list of callees is the one that can be called, in its order.
func TestEveryCalleeOfTheContract(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, c := range simulator.Callees() {
		codes = append(codes, c.Code)
		require.NotEmpty(t, c.About, c.Code)
		_, known := simulator.FindCallee(c.Code)
		require.True(t, known)
	}
	require.Equal(t, []string{"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17", "18"}, codes)
	slow, _ := simulator.FindCallee("17")
	require.Equal(t, 20*time.Second, slow.Rings)
	lossy, _ := simulator.FindCallee("12")
	require.Equal(t, simulator.Line{Loss: 5, Jitter: 40 * time.Millisecond, Volume: lossy.Line.Volume}, lossy.Line)
	_, known := simulator.FindCallee("99")
	require.False(t, known)
}

// answering is a node that takes calls of the carrier with an assistant.
func answering(t *testing.T, a converse.Config) (*switchboard.Telephone, <-chan switchboard.Result) {
	t.Helper()
	results := make(chan switchboard.Result, 1)
	var phone *switchboard.Telephone
	phone = newTelephone(t, sip.Settings{Incoming: func(ctx context.Context, in *sip.Incoming) {
		if in.To != "+12025550180" {
			_ = in.Refuse(404, 0)
			return
		}
		a.Call.CustomerPhone, a.Call.Direction = in.From, parley.Inbound
		r, err := phone.Answer(ctx, in, switchboard.Signals{}, a)
		if err != nil {
			t.Errorf("answer: %v", err)
		}
		results <- r
	}})
	return phone, results
}

// The same people call in.
func TestSimulatedPeopleCallIn(t *testing.T) {
	t.Parallel()
	phone, results := answering(t, assistant(func(a *parley.Assistant) { a.Type = parley.Inbound }))
	carrier := newCarrier(t)
	trunk := carrier.Trunk()
	trunk.ID, trunk.AllowedInbound = 1, []string{"127.0.0.1"}
	phone.SIP.SetTrunks([]parley.Trunk{trunk})
	who, _ := simulator.FindCallee("00")
	calls := func(int) (l lived) {
		if l.heard, l.err = carrier.Call(within(t), simulator.Peer{Address: phone.SIP.Addr("udp")}, "+12025550111", "+12025550180", who); l.err == nil {
			l.Result = (<-results).Result
		}
		return l
	}
	check := func(t require.TestingT, _ int, l lived) {
		require.NoError(t, l.err)
		require.Regexp(t, `Acme`+orLost, l.heard.Heard)
		require.False(t, l.heard.HungUp)
		require.Equal(t, converse.EndGoodbye, l.EndReason)
		require.Regexp(t, `(?s)AI: Hello, this is Acme\..*Customer: .*(Yes|course`+orLost+`)`, l.Transcript)
	}
	check(t, 0, steadily(1, calls, check)[0])

	var refused *sip.Failure
	_, err := carrier.Call(within(t), simulator.Peer{Address: phone.SIP.Addr("udp")}, "+12025550111", "+12025550181", who)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 404, refused.Status)

	busy, _ := simulator.FindCallee("01")
	_, err = carrier.Call(within(t), simulator.Peer{Address: phone.SIP.Addr("udp")}, "+12025550111", "+12025550180", busy)
	require.EqualError(t, err, "callee 01 (busy) never picks up a telephone and cannot call")
}

// A caller whose command is stopped hangs up.
func TestAStoppedCallerHangsUp(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	a := assistant(nil)
	a.Watch = func(e converse.Event) {
		if e.Turn != nil && e.Turn.Sender == converse.Bot {
			close(heard)
		}
	}
	phone, results := answering(t, a)
	carrier := newCarrier(t)
	trunk := carrier.Trunk()
	trunk.ID, trunk.AllowedInbound = 1, []string{"127.0.0.1"}
	phone.SIP.SetTrunks([]parley.Trunk{trunk})
	silent, _ := simulator.FindCallee("07")
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-heard
		cancel()
	}()
	o, err := carrier.Call(ctx, simulator.Peer{Address: phone.SIP.Addr("udp")}, "+12025550111", "+12025550180", silent)
	require.NoError(t, err)
	require.True(t, o.HungUp)
	require.Equal(t, converse.ByCustomer, (<-results).EndedBy)
}
