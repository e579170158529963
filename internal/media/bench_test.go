package media

import (
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

func testKeys() (a, b *Key) {
	return &Key{Suite: AESCM128HMACSHA1_80, Key: [16]byte{1}}, &Key{Suite: AESCM128HMACSHA1_80, Key: [16]byte{2}}
}

// loop is a call whose packets come back to it: everything but the system's part.
type loop struct {
	in     *inbound
	out    *outbound
	remote netip.AddrPort
	frame  []int16
	digits []byte
	n      int64
}

func newLoop(t testing.TB, params Params) *loop {
	t.Helper()
	params.Remote = address("192.0.2.1:4000")
	rate := params.Codec.Rate()
	l := &loop{in: newInbound(rate, time.Minute), out: newOutbound(rate), remote: params.Remote, frame: make([]int16, rate.FrameSamples())}
	require.NoError(t, l.in.configure(0, params))
	require.NoError(t, l.out.configure(params))
	audio.NewSine(rate, 440, -12).Fill(l.frame)
	return l
}

func (l *loop) step() {
	now := time.Duration(l.n) * audio.FrameDuration
	l.out.push(l.frame)
	l.in.receive(now, l.remote, l.out.next(now, l.n))
	l.digits, _ = l.in.hear(now, l.frame, l.digits[:0])
	l.n++
}

func pathParams() map[string]Params {
	key, _ := testKeys()
	return map[string]Params{
		"PCMU":      {Codec: PCMU},
		"PCMA":      {Codec: PCMA},
		"G722":      {Codec: G722},
		"PCMU SRTP": {Codec: PCMU, SendKey: key, ReceiveKey: key},
	}
}

func TestPacketsAllocateNothing(t *testing.T) {
	for name, params := range pathParams() {
		if raceDetector && params.SendKey != nil {
			continue
		}
		l := newLoop(t, params)
		for range 300 {
			l.step()
		}
		require.Zero(t, testing.AllocsPerRun(1000, l.step), name)
	}
}

func TestSessionsAllocateNothing(t *testing.T) {
	ea, eb := testEngine(t, Config{}), testEngine(t, Config{})
	a, b := open(t, ea, loopback()), open(t, eb, loopback())
	frame := make([]int16, frameTicks)
	require.NoError(t, b.Start(Params{Codec: PCMU, Remote: a.Local()}, Callbacks{Frame: func([]int16) { b.Send(frame) }}))
	require.NoError(t, a.Start(Params{Codec: PCMU, Remote: b.Local()}, Callbacks{Frame: func([]int16) { a.Send(frame) }}))
	eventually(t, "sound", func() bool { return a.Stats().Received > 10 })
	ea.pacer.remove(a.slot, a) // the test is the pacer now
	now := ea.clock.now()
	a.reports.due = now + time.Hour
	n := int64(now / audio.FrameDuration)
	allocs := testing.AllocsPerRun(500, func() {
		n++
		now += audio.FrameDuration
		a.hear(now)
		a.send(now, n)
	})
	require.Zero(t, allocs)
}

// BenchmarkFrame is the whole media path of one call and 20 ms without the
// system's part: encode, packet, cipher, latch, sequence, jitter buffer, decode.
func BenchmarkFrame(b *testing.B) {
	for name, params := range pathParams() {
		b.Run(name, func(b *testing.B) {
			l := newLoop(b, params)
			b.ReportAllocs()
			for b.Loop() {
				l.step()
			}
		})
	}
}

// BenchmarkCalls measures what calls on real sockets cost. Each sends over loopback to
// itself, so that one process sends and receives 50 packets a second for each call,
// as it would with peers elsewhere. Run it with -cpu 1 to see one core.
func BenchmarkCalls(b *testing.B) {
	for _, calls := range []int{100, 500, 1000} {
		b.Run(fmt.Sprint(calls), func(b *testing.B) {
			e := testEngine(b, Config{PortMin: 10000, PortMax: 60000})
			before := memory()
			for range calls {
				echoCall(b, e)
			}
			<-time.After(time.Second) // jitter buffers settle
			held := float64(memory()-before) / float64(calls) / 1024
			e.pacer.lateness.forget()
			cpu, begin := cpuTime(b), time.Now()
			for b.Loop() {
				<-time.After(2 * time.Second)
			}
			used, took := cpuTime(b)-cpu, time.Since(begin)
			late := e.Lateness()
			b.ReportMetric(held, "KB/call")
			b.ReportMetric(100*used.Seconds()/took.Seconds(), "%core")
			b.ReportMetric(float64(used.Microseconds())/took.Seconds()/50/float64(calls), "µs/frame")
			b.ReportMetric(float64(late.P99.Microseconds()), "µs-late-p99")
			b.ReportMetric(float64(late.Max.Microseconds()), "µs-late-max")
			var lost, concealed uint64
			for s := range e.sessions {
				lost += s.Stats().Lost
				concealed += s.Stats().Concealed
			}
			b.ReportMetric(float64(lost), "lost")
			b.ReportMetric(float64(concealed), "concealed")
		})
	}
}

func echoCall(b *testing.B, e *Engine) {
	b.Helper()
	s := open(b, e, loopback())
	frame := make([]int16, frameTicks)
	audio.NewSine(audio.Rate8k, 440, -12).Fill(frame)
	require.NoError(b, s.Start(Params{Codec: PCMU, Remote: s.Local()}, Callbacks{Frame: func([]int16) { s.Send(frame) }}))
}

// forget begins anew, so that the making of a thousand calls is not counted.
func (l *lateness) forget() {
	for i := range l.counts {
		l.counts[i].Store(0)
	}
	l.max.Store(0)
}

// memory is what the process holds in heap and stacks.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
