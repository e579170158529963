package jobs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/jobs"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestMain also is the main of the processes that tests start and kill.
func TestMain(m *testing.M) {
	if does := os.Getenv("PARLEY_TEST_PROCESS"); does != "" {
		if err := processes[does](); err != nil {
			fmt.Fprintln(os.Stderr, does, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	storetest.Main(m)
}

var processes = map[string]func() error{"write": write, "work": work, "hold": hold}

// openAsProcess opens the database that the test handed to its process.
func openAsProcess() (*store.DB, error) {
	return store.Open(context.Background(), store.Options{URL: os.Getenv("PARLEY_TEST_URL"), Dir: os.Getenv("PARLEY_TEST_DIR")})
}

// open makes a queue: with the real pace when the promises are held in full.
func open(db *store.DB, w jobs.Work) (*jobs.Queue, error) {
	if promise.Full() {
		return jobs.New(db, quiet, w)
	}
	return jobs.Quick(db, quiet, w)
}

// write makes calls with their jobs and says so of each that was committed.
func write() error {
	db, err := openAsProcess()
	if err != nil {
		return err
	}
	q, err := open(db, jobs.Work{})
	if err != nil {
		return err
	}
	user, err := db.System().UserByEmail(context.Background(), owner)
	if err != nil {
		return err
	}
	for {
		id, err := makeCall(context.Background(), db, q, user.ID)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
}

const owner = "owner@example.com"

// makeCall makes a call and its dial job in one transaction, as the API does.
func makeCall(ctx context.Context, db *store.DB, q *jobs.Queue, user parley.ID) (parley.ID, error) {
	call := &parley.Call{AssistantID: 1, AssistantName: "Front desk", Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: "+12025550100", Carrier: parley.CarrierSimulated, Variables: parley.Object{}}
	return call.ID, db.Tenant(user).Tx(ctx, func(t *store.Tenant) error {
		if err := t.CreateCall(ctx, call, ""); err != nil {
			return err
		}
		return q.Dial(ctx, t.System(), call.ID)
	})
}

// work runs the jobs after conversations; each has an effect that must come once.
func work() error {
	db, err := openAsProcess()
	if err != nil {
		return err
	}
	q, err := open(db, jobs.Work{Finish: func(ctx context.Context, id parley.ID) error {
		if _, err := db.SQL().ExecContext(ctx, fmt.Sprintf("INSERT INTO executions (call_id) VALUES (%d)", id)); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond) // a model is asked
		return complete(ctx, db, id)
	}})
	if err != nil {
		return err
	}
	if err := q.Start(context.Background()); err != nil {
		return err
	}
	fmt.Println("working")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends, or sooner
	return q.Stop(context.Background())
}

// complete gives a call its final status and counts it in its account's day, once.
func complete(ctx context.Context, db *store.DB, id parley.ID) error {
	return db.System().Tx(ctx, func(s *store.System) error {
		call, err := s.Call(ctx, id)
		if err != nil {
			return err
		}
		first, err := s.CompleteCall(ctx, call)
		if err != nil || !first {
			return err
		}
		return s.AddUsage(ctx, call, 1, 1)
	})
}

// hold takes a job and never ends it.
func hold() error {
	db, err := openAsProcess()
	if err != nil {
		return err
	}
	q, err := open(db, jobs.Work{Dial: func(context.Context, parley.ID) error {
		fmt.Println("held")
		select {}
	}})
	if err != nil {
		return err
	}
	if err := q.Start(context.Background()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// process is one that a test started.
type process struct {
	t       *testing.T
	command *exec.Cmd
	said    *bufio.Scanner
	killed  sync.Once
}

// starts runs this test binary as another process on the same database.
func starts(t *testing.T, db *store.DB, does string) *process {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "PARLEY_TEST_PROCESS="+does, "PARLEY_TEST_URL="+db.Options().URL, "PARLEY_TEST_DIR="+db.Options().Dir)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	_, err = command.StdinPipe() // it ends with the test
	require.NoError(t, err)
	require.NoError(t, command.Start())
	p := &process{t: t, command: command, said: bufio.NewScanner(out)}
	t.Cleanup(func() { p.kill(); _ = command.Wait() })
	return p
}

// kill is kill -9.
func (p *process) kill() { p.killed.Do(func() { _ = p.command.Process.Kill() }) }

// killSoon is kill after a moment.
func (p *process) killSoon(after time.Duration) { time.AfterFunc(after, p.kill) }

// hears waits for a line.
func (p *process) hears(line string) {
	p.t.Helper()
	require.True(p.t, p.said.Scan(), "the process ended")
	require.Equal(p.t, line, p.said.Text())
}

// ids are the ids that the process says until it is killed.
func (p *process) ids(each func(n int)) (ids []parley.ID) {
	p.t.Helper()
	for p.said.Scan() {
		id, err := strconv.ParseInt(p.said.Text(), 10, 64)
		require.NoError(p.t, err)
		ids = append(ids, id)
		each(len(ids))
	}
	_ = p.command.Wait()
	require.Equal(p.t, -1, p.command.ProcessState.ExitCode(), "the process ended by itself")
	return ids
}

// furnish gives a database a user with an assistant.
func furnish(t *testing.T, db *store.DB) *parley.User {
	t.Helper()
	user, _ := storetest.User(t, db, owner)
	require.NoError(t, db.Tenant(user.ID).CreateAssistant(t.Context(), storetest.Assistant("Front desk")))
	return user
}
