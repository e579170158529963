package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"parley"
	"parley/internal/api"
	"parley/internal/dialer"
	"parley/internal/egress"
	"parley/internal/jobs"
	"parley/internal/provider"
	"parley/internal/store"
	"parley/internal/switchboard"
)

type serveCmd struct{}

// Run serves until ctx ends, then lets what is running finish.
func (serveCmd) Run(ctx context.Context, config *Config, c console) error {
	s, err := start(ctx, config, c)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	return errors.Join(err, s.stop())
}

// server is a running Parley.
type server struct {
	config   *Config
	log      *slog.Logger
	db       *store.DB
	queue    *jobs.Queue
	exchange *exchange
	dialer   *dialer.Dialer
	door     *egress.Client
	notifier *egress.Notifier

	providers *provider.Registry
	asking    context.CancelFunc // ends the refreshing of the catalogue
	asked     sync.WaitGroup
	api       *api.Server
	http      *http.Server
	listener  net.Listener
	failed    chan error
	registry  *prometheus.Registry
}

// start opens, migrates and listens; it returns when requests are answered.
func start(ctx context.Context, config *Config, c console) (*server, error) {
	s := &server{config: config, log: config.logger(c.err), failed: make(chan error, 1), registry: prometheus.NewRegistry()}
	token, err := s.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.serve()
	s.greet(c, token)
	return s, nil
}

// open takes the port before it touches the database: a taken port must not leave
// a migrated database behind.
func (s *server) open(ctx context.Context) (token string, err error) {
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.config.HTTP); err != nil {
		return "", fmt.Errorf("cannot listen on PARLEY_HTTP %s: %w", s.config.HTTP, err)
	}
	if s.db, err = s.config.openDB(ctx); err != nil {
		return "", err
	}
	if token, err = prepare(ctx, s.db, s.config, s.log); err != nil {
		return "", err
	}
	return token, s.openExchange(ctx)
}

// openExchange connects the telephone: its calls come by the queue and by SIP.
func (s *server) openExchange(ctx context.Context) (err error) {
	if len(s.config.AllowPrivate) > 0 {
		s.log.Warn("tools and webhooks of all users may reach private addresses; unset PARLEY_ALLOW_PRIVATE in production", "allowed", s.config.AllowPrivate)
	}
	if s.providers, err = provider.New(s.config.Providers); err != nil {
		return err
	}
	s.door = egress.New(egress.Config{Allowed: s.config.allowed, Version: version, Log: s.log})
	s.notifier = &egress.Notifier{DB: s.db, Client: s.door, Log: s.log, Recording: func(c *parley.Call) *string {
		return api.RecordingLink(s.db.Keys(), s.address(), c, time.Now())
	}}
	s.dialer = &dialer.Dialer{DB: s.db, Log: s.log, Caps: s.config.dialerCaps(), Account: s.config.caps(), Carriers: s.config.carriers()}
	s.exchange, err = newExchange(s.config, s.db, s.log, switchboard.Config{
		Metrics: s.registry, Equip: equipment(s.db, s.providers), Tool: s.door.Tool, Greet: s.notifier.Incoming, Recheck: s.dialer.Recheck,
		Concluded: func(ctx context.Context, tx *store.System, c *parley.Call, a *parley.Assistant) error {
			if err := s.dialer.Concluded(ctx, tx, c); err != nil {
				return err
			}
			return s.notifier.Concluded(ctx, tx, c, a)
		},
	})
	if err != nil {
		return err
	}
	board := s.exchange.board
	s.queue, err = jobs.New(s.db, quieter(s.log), jobs.Work{
		Calls: s.config.MaxCalls, Dial: board.Dial, Finish: board.Finish, Deliver: s.notifier.Deliver, Conclude: board.Bury,
		DialDied: board.DialDied, FinishDied: board.FinishDied,
		Lost: func() { board.EndAll(parley.EndNodeLost) },
		Tidy: s.expire,
	})
	if err != nil {
		return err
	}
	s.dialer.Queue = s.queue
	s.notifier.Start(s.queue)
	board.Start(s.queue)
	if err := s.exchange.connect(ctx); err != nil {
		return err
	}
	// The queue is stopped by stop, after the requests that feed it, not by ctx.
	if err := s.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.dialer.Start()
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.asking = stop
	s.asked.Go(func() { s.providers.Run(asking, s.log, s.db.System().Reconcile) })
	return nil
}

// expire removes the calls that are older than they are to be kept.
func (s *server) expire(ctx context.Context) error {
	if s.config.RetentionDays == 0 {
		return nil
	}
	removed, err := s.db.System().Expire(ctx, time.Now().AddDate(0, 0, -s.config.RetentionDays), s.config.recordings())
	if removed > 0 {
		s.log.Info("old calls were removed", "calls", removed, "older_than_days", s.config.RetentionDays)
	}
	return err
}

// close gives back what open took before it failed.
func (s *server) close() (err error) {
	if s.listener != nil {
		err = s.listener.Close()
	}
	if s.exchange != nil {
		err = errors.Join(err, s.exchange.close())
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// prepare migrates, and gives an empty database its catalogue and first user.
func prepare(ctx context.Context, db *store.DB, config *Config, log *slog.Logger) (token string, err error) {
	err = db.Migrate(ctx, func(m store.Migration) { log.Info("migrated", "version", m.Version, "name", m.Name) })
	if err != nil {
		return "", err
	}
	if err := db.System().SeedCatalogue(ctx); err != nil {
		return "", err
	}
	if token, err = db.System().Begin(ctx, config.Token); err != nil {
		return "", err
	}
	switch {
	case token != "" && config.Token != "" && parley.WeakToken(token):
		log.Warn("PARLEY_TOKEN is short and could be guessed; use 32 random characters or more")
	case token == "" && config.Token != "":
		if _, err := db.System().Authenticate(ctx, config.Token); err != nil {
			log.Warn("PARLEY_TOKEN is not a token of this database: it counts on an empty one only; make a token with: parley token create")
		}
	}
	return token, nil
}

// quieter keeps the queue's own chatter out of an operator's log.
func quieter(log *slog.Logger) *slog.Logger { return slog.New(atLeastWarn{log.Handler()}) }

type atLeastWarn struct{ slog.Handler }

func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
func (h atLeastWarn) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeastWarn{h.Handler.WithAttrs(a)}
}
func (h atLeastWarn) WithGroup(g string) slog.Handler { return atLeastWarn{h.Handler.WithGroup(g)} }

func (s *server) serve() {
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.api = api.New(api.Config{
		PublicURL: s.config.PublicURL, RatePerToken: s.config.RatePerToken, RatePerAddress: s.config.RatePerAddress,
		TrustedProxies: s.config.proxies, Version: version,
		Queue: s.queue, Calls: s.config.caps(), Policy: s.config.policy(), Carriers: s.config.carriers(), Recordings: s.config.recordings(), NewSecret: egress.NewSecret, TryTool: s.door.TryTool, CanEquip: s.providers.Validate,
		CanDial: s.dialer.CanDial, Preview: s.dialer.Forecast,
		HangUp: func(ctx context.Context, t *store.Tenant, campaign parley.ID) error {
			return t.HangUpCampaign(ctx, campaign)
		},
	}, s.db, s.log, s.registry, api.Check{Name: "queue", Run: s.queue.Check}, api.Check{Name: "calls", Run: s.exchange.check})
	s.http = &http.Server{
		Handler: s.api,
		// A client that dribbles its headers or body holds a connection no longer than this.
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
}

// address is where the server is reached.
func (s *server) address() string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	return "http://" + s.listener.Addr().String()
}

// greet tells a newcomer what to do next. The token of a first start is shown here and nowhere else.
func (s *server) greet(c console, token string) {
	c.printf("Parley %s is ready at %s\n", version, s.address())
	c.printf("  API reference  %s/docs\n", s.address())
	c.printf("  SIP            %s\n", s.exchange.agent.Addr("udp"))
	another := os.Args[0] + " token create --user " + store.FirstUser.Email + " --name NAME"
	if token != "" {
		c.printf("  Token          %s\n", token)
		c.printf("The token is shown only now; keep it. Make another with: %s\n", another)
	} else {
		c.printf("  Token          as the first start showed it; make another with: %s\n", another)
	}
	c.printf("Stop with Ctrl-C.\n")
}

// stop takes no more calls and lets those that are up end, which can be followed and
// hurried by the API meanwhile; then it refuses new requests and finishes the running
// ones, then the jobs that follow the calls, and closes the database.
func (s *server) stop() error {
	s.log.Info("stopping", "calls", s.exchange.board.Live())
	s.asking()
	s.asked.Wait()
	s.dialer.Stop()
	draining, stopDraining := context.WithTimeout(context.Background(), time.Duration(s.config.DrainSec)*time.Second)
	defer stopDraining()
	if err := s.queue.Retire(draining); err != nil {
		s.log.Warn("campaigns could not be told that this node stops", "error", err)
	}
	s.exchange.drain(draining)
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	s.api.Stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests did not finish in time: %w", err), s.http.Close())
	}
	jobsCtx, stopJobs := context.WithTimeout(context.Background(), s.patience())
	defer stopJobs()
	err = errors.Join(err, s.finishCalls(jobsCtx), s.queue.Stop(jobsCtx), s.exchange.close(), s.providers.Close())
	return errors.Join(err, s.db.Close())
}

func (s *server) patience() time.Duration {
	return time.Duration(s.config.StopTimeoutSec) * time.Second
}

// finishCalls waits until the calls that have ended here are completed, here or elsewhere.
// What does not get done is done by another node or the next start.
func (s *server) finishCalls(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := s.db.System().UnfinishedCalls(ctx, s.queue.Node())
		if err != nil && ctx.Err() == nil {
			return err
		}
		if left == 0 || ctx.Err() != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
