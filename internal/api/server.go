// Package api is HTTP in: routes, authentication, limits, and the interface's exact
// JSON shapes and messages. It holds a user's requests against the domain's tables
// and writes rows through a store.Tenant; it must not know calls in progress,
// telephony or providers.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/jobs"
	"parley/internal/store"
)

// Config is what an operator can set about the API.
type Config struct {
	PublicURL      string         // the address users reach the server by; empty: as the request says
	RatePerToken   int            // requests a second; 0: no limit
	RatePerAddress int            // requests a second; 0: no limit
	TrustedProxies []netip.Prefix // whose X-Forwarded headers are believed
	Version        string

	Queue      *jobs.Queue // where calls wait to be placed
	Calls      parley.CallCaps
	Policy     parley.NumberPolicy
	Carriers   parley.Carriers
	Recordings store.Recordings
	NewSecret  func() string // for webhooks

	// CanEquip says why an assistant could not hold a call with its voice and model; nil:
	// every one can.
	CanEquip func(*parley.Assistant, *parley.Voice, *parley.Model) error
	// CanDial says whether a campaign has a line to call from; nil: every one has.
	CanDial func(context.Context, *store.Tenant, *parley.Campaign, *parley.Assistant) (bool, error)
	// HangUp ends the running calls of a campaign, in the transaction that stops it.
	HangUp func(context.Context, *store.Tenant, parley.ID) error
	// Preview is what a campaign would do if it ran now.
	Preview func(ctx context.Context, user, campaign parley.ID) (parley.Forecast, error)
	// TryTool runs a tool once; it may take as long as the tool's timeout says.
	TryTool func(context.Context, parley.Tool, parley.ToolTrial) parley.Exchange
}

// Server answers the API, its reference page, and the operator's probes.
type Server struct {
	config  Config
	db      *store.DB
	log     *slog.Logger
	ready   []Check
	metrics *metrics
	tokens  *limiter
	callers *limiter
	mux     *http.ServeMux
	stop    chan struct{} // closed when the server stops: what streams ends
	stopped sync.Once
}

// Check is a part of the server that /readyz asks about.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// New makes a server. Its checks come after the one of the database itself.
func New(config Config, db *store.DB, log *slog.Logger, registry *prometheus.Registry, checks ...Check) *Server {
	s := &Server{
		config: config, db: db, log: log, metrics: newMetrics(registry),
		ready:   append([]Check{{Name: "database", Run: db.Ping}}, checks...),
		tokens:  newLimiter(config.RatePerToken, time.Now),
		callers: newLimiter(config.RatePerAddress, time.Now),
		mux:     http.NewServeMux(),
		stop:    make(chan struct{}),
	}
	s.mountRoutes(Routes())
	s.mountDocs()
	s.mountRecordings()
	s.mountProbes(registry)
	return s
}

// ServeHTTP answers a request. The mux would redirect paths like //x and /x/../y;
// here they are simply unknown.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != cleanPath(r.URL.Path) {
		s.unknownPath(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Stop ends the answers that go on for as long as something happens: without it the
// last listener would hold a stopping server up.
func (s *Server) Stop() { s.stopped.Do(func() { close(s.stop) }) }
