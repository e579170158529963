package switchboard_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/switchboard"
)

// customer is a peer that takes every call and says one sentence again and again.
type customer struct {
	*peer
	media  *media.Engine
	speech []int16
}

func newCustomer(t *testing.T, says string) *customer {
	t.Helper()
	engine, err := media.New(media.Config{})
	require.NoError(t, err)
	c := &customer{media: engine}
	u := converse.Utterance{Text: says, Voice: "tenor", Language: "en", Rate: audio.Rate8k, Speed: 1}
	require.NoError(t, sandbox.New(sandbox.Options{}).Speaker().Speak(t.Context(), u, func(s converse.Sound) { c.speech = append(c.speech, s.Samples...) }))
	c.speech = append(c.speech, make([]int16, 3*8000)...) // and then listens for a while
	c.peer = newPeer(t, c.talks)
	t.Cleanup(engine.Close)
	return c
}

// talks from the moment it picks up until the other side hangs up.
func (c *customer) talks(_ context.Context, in *sip.Incoming) {
	session, err := c.media.Open(loopback)
	if err != nil {
		return
	}
	defer session.Close()
	at := 0
	frame := make([]int16, 160)
	over := make(chan struct{})
	_ = session.Start(media.Params{Codec: media.PCMU, Remote: in.Offer.Remote}, media.Callbacks{Frame: func([]int16) {
		for i := range frame {
			frame[i] = c.speech[at%len(c.speech)]
			at++
		}
		session.Send(frame)
	}})
	local := session.Local()
	if _, err := in.Answer(sip.Media{Address: local.Addr(), Port: local.Port(), Codecs: []sip.Codec{sip.PCMU()}},
		sip.Hooks{Ended: func(sip.End) { close(over) }}); err != nil {
		return
	}
	<-over
}

// inbound hires an assistant that answers a number.
func (o *office) inbound(user *parley.User, number parley.ID, change func(*parley.Assistant)) *parley.Assistant {
	return o.hire(user, func(a *parley.Assistant) {
		a.Type, a.PhoneNumberID, a.InitialMessage = parley.Inbound, &number, "Acme, good morning {{who}}."
		if change != nil {
			change(a)
		}
	})
}

// newest is the newest call of a user.
func (o *office) newest(user *parley.User) *parley.Call {
	o.t.Helper()
	calls, _, err := o.db.Tenant(user.ID).Calls(o.t.Context(), store.CallFilter{Limit: 1})
	require.NoError(o.t, err)
	if len(calls) == 0 {
		return nil
	}
	return &calls[0]
}

func TestANumberRingsAtItsAssistant(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, func(c *switchboard.Config) {
			c.Greet = func(_ context.Context, c *parley.Call, _ *parley.Assistant) parley.Object {
				return parley.Object{"who": "Ada", "from": c.CustomerNumber}
			}
		})
		p := newPeer(t, nil)
		number := o.number(o.user, o.trunk(o.user, p, 10), "+12025550180")
		a := o.inbound(o.user, number, nil)
		call, err := p.calls(t.Context(), o, "+12025550180")
		require.NoError(t, err)
		c := o.newest(o.user)
		require.Equal(t, parley.Inbound, c.Type)
		require.Equal(t, a.ID, c.AssistantID)
		require.Equal(t, "+12025550180", c.AssistantNumber)
		require.Equal(t, "+12025550111", c.CustomerNumber)
		eventually(t, "it has said hello", func() bool {
			events, err := db.Tenant(o.user.ID).CallEvents(t.Context(), c.ID, 0)
			require.NoError(t, err)
			for _, e := range events {
				if e.Event == parley.EventTurn {
					return true
				}
			}
			return false
		})
		require.NoError(t, call.Hangup(t.Context()))
		c = o.ends(c.ID)
		ended(t, c, parley.CallCompleted, parley.EndHungUp)
		require.Equal(t, []string{"ringing", "in-progress", "ended_by_customer", "completed"}, statuses(c))
		require.Contains(t, c.Transcript, "AI: Acme, good morning Ada.")
		require.Equal(t, "Ada", c.Variables["who"])
		require.Equal(t, "+12025550111", c.Variables["from"])
		require.Nil(t, c.DialedAt)
	})
}

func TestNumbersThatNobodyAnswersFor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		p := newPeer(t, nil)
		trunk := o.trunk(o.user, p, 10)
		o.number(o.user, trunk, "+12025550181") // nobody's
		inactive := o.inbound(o.user, o.number(o.user, trunk, "+12025550182"), nil)
		inactive.Status = parley.Inactive
		require.NoError(t, db.Tenant(o.user.ID).SaveAssistant(t.Context(), inactive, false))
		for number, status := range map[string]int{"+12025550180": 404, "+12025550181": 480, "+12025550182": 480} {
			_, err := p.calls(t.Context(), o, number)
			var refused *sip.Failure
			require.ErrorAs(t, err, &refused, number)
			require.Equal(t, status, refused.Status, number)
		}
		require.Nil(t, o.newest(o.user), "no call has come about")
		eventually(t, "nothing is held", func() bool { return o.board.Telephone.SIP.Counters().Active == 0 })
	})
}

// A caller who gives up before the answer leaves a record that says so.
func TestTheCallerGivesUp(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		asked := make(chan struct{})
		o := openOffice(t, db, func(c *switchboard.Config) {
			c.Greet = func(ctx context.Context, _ *parley.Call, _ *parley.Assistant) parley.Object {
				close(asked)
				<-ctx.Done() // a slow webhook; it ends with the caller's patience
				return parley.Object{}
			}
		})
		p := newPeer(t, nil)
		o.inbound(o.user, o.number(o.user, o.trunk(o.user, p, 10), "+12025550180"), nil)
		ctx, giveUp := context.WithCancel(t.Context())
		go func() {
			<-asked
			giveUp()
		}()
		_, err := p.calls(ctx, o, "+12025550180")
		require.Error(t, err)
		c := o.ends(o.newest(o.user).ID)
		ended(t, c, parley.CallNoAnswer, parley.EndCallerLeft)
		require.Zero(t, c.CarrierCost)
		require.Nil(t, c.AnsweredAt)
		require.Empty(t, c.Recording)
		eventually(t, "nothing is held", func() bool { return o.board.Live() == 0 })
	})
}

// Two accounts of one carrier share its address; the number tells whose call it is.
func TestTwoAccountsBehindOneAddress(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, nil)
		other, _ := storetest.User(t, db, "other@example.com")
		p := newPeer(t, nil)
		users := map[string]*parley.User{"+12025550180": o.user, "+12025550190": other}
		for number, user := range users {
			o.inbound(user, o.number(user, o.trunk(user, p, 10), number), nil)
		}
		var wait sync.WaitGroup
		for number := range users {
			wait.Go(func() {
				call, err := p.calls(t.Context(), o, number)
				if err == nil {
					err = call.Hangup(t.Context())
				}
				if err != nil {
					t.Errorf("%s: %v", number, err)
				}
			})
		}
		wait.Wait()
		for number, user := range users {
			var c *parley.Call
			eventually(t, "the call of "+number+" has ended", func() bool {
				c = o.newest(user)
				return c != nil && c.Status.Final()
			})
			require.Equal(t, number, c.AssistantNumber)
			_, total, err := db.Tenant(user.ID).Calls(t.Context(), store.CallFilter{Limit: 10})
			require.NoError(t, err)
			require.Equal(t, 1, total)
		}
	})
}

// A call's record says who brought it: the trunk that it came by, whatever its number is on.
func TestTheCarrierOfAnInboundCall(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil)
	operators := parley.Trunk{ID: -1, Address: p.agent.Addr("udp").String(), Transport: "udp", AllowedInbound: []string{"127.0.0.1"}, CallingFormat: "+e164", MaxChannels: 10, CallsPerSecond: 100}
	simulated := operators
	simulated.ID = -2
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), func(c *switchboard.Config) {
		c.Carrier = func(c parley.Carrier) (parley.Trunk, bool) {
			trunk, ok := map[parley.Carrier]parley.Trunk{parley.CarrierDefault: operators, parley.CarrierSimulated: simulated}[c]
			return trunk, ok
		}
	})
	first, second := o.trunk(o.user, p, 10), o.trunk(o.user, p, 10)
	o.inbound(o.user, o.number(o.user, second, "+12025550180"), nil)
	bare := &parley.PhoneNumber{Number: "+12025550181", CountryCode: "US", Type: parley.NormalNumber}
	require.NoError(t, o.db.Tenant(o.user.ID).CreatePhoneNumber(t.Context(), bare))
	o.inbound(o.user, bare.ID, nil)
	for _, c := range []struct {
		what    string
		by      []parley.Trunk
		number  string
		carrier parley.Carrier
		trunk   *parley.ID
	}{
		{"the operator's trunk", []parley.Trunk{operators}, "+12025550181", parley.CarrierDefault, nil},
		{"the simulated carrier", []parley.Trunk{simulated}, "+12025550181", parley.CarrierSimulated, nil},
		{"the simulated carrier, to a number of a trunk", []parley.Trunk{simulated}, "+12025550180", parley.CarrierSimulated, nil},
		{"the number's trunk, of two behind one address", []parley.Trunk{*first, *second}, "+12025550180", parley.CarrierTrunk, &second.ID},
		{"a trunk, to a number that is on none", []parley.Trunk{*first}, "+12025550181", parley.CarrierTrunk, &first.ID},
	} {
		o.board.Telephone.SIP.SetTrunks(c.by)
		call, err := p.calls(t.Context(), o, c.number)
		require.NoError(t, err, c.what)
		require.NoError(t, call.Hangup(t.Context()))
		got := o.ends(o.newest(o.user).ID)
		require.Equal(t, c.carrier, got.Carrier, c.what)
		require.Equal(t, c.trunk, got.TrunkID, c.what)
	}
}

// An inbound call that is up when its end is asked for, by whichever process, ends.
func TestHangingUpAnInboundCall(t *testing.T) {
	t.Parallel()
	o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), nil)
	p := newPeer(t, nil)
	o.inbound(o.user, o.number(o.user, o.trunk(o.user, p, 10), "+12025550180"), nil)
	call, err := p.calls(t.Context(), o, "+12025550180")
	require.NoError(t, err)
	o.hangsUp(o.newest(o.user).ID)
	ended(t, o.ends(o.newest(o.user).ID), parley.CallCompleted, parley.EndHangup)
	<-call.Done()
}
