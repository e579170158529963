package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/internal/promise"
)

// tinyBench is the whole bench in about a second.
var tinyBench = []string{"bench", "api", "--duration", "20ms", "--rounds", "1", "--clients", "2", "--rows", "200"}

func TestBenchShowsEveryOperation(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PARLEY_BENCH_POSTGRES", "")
	var out, errOut bytes.Buffer
	if code := run(t.Context(), tinyBench, &out, &errOut); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	for _, operation := range []string{opCreateTool, opGetTool, opListAssistants, opUpdateAssistant} {
		if !hasRow(out.String(), operation, "SQLite") {
			t.Errorf("no row for %s in\n%s", operation, &out)
		}
	}
	for _, want := range []string{"RATIO", "PARLEY P99", "BARE P99", "100 ROWS REQ/S", "200 ROWS REQ/S", "CREATE TOOL P99", "LIST CALLS P99", "MAKE CALL P99", "PostgreSQL was not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "NaN") {
		t.Errorf("something was not measured:\n%s", &out)
	}
	if !strings.Contains(errOut.String(), "making 200 of 200 assistants") {
		t.Errorf("no progress in %q", &errOut)
	}
	leftNothing(t, temporary)
}

// hasRow says whether a line begins with these columns.
func hasRow(table string, columns ...string) bool {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(strings.Join(strings.Fields(line), " "), strings.Join(columns, " ")+" ") {
			return true
		}
	}
	return false
}

func leftNothing(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// cancelOn cancels once a text was written.
type cancelOn struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelOn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.text)) {
		c.cancel()
	}
	return len(b), nil
}

func TestBenchCancelledCleansUp(t *testing.T) {
	for _, at := range []string{"starting", "get tool", "making 200"} {
		t.Run(at, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			t.Setenv("PARLEY_BENCH_POSTGRES", "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if code := run(ctx, tinyBench, io.Discard, cancelOn{at, cancel}); code != 1 {
				t.Errorf("exit code %d", code)
			}
			leftNothing(t, temporary)
		})
	}
}

func TestBenchRefusesOtherMachines(t *testing.T) {
	for _, address := range []string{"postgres://db.example.com/parley", "host=127.0.0.1", "mysql://127.0.0.1/x"} {
		if err := (&benchAPICmd{Clients: 1, Rounds: 1, Duration: time.Second, Rows: shortList, Postgres: address}).Validate(); err == nil {
			t.Errorf("%s was accepted", address)
		}
	}
}

// TestBenchBareAnswersAlike keeps the comparison fair: what the bare handler
// answers is what Parley answers, as far as it answers it.
func TestBenchBareAnswersAlike(t *testing.T) {
	t.Parallel()
	s, err := openSite(t.Context(), benchDatabase{name: "SQLite"}, shortList, progress{io.Discard, ""})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	type tool struct {
		ID                                  int64
		Name, Description, Endpoint, Method string
		Headers, Schema                     any
	}
	type answer struct {
		tool
		Data  json.RawMessage
		Total int
	}
	type row struct {
		ID, UserID int64
		Name, UUID string
		Tools      []struct{ Data tool }
	}
	for _, op := range s.operations(1) {
		if op.name == opCreateTool {
			continue // its id differs
		}
		var ours, bare answer
		get(t, s.parley(), op, &ours)
		get(t, s.bare.address(), op, &bare)
		if op.name == opListAssistants {
			var oursRows, bareRows []row
			decode(t, ours.Data, &oursRows)
			decode(t, bare.Data, &bareRows)
			same(t, op.name, oursRows, bareRows)
			ours.Data, bare.Data = nil, nil
		}
		same(t, op.name, ours, bare)
	}
}

func get(t *testing.T, address string, op operation, to any) {
	t.Helper()
	client, err := dialBench(t.Context(), target{address, op}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.conn.Close()
	if _, err := client.conn.Write(client.request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(client.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != op.status {
		t.Fatalf("%s: %s %s %v", op.name, response.Status, raw, err)
	}
	decode(t, raw, to)
}

func decode(t *testing.T, raw []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, ours, bare any) {
	t.Helper()
	a, aErr := json.Marshal(ours)
	b, bErr := json.Marshal(bare)
	if aErr != nil || bErr != nil || !bytes.Equal(a, b) {
		t.Errorf("%s: Parley answers\n%s\nthe bare handler\n%s %v %v", what, a, b, aErr, bErr)
	}
}

// With 100,000 assistants and calls, at 50 requests a second.
func TestPromiseA7QuickOnSmallBoxes(t *testing.T) {
	if !promise.Full() {
		t.Skip("measures for a minute; make promises runs it")
	}
	s, err := openSite(t.Context(), benchDatabase{name: "SQLite"}, 100_000, progress{io.Discard, ""})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	load := benchLoad{clients: 8, rounds: 5, round: 2 * time.Second, progress: progress{io.Discard, ""}}
	for _, promised := range []struct {
		operation string
		limit     time.Duration
	}{
		{opListAssistants, 50 * time.Millisecond}, {opListCalls, 50 * time.Millisecond}, {opCreateTool, 20 * time.Millisecond}, {opMakeCall, 20 * time.Millisecond},
	} {
		p99, err := load.steady(t.Context(), promised.operation, target{s.parley(), s.operation(promised.operation, load.clients)})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: p99 %s", promised.operation, p99)
		if p99 > promised.limit {
			t.Errorf("%s: p99 %s is more than %s", promised.operation, p99, promised.limit)
		}
	}
}

// The whole bench of campaigns in a moment: every figure is there, and nothing stays.
func TestBenchCampaign(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PARLEY_BENCH_POSTGRES", "")
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"bench", "campaign", "--short", "1000", "--rows", "2000", "--ticks", "3"}, &out, &errOut); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	if !regexp.MustCompile(`SQLite +\d+ +\S+ +\d+\.\d\d ms +\d+\.\d\d ms +\d+\.\d\d +\d+`).MatchString(out.String()) {
		t.Errorf("no figures in\n%s", &out)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("the bench left %v, %v", left, err)
	}
}
