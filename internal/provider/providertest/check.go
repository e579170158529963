// Package providertest is the contract of converse's providers as checks that every
// one of them passes, and the fake services on 127.0.0.1 that the vendors' packages
// are tried against. It must not know any vendor.
//
// A check gives an error instead of failing a test: what it asks of a provider can
// then be asked of a live service as well.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/goleak"
)

// Soon is how long a provider may take to notice that it is no longer wanted. It is
// generous, because tests share their machine; a provider that waits for its service
// never makes it.
const Soon = 3 * time.Second

// callers is how many calls share a provider in the checks of concurrent use.
const callers = 8

// Check is one clause of the contract. Checks count goroutines, so they must not run
// beside one another.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// with is a check of a provider that is made for it. It must leave no goroutine behind.
func with[T any](name string, rig func() (T, func()), run func(ctx context.Context, provider T) error) Check {
	return Check{Name: name, Run: func(ctx context.Context) error {
		before := goleak.IgnoreCurrent()
		ctx, cancel := context.WithTimeout(ctx, 10*Soon)
		defer cancel()
		provider, release := rig()
		err := run(ctx, provider)
		release()
		if err != nil {
			return err
		}
		return goleak.Find(before)
	}}
}

// over is the context of a call that has ended.
func over(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// soon runs f and fails when it takes too long; f is then left to its fate.
func soon(what string, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(Soon)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("%s took longer than %v", what, Soon)
	}
}

// atOnce runs f for several callers at the same time.
func atOnce(f func() error) error {
	all := make([]error, callers)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i] = f() })
	}
	group.Wait()
	return errors.Join(all...)
}

// named fails unless an error is there and names its provider.
func named(name string, err error) error {
	if err == nil {
		return errors.New("there was no error")
	}
	if !strings.Contains(err.Error(), name) {
		return fmt.Errorf("the error does not name %s: %w", name, err)
	}
	return nil
}

// turnstile watches a provider's callbacks: one at a time, and none once it is shut.
type turnstile struct {
	mu     sync.Mutex
	inside bool
	shut   bool
	fault  error
}

// pass lets one callback do its work.
func (t *turnstile) pass(work func()) {
	t.mu.Lock()
	switch {
	case t.inside:
		t.fault = errors.New("called back twice at the same time")
	case t.shut:
		t.fault = errors.New("called back after it had returned")
	}
	t.inside = true
	t.mu.Unlock()
	work()
	t.mu.Lock()
	t.inside = false
	t.mu.Unlock()
}

// close shuts the turnstile; what passes from now on is a fault.
func (t *turnstile) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
}

func (t *turnstile) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}
