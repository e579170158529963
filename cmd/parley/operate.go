package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"parley"
	"parley/internal/provider"
	"parley/internal/store"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Bring the schema up to date."`
	Status migrateStatusCmd `cmd:"" help:"Show which steps have been applied."`
}

type migrateUpCmd struct{}

func (migrateUpCmd) Run(ctx context.Context, config *Config, c console) error {
	db, err := config.openDB(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	err = db.Migrate(ctx, func(m store.Migration) { c.printf("applied %s\n", m.Name) })
	if err != nil {
		return err
	}
	c.printf("The schema is up to date.\n")
	return nil
}

type migrateStatusCmd struct{}

func (migrateStatusCmd) Run(ctx context.Context, config *Config, c console) error {
	db, err := config.openDB(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	steps, err := db.Migrations(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"VERSION", "NAME", "STATE"}}
	for _, s := range steps {
		state := "pending"
		if s.Applied {
			state = "applied"
		}
		rows = append(rows, []string{fmt.Sprint(s.Version), s.Name, state})
	}
	return c.table(rows)
}

type keyCmd struct {
	Rotate keyRotateCmd `cmd:"" help:"Make a new key and re-encrypt every secret with it, beside a running server."`
}

type keyRotateCmd struct{}

// Run leaves the old keys in place behind the new one: a server that is just
// writing may still use the old key for an instant, and backups need it.
func (keyRotateCmd) Run(ctx context.Context, config *Config, c console) error {
	keys, err := config.keys()
	if err != nil {
		return err
	}
	if keys.InFile() {
		if err := keys.Rotate(); err != nil {
			return err
		}
	}
	return config.withDB(ctx, func(db *store.DB) error {
		start := time.Now()
		done, err := db.System().Reseal(ctx, func(done int) { fmt.Fprintf(c.err, "\r%d re-encrypted", done) })
		fmt.Fprintln(c.err)
		if err != nil {
			return err
		}
		c.printf("Re-encrypted %d secrets in %s. The old key stays for backups; it opens nothing in the database any more.\n", done, time.Since(start).Round(time.Millisecond))
		return nil
	})
}

type doctorCmd struct{}

// finding is one check of the doctor's: what was looked at, and what to do if it failed.
type finding struct {
	what   string
	detail string
	err    error
}

// Run checks everything even if something fails, and fails if anything did.
func (doctorCmd) Run(ctx context.Context, config *Config, c console) error {
	failed := 0
	for _, f := range examine(ctx, config) {
		mark := "ok  "
		if f.err != nil {
			mark, f.detail = "FAIL", f.err.Error()
			failed++
		}
		c.printf("%s  %-10s %s\n", mark, f.what, f.detail)
	}
	if failed > 0 {
		return fmt.Errorf("%d of the checks failed", failed)
	}
	return nil
}

func examine(ctx context.Context, config *Config) []finding {
	findings := []finding{examineConfig(config), examineData(config), examinePort(ctx, config), examineKeys(config)}
	findings = append(findings, examineDatabase(ctx, config)...)
	return append(findings, examineProviders(ctx, config)...)
}

// examineProviders asks every configured provider whether it can be used.
func examineProviders(ctx context.Context, config *Config) (findings []finding) {
	providers, err := provider.New(config.Providers)
	if err != nil {
		return []finding{{what: "providers", err: err}}
	}
	defer func() { _ = providers.Close() }() // nothing is left to say
	for _, f := range providers.Check(ctx) {
		found := finding{what: "provider", detail: f.Provider + ": " + f.Message}
		if !f.OK {
			found.err = errors.New(f.Message)
		}
		findings = append(findings, found)
	}
	return findings
}

func examineConfig(config *Config) finding {
	f := finding{what: "config", detail: "valid"}
	switch host, _, _ := net.SplitHostPort(config.HTTP); {
	case config.Token != "" && parley.WeakToken(config.Token):
		f.err = errors.New("PARLEY_TOKEN is shorter than 32 characters and could be guessed; leave it empty for a random one")
	case !isLoopback(host) && config.PublicURL == "":
		f.err = fmt.Errorf("PARLEY_HTTP %s is open to the network but PARLEY_PUBLIC_URL is not set; set it to the https address users reach it by", config.HTTP)
	case strings.HasPrefix(config.PublicURL, "http://") && !isLoopback(hostOfURL(config.PublicURL)):
		f.err = errors.New("PARLEY_PUBLIC_URL is http: tokens would travel readable; put a TLS proxy in front and use https")
	}
	return f
}

func examineData(config *Config) finding {
	f := finding{what: "data", detail: config.Data + " can be written"}
	if err := os.MkdirAll(config.Data, 0o700); err != nil {
		f.err = fmt.Errorf("PARLEY_DATA %s cannot be made: %w", config.Data, err)
		return f
	}
	probe, err := os.CreateTemp(config.Data, ".doctor-*")
	if err != nil {
		f.err = fmt.Errorf("PARLEY_DATA %s cannot be written: %w", config.Data, err)
		return f
	}
	probe.Close()
	f.err = os.Remove(probe.Name())
	return f
}

// examinePort tells a Parley that is already running there from a stranger.
func examinePort(ctx context.Context, config *Config) finding {
	f := finding{what: "port", detail: config.HTTP + " is free"}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.HTTP)
	if err == nil {
		listener.Close()
		return f
	}
	if healthy(ctx, config.HTTP) {
		f.detail = config.HTTP + " is answered by a running Parley"
		return f
	}
	f.err = fmt.Errorf("PARLEY_HTTP %s cannot be used: %w; choose another address", config.HTTP, err)
	return f
}

func examineKeys(config *Config) finding {
	f := finding{what: "keys", detail: "from PARLEY_SECRET_KEY"}
	if config.SecretKey != "" {
		_, f.err = store.ParseKeys(config.SecretKey)
		return f
	}
	path := config.keyFile()
	f.detail = path
	stat, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.detail = path + " will be made at the first start"
	case err != nil:
		f.err = err
	case runtime.GOOS != "windows" && stat.Mode().Perm()&0o077 != 0:
		f.err = fmt.Errorf("%s can be read by others; run: chmod 600 %s", path, path)
	default:
		_, f.err = store.KeyFile(path)
	}
	return f
}

func examineDatabase(ctx context.Context, config *Config) []finding {
	kind := "SQLite"
	if config.DB != "" {
		kind = "PostgreSQL"
	}
	f := finding{what: "database", detail: kind + " answers"}
	db, err := config.openDB(ctx)
	if err != nil {
		f.err = fmt.Errorf("%s: %w; check PARLEY_DB and PARLEY_SECRET_KEY", kind, err)
		return []finding{f}
	}
	defer db.Close()
	return []finding{f, examineSchema(ctx, db), examineSeals(ctx, db)}
}

func examineSchema(ctx context.Context, db *store.DB) finding {
	f := finding{what: "schema", detail: "up to date"}
	steps, err := db.Migrations(ctx)
	if err != nil {
		f.err = err
		return f
	}
	for _, s := range steps {
		if !s.Applied {
			f.detail = "not up to date; parley serve or parley migrate up will bring it there"
		}
	}
	return f
}

func examineSeals(ctx context.Context, db *store.DB) finding {
	f := finding{what: "secrets", detail: "open with the configured key"}
	steps, err := db.Migrations(ctx)
	if err != nil || len(steps) == 0 || !steps[0].Applied {
		f.detail = "none yet"
		return f
	}
	if err := db.System().CheckSeals(ctx); err != nil {
		f.err = fmt.Errorf("%w; put the key they were sealed with back into PARLEY_SECRET_KEY or the key file", err)
	}
	return f
}
