package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// bareDoes tells a reader what Parley is held against.
const bareDoes = `Beside Parley stands a bare net/http handler on the same connections. It looks the token up, runs the same statements
in the same transactions, each prepared once, seals and opens tool headers, and reads and writes JSON with encoding/json
and plain structs. It checks no input, limits no rates, counts and logs nothing, and gives no request ids and no links
to other pages. RATIO is Parley's rate as a part of the bare handler's, the median of the rounds.`

// bareServer is the yardstick: the least that a handwritten server must do to
// answer the same requests from the same rows.
type bareServer struct {
	http     *http.Server
	listener net.Listener
	served   chan error
	write    *sql.DB
	seal     bareSeal
	bareStatements
}

// bareStatements are the store's, prepared once.
type bareStatements struct {
	authenticate                                   *sql.Stmt
	insertTool, selectTool                         *sql.Stmt
	countAssistants, listAssistants, pageTools     *sql.Stmt
	lockAssistant, assistantTools, updateAssistant *sql.Stmt
}

const (
	bareToolColumns      = "t.id, t.name, t.description, t.endpoint, t.method, t.timeout, t.headers, t.schema, t.created_at, t.updated_at"
	bareAssistantColumns = "id, user_id, uuid, name, type, status, mode, phone_number_id, voice_id, language_id, llm_model_id, settings, created_at, updated_at, deleted_at"
	bareAttached         = "SELECT x.assistant_id, " + bareToolColumns + " FROM assistant_tools x JOIN tools t ON t.id = x.tool_id WHERE +t.user_id = ? AND x.assistant_id IN (ids) ORDER BY x.assistant_id, x.position"

	// barePage is the API's own default.
	barePage = 10
)

// prepare compiles the statements for the pools they run on.
func (s *bareStatements) prepare(ctx context.Context, db *store.DB) (err error) {
	forUpdate := ""
	if db.Postgres() {
		forUpdate = " FOR UPDATE"
	}
	compile := func(pool *sql.DB, query string) *sql.Stmt {
		if err != nil {
			return nil
		}
		var statement *sql.Stmt
		statement, err = pool.PrepareContext(ctx, numbered(query, db.Postgres()))
		return statement
	}
	attached := func(n int) string {
		return strings.Replace(bareAttached, "ids", strings.TrimSuffix(strings.Repeat("?, ", n), ", "), 1)
	}
	read, write := db.ReadSQL(), db.SQL()
	s.authenticate = compile(read, "SELECT u.id FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = ? AND t.revoked_at IS NULL")
	s.insertTool = compile(write, "INSERT INTO tools (user_id, name, description, endpoint, method, timeout, headers, schema, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id")
	s.selectTool = compile(read, "SELECT "+bareToolColumns+" FROM tools t WHERE t.user_id = ? AND t.id = ?")
	s.countAssistants = compile(read, "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM assistant_counts WHERE user_id = ?")
	s.listAssistants = compile(read, "SELECT "+bareAssistantColumns+" FROM assistants WHERE user_id = ? AND deleted_at IS NULL ORDER BY id DESC LIMIT CAST(? AS BIGINT) OFFSET CAST(? AS BIGINT)")
	s.pageTools = compile(read, attached(barePage))
	s.lockAssistant = compile(write, "SELECT "+bareAssistantColumns+" FROM assistants WHERE user_id = ? AND id = ? AND deleted_at IS NULL"+forUpdate)
	s.assistantTools = compile(write, attached(1))
	s.updateAssistant = compile(write, "UPDATE assistants SET name = ?, type = ?, status = ?, mode = ?, phone_number_id = ?, voice_id = ?, language_id = ?, llm_model_id = ?, settings = ?, updated_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL")
	return err
}

// close gives the statements back before their pools close.
func (s *bareStatements) close() (err error) {
	for _, statement := range []*sql.Stmt{s.authenticate, s.insertTool, s.selectTool, s.countAssistants, s.listAssistants, s.pageTools, s.lockAssistant, s.assistantTools, s.updateAssistant} {
		if statement != nil {
			err = errors.Join(err, statement.Close())
		}
	}
	return err
}

// numbered turns ? into $1, $2, ... for PostgreSQL.
func numbered(query string, postgres bool) string {
	if !postgres {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", "$"+strconv.Itoa(n), 1)
	}
	return query
}

func startBare(ctx context.Context, db *store.DB, keyFile string) (b *bareServer, err error) {
	b = &bareServer{write: db.SQL(), served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.bareStatements.close())
			b = nil
		}
	}()
	if b.seal, err = newBareSeal(keyFile); err != nil {
		return b, err
	}
	if err = b.prepare(ctx, db); err != nil {
		return b, err
	}
	if b.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return b, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/user/tools", b.answer(http.StatusCreated, b.createTool))
	mux.HandleFunc("GET /api/user/tools/{id}", b.answer(http.StatusOK, b.getTool))
	mux.HandleFunc("GET /api/user/assistants/get", b.answer(http.StatusOK, b.pageAssistants))
	mux.HandleFunc("PUT /api/user/assistant/{id}", b.answer(http.StatusOK, b.changeAssistant))
	b.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { b.served <- b.http.Serve(b.listener) }()
	return b, nil
}

func (b *bareServer) address() string { return b.listener.Addr().String() }

func (b *bareServer) close() error {
	err := b.http.Close()
	<-b.served
	return errors.Join(err, b.bareStatements.close())
}

// answer finds the user and writes what an operation returns.
func (b *bareServer) answer(status int, run func(*http.Request, int64) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var user int64
		hash := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		if err := b.authenticate.QueryRowContext(r.Context(), hash[:]).Scan(&user); err != nil {
			http.Error(w, "Unauthenticated.", http.StatusUnauthorized)
			return
		}
		result, err := run(r, user)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		body, err := json.Marshal(result)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(body) // a client that has gone away is nobody's error
	}
}

// bareSeal seals and opens tool headers as the store does.
type bareSeal struct {
	aead cipher.AEAD
	head []byte // version and key id, before the nonce
}

var bareHeadersColumn = []byte("tools.headers")

func newBareSeal(keyFile string) (s bareSeal, err error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return s, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return s, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return s, err
	}
	sum := sha256.Sum256(key)
	s.head = append([]byte{1}, sum[:4]...)
	s.aead, err = cipher.NewGCM(block)
	return s, err
}

func (s bareSeal) seal(headers []parley.Header) ([]byte, error) {
	plain, err := json.Marshal(headers)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	sealed := append(append([]byte{}, s.head...), nonce...)
	return s.aead.Seal(sealed, nonce, plain, bareHeadersColumn), nil
}

func (s bareSeal) open(sealed []byte, headers *[]parley.Header) error {
	body := len(s.head) + s.aead.NonceSize()
	if len(sealed) < body {
		return errors.New("a tool's headers are too short")
	}
	plain, err := s.aead.Open(nil, sealed[len(s.head):body], sealed[body:], bareHeadersColumn)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, headers)
}
