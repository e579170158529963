package switchboard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/converse"
	"parley/internal/jobs"
	"parley/internal/media"
	"parley/internal/store"
)

// Config is what a switchboard works with.
type Config struct {
	DB        *store.DB
	Telephone *Telephone
	Log       *slog.Logger

	// Equip gives an assistant its providers.
	Equip func(ctx context.Context, a *parley.Assistant) (converse.Config, error)
	// Tool runs a mid call tool of an assistant; nil: there are none. The number is that
	// of the call's invocations.
	Tool func(ctx context.Context, a *parley.Assistant, tool parley.Tool, call parley.CallFacts, number int, arguments map[string]any) parley.Exchange
	// Greet tells the user of a call that comes in, before it is answered, and returns
	// what the user adds to its variables; nil: nobody is told.
	Greet func(ctx context.Context, c *parley.Call, a *parley.Assistant) parley.Object
	// Recheck is asked in the transaction that claims a call, in the instant before it is
	// dialled; an empty reason lets it go.
	Recheck func(ctx context.Context, tx *store.System, c *parley.Call) (parley.EndReason, error)
	// Concluded is told of a call that has reached its final status, in the transaction
	// that gave it that.
	Concluded func(ctx context.Context, tx *store.System, c *parley.Call, a *parley.Assistant) error
	// Carrier is the trunk of the operator's default and of the simulated carrier.
	Carrier func(parley.Carrier) (parley.Trunk, bool)

	Policy     parley.NumberPolicy
	Rates      *parley.Rates
	Recordings store.Recordings
	MaxCalls   int    // of this node at once
	Notice     string // spoken first in every call; recording begins after it
	OptOutHint string
	OptOut     byte // the key that refuses further calls; 0: none
	Metrics    prometheus.Registerer
}

// Board is the switchboard of one node: the owner of its live calls.
type Board struct {
	Config
	queue    *jobs.Queue
	scribe   *scribe
	metrics  *metrics
	running  sync.WaitGroup // a count for each seat that is taken
	loops    sync.WaitGroup
	stopping context.CancelFunc

	mu       sync.Mutex
	seats    int // taken, by calls that are live or about to be
	live     map[parley.ID]*liveCall
	draining bool
}

// liveCall is a call that this node holds.
type liveCall struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	reason parley.EndReason // why the node ends it; "" while it does not
}

// end has the call ended for a reason of ours; the first one counts.
func (l *liveCall) end(reason parley.EndReason) {
	l.mu.Lock()
	if l.reason == "" {
		l.reason = reason
	}
	l.mu.Unlock()
	l.cancel()
}

func (l *liveCall) why() parley.EndReason {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// New makes a switchboard; it does nothing before Start.
func New(config Config) *Board {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	b := &Board{Config: config, live: map[parley.ID]*liveCall{}}
	b.metrics = newMetrics(b)
	return b
}

// hangupEvery is how often a node looks for calls that somebody wants ended.
const hangupEvery = 250 * time.Millisecond

// Start begins to serve with the queue that the node's jobs come by.
func (b *Board) Start(queue *jobs.Queue) {
	b.queue = queue
	b.scribe = newScribe(b.DB, queue.Node(), b.Log)
	ctx, stop := context.WithCancel(context.Background())
	b.stopping = stop
	b.loops.Go(func() { b.scribe.run(ctx) })
	b.loops.Go(func() { b.watchHangups(ctx) })
}

// watchHangups ends the calls whose end was asked for, by whichever process.
func (b *Board) watchHangups(ctx context.Context) {
	tick := time.NewTicker(hangupEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b.Live() == 0 {
			continue
		}
		asked, err := b.DB.System().Hangups(ctx, b.queue.Node())
		if err != nil && ctx.Err() == nil {
			b.Log.Error("requests to hang up could not be read", "error", err)
		}
		for _, id := range asked {
			b.mu.Lock()
			call := b.live[id]
			b.mu.Unlock()
			if call != nil {
				call.end(parley.EndHangup)
			}
		}
	}
}

// Live is how many calls this node holds.
func (b *Board) Live() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.live)
}

// sit takes a seat for one more call, unless all are taken or the node is stopping.
func (b *Board) sit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining || b.MaxCalls > 0 && b.seats >= b.MaxCalls {
		return false
	}
	b.seats++
	b.running.Add(1)
	return true
}

// rise gives a seat back.
func (b *Board) rise() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats--
	b.running.Done()
}

// hold makes a call live. Its context ends when the node ends the call.
func (b *Board) hold(ctx context.Context, id parley.ID) (context.Context, *liveCall) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &liveCall{cancel: cancel}
	b.mu.Lock()
	b.live[id] = l
	b.mu.Unlock()
	return ctx, l
}

// drop lets go of a call that is over, and of its seat.
func (b *Board) drop(id parley.ID, l *liveCall) {
	l.cancel()
	b.mu.Lock()
	if b.live[id] == l { // one that was given back may have been claimed anew
		delete(b.live, id)
	}
	b.mu.Unlock()
	b.rise()
}

// Drain takes no new calls and lets those that are up go on until ctx ends; then it ends
// them. It returns when there is none left and everything about them is written.
func (b *Board) Drain(ctx context.Context) {
	b.mu.Lock()
	b.draining = true
	b.mu.Unlock()
	over := make(chan struct{})
	go func() {
		b.running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		b.EndAll(parley.EndStopped)
		<-over
	}
}

// Draining says whether the node takes no more calls.
func (b *Board) Draining() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draining
}

// EndAll ends every call of this node.
func (b *Board) EndAll(reason parley.EndReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, call := range b.live {
		call.end(reason)
	}
}

// Close ends what Start began. Drain comes before it.
func (b *Board) Close() {
	if b.stopping != nil {
		b.stopping()
		b.loops.Wait()
	}
}

// converse is the conversation of a call: who speaks, and what is kept of it.
func (b *Board) converse(ctx context.Context, c *parley.Call, a *parley.Assistant) (converse.Config, *recording, error) {
	config, err := b.Equip(ctx, a)
	if err != nil {
		return config, nil, failed(parley.EndInternal, err)
	}
	config.Assistant = *a
	config.Call = parley.CallFacts{
		CallID: strconv.FormatInt(c.ID, 10), CustomerPhone: c.CustomerNumber, AssistantPhone: c.AssistantNumber,
		Direction: c.Type, Variables: merged(a.Variables, c.Variables),
	}
	config.RunTool = b.runTool(config.Call, c.ID, a)
	config.CanTransfer = true
	config.Notice, config.OptOutHint, config.OptOutDigit = b.Notice, b.OptOutHint, b.OptOut
	config.Log = b.Log
	var r *recording
	if a.Record {
		r = newRecording(b.Recordings, c.ID, b.Log)
		config.Tap = r.tap
	}
	spoken := false
	config.Watch = func(e converse.Event) {
		if e.Refused {
			r.discard()
		}
		if e.Turn != nil {
			b.metrics.spoke(e.Turn, !spoken)
			spoken = true
		}
		b.scribe.heard(c, e)
	}
	return config, r, nil
}

// mostShown bounds what a timeline shows of a tool's answer.
const mostShown = 4000

// runTool is how a conversation runs the tools of its assistant.
func (b *Board) runTool(facts parley.CallFacts, call parley.ID, a *parley.Assistant) func(context.Context, string, map[string]any) (string, error) {
	var number atomic.Int64
	return func(ctx context.Context, name string, arguments map[string]any) (string, error) {
		i := slices.IndexFunc(a.Tools, func(t parley.Tool) bool { return t.Name == name })
		if i < 0 || b.Tool == nil {
			return "", errors.New("this tool is not available")
		}
		exchange := b.Tool(ctx, a, a.Tools[i], facts, int(number.Add(1)), arguments)
		shown := exchange
		if len(shown.Answer) > mostShown {
			shown.Answer = strings.ToValidUTF8(shown.Answer[:mostShown], "") + " ..."
		}
		b.scribe.note(call, parley.EventTool, asObject(shown))
		return exchange.Result()
	}
}

// quality is what a line's figures say of a call.
func quality(s media.Stats) *parley.Quality {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()/10) / 100 }
	return &parley.Quality{
		PacketsSent: s.Sent, PacketsReceived: s.Received, PacketsLost: s.Lost, RemoteLost: s.RemoteLost,
		JitterMS: ms(s.Jitter), RemoteJitterMS: ms(s.RemoteJitter), RoundTripMS: ms(s.RoundTrip),
		ConcealedFrames: s.Concealed, LateFrames: s.Late,
	}
}
