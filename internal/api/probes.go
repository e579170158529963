package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts requests by route pattern, never by path: a path holds ids.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_http_requests_total", Help: "Requests answered."}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_http_request_seconds", Help: "Time to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"route"}),
	}
	registry.MustRegister(m.requests, m.seconds)
	return m
}

func (m *metrics) request(method, route string, status int, took time.Duration) {
	if !knownMethods[method] {
		method = "other" // a label must not be a stranger's to choose
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

var knownMethods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

func (s *Server) mountProbes(registry *prometheus.Registry) {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		newAnswerWriter(w, r).json(http.StatusOK, []byte(`{"status":"ok"}`))
	})
	s.mux.HandleFunc("GET /readyz", s.readyz)
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}

// readyTimeout is shorter than any prober's patience.
const readyTimeout = 2 * time.Second

// readyz says which part is not ready, in words that hold no detail of the inside.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	status, overall := http.StatusOK, "ok"
	parts := map[string]string{}
	for _, check := range s.ready {
		parts[check.Name] = "ok"
		if err := check.Run(ctx); err != nil {
			s.log.Warn("not ready", "part", check.Name, "error", err)
			status, overall, parts[check.Name] = http.StatusServiceUnavailable, "unavailable", "unavailable"
		}
	}
	newAnswerWriter(w, r).json(status, encode(map[string]any{"status": overall, "checks": parts}))
}
