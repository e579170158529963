package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The whole bench with two calls, in a process of its own, for it takes the cores.
func TestBenchCalls(t *testing.T) {
	t.Parallel()
	temporary, profile := t.TempDir(), filepath.Join(t.TempDir(), "calls.prof")
	out := succeeds(t, []string{"TMPDIR=" + temporary}, "bench", "calls", "--steps", "2", "--window", "6s", "--profile", profile)
	figures := ` +2(?: \(too many\))? +\d+ % +\d+\.\d us +-?\d+ KB +\d+\.\d+ ms +\d+\.\d+ ms +\d+\.\d+ ms +\d+\.\d{3} % +\d+\.\d{3} % +`
	require.Regexp(t, `(?m)^media only`+figures+`-$`, out)
	// On a starved machine nobody may have been understood.
	require.Regexp(t, `(?m)^whole conversations`+figures+`(<= \S+ ms of [1-9]\d*|> 1 s|-)$`, out)
	require.Contains(t, out, "2 calls, measuring")
	for _, name := range []string{profile, profile + ".mem"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
	leftNothing(t, temporary)
}

func TestBenchCallsIsBounded(t *testing.T) {
	t.Parallel()
	for _, b := range []benchCallsCmd{
		{}, {Steps: []int{1}, Cores: 1}, {Steps: []int{2, 1}, Cores: 1, Window: 1e9}, {Steps: []int{5001}, Cores: 1, Window: 1e9}, {Steps: []int{1}, Cores: 1000, Window: 1e9},
	} {
		require.Error(t, b.Validate())
	}
	require.NoError(t, (&benchCallsCmd{Steps: []int{1, 2}, Cores: 1, Window: 1e9}).Validate())
}
