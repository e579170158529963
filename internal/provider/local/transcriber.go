//go:build speech

package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/converse"
)

// Transcriber is Moonshine. It takes no hints.
type Transcriber struct{ p *Provider }

// mostBehind is how much sound may wait to be looked at. More means that there are
// more calls than the cores can follow.
const mostBehind = 30 * time.Second

// Listen opens a stream for one call.
func (t *Transcriber) Listen(ctx context.Context, o converse.ListenOptions, hear func(converse.Heard)) (converse.Listener, error) {
	err := ctx.Err()
	if err == nil {
		err = onlyEnglish(o.Language)
	}
	tube, wrong := newTube(o.Rate, hearingRate)
	if err = errors.Join(err, wrong); err != nil {
		return nil, fmt.Errorf("local transcriber: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{rate: o.Rate, cancel: cancel, news: make(chan struct{}, 1), flushed: never}
	e := &ear{p: t.p, tube: tube, hear: hear, segment: segment{watcher: t.p.silero.watch()}}
	l.work.Go(func() { l.listen(ctx, e) })
	return l, nil
}

// listener is one call's stream: the caller leaves the sound, its one goroutine
// fetches it.
type listener struct {
	rate   audio.Rate
	cancel context.CancelFunc
	work   sync.WaitGroup
	news   chan struct{}

	mu      sync.Mutex
	sound   []int16
	flushed int // how much of the sound came before the last Flush
	closed  bool
	failed  error
}

const never = -1

// Write leaves a frame.
func (l *listener) Write(frame []int16) error {
	return l.leave(func() error {
		if len(l.sound)+len(frame) > l.rate.Samples(mostBehind) {
			return errors.New("local transcriber: the cores cannot follow so many calls")
		}
		l.sound = append(l.sound, frame...)
		return nil
	})
}

// Flush leaves word that the customer has paused.
func (l *listener) Flush() error {
	return l.leave(func() error {
		l.flushed = len(l.sound)
		return nil
	})
}

func (l *listener) leave(what func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errors.New("local transcriber: the stream is closed")
	case l.failed != nil:
		return l.failed
	}
	if err := what(); err != nil {
		return err
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
	return nil
}

// Close ends the stream and waits for its goroutine. Nothing is heard after it.
func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.work.Wait()
	return nil
}

// fetch takes what was left, up to where the customer paused if they did.
func (l *listener) fetch() (sound []int16, paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := len(l.sound)
	if l.flushed != never {
		end, paused, l.flushed = l.flushed, true, never
	}
	sound = append(sound, l.sound[:end]...)
	l.sound = append(l.sound[:0], l.sound[end:]...)
	return sound, paused
}

// listen is the stream's goroutine.
func (l *listener) listen(ctx context.Context, e *ear) {
	e.settled = time.NewTimer(settle)
	defer e.settled.Stop()
	for ctx.Err() == nil {
		settled := false
		select {
		case <-ctx.Done():
			return
		case <-e.settled.C:
			settled = true
		case <-l.news:
		}
		err := l.bring(ctx, e)
		if err == nil && settled { // and what came in the meantime did not begin with a voice
			err = e.answer(ctx)
		}
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("local transcriber: %w", err)
			l.mu.Lock()
			l.failed = err
			l.mu.Unlock()
			e.hear(converse.Heard{Err: err})
			return
		}
	}
}

// bring takes everything that was left to the ear.
func (l *listener) bring(ctx context.Context, e *ear) error {
	for {
		sound, paused := l.fetch()
		if len(sound) == 0 && !paused {
			return nil
		}
		if err := e.take(ctx, sound, paused); err != nil {
			return err
		}
	}
}
