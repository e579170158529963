package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

// progress tells whoever waits what is going on, on one line.
type progress struct {
	to io.Writer
	of string
}

func (p progress) stepf(format string, args ...any) {
	fmt.Fprintf(p.to, "\r%-78s", p.of+": "+fmt.Sprintf(format, args...))
}

// operation is a request that is sent again and again: each client has its own,
// so that clients do not meet at one row.
type operation struct {
	name     string
	requests [][]byte
	status   int // what every answer must have
}

// target is an operation at a server.
type target struct {
	address string
	operation
}

// side is what one side of a comparison achieved.
type side struct {
	rates []float64       // requests a second, by round
	took  []time.Duration // of every request
}

func (s side) p99() time.Duration { return percentile(s.took, 0.99) }

// comparison is two sides measured in the same rounds.
type comparison struct{ a, b side }

// ratio is a's rate as a part of b's: the median of the rounds', for one round may
// be hit by what else the machine does.
func (c comparison) ratio() float64 {
	ratios := make([]float64, len(c.a.rates))
	for i := range ratios {
		ratios[i] = c.a.rates[i] / c.b.rates[i]
	}
	return median(ratios)
}

// benchLoad is how requests are sent.
type benchLoad struct {
	clients, rounds int
	round           time.Duration
	progress        progress
}

// turns is how often each side has its turn in a round: on a machine that does other
// things too, short turns meet the same weather.
const turns = 5

// compare gives both sides half of each round. They take turns, also at being first.
func (l benchLoad) compare(ctx context.Context, name string, a, b target) (c comparison, err error) {
	for round := range l.rounds {
		l.progress.stepf("%s, round %d of %d", name, round+1, l.rounds)
		sides := []*contender{{target: a, side: &c.a}, {target: b, side: &c.b}}
		for turn := range turns {
			for i := range sides {
				if err := sides[(i+turn)%2].turn(ctx, l); err != nil {
					return c, fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		for _, s := range sides {
			s.side.rates = append(s.side.rates, float64(s.answered)/s.elapsed.Seconds())
		}
	}
	return c, nil
}

// contender is one side during a round.
type contender struct {
	target
	side     *side
	answered int
	elapsed  time.Duration
}

// turn has every client send requests as fast as they are answered.
func (s *contender) turn(ctx context.Context, l benchLoad) error {
	runtime.GC() // nobody pays for the garbage of the turn before
	took, elapsed, err := l.send(ctx, s.target, l.round/2/turns, 0)
	s.answered += len(took)
	s.elapsed += elapsed
	s.side.took = append(s.side.took, took...)
	return err
}

// steadyRate is that of a busy installation: promises about latency are about
// work that keeps up, not about a queue.
const steadyRate = 50

// steady sends requests at a fixed rate for as long as a comparison takes.
func (l benchLoad) steady(ctx context.Context, name string, t target) (p99 time.Duration, err error) {
	l.progress.stepf("%s", name)
	runtime.GC()
	took, _, err := l.send(ctx, t, l.round*time.Duration(l.rounds), time.Second*time.Duration(l.clients)/steadyRate)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return percentile(took, 0.99), nil
}

// send has every client send its request until the time is up: every so often, or
// as soon as the last one is answered.
func (l benchLoad) send(ctx context.Context, t target, length, every time.Duration) (took []time.Duration, elapsed time.Duration, err error) {
	clients := make([]*benchClient, 0, l.clients)
	defer func() {
		for _, client := range clients {
			client.conn.Close()
		}
	}()
	for i := range l.clients {
		client, err := dialBench(ctx, t, i)
		if err != nil {
			return nil, 0, err
		}
		clients = append(clients, client)
		// The first request on a connection pays for what the others find ready.
		if err := client.call(); err != nil {
			return nil, 0, err
		}
	}
	var wg sync.WaitGroup
	failed := make([]error, len(clients))
	start := time.Now()
	for i, client := range clients {
		wg.Go(func() {
			first := start.Add(every * time.Duration(i) / time.Duration(len(clients)))
			failed[i] = client.run(ctx, first, start.Add(length), every)
		})
	}
	wg.Wait()
	elapsed = time.Since(start)
	for _, client := range clients {
		took = append(took, client.took...)
	}
	return took, elapsed, errors.Join(failed...)
}

// benchClient is one connection. It writes prepared bytes and reads answers with
// little work of its own: it shares the machine with what is measured.
type benchClient struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
	status  int
	took    []time.Duration
}

// patience is how long any answer may take.
const patience = 30 * time.Second

func dialBench(ctx context.Context, t target, i int) (*benchClient, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	return &benchClient{conn: conn, answers: bufio.NewReader(conn), request: t.requests[i], status: t.status}, nil
}

// run sends requests from first to end, at least one, or until ctx is done.
func (c *benchClient) run(ctx context.Context, first, end time.Time, every time.Duration) error {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	for due := first; ; due = due.Add(every) {
		if every > 0 && rest(ctx, time.Until(due)) != nil {
			return ctx.Err()
		}
		start := time.Now()
		if err := c.call(); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		now := time.Now()
		c.took = append(c.took, now.Sub(start))
		if !now.Before(end) || due.Add(every).After(end) {
			return nil
		}
	}
}

// call sends the request and reads the whole answer.
func (c *benchClient) call() error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != c.status {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return fmt.Errorf("answered %s: %s", answer.Status, body)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is the smallest value that the given part of the values does not exceed.
func percentile(values []time.Duration, part float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}
