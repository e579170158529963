package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/egress"
	"parley/internal/store"
)

type benchWebhooksCmd struct {
	Postgres  string `env:"PARLEY_BENCH_POSTGRES" help:"PostgreSQL on this machine to measure too (postgres://...@127.0.0.1/name); it works in schemas of its own and removes them."`
	Messages  int    `default:"5000" help:"Messages of a round."`
	Rounds    int    `default:"3" help:"Rounds of the comparison; the two sides take turns."`
	Receivers int    `default:"20" help:"Receivers that the messages are for."`
	Rate      int    `default:"200" help:"Messages a second while the pick-up is measured."`
}

// Validate bounds the load and keeps it on this machine.
func (b *benchWebhooksCmd) Validate() error {
	switch {
	case b.Messages < 1 || b.Messages > 100_000:
		return errors.New("--messages must be between 1 and 100000")
	case b.Rounds < 1 || b.Rounds > 100:
		return errors.New("--rounds must be between 1 and 100")
	case b.Receivers < 1 || b.Receivers > 100:
		return errors.New("--receivers must be between 1 and 100")
	case b.Rate < 1 || b.Rate > 10_000:
		return errors.New("--rate must be between 1 and 10000")
	}
	return onThisMachine(b.Postgres)
}

// hookFindings is what was measured on one database.
type hookFindings struct {
	database string
	comparison
	tries    int // beyond one for each message
	pickedUp []time.Duration
}

// Run measures every database it was given and prints what it found.
func (b *benchWebhooksCmd) Run(ctx context.Context, c console) error {
	measured, err := onEach(ctx, c, b.Postgres, b.measure)
	if err != nil {
		return err
	}
	c.printf("Parley %s, %s on %d cores; %d rounds of %d messages for %d receivers over 127.0.0.1.\n\n%s\n\n",
		version, runtime.Version(), runtime.GOMAXPROCS(0), b.Rounds, b.Messages, b.Receivers, bareHooksDo)
	rows := [][]string{{"DATABASE", "PARLEY MESSAGES/S", "BARE POSTS/S", "RATIO", "LOST", "SENT TWICE", "PICK-UP P50", "PICK-UP P99"}}
	for _, f := range measured {
		rows = append(rows, []string{f.database, rate(f.a), rate(f.b), fmt.Sprintf("%.2f", f.ratio()), "0", fmt.Sprint(f.tries), millis(percentile(f.pickedUp, 0.5)), millis(percentile(f.pickedUp, 0.99))})
	}
	return c.table(rows)
}

// bareHooksDo tells a reader what Parley is held against.
const bareHooksDo = `Parley's side begins when the ends of as many calls are committed with their messages. It takes each from its queue, writes
the try down, signs and posts it, and writes the answer down, on the message and in the call's record and timeline; a
round ends when every message is written down as delivered. The bare side signs the same bodies and posts them
from as many goroutines as Parley has workers, and keeps nothing. PICK-UP is from the commit of a message to its arrival,
at a steady rate.`

func (b *benchWebhooksCmd) measure(ctx context.Context, kind benchDatabase, p progress) (found *hookFindings, err error) {
	s, err := openHookSite(ctx, kind, b.Receivers, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	found = &hookFindings{database: kind.name}
	if err := s.feed(ctx, 100, 50, 0); err != nil { // what the first ones find cold
		return nil, err
	}
	for round := range b.Rounds {
		for turn := range 2 {
			runtime.GC()
			if (turn+round)%2 == 0 {
				p.stepf("delivering, round %d of %d", round+1, b.Rounds)
				if err := s.feed(ctx, b.Messages, b.Messages, 0); err != nil {
					return nil, err
				}
				found.a.rates = append(found.a.rates, float64(b.Messages)/time.Since(s.fed).Seconds())
				continue
			}
			p.stepf("posting, round %d of %d", round+1, b.Rounds)
			rate, err := s.post(ctx, b.Messages)
			if err != nil {
				return nil, err
			}
			found.b.rates = append(found.b.rates, rate)
		}
	}
	p.stepf("picking up")
	s.inbox.clear()
	if err := s.feed(ctx, 10*b.Rate, 1, time.Second/time.Duration(b.Rate)); err != nil {
		return nil, err
	}
	found.pickedUp = s.pickedUp()
	found.tries = int(s.inbox.again.Load())
	return found, nil
}

// bareWorkers is how many deliveries Parley has under way at most.
const bareWorkers = 100

// hookSite is a whole Parley with its own fresh database, and receivers.
type hookSite struct {
	ground
	server     *server
	inbox      *inbox
	assistants []*parley.Assistant  // one for each receiver
	made       map[string]time.Time // when a message was committed
	fed        time.Time            // when the last one was
}

// inbox is the receivers: they keep when each message came first.
type inbox struct {
	servers []*http.Server
	urls    []string
	mu      sync.Mutex
	came    map[string]time.Time
	again   atomic.Int64
}

func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	_, _ = io.Copy(io.Discard, r.Body)
	id := r.Header.Get("Webhook-Id")
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, before := i.came[id]; before {
		i.again.Add(1)
		return
	}
	i.came[id] = now
}

func (i *inbox) clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.came = map[string]time.Time{}
}

func openInbox(ctx context.Context, receivers int) (*inbox, error) {
	i := &inbox{came: map[string]time.Time{}}
	for range receivers {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return i, err
		}
		server := &http.Server{Handler: i, ReadHeaderTimeout: patience}
		go func() { _ = server.Serve(listener) }()
		i.servers, i.urls = append(i.servers, server), append(i.urls, "http://"+listener.Addr().String()+"/hook")
	}
	return i, nil
}

func openHookSite(ctx context.Context, kind benchDatabase, receivers int, p progress) (s *hookSite, err error) {
	s = &hookSite{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	if s.inbox, err = openInbox(ctx, receivers); err != nil {
		return s, err
	}
	database, err := s.take(ctx, kind)
	if err != nil {
		return s, err
	}
	config := benchConfig(s.dir, parley.NewSecret())
	config.DB = database
	if config.allowed, err = egress.ParseAllowed([]string{"127.0.0.1"}); err != nil {
		return s, err
	}
	if err = config.Telephony.validate(); err != nil {
		return s, err
	}
	p.stepf("starting")
	if s.server, err = start(ctx, config, console{io.Discard, io.Discard}); err != nil {
		return s, err
	}
	return s, s.furnish(ctx)
}

// furnish makes an assistant for each receiver.
func (s *hookSite) furnish(ctx context.Context) error {
	user, err := s.server.db.System().UserByEmail(ctx, store.FirstUser.Email)
	if err != nil {
		return err
	}
	for _, url := range s.inbox.urls {
		a := &parley.Assistant{Name: "Front desk", Type: parley.Outbound, Mode: parley.Pipeline, VoiceID: 1, LanguageID: 1, LLMModelID: 1}
		parley.AssistantForm.SetDefaults(a)
		a.EnableWebhook(url)
		if err := s.server.db.Tenant(user.ID).CreateAssistant(ctx, a); err != nil {
			return err
		}
		s.assistants = append(s.assistants, a)
	}
	return nil
}

// close stops everything and removes what the site kept.
func (s *hookSite) close() (err error) {
	if s.server != nil {
		err = s.server.stop()
	}
	if s.inbox != nil {
		for _, server := range s.inbox.servers {
			err = errors.Join(err, server.Close())
		}
	}
	return errors.Join(err, s.leave())
}

// feed ends calls, so many in a transaction and every so often, and waits until the end
// of each is delivered.
func (s *hookSite) feed(ctx context.Context, messages, batch int, every time.Duration) error {
	s.made = map[string]time.Time{}
	began := time.Now()
	for n := 0; n < messages; n += batch {
		if err := rest(ctx, time.Until(began.Add(time.Duration(n)*every))); err != nil {
			return err
		}
		var ids []parley.ID
		err := s.server.db.System().Tx(ctx, func(tx *store.System) error {
			ids = ids[:0]
			for i := range min(batch, messages-n) {
				c := benchCall(s.assistants[(n+i)%len(s.assistants)])
				if err := tx.Tenant(c.UserID).CreateCall(ctx, c, ""); err != nil {
					return err
				}
				c.Status, c.Transcript = parley.CallCompleted, benchTranscript
				if err := s.server.notifier.Concluded(ctx, tx, c, s.assistants[(n+i)%len(s.assistants)]); err != nil {
					return err
				}
				ids = append(ids, c.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.fed = time.Now()
		if every > 0 {
			if err := s.note(ctx, ids[0], s.fed); err != nil {
				return err
			}
		}
	}
	return s.settle(ctx)
}

// note keeps when a call's message was committed.
func (s *hookSite) note(ctx context.Context, call parley.ID, at time.Time) error {
	all, _, err := s.server.db.Tenant(s.assistants[0].UserID).Deliveries(ctx, store.DeliveryFilter{CallID: &call}, 1, 0)
	if err == nil && len(all) == 1 {
		s.made[all[0].MessageID] = at
	}
	return err
}

// settle waits until every message is written down as delivered.
func (s *hookSite) settle(ctx context.Context) error {
	tenant, limit := s.server.db.Tenant(s.assistants[0].UserID), time.Now().Add(5*time.Minute)
	for {
		left := 0
		for _, status := range []parley.DeliveryStatus{parley.DeliveryPending, parley.DeliverySending} {
			_, n, err := tenant.Deliveries(ctx, store.DeliveryFilter{Status: string(status)}, 1, 0)
			if err != nil {
				return err
			}
			left += n
		}
		switch {
		case left == 0:
			_, dead, err := tenant.Deliveries(ctx, store.DeliveryFilter{Status: string(parley.DeliveryDead)}, 1, 0)
			if err == nil && dead > 0 {
				err = fmt.Errorf("%d messages were lost", dead)
			}
			return err
		case time.Now().After(limit):
			return fmt.Errorf("%d messages were not delivered within five minutes", left)
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// pickedUp is how long each message took from its commit to its receiver.
func (s *hookSite) pickedUp() (took []time.Duration) {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	for id, made := range s.made {
		took = append(took, max(0, s.inbox.came[id].Sub(made)))
	}
	return took
}

// post is the bare side: as many signed posts, and their rate.
func (s *hookSite) post(ctx context.Context, messages int) (rate float64, err error) {
	transport := &http.Transport{MaxIdleConns: 2 * bareWorkers, MaxIdleConnsPerHost: bareWorkers}
	defer transport.CloseIdleConnections()
	client, secret, body := &http.Client{Transport: transport}, egress.NewSecret(), bytes.Repeat([]byte("x"), 1500)
	var next atomic.Int64
	failed := make([]error, bareWorkers)
	var workers sync.WaitGroup
	began := time.Now()
	for w := range bareWorkers {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(messages) && failed[w] == nil; n = next.Add(1) {
				failed[w] = signedPost(ctx, client, s.inbox.urls[int(n)%len(s.inbox.urls)], fmt.Sprintf("bare_%p_%d", client, n), body, secret)
			}
		})
	}
	workers.Wait()
	return float64(messages) / time.Since(began).Seconds(), errors.Join(failed...)
}

func signedPost(ctx context.Context, client *http.Client, url, id string, body []byte, secret string) error {
	header, err := egress.Sign(id, time.Now(), body, []string{secret})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

func benchCall(a *parley.Assistant) *parley.Call {
	return &parley.Call{
		UserID: a.UserID, AssistantID: a.ID, AssistantName: a.Name, Type: parley.Outbound, Status: parley.CallInitiated, AssistantNumber: "+12025550180", CustomerNumber: "+12025550100",
		Carrier: parley.CarrierSimulated, Variables: parley.Object{"name": "Ada"},
	}
}
