package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/converse"
)

// Damage stands in a transcript for speech that was heard but not understood.
const Damage = "…"

// errClosed is what writing to a closed stream gives.
var errClosed = errors.New("sandbox transcriber: the stream is closed")

// Transcriber reads the words that a sandbox Speaker wrote into the sound.
type Transcriber struct{ p *Provider }

// Listen opens a stream for one call. Words come back from within Write and
// Flush; hear must not call the listener. Nothing runs between the frames, except
// a timer when Delays.Flush asks for one.
func (t *Transcriber) Listen(ctx context.Context, o converse.ListenOptions, hear func(converse.Heard)) (converse.Listener, error) {
	return t.p.listen(ctx, o, t.p.options.Delays, hear)
}

func (p *Provider) listen(ctx context.Context, o converse.ListenOptions, delays Delays, hear func(converse.Heard)) (converse.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sandbox transcriber: %w", err)
	}
	if o.Rate%audio.Rate8k != 0 || o.Rate <= 0 {
		return nil, fmt.Errorf("sandbox transcriber: no sampling rate of %d Hz, only multiples of 8000", o.Rate)
	}
	fault := p.transcriberFaults.next()
	if fault.Kind == FaultError {
		return nil, fault.err("transcriber")
	}
	return &listener{
		ctx: ctx, hear: hear, delays: delays, fault: fault, previous: -1,
		decimator: newDecimator(o.Rate),
		decoder:   newDecoder(p.book, p.spectrum),
	}, nil
}

// listener is one call's stream. Its clock for the end of an utterance is the
// sound itself, so that a recording is transcribed as fast as it can be read.
type listener struct {
	ctx  context.Context //nolint:containedctx // bounds the stream that Listen opened, as net/http's requests are
	hear func(converse.Heard)

	mu        sync.Mutex
	closed    bool
	delays    Delays
	fault     Fault
	frames    int
	decimator decimator
	decoder   decoder
	timer     *time.Timer
	flushing  int // finals promised by Flush and not yet given

	text     strings.Builder // since the last final
	damaged  bool
	piece    strings.Builder // of a word whose end is still to come
	previous int             // number of the word before in its utterance; -1 between utterances
	ended    bool            // the utterance's end mark was the last thing heard
	silence  time.Duration   // of sound passed since then
}

// Write decodes a frame and tells what it completed.
func (l *listener) Write(frame []int16) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	if err := l.ctx.Err(); err != nil {
		return fmt.Errorf("sandbox transcriber: %w", err)
	}
	l.frames++
	if l.fault.Kind != FaultNone && l.misbehave() {
		return nil
	}
	l.decoder.push(l.decimator.push(frame))
	if len(l.decoder.events) > 0 {
		for i := range l.decoder.events {
			l.take(&l.decoder.events[i])
		}
		l.tell(false)
	}
	if l.ended {
		l.conclude()
	}
	return nil
}

// conclude gives the final transcript of an utterance that said where it ends,
// unless the speaker goes straight on.
func (l *listener) conclude() {
	l.silence += audio.FrameDuration
	if l.silence < l.delays.Final {
		return
	}
	if l.decoder.quietFor() < 3 && l.silence < l.delays.Final+400*time.Millisecond {
		return
	}
	l.tell(true)
}

// take adds what the decoder made out to the transcript.
func (l *listener) take(e *event) {
	l.ended = false
	if e.lost {
		l.damage()
		return
	}
	number := int(e.header & seqMask)
	piece := e.header&pieceBit != 0
	follows := l.previous >= 0 && number == l.previous%7+1
	switch {
	case number == 0:
		if l.piece.Len() > 0 {
			l.damage()
		}
	case !follows:
		l.damage()
	case piece && l.piece.Len() == 0:
		l.damage()
	case !piece && l.piece.Len() > 0:
		l.damage()
	}
	l.previous = number
	if e.header&lastBit != 0 {
		l.previous = -1
		l.ended, l.silence = true, 0
	}
	if piece && l.piece.Len() == 0 {
		return // its beginning was lost, and the word with it
	}
	l.piece.Write(e.text[:e.size])
	if e.header>>pauseShift == 0 {
		return
	}
	l.append(l.piece.String())
	l.piece.Reset()
}

// damage notes that something was said that nobody will know.
func (l *listener) damage() {
	l.piece.Reset()
	l.damaged = true
	if !strings.HasSuffix(l.text.String(), Damage) {
		l.append(Damage)
	}
}

func (l *listener) append(word string) {
	if l.text.Len() > 0 {
		l.text.WriteByte(' ')
	}
	l.text.WriteString(word)
}

// tell hands on what was heard since the last final.
func (l *listener) tell(final bool) {
	h := converse.Heard{Text: l.text.String(), Final: final, Damaged: l.damaged}
	if final {
		h.EndTurn = l.ended && finished(h.Text)
		l.text.Reset()
		l.damaged, l.ended = false, false
	}
	l.hear(h)
}

// finished says whether a text ends like a sentence. One that trails off does not.
func finished(text string) bool {
	return endsWith(text, sentenceEnds) && !strings.HasSuffix(text, Damage)
}

// Flush gives the final transcript, at once or after Delays.Flush. A word that
// had begun is lost: its end will not come.
func (l *listener) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	if err := l.ctx.Err(); err != nil {
		return fmt.Errorf("sandbox transcriber: %w", err)
	}
	if l.fault.Kind != FaultNone && l.silenced() {
		return nil
	}
	if l.delays.Flush <= 0 {
		l.flush()
		return nil
	}
	l.flushing++
	if l.timer == nil {
		l.timer = time.AfterFunc(l.delays.Flush, l.late)
	}
	return nil
}

func (l *listener) flush() {
	if l.piece.Len() > 0 || l.decoder.quietFor() >= 2 && l.decoder.midWord() {
		l.decoder.forget()
		l.damage()
	}
	l.tell(true)
}

// late answers Flush after its delay.
func (l *listener) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.closed || l.ctx.Err() != nil {
		return
	}
	for ; l.flushing > 0; l.flushing-- {
		l.flush()
	}
}

// Close ends the stream. Nothing is heard once it has returned.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	return nil
}
