package converse

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

func TestATapeHoldsWhatIsYetToBeTaken(t *testing.T) {
	t.Parallel()
	var tp tape
	tp.add([]int16{1, 2, 3})
	tp.add(nil)
	tp.add([]int16{4, 5})
	again := tp.copy()
	require.Equal(t, []int16{1, 2, 3, 4, 5}, tp.all())
	out := make([]int16, 4)
	require.Equal(t, 4, tp.take(out))
	require.Equal(t, []int16{1, 2, 3, 4}, out)
	require.Len(t, tp.pieces, 1, "what was taken is let go")
	require.Equal(t, 1, tp.left())
	tp.add([]int16{6})
	require.Equal(t, 2, tp.take(out))
	require.Equal(t, []int16{5, 6}, out[:2])
	require.Zero(t, tp.take(out))
	require.Equal(t, 4, again.take(out), "a copy is taken by itself")
	require.Equal(t, []int16{1, 2, 3, 4}, out)
	again.erase()
	require.Zero(t, again.take(out))
	require.Equal(t, 1, again.left(), "what was cut off was not heard")
}

// A stream remembers four seconds of words and half a second of silence, and of both
// always the end.
func TestAStreamRemembersWords(t *testing.T) {
	t.Parallel()
	var s stream
	frame, n := make([]int16, audio.Rate8k.FrameSamples()), int16(0)
	listen := func(frames int, words bool) {
		for range frames {
			n++
			frame[0] = n
			s.remember(frame, audio.Rate8k, words)
			require.Equal(t, n, s.kept[len(s.kept)-len(frame)], "the end is kept")
		}
	}
	listen(1000, false)
	require.GreaterOrEqual(t, len(s.kept), audio.Rate8k.Samples(breath))
	require.LessOrEqual(t, cap(s.kept), audio.Rate8k.Samples(4*breath))
	listen(190, true)
	require.GreaterOrEqual(t, len(s.kept), 190*len(frame), "nothing of the words is forgotten")
	listen(1000, true)
	require.GreaterOrEqual(t, len(s.kept), audio.Rate8k.Samples(remembered))
	require.LessOrEqual(t, len(s.kept), audio.Rate8k.Samples(remembered+breath))
	listen(2, false)
	require.LessOrEqual(t, cap(s.kept), audio.Rate8k.Samples(4*breath), "the memory is given back")
	require.Equal(t, 2192*len(frame), s.total)
	require.Zero(t, len(s.kept)%len(frame))
}
