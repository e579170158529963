package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/internal/store"
)

// shortList is how many assistants count as few.
const shortList = 100

// site is a whole Parley with its own fresh database, and a bare handler on the
// same connections.
type site struct {
	ground
	server     *server
	bare       *bareServer
	token      string
	tool       parley.ID
	assistants []parley.ID // the newest
}

// openSite starts the product as it is served, but for its rate limits, and gives
// its one user a number of assistants.
func openSite(ctx context.Context, kind benchDatabase, rows int, p progress) (s *site, err error) {
	s = &site{token: parley.NewSecret()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	database, err := s.take(ctx, kind)
	if err != nil {
		return s, err
	}
	config := benchConfig(s.dir, s.token)
	config.DB = database
	if err = config.Telephony.validate(); err != nil {
		return s, err
	}
	p.stepf("starting")
	if err = ctx.Err(); err != nil {
		return s, err
	}
	if s.server, err = start(ctx, config, console{io.Discard, io.Discard}); err != nil {
		return s, err
	}
	if err = s.furnish(ctx, rows, p); err != nil {
		return s, err
	}
	s.bare, err = startBare(ctx, s.server.db, config.keyFile())
	return s, err
}

// benchConfig is the product as it is served, but for its rate limits.
func benchConfig(dir, token string) *Config {
	return &Config{HTTP: "127.0.0.1:0", Data: dir, Token: token, Log: "error", StopTimeoutSec: 20, Telephony: Telephony{RTPPorts: "16384-32767", Simulator: true, MaxCalls: 1000}}
}

// close stops the servers and removes what the site kept.
func (s *site) close() (err error) {
	if s.bare != nil {
		err = s.bare.close()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.stop())
	}
	return errors.Join(err, s.leave())
}

func (s *site) parley() string { return s.server.listener.Addr().String() }

// ground is what a bench stands on while it lasts: a folder of its own, and a schema where
// PostgreSQL is measured.
type ground struct {
	dir        string
	dropSchema func() error // nil for SQLite
}

// take makes both and returns the database's address, empty for SQLite.
func (g *ground) take(ctx context.Context, kind benchDatabase) (database string, err error) {
	if g.dir, err = os.MkdirTemp("", "parley-bench-"); err != nil || kind.address == "" {
		return "", err
	}
	database, g.dropSchema, err = makeSchema(ctx, kind.address)
	return database, err
}

// leave removes both.
func (g *ground) leave() (err error) {
	if g.dropSchema != nil {
		err = g.dropSchema()
	}
	if g.dir != "" {
		err = errors.Join(err, os.RemoveAll(g.dir))
	}
	return err
}

// makeSchema gives a site a schema of its own in the operator's database.
func makeSchema(ctx context.Context, address string) (withSchema string, drop func() error, err error) {
	schema := "parley_bench_" + strings.ToLower(rand.Text()[:10])
	if err := execPostgres(ctx, address, "CREATE SCHEMA "+schema); err != nil {
		return "", nil, err
	}
	// A cancelled bench cleans up too.
	drop = func() error {
		return execPostgres(context.WithoutCancel(ctx), address, "DROP SCHEMA "+schema+" CASCADE")
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", drop, err
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String(), drop, nil
}

func execPostgres(ctx context.Context, address, statement string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("cannot reach --postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// The requests of the bench: a tool and an assistant of common size.
const (
	benchTool = `{"name":"get_order_status","description":"Looks up the status of an order by its number.",` +
		`"endpoint":"https://shop.example.com/orders/{order_number}","method":"GET","timeout":10,` +
		`"headers":[{"name":"X-Api-Key","value":"0123456789abcdef0123456789abcdef"}],` +
		`"schema":[{"name":"order_number","type":"string","description":"The order number the customer reads out."}]}`
	benchAssistant = `{"assistant_name":"Front desk","voice_id":1,"language":"English","llm_model":"sandbox","calls_direction":"make",` +
		`"engine_type":"pipeline","timezone":"Europe/Berlin","initial_message":"Hello {{name}}, this is Acme. Do you have a minute?",` +
		`"system_prompt":"` + benchPrompt + `","variables":{"company":"Acme"},"tool_ids":[%d]}`
	benchChange = `{"assistant_name":"Front desk at noon","system_prompt":"` + benchPrompt + `","llm_temperature":0.3,"max_call_duration":300}`
	benchPrompt = "You arrange appointments for Acme. Be brief and friendly. Ask for the order number when the customer has a question about " +
		"an order, look it up, and tell them where it is. Offer two dates when they want a visit. Never promise a refund: say that a colleague calls back."
)

// furnish makes the user's tool and assistants: the first of each by the API, the
// other assistants as copies in the database.
func (s *site) furnish(ctx context.Context, rows int, p progress) error {
	db := s.server.db
	user, err := db.System().UserByEmail(ctx, store.FirstUser.Email)
	if err != nil {
		return err
	}
	if err := db.System().SetPlan(ctx, user.ID, "unlimited"); err != nil {
		return err
	}
	if s.tool, err = s.post(ctx, "/api/user/tools", benchTool); err != nil {
		return err
	}
	first, err := s.post(ctx, "/api/user/assistant", fmt.Sprintf(benchAssistant, s.tool))
	if err != nil {
		return err
	}
	if err := copyAssistant(ctx, db, first, rows-1, p); err != nil {
		return err
	}
	if err := makeCalls(ctx, db, user.ID, first, rows, p); err != nil {
		return err
	}
	s.assistants, err = newestAssistants(ctx, db, user.ID)
	return err
}

// copyBatch is how many rows a transaction makes: progress is seen, a cancelled
// bench ends soon, and the write-ahead log stays small.
const copyBatch = 5000

// copyAssistant makes copies of an assistant and of what is attached to it.
func copyAssistant(ctx context.Context, db *store.DB, first parley.ID, copies int, p progress) error {
	const (
		numbers = "WITH RECURSIVE numbers (n) AS (SELECT CAST(%d AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) "
		columns = "user_id, name, type, status, mode, phone_number_id, voice_id, language_id, llm_model_id, settings, created_at, updated_at"
	)
	for from := 1; from <= copies; from += copyBatch {
		to := min(copies, from+copyBatch-1)
		p.stepf("making %d of %d assistants", to+1, copies+1)
		rows := fmt.Sprintf(numbers, from, to)
		err := inTx(ctx, db.SQL(),
			rows+fmt.Sprintf("INSERT INTO assistants (uuid, %s) SELECT 'copy ' || CAST(n AS TEXT), %s FROM numbers, assistants WHERE id = %d", columns, columns, first),
			rows+fmt.Sprintf("INSERT INTO assistant_tools (assistant_id, tool_id, position) SELECT a.id, x.tool_id, x.position FROM numbers "+
				"JOIN assistants a ON a.uuid = 'copy ' || CAST(n AS TEXT) JOIN assistant_tools x ON x.assistant_id = %d", first))
		if err != nil {
			return err
		}
	}
	if db.Postgres() {
		// Its own daemon would get to it within a minute.
		_, err := db.SQL().ExecContext(ctx, "ANALYZE")
		return err
	}
	return nil
}

// makeCalls gives a user calls that are over, one every five minutes, each with the steps
// and the transcript of a short conversation.
func makeCalls(ctx context.Context, db *store.DB, user, assistant parley.ID, calls int, p progress) error {
	const numbers = "WITH RECURSIVE numbers (n) AS (SELECT CAST(%d AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) "
	newest := time.Now().Add(-time.Hour).UnixMicro()
	for from := 1; from <= calls; from += copyBatch {
		to := min(calls, from+copyBatch-1)
		p.stepf("making %d of %d calls", to, calls)
		rows := fmt.Sprintf(numbers, from, to)
		made := fmt.Sprintf("%d - n * %d", newest, (5 * time.Minute).Microseconds())
		err := inTx(ctx, db.SQL(),
			rows+fmt.Sprintf("INSERT INTO calls (user_id, assistant_id, assistant_name, type, status, assistant_phone_number, client_phone_number, carrier, variables, input_variables, transcript, turns, duration, created_at, updated_at) "+
				"SELECT %d, %d, 'Front desk', CASE n %% 4 WHEN 0 THEN 'inbound' ELSE 'outbound' END, CASE n %% 5 WHEN 0 THEN 'no-answer' ELSE 'completed' END, '+12025550180', "+
				"'+4930' || CAST(10000000 + n %% 5000 AS TEXT), 'simulated', '{\"name\":\"Ada\"}', '{\"name\":\"Ada\"}', '%s', '%s', 42, %s, %s FROM numbers", user, assistant, benchTranscript, benchTurns, made, made),
			"INSERT INTO call_events (call_id, at, event, detail) SELECT c.id, c.created_at, 'status', '{\"status\":\"initiated\"}' FROM calls c LEFT JOIN call_events e ON e.call_id = c.id WHERE e.id IS NULL",
			fmt.Sprintf("INSERT INTO call_events (call_id, at, event, detail) SELECT c.id, c.created_at, 'status', '{\"status\":\"completed\"}' FROM calls c WHERE c.id > (SELECT MAX(id) - %d FROM calls)", to-from+1))
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	benchTranscript = "AI: Hello Ada, this is Acme. Do you have a minute?\nCustomer: Yes, I have a question about my order."
	benchTurns      = `[{"text":"Hello Ada, this is Acme. Do you have a minute?","sender":"bot","started_ms":40,"ended_ms":2900},{"text":"Yes, I have a question about my order.","sender":"human","started_ms":3300,"ended_ms":5900}]`
)

func inTx(ctx context.Context, db *sql.DB, statements ...string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func newestAssistants(ctx context.Context, db *store.DB, user parley.ID) ([]parley.ID, error) {
	page, _, err := db.Tenant(user).Assistants(ctx, store.AssistantFilter{}, shortList, 0)
	ids := make([]parley.ID, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	return ids, err
}

// post creates something by the API and returns its id.
func (s *site) post(ctx context.Context, path, body string) (parley.ID, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.parley()+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Close = true // nothing stays open behind the bench
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		return 0, errors.Join(err, fmt.Errorf("%s answered %s: %s", path, response.Status, raw))
	}
	var answer struct {
		Data struct {
			ID parley.ID `json:"id"`
		} `json:"data"`
	}
	err = json.Unmarshal(raw, &answer)
	return answer.Data.ID, err
}

// The operations that are measured.
const (
	opCreateTool      = "create tool"
	opGetTool         = "get tool"
	opListAssistants  = "list assistants"
	opUpdateAssistant = "update assistant"
	opListCalls       = "list calls"
	opMakeCall        = "make call"
)

// operations are those that the bare handler knows too, for a number of clients.
func (s *site) operations(clients int) (all []operation) {
	for _, name := range []string{opCreateTool, opGetTool, opListAssistants, opUpdateAssistant} {
		all = append(all, s.operation(name, clients))
	}
	return all
}

func (s *site) operation(name string, clients int) operation {
	op := operation{name: name, status: http.StatusOK}
	for i := range clients {
		var request []byte
		switch name {
		case opCreateTool:
			op.status = http.StatusCreated
			request = s.request("POST", "/api/user/tools", benchTool)
		case opGetTool:
			request = s.request("GET", fmt.Sprintf("/api/user/tools/%d", s.tool), "")
		case opListAssistants:
			request = s.request("GET", "/api/user/assistants/get", "")
		case opListCalls:
			request = s.request("GET", "/api/user/calls"+callFilters[i%len(callFilters)], "")
		case opMakeCall: // to a line that is busy: the call is short
			request = s.request("POST", "/api/user/make_call", fmt.Sprintf(`{"phone_number":"+12025550101","assistant_id":%d,"variables":{"name":"Ada"}}`, s.assistants[0]))
		case opUpdateAssistant:
			request = s.request("PUT", fmt.Sprintf("/api/user/assistant/%d", s.assistants[i%len(s.assistants)]), benchChange)
		}
		op.requests = append(op.requests, request)
	}
	return op
}

// callFilters are what clients ask lists of calls for.
var callFilters = []string{"", "?status=completed", "?type=inbound", "?phone_number=%2B493010000007", "?page=200", "?date_from=2026-01-01&date_to=2026-12-31"}

// request is an HTTP request as bytes.
func (s *site) request(method, path, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n", method, path, s.token)
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}
