package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPageNumbersLeaveGapsInLongLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		current, last int
		want          []int
	}{
		{1, 1, []int{1}},
		{3, 5, []int{1, 2, 3, 4, 5}},
		{13, 13, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
		{1, 14, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 13, 14}},
		{7, 30, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 29, 30}},
		{8, 30, []int{1, 2, 0, 5, 6, 7, 8, 9, 10, 11, 0, 29, 30}},
		{23, 30, []int{1, 2, 0, 20, 21, 22, 23, 24, 25, 26, 0, 29, 30}},
		{24, 30, []int{1, 2, 0, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}},
		{99, 30, []int{1, 2, 0, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}},
	} {
		require.Equal(t, c.want, pageNumbers(c.current, c.last), "page %d of %d", c.current, c.last)
	}
}
