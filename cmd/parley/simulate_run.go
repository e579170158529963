package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"parley/internal/converse"
	"parley/internal/egress"
	"parley/internal/provider"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store"
)

type simulateRunCmd struct {
	Scenario []string `arg:"" type:"existingfile" help:"Scenario files (YAML); docs/simulate.md describes them."`
	User     string   `default:"admin@localhost" help:"E-mail address of the user the assistants belong to, where a scenario names none."`
	Parallel int      `default:"4" help:"How many calls run at once."`
}

// errUnmet is for a script that asks only whether all went well; the report is written.
var errUnmet = errors.New("not every scenario went as expected")

// rehearsal is a scenario that is ready to be called.
type rehearsal struct {
	scenario  *simulator.Scenario
	call      converse.Config
	providers *provider.Registry
}

// Run reads all scenarios, calls, and reports. Nothing of the calls is stored.
func (s simulateRunCmd) Run(ctx context.Context, config *Config, c console) error {
	if s.Parallel < 1 {
		return errors.New("--parallel must be 1 or more")
	}
	scenarios, err := readScenarios(s.Scenario)
	if err != nil {
		return err
	}
	providers, err := provider.New(config.Providers)
	if err != nil {
		return err
	}
	defer func() { _ = providers.Close() }() // nothing is left to say
	rehearsals, err := s.rehearse(ctx, config, providers, scenarios)
	if err != nil {
		return err
	}
	c.printf("Running %d scenarios, at most %d at once.\n", len(rehearsals), s.Parallel)
	var calls sync.WaitGroup
	var mu sync.Mutex // of the report
	done, unmet := 0, 0
	free := make(chan struct{}, s.Parallel)
	for _, r := range rehearsals {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			text, ok := r.play(ctx)
			mu.Lock()
			defer mu.Unlock()
			done++
			if !ok {
				unmet++
			}
			c.printf("\n[%d/%d] %s", done, len(rehearsals), text)
		})
	}
	calls.Wait()
	c.printf("\n%d of %d scenarios went as expected.\n", done-unmet, done)
	if unmet > 0 {
		return errUnmet
	}
	return ctx.Err()
}

// readScenarios reads all files, and tells the mistakes of all.
func readScenarios(files []string) (scenarios []*simulator.Scenario, wrong error) {
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := simulator.ReadScenario(file, raw)
		wrong = errors.Join(wrong, err)
		scenarios = append(scenarios, s)
	}
	if wrong != nil {
		return nil, fmt.Errorf("the scenarios cannot be run:\n%w", wrong)
	}
	return scenarios, nil
}

// rehearse finds the assistants of all scenarios.
func (s simulateRunCmd) rehearse(ctx context.Context, config *Config, providers *provider.Registry, scenarios []*simulator.Scenario) (all []*rehearsal, err error) {
	err = config.withDB(ctx, func(db *store.DB) error {
		for _, scenario := range scenarios {
			user := s.User
			if scenario.User != "" {
				user = scenario.User
			}
			call, err := stored(ctx, db, providers, user, scenario.Assistant, scenario.Callee.Code, scenario.Variables)
			if err != nil {
				return fmt.Errorf("%s: %w", scenario.Name, err)
			}
			call.RunTool = scenario.RunTool(endpoints(config, call))
			all = append(all, &rehearsal{scenario, call, providers})
		}
		return nil
	})
	return all, err
}

// endpoints calls the real endpoints of an assistant's tools.
func endpoints(config *Config, call converse.Config) func(context.Context, string, map[string]any) (string, error) {
	door := egress.New(egress.Config{Allowed: config.allowed, Version: version})
	number := new(atomic.Int64)
	return func(ctx context.Context, name string, arguments map[string]any) (string, error) {
		for _, tool := range call.Assistant.Tools {
			if tool.Name == name {
				exchange := door.Tool(ctx, &call.Assistant, tool, call.Call, int(number.Add(1)), arguments)
				return exchange.Result()
			}
		}
		return "", errors.New("this tool is not available")
	}
}

// attempts is how often a call is made in which the machine was too busy to carry every
// word in time. An assistant that fails on a good line fails at once.
const attempts = 3

// play places a scenario's call and reports on it.
func (r *rehearsal) play(ctx context.Context) (text string, ok bool) {
	for i := 1; ; i++ {
		call, damaged, err := r.place(ctx)
		if err != nil {
			return fmt.Sprintf("✗ %s\n  the call could not be made: %v\n", r.scenario.Name, err), false
		}
		text, ok = r.report(call, r.scenario.Judge(call))
		if !damaged || ok {
			return text, ok
		}
		if i == attempts {
			return text + "  This machine was too busy to carry every word (…) in time; try --parallel 1.\n", false
		}
	}
}

// place is one call of a scenario; damaged says that the machine lost words of it.
func (r *rehearsal) place(ctx context.Context) (call *simulator.Call, damaged bool, err error) {
	heard := make(chan simulator.Outcome, 1)
	callee := r.scenario.Callee
	callee.Ended = func(o simulator.Outcome) { heard <- o }
	call = &simulator.Call{}
	result, err := placeSimulated(ctx, callee, r.call, r.providers)
	call.Result = result.Result
	if failure, unanswered := errors.AsType[*sip.Failure](err); unanswered {
		call.Failure = failure
		return call, false, nil
	}
	if err == nil {
		call.Evaluation, err = r.evaluate(ctx, &call.Result)
	}
	if err != nil {
		return nil, false, err
	}
	var outcome simulator.Outcome
	select {
	case outcome = <-heard: // the carrier has been closed: whoever was called has told
	default:
	}
	return call, r.scenario.Damaged(call, outcome), nil
}

func (r *rehearsal) evaluate(ctx context.Context, result *converse.Result) (map[string]any, error) {
	e, err := converse.Evaluate(ctx, &r.call.Assistant, result, r.call.Models)
	return e.Values, err
}

// report writes every check, and what was really said where one is not met.
func (r *rehearsal) report(call *simulator.Call, checks []simulator.Check) (text string, ok bool) {
	var b strings.Builder
	ok = true
	for _, check := range checks {
		mark := "✓"
		if !check.OK {
			mark, ok = "✗", false
		}
		fmt.Fprintf(&b, "  %s %s", mark, check.What)
		if check.Got != "" {
			fmt.Fprintf(&b, " (%s)", check.Got)
		}
		b.WriteByte('\n')
	}
	if !ok && call.Result.Transcript != "" {
		b.WriteString("  The call:\n    " + strings.ReplaceAll(call.Result.Transcript, "\n", "\n    ") + "\n")
	}
	mark := "✓"
	if !ok {
		mark = "✗"
	}
	return fmt.Sprintf("%s %s (%.1f s)\n%s", mark, r.scenario.Name, call.Result.Duration.Seconds(), b.String()), ok
}
