package media

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// metronome notes when it is called.
type metronome struct {
	heard, sent []time.Duration
	frames      []int64
}

func (m *metronome) hear(now time.Duration) { m.heard = append(m.heard, now) }
func (m *metronome) send(now time.Duration, frame int64) {
	m.sent, m.frames = append(m.sent, now), append(m.frames, frame)
}

func TestPacerCallsEverybodyEvery20ms(t *testing.T) {
	t.Parallel()
	p := newPacer(newClock())
	calls := make([]*metronome, 25)
	for i := range calls {
		calls[i] = &metronome{}
		require.Equal(t, i%slots, p.add(calls[i]), "calls are spread over the slots")
	}
	const rounds = 100
	for n := range int64(rounds*slots + 1) {
		p.step(n)
	}
	for i, c := range calls {
		require.GreaterOrEqual(t, len(c.heard), rounds)
		require.Len(t, c.sent, rounds)
		for k := range rounds {
			due := time.Duration(k)*audio.FrameDuration + time.Duration(i%slots)*slotDuration
			require.Equal(t, due, c.heard[k], "without drift")
			require.Equal(t, due+slotDuration, c.sent[k], "one slot after what was heard")
			require.EqualValues(t, k, c.frames[k])
		}
	}
	p.remove(3, calls[3])
	before := len(calls[3].heard)
	for n := range int64(slots) {
		p.step(n)
	}
	require.Len(t, calls[3].heard, before)
	require.Equal(t, 3, p.add(&metronome{}), "the place is free again")
}

func TestPacerLeavesOutWhatIsLongPast(t *testing.T) {
	t.Parallel()
	require.Zero(t, leftOut(-time.Millisecond))
	require.Zero(t, leftOut(pacerPatience))
	require.EqualValues(t, 50, leftOut(119*time.Millisecond))
	require.EqualValues(t, 50*slots, leftOut(time.Second))
}

func TestLatenessPercentiles(t *testing.T) {
	t.Parallel()
	var l lateness
	before := l.read()
	require.Zero(t, before.Packets)
	require.Zero(t, before.Max)
	for i := range 1000 {
		l.note(time.Duration(i) * 10 * time.Microsecond)
	}
	l.note(-time.Second)
	l.note(time.Second)
	got := l.read()
	require.EqualValues(t, 1002, got.Packets)
	require.InDelta(t, 5000, got.P50.Microseconds(), 50)
	require.InDelta(t, 9900, got.P99.Microseconds(), 50)
	require.Equal(t, time.Second, got.Max)
	require.EqualValues(t, 501, got.Within(5*time.Millisecond), "the one that was early too")
	l.note(20 * time.Millisecond)
	since := l.read().Since(got)
	require.EqualValues(t, 1, since.Packets)
	require.InDelta(t, 20_000, since.P50.Microseconds(), 50)
	require.Equal(t, 20*time.Millisecond, since.Total)
	require.EqualValues(t, 1003, l.read().Since(before).Packets)
}
