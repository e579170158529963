// Command parley is the whole product: the server, and the commands an operator
// uses beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // an empty container knows the time zones too

	"github.com/alecthomas/kong"

	"parley"
)

// version is set by the build.
var version = "dev"

// cli is the command line: every flag has an environment variable.
type cli struct {
	Config

	Serve    serveCmd    `cmd:"" help:"Run the server."`
	User     userCmd     `cmd:"" help:"Create and list users, and set their plan."`
	Token    tokenCmd    `cmd:"" help:"Create, list and revoke API tokens."`
	Erase    eraseCmd    `cmd:"" help:"Forget a phone number: its calls, recordings and leads."`
	Migrate  migrateCmd  `cmd:"" help:"Bring the database's schema up to date, or show it."`
	Key      keyCmd      `cmd:"" help:"Change the key that secrets are encrypted with."`
	Jobs     jobsCmd     `cmd:"" help:"Show the jobs that failed for good, and have them tried once more."`
	Simulate simulateCmd `cmd:"" help:"Try an assistant on simulated people."`
	Doctor   doctorCmd   `cmd:"" help:"Check the configuration and say what to fix."`
	Bench    benchCmd    `cmd:"" help:"Measure this machine."`
	Version  versionCmd  `cmd:"" help:"Show the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// console is where commands write.
type console struct{ out, err io.Writer }

func (c console) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) (code int) {
	var line cli
	exited := -1
	parser, err := kong.New(&line, kong.Name("parley"), kong.Writers(out, errOut), kong.Exit(func(c int) { exited = c }),
		kong.Description("Voice assistants that place and answer telephone calls."), kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(console{out, errOut}))
	if err != nil {
		fmt.Fprintln(errOut, "parley:", err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help has been answered
		return exited
	}
	if err != nil {
		fmt.Fprintln(errOut, "parley:", err)
		return 2
	}
	if err := line.validate(); err != nil {
		fmt.Fprintln(errOut, "parley:", err)
		return 2
	}
	if err := command.Run(&line.Config); err != nil {
		explain(errOut, err)
		return 1
	}
	return 0
}

// explain writes an error; the fields of a refused value each on a line.
func explain(w io.Writer, err error) {
	fmt.Fprintln(w, "parley:", err)
	if e, ok := errors.AsType[*parley.Error](err); ok {
		for _, field := range e.Fields {
			for _, message := range field.Messages {
				fmt.Fprintln(w, "  "+message)
			}
		}
	}
}

type versionCmd struct{}

func (versionCmd) Run(c console) error {
	c.printf("parley %s\n", version)
	return nil
}
