package converse

import (
	"strings"
	"time"
	"unicode"

	"parley/internal/audio"
)

// ear is what is known of the customer's speech: when there is any, and which words
// it was as far as the transcriber has got.
type ear struct {
	endpointing
	need     time.Duration // of speech, to interrupt
	speaking bool
	since    time.Duration // the speech now heard began
	last     time.Duration // the end of the last frame with speech
	unvoiced int           // frames without speech in a row
	voiced   time.Duration // speech since it began, or since it held the mouth
	noise    bool          // a voice that has come to no words for long

	open    bool // something was said since the last turn
	began   time.Duration
	finals  string
	partial string
	damaged bool
	opinion bool          // the transcriber thinks that the turn is over
	final   time.Duration // when the last final words came
	owed    bool          // the transcriber was asked for final words
	asked   time.Duration
	changed time.Duration // when the words last changed
	taken   string        // plain words that were answered before they were final
}

// Edges of speech.
const (
	// pauseFrames without speech are a pause: shorter gaps are inside words.
	pauseFrames = 3
	// finalLimit is how long final words are waited for once the pause is long
	// enough and partial ones are there; wordsLimit, when there are none at all.
	finalLimit = 700 * time.Millisecond
	wordsLimit = 1200 * time.Millisecond
	// noiseAfter is how long a voice may go on without a word before it no longer
	// counts as somebody speaking: music on hold, a television.
	noiseAfter = 10 * time.Second
	// stable is how long partial words must stand still to be worth an early start.
	stable = 160 * time.Millisecond
)

// text is what the customer has said since the last turn.
func (e *ear) text() string {
	return strings.TrimSpace(e.finals + " " + e.partial)
}

// listen takes the customer's 20 ms.
func (c *Conversation) listen(in []int16) {
	e := &c.ear
	voice, own := c.senses.voice(in), c.senses.own(in)
	if voice && !own {
		e.unvoiced = 0
		e.last = c.now
		e.voiced += audio.FrameDuration
		if !e.speaking {
			c.speechBegan()
		}
	} else if e.speaking {
		if e.unvoiced++; e.unvoiced >= pauseFrames {
			c.speechPaused()
		}
	}
	if c.machine.listening(c.now-c.answered) && c.senses.beep(in) {
		c.beeped()
	}
	if key, ok := c.senses.digit(in); ok {
		c.pressed(key)
	}
	if c.phase != ended {
		c.transcribe(in)
	}
}

// speechBegan is the edge from silence to speech. The mouth is held at once:
// whether it was an interruption is decided when more is known.
func (c *Conversation) speechBegan() {
	e := &c.ear
	e.speaking = true
	e.since = c.now - audio.FrameDuration
	if !c.mouth.held {
		e.voiced = audio.FrameDuration
	}
	if !e.open {
		e.open, e.began = true, e.since
	}
	c.clock.cancel(alarmEndOfTurn)
	c.clock.cancel(alarmWords)
	c.clock.cancel(alarmEarly)
	c.machine.began(c.now)
	c.clock.cancel(alarmMachine)
	c.clock.wake(alarmNoise, c.now+noiseAfter)
	c.hold()
	c.rearmQuiet()
}

// speechPaused is the edge back: final words are asked for at once, so that they
// are there when the pause is long enough.
func (c *Conversation) speechPaused() {
	e := &c.ear
	e.speaking, e.noise = false, false
	c.clock.cancel(alarmNoise)
	e.owed, e.asked = c.live == nil, c.now
	c.machine.paused(e.last)
	c.stream.flush(c)
	c.clock.wake(alarmEndOfTurn, max(c.now, e.last+e.wait(e.text(), e.opinion)))
	if e.text() != "" {
		c.clock.wake(alarmEarly, max(c.now, e.changed+stable))
	}
	c.unhold()
	c.judgeMachine()
	if c.machine.message && c.phase == talking {
		c.clock.wake(alarmMachine, e.last+messageAfter)
	}
}

// heard takes what the transcriber made of the speech.
func (c *Conversation) heard(h Heard) {
	e := &c.ear
	text := legible(h.Text)
	if c.echoed(text) {
		e.partial = ""
		e.owed = e.owed && !h.Final
		c.resume()
		return
	}
	if h.Final && e.taken != "" {
		was := e.taken
		e.taken = ""
		if strings.HasPrefix(plain(text), was) || strings.HasPrefix(was, plain(text)) {
			return // the final form of words that have been answered
		}
	}
	before := plain(e.text())
	e.damaged = e.damaged || h.Damaged
	e.opinion = h.EndTurn
	if h.Final {
		e.finals = strings.TrimSpace(e.finals + " " + text)
		e.partial = ""
		e.owed = false
		e.final = c.now
	} else {
		e.partial = text
	}
	if plain(e.text()) != before {
		e.changed = c.now
		c.watch(Event{Hearing: e.text()})
	}
	if text != "" && e.noise {
		e.noise = false
		c.rearmQuiet()
	}
	if text != "" && !e.open {
		e.open, e.began = true, c.now
		e.last = max(e.last, c.now) // words without a voice that was noticed
	}
	c.weigh(h.Final)
}

// weigh considers the words heard so far.
func (c *Conversation) weigh(final bool) {
	e := &c.ear
	c.machine.words(e.text())
	c.judgeMachine()
	if c.phase != talking || final && c.refuses(e.text()) {
		return
	}
	c.weighInterruption()
	if e.speaking || !e.open {
		return
	}
	c.clock.cancel(alarmWords)
	c.clock.wake(alarmEndOfTurn, max(c.now, e.last+e.wait(e.text(), e.opinion)))
	switch {
	case e.text() == "":
	case final:
		c.thinkEarly()
	default:
		c.clock.wake(alarmEarly, e.changed+stable)
	}
}

// onlyNoise lets the silence count though there is a voice.
func (c *Conversation) onlyNoise() {
	e := &c.ear
	e.noise = e.speaking && e.text() == ""
	c.rearmQuiet()
}

// pauseEnded is the end of a pause that makes a turn, if there are words for one.
func (c *Conversation) pauseEnded() {
	e := &c.ear
	if e.speaking || !e.open || c.phase != talking {
		return
	}
	c.judgeMachine()
	if c.phase != talking {
		return
	}
	text := e.text()
	switch {
	case e.owed && text == "":
		c.clock.wake(alarmWords, max(c.now, e.asked+wordsLimit))
	case e.owed && (e.partial != "" || e.final < e.last): // words of this stretch are still to come
		c.clock.wake(alarmWords, max(c.now, e.asked+finalLimit))
	case text == "" && e.damaged:
		e.forget()
		c.sayPardon()
	case text == "" && c.live == nil:
		c.nothingSaid()
	default:
		c.takeTurn()
	}
}

// wordsOverdue is when the transcriber has not kept its promise: partial words are
// taken for final ones, and a transcriber without any is suspected.
func (c *Conversation) wordsOverdue() {
	e := &c.ear
	if e.speaking || !e.open || c.phase != talking {
		return
	}
	e.owed = false
	if e.text() == "" {
		c.suspectStream()
		return
	}
	if e.partial != "" {
		e.taken = plain(e.partial)
	}
	c.takeTurn()
}

// takeTurn ends the customer's turn, unless the assistant is in the middle of
// something that was not interrupted: then the words wait for its end.
func (c *Conversation) takeTurn() {
	e := &c.ear
	if c.machine.message {
		c.keepHeard()
		return
	}
	if c.live != nil && (c.mouth.now == nil || !c.mouth.now.firm && !c.mouth.now.begun) {
		c.liveTurn()
		return
	}
	u := c.mouth.now
	if u != nil && (u.firm || u.begun) {
		if c.mouth.held {
			return // still being weighed
		}
		if c.onlyListening() {
			c.keepHeard()
		}
		return
	}
	text, damaged := e.text(), e.damaged
	if c.refuses(text) {
		return
	}
	if c.mind.reply != nil && isBackchannel(text, c.language) {
		c.keepHeard() // "okay" to somebody who is about to answer is no new question
		c.resume()
		return
	}
	c.keepHeard()
	if c.judgeMachine(); c.phase != talking || c.machine.message {
		return
	}
	if c.greetsBack(text) {
		return
	}
	c.answerTo(text, damaged, max(e.last, c.mouth.ended)) // words that waited were not late before
}

// wordsWaited takes up words that were said while the assistant spoke on.
func (c *Conversation) wordsWaited() {
	e := &c.ear
	if e.open && !e.speaking && !c.clock.armed(alarmEndOfTurn) && !c.clock.armed(alarmWords) && c.phase == talking {
		c.clock.wake(alarmEndOfTurn, max(c.now, e.last+e.wait(e.text(), e.opinion)))
	}
}

// takeLastWords keeps what was said when the call ended.
func (c *Conversation) takeLastWords() {
	if c.phase != ringing && c.ear.text() != "" {
		c.keepHeard()
	}
}

// keepHeard records the customer's turn and begins the next.
func (c *Conversation) keepHeard() {
	e := &c.ear
	t := Turn{Text: e.text(), Sender: Human, Started: c.sinceAnswer(e.began), Ended: c.sinceAnswer(max(e.began, e.last))}
	c.quiet.since = max(c.quiet.since, e.last)
	c.turns = append(c.turns, t)
	c.watch(Event{Turn: &t})
	c.machine.turn(t.Text)
	e.forget()
}

// forget begins a new turn.
func (e *ear) forget() {
	e.open, e.finals, e.partial, e.damaged, e.opinion, e.owed = false, "", "", false, false, false
}

// legible is a transcriber's text without what no customer says: control
// characters, broken encoding, line breaks that would forge a line of the transcript.
func legible(text string) string {
	text = strings.ToValidUTF8(text, "")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}
