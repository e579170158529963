package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

type benchCmd struct {
	API      benchAPICmd      `cmd:"" name:"api" help:"Measure the API on this machine beside a bare HTTP handler that runs the same SQL."`
	Calls    benchCallsCmd    `cmd:"" help:"Measure how many calls at once this machine holds: whole conversations, and media only beside them."`
	People   benchPeopleCmd   `cmd:"" hidden:"" help:"The other end of the calls of bench calls."`
	Webhooks benchWebhooksCmd `cmd:"" help:"Measure webhook deliveries on this machine beside a bare loop of signed posts."`
	Campaign benchCampaignCmd `cmd:"" help:"Measure campaigns on this machine: import, the dialer's tick in short and long lists, and calls begun."`
}

type benchAPICmd struct {
	Postgres string        `env:"PARLEY_BENCH_POSTGRES" help:"PostgreSQL on this machine to measure too (postgres://...@127.0.0.1/name); it works in schemas of its own and removes them."`
	Clients  int           `env:"PARLEY_BENCH_CLIENTS" default:"8" help:"Connections that send requests, one after the other on each."`
	Duration time.Duration `env:"PARLEY_BENCH_DURATION" default:"2s" help:"Length of a round, shared by the two sides that are compared."`
	Rounds   int           `env:"PARLEY_BENCH_ROUNDS" default:"5" help:"Rounds of each comparison; the two sides take turns."`
	Rows     int           `env:"PARLEY_BENCH_ROWS" default:"100000" help:"Assistants in the long list that is compared with one of 100."`
}

// Validate bounds the load and keeps it on this machine.
func (b *benchAPICmd) Validate() error {
	switch {
	case b.Clients < 1 || b.Clients > 64:
		return errors.New("--clients must be between 1 and 64")
	case b.Rounds < 1 || b.Rounds > 100:
		return errors.New("--rounds must be between 1 and 100")
	case b.Duration < time.Millisecond || b.Duration > time.Minute:
		return errors.New("--duration must be between 1ms and 1m")
	case b.Rows < shortList || b.Rows > 1_000_000:
		return fmt.Errorf("--rows must be between %d and 1000000", shortList)
	}
	return onThisMachine(b.Postgres)
}

// onThisMachine refuses a PostgreSQL that is somewhere else; none at all is fine.
func onThisMachine(postgres string) error {
	if postgres == "" {
		return nil
	}
	config, err := pgx.ParseConfig(postgres)
	if u, parseErr := url.Parse(postgres); err != nil || parseErr != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		// pgx's own error repeats the URL's password in some forms.
		return errors.New("--postgres must be a PostgreSQL address, postgres://user:password@127.0.0.1:5432/name")
	}
	if !strings.HasPrefix(config.Host, "/") && !isLoopback(config.Host) {
		return errors.New("--postgres must be on this machine, at 127.0.0.1 or a socket: a bench loads no one else's")
	}
	return nil
}

// Run measures every database it was given and prints what it found.
func (b *benchAPICmd) Run(ctx context.Context, c console) error {
	measured, err := onEach(ctx, c, b.Postgres, b.measure)
	if err != nil {
		return err
	}
	return b.report(c, measured)
}

// onEach measures on every database that a bench was given.
func onEach[T any](ctx context.Context, c console, postgres string, measure func(context.Context, benchDatabase, progress) (T, error)) (measured []T, err error) {
	for _, kind := range benchDatabases(postgres) {
		found, err := measuring(ctx, c, kind.name, func(p progress) (T, error) { return measure(ctx, kind, p) })
		if err != nil {
			return nil, err
		}
		measured = append(measured, found)
	}
	return measured, nil
}

// measuring measures one thing, with its progress on a line of its own.
func measuring[T any](ctx context.Context, c console, what string, measure func(progress) (T, error)) (found T, err error) {
	found, err = measure(progress{c.err, what})
	fmt.Fprintln(c.err)
	if ctx.Err() != nil {
		return found, errors.New("the bench was cancelled; what it made has been removed")
	}
	if err != nil {
		return found, fmt.Errorf("%s: %w", what, err)
	}
	return found, nil
}

// benchDatabase is a kind of database to measure; its address is empty for SQLite.
type benchDatabase struct{ name, address string }

func benchDatabases(postgres string) []benchDatabase {
	kinds := []benchDatabase{{name: "SQLite"}}
	if postgres != "" {
		kinds = append(kinds, benchDatabase{"PostgreSQL", postgres})
	}
	return kinds
}

// findings is what was measured on one database.
type findings struct {
	database   string
	operations []operationFinding // Parley beside the bare handler
	lists      comparison         // the short list beside the long one
	listP99    time.Duration      // both with the long list present
	createP99  time.Duration
	callsP99   time.Duration // lists of as many calls, by various filters
	callP99    time.Duration
}

type operationFinding struct {
	name string
	comparison
}

func (b *benchAPICmd) measure(ctx context.Context, kind benchDatabase, p progress) (found *findings, err error) {
	short, err := openSite(ctx, kind, shortList, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, short.close()) }()
	found = &findings{database: kind.name}
	load := benchLoad{clients: b.Clients, rounds: b.Rounds, round: b.Duration, progress: p}
	for _, op := range short.operations(b.Clients) {
		compared, err := load.compare(ctx, op.name, target{short.parley(), op}, target{short.bare.address(), op})
		if err != nil {
			return nil, err
		}
		found.operations = append(found.operations, operationFinding{op.name, compared})
	}
	return found, b.measureLong(ctx, kind, short, load, found)
}

// measureLong asks what the length of a list costs. Both lists are the whole of
// their databases, so that nothing but the length differs.
func (b *benchAPICmd) measureLong(ctx context.Context, kind benchDatabase, short *site, load benchLoad, found *findings) (err error) {
	long, err := openSite(ctx, kind, b.Rows, load.progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, long.close()) }()
	list := long.operation(opListAssistants, b.Clients)
	found.lists, err = load.compare(ctx, fmt.Sprintf("list of %d and of %d", shortList, b.Rows),
		target{short.parley(), short.operation(opListAssistants, b.Clients)}, target{long.parley(), list})
	if err != nil {
		return err
	}
	if found.listP99, err = load.steady(ctx, "list at a steady rate", target{long.parley(), list}); err != nil {
		return err
	}
	if found.createP99, err = load.steady(ctx, "create tool at a steady rate", target{long.parley(), long.operation(opCreateTool, b.Clients)}); err != nil {
		return err
	}
	if found.callsP99, err = load.steady(ctx, "list calls at a steady rate", target{long.parley(), long.operation(opListCalls, b.Clients)}); err != nil {
		return err
	}
	found.callP99, err = load.steady(ctx, "make call at a steady rate", target{long.parley(), long.operation(opMakeCall, b.Clients)})
	return err
}

func (b *benchAPICmd) report(c console, measured []*findings) error {
	c.printf("Parley %s, %s on %d cores; %d clients over 127.0.0.1, %d rounds of %s.\n\n%s\n\n", version, runtime.Version(), runtime.GOMAXPROCS(0), b.Clients, b.Rounds, b.Duration, bareDoes)
	rows := [][]string{{"OPERATION", "DATABASE", "PARLEY REQ/S", "BARE REQ/S", "RATIO", "PARLEY P99", "BARE P99"}}
	for _, found := range measured {
		for _, op := range found.operations {
			rows = append(rows, []string{op.name, found.database, rate(op.a), rate(op.b), fmt.Sprintf("%.2f", op.ratio()), millis(op.a.p99()), millis(op.b.p99())})
		}
	}
	if err := c.table(rows); err != nil {
		return err
	}
	c.printf("\nThe length of a list: page 1 of list assistants, and what the longer list costs (1.00: nothing).\n\n")
	rows = [][]string{{"DATABASE", fmt.Sprintf("%d ROWS REQ/S", shortList), fmt.Sprintf("%d ROWS REQ/S", b.Rows), "COST", "P99", "P99"}}
	for _, found := range measured {
		short, long := found.lists.a, found.lists.b
		rows = append(rows, []string{found.database, rate(short), rate(long), fmt.Sprintf("%.2f", found.lists.ratio()), millis(short.p99()), millis(long.p99())})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	c.printf("\nWith %d assistants and calls, at %d requests a second.\n\n", b.Rows, steadyRate)
	rows = [][]string{{"DATABASE", "LIST ASSISTANTS P99", "CREATE TOOL P99", "LIST CALLS P99", "MAKE CALL P99"}}
	for _, found := range measured {
		rows = append(rows, []string{found.database, millis(found.listP99), millis(found.createP99), millis(found.callsP99), millis(found.callP99)})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	if !slices.ContainsFunc(measured, func(f *findings) bool { return f.database == "PostgreSQL" }) {
		c.printf("\nPostgreSQL was not measured: give its address with --postgres or PARLEY_BENCH_POSTGRES.\n")
	}
	return nil
}

func rate(s side) string { return fmt.Sprintf("%.0f", median(s.rates)) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
