package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBenchWebhooks(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PARLEY_BENCH_POSTGRES", "")
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"bench", "webhooks", "--messages", "100", "--rounds", "1", "--receivers", "3", "--rate", "20"}, &out, &errOut)
	require.Zero(t, code, &errOut)
	require.True(t, hasRow(out.String(), "SQLite"), &out)
	for _, want := range []string{"RATIO", "LOST", "PICK-UP P99", "1 rounds of 100 messages for 3 receivers"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "NaN")
	require.Contains(t, errOut.String(), "picking up")
	leftNothing(t, temporary)
}

func TestBenchWebhooksIsBounded(t *testing.T) {
	t.Parallel()
	for _, b := range []benchWebhooksCmd{{}, {Messages: 1}, {Messages: 1, Rounds: 1, Receivers: 101, Rate: 1}, {Messages: 1, Rounds: 1, Receivers: 1, Rate: 1, Postgres: "postgres://db.example.com/parley"}} {
		require.Error(t, b.Validate())
	}
	require.NoError(t, (&benchWebhooksCmd{Messages: 1, Rounds: 1, Receivers: 1, Rate: 1}).Validate())
}

// A database that cannot be reached is an error, and nothing stays of what was begun.
func TestBenchWebhooksWithoutItsDatabase(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s, err := openHookSite(t.Context(), benchDatabase{"PostgreSQL", "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=5"}, 2, progress{io.Discard, ""})
	require.Error(t, err)
	require.Nil(t, s)
	leftNothing(t, temporary)
}
