package converse

import (
	"context"
	"time"

	"parley/internal/audio"
)

// stream is the way of the customer's voice to a transcriber. It keeps the last
// seconds of it, so that a stream that opens late or breaks loses no words.
type stream struct {
	chain    chain
	route    route
	gen      int // which opening; what older ones hear is void
	used     int // which transcriber it goes to
	listener Listener
	stop     func()
	watch    *time.Timer
	flushing bool // a flush is owed to the stream that is opening
	doubts   int  // turns in a row in which no word was understood
	again    bool // the turn being listened to has been given to a second stream

	kept    []int16 // the end of the customer's voice
	total   int     // samples ever
	sent    int     // of them, those that this stream has been given
	written time.Duration
}

const (
	// remembered is how much of the customer's voice is kept while there are words in it;
	// breath, how much while there are none.
	remembered = 4 * time.Second
	breath     = 500 * time.Millisecond
	// openLimit bounds the opening of a stream.
	openLimit = 3 * time.Second
	// onset is kept before the first voiced frame: words begin softly.
	onset = 200 * time.Millisecond
	// worthWords is speech that should have had words in it.
	worthWords = 500 * time.Millisecond
)

func (s *stream) init(c *Conversation) {
	s.chain = newChain(len(c.cfg.Transcribers))
}

// openStream opens the stream with the transcriber whose turn it is.
func (c *Conversation) openStream() {
	s := &c.stream
	if c.live != nil {
		return
	}
	i, ok := s.chain.provider(&s.route)
	if !ok {
		c.giveUp(EndTranscriber)
		return
	}
	s.gen++
	s.used = i
	gen, p := s.gen, c.cfg.Transcribers[i]
	options := ListenOptions{Language: c.language, Rate: c.cfg.Rate, Hints: c.cfg.Hints}
	s.watch = time.AfterFunc(openLimit, func() {
		c.inbox.post(func() { c.streamFailed(gen, errStalled) })
	})
	c.meter.add(PartUsage{Part: PartTranscriber, Provider: p.Name, Key: p.Key, Requests: 1})
	s.stop = c.begin(func(ctx context.Context) {
		listener, err := p.Use.Listen(ctx, options, func(h Heard) {
			c.inbox.post(func() { c.streamHeard(gen, h) })
		})
		if err != nil {
			c.inbox.post(func() { c.streamFailed(gen, err) })
			return
		}
		c.inbox.post(func() { c.streamOpened(gen, listener) })
		<-ctx.Done()
		_ = listener.Close() // what it still had to say is void
	})
}

// streamOpened gives the new stream what was said in the meantime.
func (c *Conversation) streamOpened(gen int, listener Listener) {
	s := &c.stream
	if gen != s.gen {
		return
	}
	s.watch.Stop()
	s.listener = listener
	s.sent = max(s.sent, s.total-len(s.kept))
	n := c.cfg.Rate.FrameSamples()
	for s.sent+n <= s.total && s.listener != nil {
		frame := s.kept[len(s.kept)-(s.total-s.sent):][:n]
		s.sent += n
		c.give(frame)
	}
	if s.flushing && s.listener != nil {
		s.flush(c)
	}
}

// transcribe takes the customer's 20 ms on their way to the words.
func (c *Conversation) transcribe(in []int16) {
	copy(c.clean, in)
	c.senses.clean(c.clean)
	if c.live != nil {
		c.live.write(c, c.clean)
		return
	}
	s := &c.stream
	s.remember(c.clean, c.cfg.Rate, c.ear.open || s.listener == nil)
	if s.listener != nil {
		s.sent = s.total
		c.give(c.clean)
	}
}

// remember keeps a frame, and forgets what is no longer worth its memory: most of a call
// is not the customer's words.
func (s *stream) remember(frame []int16, rate audio.Rate, words bool) {
	most, slack := rate.Samples(breath), rate.Samples(breath)
	if words {
		most = rate.Samples(remembered)
	}
	if len(s.kept)+len(frame) > most+slack {
		tail := s.kept[len(s.kept)+len(frame)-most:]
		if cap(s.kept) > 2*(most+slack) {
			s.kept = make([]int16, 0, most+slack)
		}
		s.kept = append(s.kept[:0], tail...)
	}
	s.kept = append(s.kept, frame...)
	s.total += len(frame)
}

// give writes a frame to the stream.
func (c *Conversation) give(frame []int16) {
	s := &c.stream
	s.written += audio.FrameDuration
	if err := s.listener.Write(frame); err != nil {
		c.streamFailed(s.gen, err)
	}
}

// flush asks for final words.
func (s *stream) flush(c *Conversation) {
	if c.live != nil {
		return
	}
	s.flushing = s.listener == nil
	if s.listener == nil {
		return
	}
	if err := s.listener.Flush(); err != nil {
		c.streamFailed(s.gen, err)
	}
}

func (c *Conversation) streamHeard(gen int, h Heard) {
	s := &c.stream
	if gen != s.gen || c.phase == ringing {
		return
	}
	if h.Err != nil {
		c.streamFailed(gen, h.Err)
		return
	}
	if h.Text != "" {
		s.chain.worked(s.route.provider)
		s.route, s.doubts, s.again = route{}, 0, false
	}
	c.heard(h)
}

// streamFailed opens the stream again, with the next transcriber after the second
// failure, and gives it the words that the broken one did not finish.
func (c *Conversation) streamFailed(gen int, err error) {
	s := &c.stream
	if gen != s.gen || c.phase == ended {
		return
	}
	c.failed(PartTranscriber, c.cfg.Transcribers[s.used].Name, err)
	s.shut(c)
	s.route.fail()
	c.reopenStream()
}

func (c *Conversation) reopenStream() {
	s := &c.stream
	e := &c.ear
	s.flushing = e.owed
	s.sent = s.total
	if e.open {
		e.partial = ""
		from := max(e.began-onset, e.final)
		s.sent = max(0, s.total-c.cfg.Rate.Samples(c.now-from))
		s.sent -= s.sent % c.cfg.Rate.FrameSamples()
	}
	c.openStream()
}

// shut ends the stream that is open or opening.
func (s *stream) shut(c *Conversation) {
	s.gen++
	s.listener = nil
	if s.watch != nil {
		s.watch.Stop()
	}
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.written > 0 {
		p := c.cfg.Transcribers[s.used]
		c.meter.add(PartUsage{Part: PartTranscriber, Provider: p.Name, Key: p.Key, Heard: s.written})
	}
	s.written = 0
}

// suspectStream is called when somebody spoke and no words came. Either it was
// noise, or the stream is dead without saying so: so another is given the same
// sound, and if there still are no words the customer is asked to say it again. Where
// that goes on nobody is understood, and the call is ended.
func (c *Conversation) suspectStream() {
	e, s := &c.ear, &c.stream
	if e.last-e.began < worthWords || c.live != nil {
		c.nothingSaid()
		return
	}
	if s.again {
		s.again = false
		c.nothingSaid()
		if s.doubts++; s.doubts >= mostDoubts {
			c.giveUp(EndTranscriber)
			return
		}
		c.sayPardon()
		return
	}
	s.again = true
	c.failed(PartTranscriber, c.cfg.Transcribers[s.used].Name, errNoWords)
	s.shut(c)
	if s.used+1 < s.chain.n {
		s.chain.worked(s.used + 1)
	}
	s.route = route{}
	e.owed, e.asked = true, c.now
	c.reopenStream()
	c.clock.wake(alarmWords, c.now+finalLimit)
}

// mostDoubts turns in a row without a word end the call.
const mostDoubts = 4

// nothingSaid is the end of a sound that was no speech.
func (c *Conversation) nothingSaid() {
	c.ear.forget()
	c.resume()
	c.tellNews()
	c.rearmQuiet()
}

// closeStreams ends what is open towards providers.
func (c *Conversation) closeStreams() {
	c.stream.shut(c)
	if c.live != nil {
		c.live.close(c)
	}
}
