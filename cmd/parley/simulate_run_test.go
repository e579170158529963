package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example is a fenced block of docs/simulate.md.
func example(t *testing.T, kind string) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/simulate.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindSubmatch(raw)
	require.NotNil(t, block, "docs/simulate.md has no block %q", kind)
	return string(block[1])
}

// written puts a scenario into a file.
func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// The documentation's example works to the letter, and the same call with other
// expectations fails with what was really said.
func TestScenariosOfTheDocumentation(t *testing.T) {
	t.Parallel()
	env := []string{"PARLEY_DATA=" + t.TempDir()}
	n := serves(t, env)
	require.Equal(t, 201, n.post("/api/user/tools", example(t, "json tool")))
	require.Equal(t, 201, n.post("/api/user/assistant", example(t, "json assistant")))
	n.stops()

	documented := written(t, "orders.yaml", example(t, "yaml scenario"))
	unmet := written(t, "unmet.yaml", `
name: expects too much
assistant: 1
callee: "06"
expect:
  turns: [{assistant: Goodbye forever}]
  tools: [{name: get_order_status}]
  end: {ended_by: assistant}
`)
	busy := written(t, "busy.yaml", `{assistant: 1, callee: "01", expect: {end: {status: busy, end_reason: busy}}}`)
	out, code := runs(t, env, "simulate", "run", documented, unmet, busy)
	for i := 0; i < 2 && strings.Contains(out, "✗ tells where an order is") && strings.Contains(out, "This machine was too busy"); i++ {
		out, code = runs(t, env, "simulate", "run", documented, unmet, busy)
	}
	t.Log(out)
	require.Equal(t, 1, code)
	require.Contains(t, out, "Running 3 scenarios, at most 4 at once.")
	require.Contains(t, out, "✓ tells where an order is (")
	require.Contains(t, out, `✓ tool get_order_status was called with order_number "4711" (get_order_status {"order_number":"4711"} -> {"status":"shipped"})`)
	require.Contains(t, out, "✗ expects too much (")
	require.Regexp(t, `✗ assistant said "Goodbye forever" \(what was said by then: "Hello`, out)
	require.Contains(t, out, "✗ tool get_order_status was called (no tool was called)")
	require.Contains(t, out, "✗ ended_by is assistant (customer)")
	require.Contains(t, out, "✓ busy (0.0 s)\n  ✓ status is busy (busy)\n")
	require.Contains(t, out, "2 of 3 scenarios went as expected.")
	require.Contains(t, out, "[3/3]")

	require.Contains(t, succeeds(t, env, "simulate", "run", busy), "1 of 1 scenarios went as expected.")
	for _, c := range []struct{ scenario, says string }{
		{"assistant: 1\ncallee: \"01\"\nexpct: {}\n", `bad.yaml:3: a scenario has no key "expct"; its keys are name, assistant,`},
		{"assistant: 77\ncallee: \"01\"\nexpect: {end: {status: busy}}\n", "bad: admin@localhost has no assistant 77; create one with POST"},
	} {
		out, code := runs(t, env, "simulate", "run", written(t, "bad.yaml", c.scenario))
		require.Equal(t, 1, code, out)
		require.Contains(t, out, c.says)
		require.NotContains(t, out, "Running")
	}
}
