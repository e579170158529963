package switchboard_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/converse"
	"parley/internal/jobs"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/switchboard"
)

// office is a whole node with one user: database, queue, switchboard, SIP and media on
// loopback, and the simulated carrier to call.
type office struct {
	t         *testing.T
	db        *store.DB
	board     *switchboard.Board
	queue     *jobs.Queue
	metrics   *prometheus.Registry
	carrier   *simulator.Carrier
	user      *parley.User
	assistant *parley.Assistant
	trunks    []parley.Trunk // that may call in
}

// asksForAPerson is the number of somebody who does.
const asksForAPerson = "+12025550160"

// openOffice opens a node on a database; the change is made to its settings before it starts.
func openOffice(t *testing.T, db *store.DB, change func(*switchboard.Config), settings ...func(*sip.Settings)) *office {
	t.Helper()
	o := &office{t: t, db: db, metrics: prometheus.NewRegistry()}
	o.user, _ = storetest.User(t, db, "owner@example.com")
	o.assistant = o.hire(o.user, func(*parley.Assistant) {})
	o.start(change, settings)
	return o
}

// hire adds an assistant.
func (o *office) hire(user *parley.User, change func(*parley.Assistant)) *parley.Assistant {
	o.t.Helper()
	a := storetest.Assistant("Front desk")
	a.InitialMessage, a.Record = "Hello, this is Acme.", true
	change(a)
	require.NoError(o.t, o.db.Tenant(user.ID).CreateAssistant(o.t.Context(), a))
	return a
}

func (o *office) start(change func(*switchboard.Config), settings []func(*sip.Settings)) {
	t := o.t
	var err error
	o.carrier, err = simulator.Start(simulator.Callee{Code: asksForAPerson[len(asksForAPerson)-2:], Script: []simulator.Step{
		{Say: "Can I speak to a human, please?"}, {Say: "A human, please."}, {Say: "A human, please."}, {HangUp: true},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.carrier.Close()) })
	engine, err := media.New(media.Config{})
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	config := switchboard.Config{
		DB: o.db, Telephone: &switchboard.Telephone{Media: engine, Host: loopback}, Equip: equip(), Rates: parley.DefaultRates(),
		Recordings: store.Recordings(t.TempDir()), MaxCalls: 100, Metrics: o.metrics,
		Carrier: func(c parley.Carrier) (parley.Trunk, bool) {
			trunk := o.carrier.Trunk()
			trunk.ID = -2
			return trunk, c == parley.CarrierSimulated
		},
	}
	if change != nil {
		change(&config)
	}
	o.board = switchboard.New(config)
	o.queue, err = jobs.New(o.db, o.board.Log, jobs.Work{
		Dial: o.board.Dial, Finish: o.board.Finish, Conclude: o.board.Bury, Lost: func() { o.board.EndAll(parley.EndNodeLost) },
	})
	require.NoError(t, err)
	s := sip.Settings{Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1, Incoming: o.board.Incoming}
	for _, set := range settings {
		set(&s)
	}
	config.Telephone.SIP, err = sip.New(s)
	require.NoError(t, err)
	require.NoError(t, config.Telephone.SIP.Start())
	o.board.Start(o.queue)
	require.NoError(t, o.queue.Start(t.Context()))
	t.Cleanup(o.stop)
}

// stop ends the node in the order of a server.
func (o *office) stop() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	o.board.Drain(ended)
	require.NoError(o.t, o.queue.Stop(context.Background()))
	require.NoError(o.t, o.board.Telephone.SIP.Close())
	o.board.Close()
}

// equip gives every assistant the sandbox's voice, ears and mind.
func equip() func(context.Context, *parley.Assistant) (converse.Config, error) {
	p := sandbox.New(sandbox.Options{})
	return func(context.Context, *parley.Assistant) (converse.Config, error) {
		return converse.Config{
			Transcribers: []converse.Provider[converse.Transcriber]{{Name: "sandbox", Use: p.Transcriber()}},
			Models:       []converse.Provider[converse.Model]{{Name: "sandbox", Key: "instant", Use: p.Model()}},
			Speakers:     []converse.Provider[converse.Speaker]{{Name: "sandbox", Key: "alto", Use: p.Speaker()}},
		}, nil
	}
}

// asks has a number of the simulated carrier called, as make_call does.
func (o *office) asks(number string) parley.ID {
	return o.asksBy(&parley.Call{CustomerNumber: number, Carrier: parley.CarrierSimulated})
}

func (o *office) asksBy(c *parley.Call) parley.ID {
	o.t.Helper()
	c.AssistantID, c.AssistantName, c.Type, c.Status = o.assistant.ID, o.assistant.Name, parley.Outbound, parley.CallInitiated
	if c.Variables == nil {
		c.Variables = parley.Object{}
	}
	require.NoError(o.t, o.db.Tenant(o.user.ID).Tx(o.t.Context(), func(t *store.Tenant) error {
		if err := t.CreateCall(o.t.Context(), c, ""); err != nil {
			return err
		}
		return o.queue.Dial(o.t.Context(), t.System(), c.ID)
	}))
	return c.ID
}

// call reads a call with its timeline.
func (o *office) call(id parley.ID) *parley.Call {
	o.t.Helper()
	c, err := o.db.Tenant(o.user.ID).Call(o.t.Context(), id)
	require.NoError(o.t, err)
	return c
}

// awaits a call that fits.
func (o *office) awaits(id parley.ID, what string, fits func(*parley.Call) bool) *parley.Call {
	o.t.Helper()
	var c *parley.Call
	eventually(o.t, what, func() bool {
		c = o.call(id)
		return fits(c)
	})
	return c
}

// becomes waits for a status.
func (o *office) becomes(id parley.ID, status parley.CallStatus) *parley.Call {
	o.t.Helper()
	return o.awaits(id, string(status), func(c *parley.Call) bool { return c.Status == status })
}

// ends waits for the final status.
func (o *office) ends(id parley.ID) *parley.Call {
	o.t.Helper()
	return o.awaits(id, "the final status", func(c *parley.Call) bool { return c.Status.Final() })
}

// hangsUp asks for the end of a call.
func (o *office) hangsUp(id parley.ID) {
	o.t.Helper()
	_, err := o.db.Tenant(o.user.ID).RequestHangup(o.t.Context(), id)
	require.NoError(o.t, err)
}

// eventually polls what another goroutine or process does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 90*time.Second, 20*time.Millisecond, what)
}

// ended asserts how a call came out.
func ended(t *testing.T, c *parley.Call, status parley.CallStatus, reason parley.EndReason) {
	t.Helper()
	require.NotNil(t, c.EndReason)
	require.Equal(t, status, c.Status, *c.EndReason)
	require.Equal(t, reason, *c.EndReason)
	require.NotNil(t, c.EndedAt)
	steps := statuses(c)
	require.Equal(t, string(status), steps[len(steps)-1], "the timeline ends as the call did")
	require.True(t, slices.IsSortedFunc(steps, func(a, b string) int { return rank(a) - rank(b) }), "never backward: %v", steps)
}

func statuses(c *parley.Call) (steps []string) {
	for _, e := range c.Timeline {
		if status, ok := e.Detail["status"].(string); ok && e.Event == parley.EventStatus {
			steps = append(steps, status)
		}
	}
	return steps
}

func rank(status string) int { return slices.Index(parley.CallStatuses, parley.CallStatus(status)) }

// counted is the sum of a metric over those of its labels that are given.
func (o *office) counted(name string, labels map[string]string) (sum int) {
	o.t.Helper()
	families, err := o.metrics.Gather()
	require.NoError(o.t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			fits := 0
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] == l.GetValue() {
					fits++
				}
			}
			if fits == len(labels) {
				sum += int(m.GetCounter().GetValue()+m.GetGauge().GetValue()) + int(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// peer is another company's telephone, which has a trunk to the office.
type peer struct {
	agent    *sip.Agent
	incoming func(context.Context, *sip.Incoming)
}

func newPeer(t *testing.T, incoming func(context.Context, *sip.Incoming)) *peer {
	t.Helper()
	p := &peer{incoming: incoming}
	var err error
	p.agent, err = sip.New(sip.Settings{Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1,
		Incoming: func(ctx context.Context, in *sip.Incoming) { p.incoming(ctx, in) }})
	require.NoError(t, err)
	require.NoError(t, p.agent.Start())
	t.Cleanup(func() { require.NoError(t, p.agent.Close()) })
	p.agent.SetTrunks([]parley.Trunk{{ID: 1, Address: "127.0.0.1", Transport: "udp", AllowedInbound: []string{"127.0.0.1"}, CallingFormat: "+e164", MaxChannels: 1000, CallsPerSecond: 1000}})
	return p
}

// trunk is a user's trunk to the peer, in the database.
func (o *office) trunk(user *parley.User, p *peer, channels int) *parley.Trunk {
	o.t.Helper()
	trunk := &parley.Trunk{Address: p.agent.Addr("udp").String(), Transport: "udp", AllowedInbound: []string{"127.0.0.1"}, CallingFormat: "+e164", MaxChannels: channels, CallsPerSecond: 100}
	require.NoError(o.t, o.db.Tenant(user.ID).CreateTrunk(o.t.Context(), trunk))
	o.trunks = append(o.trunks, *trunk)
	o.board.Telephone.SIP.SetTrunks(o.trunks)
	return trunk
}

// number gives a user a line on a trunk.
func (o *office) number(user *parley.User, trunk *parley.Trunk, number string) parley.ID {
	o.t.Helper()
	n := &parley.PhoneNumber{Number: number, CountryCode: "US", Type: parley.NormalNumber, TrunkID: &trunk.ID}
	require.NoError(o.t, o.db.Tenant(user.ID).CreatePhoneNumber(o.t.Context(), n))
	return n.ID
}

// calls in, without any sound.
func (p *peer) calls(ctx context.Context, o *office, number string) (*sip.Call, error) {
	way := parley.Trunk{ID: 1, Address: o.board.Telephone.SIP.Addr("udp").String(), Transport: "udp", CallingFormat: "+e164", MaxChannels: 1000, CallsPerSecond: 1000}
	return p.agent.Dial(ctx, way, sip.Outgoing{To: number, From: "+12025550111", Media: silent()})
}

// silent is a description of media that nobody listens to.
func silent() sip.Media {
	return sip.Media{Address: netip.MustParseAddr("127.0.0.1"), Port: 9}
}
