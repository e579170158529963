package siptest

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Sipp is a running sipp.
type Sipp struct {
	Port     int // where it is reached
	t        testing.TB
	scenario string
	folder   string
	out      bytes.Buffer
	ended    chan error
}

// StartSipp starts Debian's sipp with a scenario file. It ends by itself within two
// minutes, and with the test.
func StartSipp(t testing.TB, scenario string, arguments ...string) *Sipp {
	t.Helper()
	path, err := filepath.Abs(scenario)
	require.NoError(t, err)
	s := &Sipp{Port: Ports(t), t: t, scenario: filepath.Base(scenario), folder: t.TempDir(), ended: make(chan error, 1)}
	common := []string{"-sf", path, "-i", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-mp", strconv.Itoa(s.Port + 2), "-nostdin",
		"-timeout", "110s", "-timeout_error", "-trace_err", "-error_file", "errors", "-trace_rtt", "-rtt_freq", "1"}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, program(t, "sipp", "sip-tester"), append(common, arguments...)...)
	command.Dir, command.Stdout, command.Stderr = s.folder, &s.out, &s.out
	require.NoError(t, command.Start())
	go func() { s.ended <- command.Wait() }()
	return s
}

// Address is where it is reached.
func (s *Sipp) Address() string { return "127.0.0.1:" + strconv.Itoa(s.Port) }

// Wait waits for its end. It is an error when a call of its failed or a message was not
// the one that the scenario expects.
func (s *Sipp) Wait() error {
	err := <-s.ended
	if err == nil {
		return nil
	}
	errors, _ := os.ReadFile(filepath.Join(s.folder, "errors"))
	out := s.out.Bytes()
	return fmt.Errorf("sipp %s: %w\n%s\n%s", s.scenario, err, errors, out[max(0, len(out)-3000):])
}

// AnswerTimes are the times from INVITE to 200 that sipp measured, in rising order.
func (s *Sipp) AnswerTimes() (times []time.Duration) {
	s.t.Helper()
	tables, err := filepath.Glob(filepath.Join(s.folder, "*rtt.csv"))
	require.NoError(s.t, err)
	for _, name := range tables {
		raw, err := os.ReadFile(name)
		require.NoError(s.t, err)
		rows := csv.NewReader(bytes.NewReader(raw))
		rows.Comma, rows.FieldsPerRecord = ';', -1
		table, err := rows.ReadAll()
		require.NoError(s.t, err)
		for _, row := range table {
			if len(row) < 2 {
				continue
			}
			if ms, err := strconv.ParseFloat(strings.TrimSpace(row[1]), 64); err == nil {
				times = append(times, time.Duration(ms*float64(time.Millisecond)))
			}
		}
	}
	slices.Sort(times)
	return times
}
