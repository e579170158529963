package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	sdk "github.com/openai/openai-go/v3"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// Transcriber is speech to text over audio/transcriptions. The interface takes files,
// so the speech is cut where Flush says that the customer has paused, and there are
// no interim results.
type Transcriber struct{ p *Provider }

// mostWaiting is how many segments may wait for their words. More means that the
// server is slower than the customer speaks, and will not catch up.
const mostWaiting = 8

// Listen opens a stream for one call. It needs no connection yet.
func (t *Transcriber) Listen(ctx context.Context, o converse.ListenOptions, hear func(converse.Heard)) (converse.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s transcriber: %w", t.p.options.Name, err)
	}
	cutter, err := newCutter(o.Rate)
	if err != nil {
		return nil, fmt.Errorf("%s transcriber: no sampling rate of %d Hz", t.p.options.Name, o.Rate)
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{p: t.p, options: o, hear: hear, cancel: cancel, cutter: cutter, segments: make(chan []int16, mostWaiting)}
	l.work.Go(func() { l.transcribe(ctx) })
	return l, nil
}

// listener is one call's stream. Its one goroutine has the segments transcribed in
// their order.
type listener struct {
	p        *Provider
	options  converse.ListenOptions
	hear     func(converse.Heard)
	cancel   context.CancelFunc
	work     sync.WaitGroup
	segments chan []int16

	mu     sync.Mutex
	cutter *cutter
	closed bool
	failed error
}

// Write keeps a frame for the next segment.
func (l *listener) Write(frame []int16) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.alive(); err != nil {
		return err
	}
	l.cutter.add(frame)
	return nil
}

// alive is why the stream takes nothing more, if it does not.
func (l *listener) alive() error {
	if l.closed {
		return errors.New(l.p.options.Name + " transcriber: the stream is closed")
	}
	return l.failed
}

// Flush has what was said since the last one transcribed. Its final words come even
// if there are none, because somebody waits for them.
func (l *listener) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.alive(); err != nil {
		return err
	}
	select {
	case l.segments <- l.cutter.cut():
		return nil
	default:
		return errors.New(l.p.options.Name + " transcriber: the server is slower than the customer speaks")
	}
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

// transcribe is the stream's goroutine.
func (l *listener) transcribe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case segment := <-l.segments:
			text, err := l.words(ctx, segment)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				l.mu.Lock()
				l.failed = err
				l.mu.Unlock()
				l.hear(converse.Heard{Err: err})
				return
			}
			l.hear(converse.Heard{Text: text, Final: true})
		}
	}
}

// words has one segment transcribed. One without a voice is not sent: Whisper hears
// words in silence.
func (l *listener) words(ctx context.Context, segment []int16) (string, error) {
	if len(segment) == 0 {
		return "", nil
	}
	ctx, watch := wire.Watch(ctx, l.p.options.Silence)
	defer watch.Stop()
	params := sdk.AudioTranscriptionNewParams{
		File:  sdk.File(bytes.NewReader(wav(l.options.Rate, segment)), "speech.wav", "audio/wav"),
		Model: l.p.options.TranscriptionModel, ResponseFormat: sdk.AudioResponseFormatJSON,
	}
	if l.options.Language != "" {
		params.Language = sdk.String(l.options.Language)
	}
	if len(l.options.Hints) > 0 {
		params.Prompt = sdk.String(strings.Join(l.options.Hints, ", "))
	}
	result, err := l.p.transcription.New(ctx, params)
	if err != nil {
		return "", l.p.explain(ctx, "transcriber", err)
	}
	return strings.TrimSpace(result.Text), nil
}
