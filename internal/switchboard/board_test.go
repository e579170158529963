package switchboard_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/switchboard"
)

// A call that was asked for becomes a complete record.
func TestACallBecomesARecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		c := o.ends(o.asks("+12025550100"))
		// Words that a busy machine loses may change how a conversation ends, not that it is recorded.
		ended(t, c, parley.CallCompleted, *c.EndReason)
		require.Subset(t, statuses(c), []string{"initiated", "in-progress", "completed"})
		require.NotNil(t, c.EndedBy)
		require.Contains(t, c.Transcript, "AI: Hello, this is Acme.\nCustomer: ")
		require.GreaterOrEqual(t, len(c.Turns), 2)
		require.Equal(t, c.Transcript, parley.Transcript(c.Turns))
		require.InDelta(t, c.EndedAt.Sub(*c.AnsweredAt).Seconds(), c.Duration, 1.5)
		require.Positive(t, c.CarrierCost)
		require.Equal(t, c.TotalCost, c.Costs.Total())
		require.NotZero(t, c.Quality.PacketsReceived)
		require.NotNil(t, c.DialedAt)
		load, err := db.Tenant(o.user.ID).Load(t.Context(), time.Now())
		require.NoError(t, err)
		require.Equal(t, c.Duration, int(load.Seconds))
		require.Equal(t, c.TotalCost, load.Spent)
		// A starved machine has no frames to record for the time that it slept.
		recorded := seconds(t, o, c)
		require.LessOrEqual(t, recorded, float64(c.Duration)+2, "the recording is no longer than the call")
		require.Greater(t, recorded, float64(c.Duration)/3, "the recording is about as long as the call")
		require.Equal(t, 1, o.counted("parley_calls_total", map[string]string{"type": "outbound", "status": "completed", "end_reason": string(*c.EndReason)}))
		require.Zero(t, o.counted("parley_calls_active", nil))
		require.Equal(t, 1, o.counted("parley_greeting_seconds", nil))
		answers := 0
		for _, turn := range c.Turns {
			if turn.Latency.FirstAudioMS > 0 {
				answers++
			}
		}
		require.Positive(t, answers)
		require.Equal(t, answers, o.counted("parley_answer_seconds", nil))
		require.Equal(t, answers, o.counted(switchboard.OverheadMetric, nil))
		require.Zero(t, o.board.Telephone.Media.Sessions())
	})
}

// seconds is the length of a call's recording.
func seconds(t *testing.T, o *office, c *parley.Call) float64 {
	t.Helper()
	require.NotEmpty(t, c.Recording)
	file, err := o.board.Recordings.Open(c.Recording)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	wav, err := audio.OpenWAV(file, info.Size())
	require.NoError(t, err)
	require.Equal(t, 2, wav.Channels())
	return float64(wav.Frames()) / 8000
}

// files counts what lies in the folder of the recordings.
func files(t *testing.T, o *office) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(string(o.board.Recordings), func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	}))
	return n
}

func TestCallsWithoutAConversation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		for number, want := range map[string]struct {
			status parley.CallStatus
			reason parley.EndReason
		}{
			"+12025550101": {parley.CallBusy, parley.EndBusy},
			"+12025550103": {parley.CallFailed, parley.EndNoSuchNumber},
		} {
			c := o.ends(o.asks(number))
			ended(t, c, want.status, want.reason)
			require.Zero(t, c.TotalCost-c.Costs.Total())
			require.Zero(t, c.CarrierCost)
			require.Zero(t, c.Duration)
			require.Nil(t, c.AnsweredAt)
			require.Nil(t, c.EndedBy)
			require.Empty(t, c.Recording)
		}
		require.Zero(t, files(t, o))
		ended(t, o.ends(o.asksBy(&parley.Call{CustomerNumber: "+12025550100", Carrier: parley.CarrierDefault})), parley.CallFailed, parley.EndNoTrunk)
	})
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil, func(s *sip.Settings) { s.RingTimeout = time.Second })
	c := o.ends(o.asks("+12025550102"))
	ended(t, c, parley.CallNoAnswer, parley.EndNotAnswered)
	require.Equal(t, []string{"initiated", "ringing", "no-answer"}, statuses(c))
}

func TestHangingUpWhileItRings(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil)
	id := o.asks("+12025550102")
	o.becomes(id, parley.CallRinging)
	o.hangsUp(id)
	c := o.ends(id)
	ended(t, c, parley.CallFailed, parley.EndHangup)
	require.Equal(t, "system", *c.EndedBy)
}

func TestAnsweredCallsThatEndOtherwise(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil)
	o.assistant = o.hire(o.user, func(a *parley.Assistant) {
		a.MaxSilenceDuration = 2
		a.InitialMessage = "Hello, this is Acme, and we have a long story to tell you about everything that happened since."
	})
	leaves, silent, talking := o.asks("+12025550106"), o.asks("+12025550107"), o.asks("+12025550107")
	o.becomes(talking, parley.CallInProgress)
	o.hangsUp(talking)
	c := o.ends(talking)
	ended(t, c, parley.CallCompleted, parley.EndHangup)
	require.Contains(t, statuses(c), "ended")
	require.Equal(t, "system", *c.EndedBy)
	c = o.ends(leaves)
	ended(t, c, parley.CallCompleted, parley.EndHungUp)
	require.Equal(t, "customer", *c.EndedBy)
	require.NotContains(t, c.Transcript, "happened since")
	c = o.ends(silent)
	ended(t, c, parley.CallCompleted, parley.EndMaxSilence)
	require.Positive(t, c.CarrierCost)
}

// Who asked never to be called again is not, also by a call that was accepted before.
func TestOptOutIsFinal(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, func(c *switchboard.Config) { c.OptOut = '9' })
		trunk := o.trunk(o.user, newPeer(t, optingOut), 10)
		const number = "+4930123456"
		c := o.ends(o.asksBy(&parley.Call{CustomerNumber: number, Carrier: parley.CarrierTrunk, TrunkID: &trunk.ID}))
		ended(t, c, parley.CallCompleted, parley.EndOptOut)
		require.True(t, c.OptedOut)
		require.True(t, o.listed(number))
		before := o.board.Telephone.SIP.Counters().CallsOut
		ended(t, o.ends(o.asks(number)), parley.CallFailed, parley.EndDoNotCall)
		require.Equal(t, before, o.board.Telephone.SIP.Counters().CallsOut, "nothing was sent")
	})
}

// optingOut picks up and presses the key that refuses further calls.
func optingOut(ctx context.Context, in *sip.Incoming) {
	call, err := in.Answer(silent(), sip.Hooks{})
	if err != nil {
		return
	}
	_ = call.SendDigit(ctx, '9', 100*time.Millisecond)
	<-call.Done()
}

// listed says whether a number must not be called any more.
func (o *office) listed(number string) bool {
	o.t.Helper()
	listed, err := o.db.Tenant(o.user.ID).DoNotCall(o.t.Context(), number)
	require.NoError(o.t, err)
	return listed[number]
}

// What changed between the request and the dialling counts.
func TestRefusedAtTheLastMoment(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var asked atomic.Int64
		o := openOffice(t, db, func(c *switchboard.Config) {
			c.Policy = parley.NumberPolicy{Blocked: []string{"+1900"}}
			c.Recheck = func(_ context.Context, _ *store.System, c *parley.Call) (parley.EndReason, error) {
				asked.Add(1)
				if c.CustomerNumber == "+12025550199" {
					return parley.EndWindow, nil
				}
				return "", nil
			}
		})
		ended(t, o.ends(o.asks("+12025550199")), parley.CallFailed, parley.EndWindow)
		require.EqualValues(t, 1, asked.Load())
		ended(t, o.ends(o.asks("+19005550100")), parley.CallFailed, parley.EndBlocked)
		o.assistant.Status = parley.Inactive
		require.NoError(t, db.Tenant(o.user.ID).SaveAssistant(t.Context(), o.assistant, false))
		ended(t, o.ends(o.asks("+12025550100")), parley.CallFailed, parley.EndNoAssistant)
		require.Zero(t, o.board.Telephone.SIP.Counters().CallsOut)
	})
}

// A node that is full has calls wait; one that waits can be called off.
func TestAFullNodeHasCallsWait(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, func(c *switchboard.Config) { c.MaxCalls = 1 })
		first := o.asks("+12025550102")
		o.becomes(first, parley.CallRinging)
		waits, calledOff := o.asks("+12025550101"), o.asks("+12025550101")
		o.hangsUp(calledOff)
		c := o.ends(calledOff)
		ended(t, c, parley.CallFailed, parley.EndHangup)
		require.Nil(t, c.DialedAt, "it was never dialled")
		require.Equal(t, parley.CallInitiated, o.call(waits).Status)

		p := newPeer(t, nil)
		trunk := o.trunk(o.user, p, 10)
		o.number(o.user, trunk, "+12025550180")
		_, err := p.calls(t.Context(), o, "+12025550180")
		var refused *sip.Failure
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 503, refused.Status)
		require.Positive(t, refused.RetryAfter)

		o.hangsUp(first)
		ended(t, o.ends(waits), parley.CallBusy, parley.EndBusy)
	})
}

// A trunk's channels are kept to across calls; what does not fit waits.
func TestAFullTrunkHasCallsWait(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		var ringing, most atomic.Int64
		p := newPeer(t, func(ctx context.Context, in *sip.Incoming) {
			most.Store(max(most.Load(), ringing.Add(1)))
			_ = in.Ring()
			<-ctx.Done()
			ringing.Add(-1)
		})
		trunk := o.trunk(o.user, p, 1)
		var ids []parley.ID
		for range 3 {
			ids = append(ids, o.asksBy(&parley.Call{CustomerNumber: "+4930123456", Carrier: parley.CarrierTrunk, TrunkID: &trunk.ID}))
		}
		for range ids { // in whichever order they got the channel
			var rings parley.ID
			eventually(t, "one rings", func() bool {
				i := slices.IndexFunc(ids, func(id parley.ID) bool { return o.call(id).Status == parley.CallRinging })
				if i >= 0 {
					rings = ids[i]
				}
				return i >= 0
			})
			o.hangsUp(rings)
			ended(t, o.ends(rings), parley.CallFailed, parley.EndHangup)
		}
		require.LessOrEqual(t, most.Load(), int64(1))
		require.EqualValues(t, 3, o.board.Telephone.SIP.Counters().CallsOut)
	})
}

// A trunk that the agent itself holds back, call by call, loses none of them.
func TestAPacedTrunkLosesNoCalls(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), func(c *switchboard.Config) {
		simulated := c.Carrier
		c.Carrier = func(which parley.Carrier) (parley.Trunk, bool) {
			trunk, ok := simulated(which)
			trunk.CallsPerSecond = 4
			return trunk, ok
		}
	})
	var ids []parley.ID
	for range 10 {
		ids = append(ids, o.asks("+12025550101"))
	}
	for _, id := range ids {
		ended(t, o.ends(id), parley.CallBusy, parley.EndBusy)
	}
}

func TestRecordingOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), func(c *switchboard.Config) {
		c.Notice = "This call is with an assistant of Acme and it is recorded from the end of this sentence on."
	})
	noticed := o.asks("+12025550107")
	o.becomes(noticed, parley.CallInProgress)
	o.hangsUp(noticed) // in the middle of the notice
	c := o.ends(noticed)
	require.Empty(t, c.Recording, "the notice had not ended")
	require.Zero(t, files(t, o))

	o.assistant = o.hire(o.user, func(a *parley.Assistant) { a.Record, a.MaxSilenceDuration = false, 1 })
	c = o.ends(o.asks("+12025550107"))
	require.Empty(t, c.Recording)
	require.Zero(t, files(t, o), "no file is opened")

	o.assistant = o.hire(o.user, func(a *parley.Assistant) { a.MaxSilenceDuration = 2 })
	c = o.ends(o.asks("+12025550107"))
	require.Less(t, seconds(t, o, c), c.EndedAt.Sub(*c.AnsweredAt).Seconds()-1, "it begins after the notice")
}

// A customer who refuses the recording leaves nothing of it, from that moment on.
func TestARefusedRecordingIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil)
	customer := newCustomer(t, "Please do not record this call.")
	trunk := o.trunk(o.user, customer.peer, 10)
	id := o.asksBy(&parley.Call{CustomerNumber: "+4930123456", Carrier: parley.CarrierTrunk, TrunkID: &trunk.ID})
	eventually(t, "the recording has begun", func() bool { return files(t, o) == 1 })
	o.awaits(id, "the refusal", func(c *parley.Call) bool {
		for _, e := range c.Timeline {
			if e.Event == parley.EventNote && e.Detail["recording"] == "refused" {
				return true
			}
		}
		return false
	})
	require.Equal(t, parley.CallInProgress, o.call(id).Status)
	require.Zero(t, files(t, o), "while the call goes on")
	o.hangsUp(id)
	c := o.ends(id)
	require.Empty(t, c.Recording)
	require.Zero(t, files(t, o))
}

// A database that fails while a call ends is waited for; nothing of the call is lost.
func TestTheEndWaitsForTheDatabase(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		o.assistant = o.hire(o.user, func(a *parley.Assistant) { a.MaxSilenceDuration = 2 })
		id := o.asks("+12025550107")
		o.becomes(id, parley.CallInProgress)
		fail, repair := failing(t, db)
		fail()
		eventually(t, "the line is down", func() bool { return o.board.Telephone.SIP.Counters().Active == 0 })
		require.Equal(t, parley.CallInProgress, o.call(id).Status)
		require.Equal(t, 1, o.board.Live(), "the call is held until it is written")
		repair()
		c := o.ends(id)
		ended(t, c, parley.CallCompleted, parley.EndMaxSilence)
		require.Contains(t, c.Transcript, "AI: Hello, this is Acme.")
		require.NotEmpty(t, c.Recording)
		require.Subset(t, statuses(c), []string{"initiated", "in-progress", "ended", "completed"})
	})
}

// failing makes every change of a call fail, until it does not any more.
func failing(t *testing.T, db *store.DB) (fail, repair func()) {
	t.Helper()
	run := func(statement string) {
		t.Helper()
		_, err := db.SQL().Exec(statement)
		require.NoError(t, err)
	}
	if db.Postgres() {
		run(`CREATE FUNCTION away() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'away'; END $$ LANGUAGE plpgsql`)
		return func() {
				run("CREATE TRIGGER away BEFORE UPDATE ON calls FOR EACH ROW EXECUTE FUNCTION away()")
			}, func() {
				run("DROP TRIGGER away ON calls")
			}
	}
	return func() { run("CREATE TRIGGER away BEFORE UPDATE ON calls BEGIN SELECT RAISE(ABORT, 'away'); END") },
		func() { run("DROP TRIGGER away") }
}

// A node that was taken for dead ends its calls, and writes nothing over what was
// concluded without it; that a customer will not be called again it does write.
func TestALostNodeWritesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, func(c *switchboard.Config) { c.OptOut = '9' })
		const number = "+4930123456"
		lost := make(chan struct{})
		trunk := o.trunk(o.user, newPeer(t, func(ctx context.Context, in *sip.Incoming) {
			if call, err := in.Answer(silent(), sip.Hooks{}); err == nil {
				<-lost
				_ = call.SendDigit(ctx, '9', 100*time.Millisecond)
				<-call.Done()
			}
		}), 10)
		talks, optsOut := o.asks("+12025550107"), o.asksBy(&parley.Call{CustomerNumber: number, Carrier: parley.CarrierTrunk, TrunkID: &trunk.ID})
		o.becomes(talks, parley.CallInProgress)
		o.becomes(optsOut, parley.CallInProgress)
		require.NoError(t, db.System().Bury(t.Context(), o.queue.Node(), -time.Hour, func(s *store.System, c *parley.Call) error { return o.board.Bury(t.Context(), s, c) }))
		close(lost) // at once: a peer that sends no sound is soon taken for dead
		eventually(t, "the opt-out is kept", func() bool { return o.listed(number) })
		c := o.ends(talks)
		ended(t, c, parley.CallCompleted, parley.EndNodeLost)
		eventually(t, "its next beat tells the node, and it ends what is up", func() bool { return o.board.Live() == 0 })
		require.Equal(t, parley.EndNodeLost, *o.call(talks).EndReason)
		require.Equal(t, statuses(c), statuses(o.call(talks)), "nothing came after")
	})
}

// Draining takes no more calls, neither in nor out, and lets the others end.
func TestDraining(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil)
	o.assistant = o.hire(o.user, func(a *parley.Assistant) { a.MaxSilenceDuration = 2 })
	p := newPeer(t, nil)
	o.number(o.user, o.trunk(o.user, p, 10), "+12025550180")
	id := o.asks("+12025550107")
	o.becomes(id, parley.CallInProgress)
	drained := make(chan struct{})
	go func() {
		o.board.Drain(context.Background())
		close(drained)
	}()
	eventually(t, "draining", o.board.Draining)
	require.Equal(t, 1, o.counted("parley_draining", nil))
	waits := o.asks("+12025550101")
	_, err := p.calls(t.Context(), o, "+12025550180")
	var refused *sip.Failure
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 503, refused.Status)
	<-drained
	ended(t, o.ends(id), parley.CallCompleted, parley.EndMaxSilence)
	require.Equal(t, parley.CallInitiated, o.call(waits).Status, "left for whoever comes next")
}
