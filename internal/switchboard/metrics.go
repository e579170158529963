package switchboard

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip"
)

// metrics are what an operator sees of a node's calls. No label holds anything of a
// person, an account or a call.
type metrics struct {
	calls    *prometheus.CounterVec
	rtp      *prometheus.CounterVec
	greeting prometheus.Histogram
	answer   prometheus.Histogram
	overhead prometheus.Histogram
}

// OverheadMetric is the histogram of what Parley adds to its providers' time.
const OverheadMetric = "parley_turn_overhead_seconds"

// The fates of RTP packets.
const (
	packetsSent       = "sent"
	packetsReceived   = "received"
	packetsLost       = "lost"
	packetsRemoteLost = "lost_by_peer"
	framesConcealed   = "concealed"
)

func newMetrics(b *Board) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_calls_total", Help: "Calls that reached their final status on this node."}, []string{"type", "status", "end_reason"}),
		rtp:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_rtp_packets_total", Help: "RTP packets of calls that have ended."}, []string{"fate"}),
	}
	brief := []float64{.001, .002, .003, .005, .007, .01, .015, .02, .03, .04, .05, .1, .5, 1}
	m.greeting = histogram("parley_greeting_seconds", "From the answer of a call to the assistant's first sound.", brief)
	m.overhead = histogram(OverheadMetric, "From the moment when a customer's turn was over and the answer's voice had begun to arrive, to the answer's first sound: what Parley adds to its providers' time.", brief)
	m.answer = histogram("parley_answer_seconds", "From the end of a customer's words to the answer's first sound.", []float64{.2, .3, .4, .5, .6, .8, 1, 1.5, 2, 3, 5, 10})
	if b.Metrics != nil {
		b.Metrics.MustRegister(m.calls, m.rtp, m.greeting, m.overhead, m.answer, &readings{b})
	}
	return m
}

func histogram(name, help string, bounds []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
}

// spoke measures a turn of the assistant's; first is that of a call's first turn.
func (m *metrics) spoke(t *converse.Turn, first bool) {
	switch l := t.Latency; {
	case t.Sender != converse.Bot:
	case l.FirstAudio > 0:
		m.answer.Observe(l.FirstAudio.Seconds())
		m.overhead.Observe(l.Overhead().Seconds())
	case first:
		m.greeting.Observe(t.Started.Seconds())
	}
}

// concluded counts a call by how it ended.
func (m *metrics) concluded(c *parley.Call) {
	reason := ""
	if c.EndReason != nil {
		reason = string(*c.EndReason)
	}
	m.calls.WithLabelValues(string(c.Type), string(c.Status), reason).Inc()
}

// carried counts what a line carried.
func (m *metrics) carried(s media.Stats) {
	m.rtp.WithLabelValues(packetsSent).Add(float64(s.Sent))
	m.rtp.WithLabelValues(packetsReceived).Add(float64(s.Received))
	m.rtp.WithLabelValues(packetsLost).Add(float64(s.Lost))
	m.rtp.WithLabelValues(packetsRemoteLost).Add(float64(max(0, s.RemoteLost)))
	m.rtp.WithLabelValues(framesConcealed).Add(float64(s.Concealed))
}

// readings are taken when they are asked for.
type readings struct{ board *Board }

var (
	activeCalls = prometheus.NewDesc("parley_calls_active", "Calls that this node holds.", nil, nil)
	mostCalls   = prometheus.NewDesc("parley_calls_max", "Calls that this node may hold.", nil, nil)
	draining    = prometheus.NewDesc("parley_draining", "1 while this node takes no more calls.", nil, nil)
	sessions    = prometheus.NewDesc("parley_rtp_sessions", "Media sessions that are open.", nil, nil)
	lateness    = prometheus.NewDesc("parley_rtp_lateness_seconds", "How long after its time an RTP packet was handed to the system.", nil, nil)
	sipEvents   = prometheus.NewDesc("parley_sip_events_total", "What the SIP agent has done.", []string{"event"}, nil)
)

// latenessBuckets are the bounds of the histogram.
var latenessBuckets = []time.Duration{500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}

// Describe names the readings.
func (r *readings) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{activeCalls, mostCalls, draining, sessions, lateness, sipEvents} {
		to <- d
	}
}

// Collect takes the readings.
func (r *readings) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	gauge(activeCalls, r.board.Live())
	gauge(mostCalls, r.board.MaxCalls)
	stopping := 0
	if r.board.Draining() {
		stopping = 1
	}
	gauge(draining, stopping)
	gauge(sessions, r.board.Telephone.Media.Sessions())
	late := r.board.Telephone.Media.Lateness()
	buckets := map[float64]uint64{}
	for _, bound := range latenessBuckets {
		buckets[bound.Seconds()] = late.Within(bound)
	}
	to <- prometheus.MustNewConstHistogram(lateness, late.Packets, late.Total.Seconds(), buckets)
	if r.board.Telephone.SIP != nil {
		sipReadings(r.board.Telephone.SIP.Counters(), to)
	}
}

func sipReadings(c sip.Counters, to chan<- prometheus.Metric) {
	for event, n := range map[string]int64{
		"request": c.Requests, "dropped": c.Dropped, "banned": c.Banned, "challenged": c.Challenged, "auth_failed": c.AuthFailed,
		"call_in": c.CallsIn, "call_out": c.CallsOut, "answered": c.Answered, "failed": c.Failed, "overloaded": c.Overloaded,
	} {
		to <- prometheus.MustNewConstMetric(sipEvents, prometheus.CounterValue, float64(n), event)
	}
}
