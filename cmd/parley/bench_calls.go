package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"syscall"
	"time"

	"parley/internal/media"
	"parley/internal/switchboard"
)

type benchCallsCmd struct {
	Steps   []int         `env:"PARLEY_BENCH_STEPS" default:"100,200,300,400,500,600,700,800,900,1000" help:"Calls at once, one number after the other, until one is too many."`
	Cores   int           `env:"PARLEY_BENCH_CORES" default:"1" help:"Cores that Parley may use. The people at the other end have a process of their own, which needs another."`
	Window  time.Duration `env:"PARLEY_BENCH_WINDOW" default:"10s" help:"How long each number of calls is measured."`
	Profile string        `type:"path" help:"Write a CPU profile of the last measurement of whole conversations to this file, and one of the memory beside it (.mem)."`
	Only    string        `enum:"media,conversations,both" default:"both" help:"Measure ${enum}."`
}

// The limits of a machine.
const (
	tooLate = 5 * time.Millisecond // p99 of pacing
	tooBusy = 0.97                 // of the cores
)

// Validate bounds the load.
func (b *benchCallsCmd) Validate() error {
	last := 0
	for _, n := range b.Steps {
		if n <= last || n > 5000 {
			return errors.New("--steps must rise, up to 5000 calls")
		}
		last = n
	}
	switch {
	case last == 0:
		return errors.New("--steps must name a number of calls")
	case b.Cores < 1 || b.Cores > runtime.NumCPU():
		return fmt.Errorf("--cores must be between 1 and %d", runtime.NumCPU())
	case b.Window < time.Second || b.Window > 10*time.Minute:
		return errors.New("--window must be between 1s and 10m")
	}
	return nil
}

// callsFinding is what a number of calls at once took.
type callsFinding struct {
	calls   int
	busy    float64 // of one core
	memory  int64   // bytes a call
	late    media.Lateness
	turns   turnTimes
	lost    float64 // of the packets sent to the people
	skipped float64 // of the packets that should have been sent
	tooMany bool
}

// Run measures and prints what it found.
func (b *benchCallsCmd) Run(ctx context.Context, c console) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(b.Cores))
	found := map[string][]callsFinding{}
	for _, kind := range []struct {
		name, title string
		open        func(*callSite, context.Context, int) error
	}{{"media", mediaOnly, (*callSite).openMedia}, {"conversations", wholeCalls, (*callSite).openConversations}} {
		if b.Only != "both" && b.Only != kind.name {
			continue
		}
		findings, err := measuring(ctx, c, kind.title, func(p progress) ([]callsFinding, error) {
			return b.measure(ctx, kind.open, kind.name == "conversations", p)
		})
		if err != nil {
			return err
		}
		found[kind.title] = findings
	}
	return b.report(c, found)
}

const (
	mediaOnly  = "media only"
	wholeCalls = "whole conversations"
)

// measure brings a fresh server from step to step until one is too much.
func (b *benchCallsCmd) measure(ctx context.Context, open func(*callSite, context.Context, int) error, whole bool, p progress) (findings []callsFinding, err error) {
	s, err := openCallSite(ctx, b.Steps[len(b.Steps)-1])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	debug.FreeOSMemory()
	empty, err := resident()
	if err != nil {
		return nil, err
	}
	for _, n := range b.Steps {
		p.stepf("%d calls, connecting", n)
		if err := open(s, ctx, n); err != nil {
			return findings, err
		}
		p.stepf("%d calls, measuring", n)
		if err := rest(ctx, settling); err != nil {
			return findings, err
		}
		found, err := b.window(ctx, s, n, whole)
		if err != nil {
			return findings, err
		}
		if now, err := resident(); err == nil {
			found.memory = (now - empty) / int64(n)
		}
		findings = append(findings, found)
		if found.tooMany {
			break
		}
	}
	return findings, nil
}

// window measures the calls that are up. The profile of a step is overwritten by the next's.
func (b *benchCallsCmd) window(ctx context.Context, s *callSite, n int, whole bool) (found callsFinding, err error) {
	found.calls = n
	before, err := s.peer.counts()
	if err != nil {
		return found, err
	}
	turns, err := s.turnTimes()
	if err != nil {
		return found, err
	}
	late, used, began := s.media().Lateness(), cpuTime(), time.Now()
	finish, err := b.profile(whole)
	if err != nil {
		return found, err
	}
	err = rest(ctx, b.Window)
	finish()
	if err != nil {
		return found, err
	}
	took := time.Since(began)
	found.busy = float64(cpuTime()-used) / float64(took)
	found.late = s.media().Lateness().Since(late)
	if found.turns, err = s.turnTimes(); err != nil {
		return found, err
	}
	found.turns = found.turns.since(turns)
	after, err := s.peer.counts()
	if err != nil {
		return found, err
	}
	if after.Talking < n {
		return found, fmt.Errorf("%d of %d calls are still up", after.Talking, n)
	}
	received, lost := float64(after.Received-before.Received), float64(after.Lost-before.Lost)
	found.lost = lost / max(1, received+lost)
	found.skipped = max(0, 1-float64(found.late.Packets)/(float64(n)*took.Seconds()*50))
	found.tooMany = found.late.P99 > tooLate || found.busy > tooBusy*float64(b.Cores)
	return found, nil
}

// settling is how long calls that have just been connected are left alone: their
// greetings are over then.
const settling = 4 * time.Second

// rest waits, unless the bench is cancelled.
func rest(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// profile begins a CPU profile, if one is asked for.
func (b *benchCallsCmd) profile(whole bool) (finish func(), err error) {
	if b.Profile == "" || !whole {
		return func() {}, nil
	}
	file, err := os.Create(b.Profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
		if memory, err := os.Create(b.Profile + ".mem"); err == nil {
			_ = pprof.WriteHeapProfile(memory)
			_ = memory.Close()
		}
	}, nil
}

func (b *benchCallsCmd) report(c console, found map[string][]callsFinding) error {
	c.printf("Parley %s, %s; Parley on %d of %d cores, the people in a process of their own, over 127.0.0.1; %s for each number of calls.\n"+
		"Conversations: sandbox providers, recording on, noise suppression on, a question every %.1f s. Memory is what the process grew by; a turn's time is what Parley adds to the pause and the providers.\n\n",
		version, runtime.Version(), b.Cores, runtime.NumCPU(), b.Window, questionEvery().Seconds())
	rows := [][]string{{"WHAT", "CALLS", "CPU OF ONE CORE", "A CALL AND FRAME", "MEMORY A CALL", "LATE P50", "LATE P99", "LATE P99.9", "LEFT OUT", "LOST", "TURN P95"}}
	for _, title := range []string{mediaOnly, wholeCalls} {
		for _, f := range found[title] {
			mark := ""
			if f.tooMany {
				mark = " (too many)"
			}
			rows = append(rows, []string{title, strconv.Itoa(f.calls) + mark, fmt.Sprintf("%.0f %%", 100*f.busy), fmt.Sprintf("%.1f us", 1e6*f.busy/(50*float64(f.calls))),
				fmt.Sprintf("%d KB", f.memory/1000), millis(f.late.P50), millis(f.late.P99), millis(f.late.P999), percent(f.skipped), percent(f.lost), f.turns.p95()})
		}
	}
	if err := c.table(rows); err != nil {
		return err
	}
	for _, title := range []string{mediaOnly, wholeCalls} {
		most := 0
		for _, f := range found[title] {
			if !f.tooMany {
				most = f.calls
			}
		}
		if len(found[title]) > 0 {
			c.printf("\n%s: %d calls at once within %s late (p99) and %.0f %% of %d core(s).", title, most, tooLate, 100*tooBusy, b.Cores)
		}
	}
	c.printf("\n")
	return nil
}

func percent(part float64) string { return fmt.Sprintf("%.3f %%", 100*part) }

// cpuTime is what this process has used of the processor.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resident is how much memory this process has, in bytes.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int64
	_, err = fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize()), err
}

// turnTimes is a reading of what Parley adds to turns.
type turnTimes struct {
	count  uint64
	within map[float64]uint64 // by seconds
}

// turnTimes reads the server's own histogram.
func (s *callSite) turnTimes() (t turnTimes, err error) {
	families, err := s.server.registry.Gather()
	if err != nil {
		return t, err
	}
	t.within = map[float64]uint64{}
	for _, family := range families {
		if family.GetName() != switchboard.OverheadMetric {
			continue
		}
		for _, m := range family.GetMetric() {
			t.count += m.GetHistogram().GetSampleCount()
			for _, b := range m.GetHistogram().GetBucket() {
				t.within[b.GetUpperBound()] += b.GetCumulativeCount()
			}
		}
	}
	return t, nil
}

func (t turnTimes) since(before turnTimes) turnTimes {
	t.count -= before.count
	for bound := range t.within {
		t.within[bound] -= before.within[bound]
	}
	return t
}

// p95 is the bound that 95 % of the turns kept within.
func (t turnTimes) p95() string {
	if t.count == 0 {
		return "-"
	}
	for _, bound := range slices.Sorted(maps.Keys(t.within)) {
		if float64(t.within[bound]) >= 0.95*float64(t.count) {
			return fmt.Sprintf("<= %g ms of %d", 1000*bound, t.count)
		}
	}
	return "> 1 s"
}
