package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/promise"
	"parley/internal/store/storetest"
)

// asParley makes this test binary the parley command: tests run the real thing in
// processes of its own, without building it again.
const asParley = "PARLEY_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asParley) == "1" {
		main()
		return
	}
	storetest.Main(m)
}

// command is a parley command with an environment of its own.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	process := exec.Command(os.Args[0], args...)
	process.Env = append([]string{asParley + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	return process
}

// runs a command to its end and returns what it wrote and its exit code.
func runs(t *testing.T, env []string, args ...string) (out string, code int) {
	t.Helper()
	raw, err := command(t, env, args...).CombinedOutput()
	if err == nil {
		return string(raw), 0
	}
	exit, ok := err.(*exec.ExitError)
	require.True(t, ok, err)
	return string(raw), exit.ExitCode()
}

// succeeds runs a command that must succeed.
func succeeds(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, code := runs(t, env, args...)
	require.Zero(t, code, out)
	return out
}

// node is a running server.
type node struct {
	t       *testing.T
	command *exec.Cmd
	url     string
	token   string
	greeted string
	log     *safeBuffer
	exited  chan error
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var readyLine = regexp.MustCompile(`is ready at (\S+)`)

var tokenLine = regexp.MustCompile(`(?m)^  Token +(\S+)$`) // of a first start

// serves starts a server and waits until it says that it is ready.
func serves(t *testing.T, env []string) *node {
	t.Helper()
	n := &node{t: t, command: command(t, append(env, "PARLEY_HTTP=127.0.0.1:0"), "serve"), log: &safeBuffer{}, exited: make(chan error, 1)}
	out, err := n.command.StdoutPipe()
	require.NoError(t, err)
	n.command.Stderr = n.log
	require.NoError(t, n.command.Start())
	t.Cleanup(func() { _ = n.command.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Stop with") {
		n.greeted += lines.Text() + "\n"
	}
	require.Contains(t, n.greeted, "is ready at http://", "the server did not start: %s", n.log)
	n.url = readyLine.FindStringSubmatch(n.greeted)[1]
	if found := tokenLine.FindStringSubmatch(n.greeted); found != nil {
		n.token = found[1]
	}
	go func() { n.exited <- n.command.Wait() }()
	require.Equal(t, 200, n.get("/readyz", ""))
	return n
}

func (n *node) get(path, token string) int {
	n.t.Helper()
	request, err := http.NewRequest("GET", n.url+path, nil)
	require.NoError(n.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(n.t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// stops ends the server as an init system would, and expects a clean exit.
func (n *node) stops() {
	n.t.Helper()
	require.NoError(n.t, n.command.Process.Signal(syscall.SIGTERM))
	require.NoError(n.t, <-n.exited, n.log)
}

// eachDatabase runs a test with an environment for an empty database of each kind.
func eachDatabase(t *testing.T, run func(t *testing.T, env []string)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		run(t, []string{"PARLEY_DATA=" + t.TempDir()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		run(t, []string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_DB=" + storetest.EmptyPostgres(t)})
	})
}

func TestFirstStartPrintsATokenOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		first := serves(t, env)
		require.Regexp(t, `^1\|[A-Za-z0-9]{43}$`, first.token)
		require.Equal(t, 200, first.get("/api/user/me", first.token))
		require.Equal(t, 200, first.get("/docs", ""))
		first.stops()

		second := serves(t, append(env, "PARLEY_TOKEN=ignored-ignored-ignored-ignored-"))
		require.Empty(t, second.token)
		require.Equal(t, 200, second.get("/api/user/me", first.token))
		require.Equal(t, 401, second.get("/api/user/me", "ignored-ignored-ignored-ignored-"))
		require.Contains(t, second.log.String(), "PARLEY_TOKEN is not a token of this database")
		second.stops()
	})
}

func TestPromiseS9EveryInstallationHasItsOwnToken(t *testing.T) {
	t.Parallel()
	one, other := serves(t, []string{"PARLEY_DATA=" + t.TempDir()}), serves(t, []string{"PARLEY_DATA=" + t.TempDir()})
	require.NotEqual(t, one.token, other.token)
	for _, guess := range []string{"", "1", "1|", "admin", "parley", other.token} {
		require.Equal(t, 401, one.get("/api/user/me", guess), guess)
	}
	chosen := serves(t, []string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_TOKEN=chosen"})
	require.Equal(t, 200, chosen.get("/api/user/me", "chosen"))
	require.Contains(t, chosen.log.String(), "PARLEY_TOKEN is short")
}

// A request that is under way when the server is told to stop is answered.
func TestStopFinishesRequests(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		n := serves(t, env)
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		const body = `{"name":"late","description":"d","endpoint":"https://x.example","method":"GET"}`
		_, err = fmt.Fprintf(conn, "POST /api/user/tools HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", n.token, len(body))
		require.NoError(t, err)
		reader := bufio.NewReader(conn)
		line, err := reader.ReadString('\n') // the server has begun to read the body
		require.NoError(t, err)
		require.Contains(t, line, "100 Continue")
		require.NoError(t, n.command.Process.Signal(syscall.SIGTERM))
		require.Eventually(t, func() bool { return strings.Contains(n.log.String(), "stopping") }, 10*time.Second, 10*time.Millisecond)
		_, err = io.WriteString(conn, body)
		require.NoError(t, err)
		_, err = reader.ReadString('\n')
		require.NoError(t, err)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		require.Equal(t, 201, response.StatusCode)
		require.NoError(t, <-n.exited, n.log)
	})
}

func TestPromiseQ8ProcessesMigrateAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		outputs := make([]string, 3)
		var wait sync.WaitGroup
		for i := range outputs {
			process := command(t, env, "migrate", "up")
			wait.Go(func() {
				out, err := process.CombinedOutput()
				outputs[i] = string(out)
				if err != nil {
					t.Errorf("migrate up: %v: %s", err, out)
				}
			})
		}
		wait.Wait()
		require.Equal(t, 1, strings.Count(strings.Join(outputs, ""), "applied 0001_foundation.sql"), outputs)
		require.Contains(t, succeeds(t, env, "migrate", "status"), "applied")
	})
}

// The operator's commands work beside a running server, and it follows at once.
func TestCommandsBesideARunningServer(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		n := serves(t, env)
		require.Contains(t, succeeds(t, env, "user", "create", "--email", "Ops@Example.com", "--plan", "pro"), "ops@example.com, on the plan pro")
		require.Contains(t, succeeds(t, env, "user", "list"), "admin@localhost")
		out := succeeds(t, env, "token", "create", "--user", "ops@example.com", "--name", "CRM")
		token := regexp.MustCompile(`(?m)^(\d+)\|\S+$`).FindStringSubmatch(out)
		require.NotNil(t, token, out)
		require.Equal(t, 200, n.get("/api/user/me", token[0]))
		require.Contains(t, succeeds(t, env, "token", "list"), "CRM")
		require.NotContains(t, succeeds(t, env, "token", "list"), token[0])
		require.Contains(t, succeeds(t, env, "user", "plan", "--email", "ops@example.com", "--plan", "unlimited"), "unlimited")
		succeeds(t, env, "token", "revoke", token[1])
		require.Equal(t, 401, n.get("/api/user/me", token[0]))
		require.Contains(t, succeeds(t, env, "key", "rotate"), "Re-encrypted 0 secrets")
		require.Contains(t, succeeds(t, append(env, "PARLEY_HTTP="+strings.TrimPrefix(n.url, "http://")), "doctor"), "answered by a running Parley")
		n.stops()
	})
}

// A job that is dead is seen and tried again from beside the server.
func TestDeadJobsAreListedAndRetried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"PARLEY_DATA=" + dir}
	out, code := runs(t, env, "migrate", "up")
	require.Equal(t, 0, code, out)
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`INSERT INTO river_job (kind, args, attempt, max_attempts, metadata, queue, state, errors, finalized_at) VALUES
		('finish', '{"row":41}', 10, 10, '{}', 'finish', 'discarded', '[{"at":"2026-01-01T00:00:00Z","attempt":10,"error":"no model answers","trace":""}]', '2026-01-01 00:00:00.000')`)
	require.NoError(t, err)
	out, code = runs(t, env, "jobs", "list")
	require.Equal(t, 0, code, out)
	for _, part := range []string{"finish", "41", "10", "2026-01-01 00:00:00", "no model answers"} {
		require.Contains(t, out, part)
	}
	out, code = runs(t, env, "jobs", "retry", "1")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "Job 1 is tried once more.")
	out, _ = runs(t, env, "jobs", "list")
	require.NotContains(t, out, "no model answers")
	out, code = runs(t, env, "jobs", "retry", "1")
	require.Equal(t, 1, code)
	require.Contains(t, out, "Job 1 is not dead, it is available.")
	out, code = runs(t, env, "jobs", "retry", "99")
	require.Equal(t, 1, code)
	require.Contains(t, out, "Job not found")
}

func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	env := []string{"PARLEY_DATA=" + t.TempDir()}
	for _, c := range []struct {
		env  string
		args []string
		code int
		says string
	}{
		{"", []string{"user", "create", "--email", "nonsense"}, 1, `"nonsense" is not an e-mail address`},
		{"", []string{"user", "create", "--email", "a@b.example", "--plan", "gold"}, 1, `there is no plan "gold"; choose one of default, pro, unlimited`},
		{"", []string{"token", "create", "--user", "who@example.com", "--name", "x"}, 1, "there is no user who@example.com; parley user list shows them"},
		{"", []string{"token", "revoke", "99"}, 1, "there is no live token 99; parley token list shows them"},
		{"", []string{"dance"}, 2, "dance"},
		{"PARLEY_DB=mysql://x", []string{"serve"}, 2, "PARLEY_DB must be a PostgreSQL address"},
		{"PARLEY_DB=postgres://u:hunter2@127.0.0.1:1/x", []string{"serve"}, 1, "cannot open the database"},
		{"PARLEY_HTTP=8080", []string{"serve"}, 2, `PARLEY_HTTP "8080" is not host:port`},
		{"PARLEY_PUBLIC_URL=parley.example.com", []string{"serve"}, 2, "PARLEY_PUBLIC_URL"},
		{"PARLEY_LOG=loud", []string{"serve"}, 2, "--log"},
		{"PARLEY_TOKEN=a b", []string{"serve"}, 2, "PARLEY_TOKEN must be printable"},
		{"PARLEY_TRUSTED_PROXIES=everyone", []string{"serve"}, 2, "PARLEY_TRUSTED_PROXIES"},
		{"PARLEY_RATE_PER_TOKEN=-1", []string{"serve"}, 2, "PARLEY_RATE_PER_TOKEN"},
		{"PARLEY_SECRET_KEY=short", []string{"serve"}, 1, "PARLEY_SECRET_KEY: a key is the base64 of 32 bytes"},
	} {
		out, code := runs(t, append(env, c.env), c.args...)
		require.Equal(t, c.code, code, "%v %v: %s", c.env, c.args, out)
		require.Contains(t, out, c.says, "%v %v", c.env, c.args)
		require.NotContains(t, out, "hunter2", "a password is never printed")
	}
	out := succeeds(t, env, "version")
	require.Contains(t, out, "parley")
	require.Contains(t, succeeds(t, env), "serve")
}

func TestDoctorSaysWhatToFix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"PARLEY_DATA=" + dir, "PARLEY_HTTP=127.0.0.1:0"}
	require.NotContains(t, succeeds(t, env, "doctor"), "FAIL")
	n := serves(t, env)
	n.stops()
	require.NotContains(t, succeeds(t, env, "doctor"), "FAIL")

	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer stranger.Close()
	go func() {
		for {
			conn, err := stranger.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	fails := func(says string, change ...string) {
		t.Helper()
		out, code := runs(t, append(env, change...), "doctor")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "FAIL")
		require.Contains(t, out, says)
	}
	fails("choose another address", "PARLEY_HTTP="+stranger.Addr().String())
	fails("PARLEY_TOKEN is shorter than 32 characters", "PARLEY_TOKEN=hunter2")
	fails("PARLEY_PUBLIC_URL is not set", "PARLEY_HTTP=0.0.0.0:0")
	fails("tokens would travel readable", "PARLEY_PUBLIC_URL=http://parley.example.com")
	fails("openai models: the service cannot be reached", "OPENAI_BASE_URL=http://127.0.0.1:1/v1")
	fails("set OPENAI_API_KEY", "PARLEY_SANDBOX=off")
	fails("cannot open the database", "PARLEY_DB=postgres://127.0.0.1:1/x")
	require.NoError(t, os.Chmod(filepath.Join(dir, "secret.key"), 0o644))
	fails("chmod 600")
}

// A secret sealed with a lost key is named, not shown as an empty one.
func TestDoctorNamesALostKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"PARLEY_DATA=" + dir}
	n := serves(t, env)
	response := n.post("/api/user/tools", `{"name":"a","description":"d","endpoint":"https://x.example","method":"GET","headers":[{"name":"A","value":"b"}]}`)
	require.Equal(t, 201, response)
	n.stops()
	require.NoError(t, os.Remove(filepath.Join(dir, "secret.key")))
	out, code := runs(t, append(env, "PARLEY_HTTP=127.0.0.1:0"), "doctor")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "another secret key")
}

func (n *node) post(path, body string) int {
	n.t.Helper()
	request, err := http.NewRequest("POST", n.url+path, strings.NewReader(body))
	require.NoError(n.t, err)
	request.Header.Set("Authorization", "Bearer "+n.token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(n.t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// A client that dribbles its headers is cut off after ten seconds. The wait is real.
func TestPromiseA3SlowHeadersAreCut(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("waits for ten seconds; make promises runs it")
	}
	n := serves(t, []string{"PARLEY_DATA=" + t.TempDir()})
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	start := time.Now()
	_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n")
	require.NoError(t, err)
	_, _ = io.ReadAll(conn)
	require.InDelta(t, 10, time.Since(start).Seconds(), 1.5)
}

func TestLogsDropWhatNamesPeople(t *testing.T) {
	t.Parallel()
	var quiet, personal bytes.Buffer
	(&Config{Log: "info"}).logger(&quiet).Info("call", "pii.number", "+12025550100", "id", 7)
	(&Config{Log: "info", LogPersonal: true}).logger(&personal).Info("call", "pii.number", "+12025550100")
	require.Contains(t, quiet.String(), "id=7")
	require.NotContains(t, quiet.String(), "+1202")
	require.Contains(t, personal.String(), "+12025550100")
}

// want makes a request of the API and returns the answer's body.
func (n *node) want(status int, method, path, body string) string {
	n.t.Helper()
	request, err := http.NewRequest(method, n.url+path, strings.NewReader(body))
	require.NoError(n.t, err)
	request.Header.Set("Authorization", "Bearer "+n.token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(n.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	require.Equal(n.t, status, response.StatusCode, string(raw))
	return string(raw)
}
