package media

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func number(ssrc uint32, sequence uint16) *packet { return &packet{ssrc: ssrc, sequence: sequence} }

func TestSequenceWrapsAndCountsLoss(t *testing.T) {
	t.Parallel()
	var s sequence
	lost := 0
	for i := range 200000 {
		if i%100 == 50 {
			lost++
			continue
		}
		want := fresh
		if i == 0 {
			want = restarted
		}
		require.Equal(t, want, s.accept(number(1, uint16(65000+i))))
	}
	require.EqualValues(t, lost, s.lost())
	require.EqualValues(t, 65000+199999, s.highest)
	require.EqualValues(t, 2, s.fraction(), "one in a hundred is 2/256")
	require.Zero(t, s.fraction(), "nothing is reported twice")
}

func TestSequenceRepeatsAndOldOnes(t *testing.T) {
	t.Parallel()
	var s sequence
	s.accept(number(1, 65535))
	require.Equal(t, fresh, s.accept(number(1, 1)))
	require.Equal(t, fresh, s.accept(number(1, 0)), "overtaken")
	require.Equal(t, repeated, s.accept(number(1, 0)))
	require.Equal(t, repeated, s.accept(number(1, 65535)))
	require.Equal(t, fresh, s.accept(number(1, 80)))
	require.Equal(t, stale, s.accept(number(1, 2)))
	require.EqualValues(t, 82-4, s.lost())
}

func TestSequenceOfAnotherStreamNeedsTwo(t *testing.T) {
	t.Parallel()
	var s sequence
	s.accept(number(1, 100))
	require.Equal(t, unproven, s.accept(number(2, 7)))
	require.Equal(t, fresh, s.accept(number(1, 101)), "a stray changes nothing")
	require.Equal(t, unproven, s.accept(number(2, 8)), "one between breaks the trial")
	require.Equal(t, restarted, s.accept(number(2, 9)))
	require.Equal(t, unproven, s.accept(number(2, 30000)), "a leap is another stream too")
	require.Equal(t, restarted, s.accept(number(2, 30001)))
	require.Zero(t, s.lost())
}

// TestJitterIsThatOfTheRFC: packets that are late by 0 and 10 ms in turn have a
// mean deviation of 10 ms (RFC 3550 A.8).
func TestJitterIsThatOfTheRFC(t *testing.T) {
	t.Parallel()
	var s sequence
	for i := range 500 {
		at := time.Duration(i) * 20 * time.Millisecond
		s.time(at+time.Duration(i%2)*10*time.Millisecond, uint32(ticks(at))-20000)
	}
	require.InDelta(t, 80, s.jitter, 1)
}
