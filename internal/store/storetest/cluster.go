package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the cluster's own statements
	"github.com/stretchr/testify/require"

	"parley/internal/store"
)

// cluster is a PostgreSQL server of this test binary's own, reached through a
// socket in its folder, so that it takes no port.
type cluster struct {
	mu      sync.Mutex
	dir     string
	process *os.Process
	exited  chan struct{}
}

var (
	clusterOnce sync.Once
	running     *cluster
	errCluster  error
)

// startedCluster is the binary's cluster. Where PostgreSQL is not installed the
// test is skipped, loudly; with CI=true it fails.
func startedCluster(t testing.TB) *cluster {
	t.Helper()
	bin, found := postgresBin()
	if !found {
		if os.Getenv("CI") == "true" {
			t.Fatal("PostgreSQL is not installed: its tests cannot run")
		}
		t.Skip("SKIPPED: PostgreSQL IS NOT INSTALLED, half of the storage tests did not run (apt-get install postgresql)")
	}
	clusterOnce.Do(func() { running, errCluster = startCluster(bin) })
	require.NoError(t, errCluster)
	return running
}

func postgresBin() (dir string, found bool) {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(installed) > 0 {
		return filepath.Dir(installed[len(installed)-1]), true
	}
	path, err := exec.LookPath("postgres")
	return filepath.Dir(path), err == nil
}

func startCluster(bin string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "parley-pg-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, exited: make(chan struct{})}
	attributes, err := c.owner()
	if err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8")
	initdb.SysProcAttr, initdb.Dir = attributes, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := c.start(filepath.Join(bin, "postgres"), attributes); err != nil {
		return nil, err
	}
	return c, c.makeTemplate()
}

// owner is who runs the server: PostgreSQL refuses to run as root.
func (c *cluster) owner() (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return attributes, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, os.Chown(c.dir, uid, gid)
}

// start runs the server until it answers. It is started and awaited by one locked
// thread: the kernel kills it when that thread dies, so that it never outlives the test.
func (c *cluster) start(postgres string, attributes *syscall.SysProcAttr) error {
	var output bytes.Buffer
	command := exec.Command(postgres, "-D", filepath.Join(c.dir, "data"), "-k", c.dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=400", "-c", "shared_buffers=64MB")
	command.SysProcAttr, command.Dir, command.Stdout, command.Stderr = attributes, c.dir, &output, &output
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return err
	}
	c.process = command.Process
	return c.awaitReady(&output)
}

func (c *cluster) awaitReady(output *bytes.Buffer) error {
	socket := filepath.Join(c.dir, ".s.PGSQL.5432")
	for range 600 {
		if _, err := os.Stat(socket); err == nil && c.answers() {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("postgres did not start:\n%s", output)
		case <-time.After(50 * time.Millisecond): // another process's readiness can only be polled
		}
	}
	return fmt.Errorf("postgres did not answer")
}

func (c *cluster) answers() bool { return c.exec("SELECT 1") == nil }

// exec runs a statement of the cluster's own; one at a time, since a template can
// be copied by one at a time.
func (c *cluster) exec(statement string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	admin, err := sql.Open("pgx", c.url("postgres"))
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = admin.ExecContext(context.Background(), statement)
	return err
}

func (c *cluster) url(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s", database, c.dir)
}

func (c *cluster) makeTemplate() error {
	if err := c.exec("CREATE DATABASE " + postgresTemplate); err != nil {
		return err
	}
	return prepare(store.Options{URL: c.url(postgresTemplate)})
}

// stopCluster ends the server and removes its folder.
func stopCluster() {
	if running == nil {
		return
	}
	_ = running.process.Signal(syscall.SIGQUIT) // at once: nothing in it is worth keeping
	<-running.exited
	_ = os.RemoveAll(running.dir)
}
