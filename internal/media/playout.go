package media

import (
	"time"

	"parley/internal/audio"
)

const (
	// playoutMargin is kept beyond the wait that packets have needed.
	playoutMargin = clockRate / 50 // 20 ms
	// playoutDeepest bounds what is waiting, whatever was learnt or poured in.
	playoutDeepest = clockRate * 2 / 5 // 400 ms
	// playoutSurplus is how much more than wanted may wait before the delay is brought
	// down again: in a pause after quietFrames of it, in the middle of sound only
	// after surplusFrames, or after farFrames when it is more than playoutFar. People
	// pause every second or so; music on hold does not.
	playoutSurplus = frameTicks / 2
	playoutFar     = 3 * frameTicks
	quietFrames    = 5
	farFrames      = 50
	surplusFrames  = 250
	// resumeMost is how much of what waited out a stall is still played.
	resumeMost = 10 * frameTicks
	// holdPause is the least number of frames between two that are stretched to
	// gain time: one in five is hardly heard, more would be a gap.
	holdPause = 5
	// squeezePause is the same for frames that are shortened.
	squeezePause = 3
	// lateMost is how many packets may be late in a row until it is we who are
	// wrong about the time: a peer whose timestamps stood still while it was silent.
	lateMost = 5
	// leapMost is how far a timestamp may be from where its arrival puts it.
	leapMost = clockRate
	// concealMost is how many frames are concealed in a row before the stream
	// counts as pausing rather than lossy.
	concealMost = 3

	pendingFrames = 3
)

// playout is the jitter buffer: packets in, 20 ms out every 20 ms. It waits as
// long as nearly all packets have lately needed, and is never deeper than 400 ms. The
// wait is changed where it costs no word: it grows in pauses and where a packet is
// missing anyway, by stretching with concealment; it shrinks in pauses, by leaving a
// frame out, and in the middle of sound only when none comes, by squeezing pitch
// periods out. All times are given.
type playout struct {
	rate  audio.Rate
	ear   *ear
	ears  [G722 + 1]*ear // one for each codec that the peer has used
	line  timeline
	meter delayMeter

	begun  bool
	played bool  // something of this stream
	dry    bool  // has run out; play goes on when the time of what arrives has come
	last   int64 // unwrapped timestamp of the last packet
	floor  int64 // everything before it was played, or will not be
	slack  int64 // more wait when packets and frames do not line up

	pending []int16 // decoded and not yet played
	pauses  pauseMeter
	quiet   bool // the last frame was part of a pause
	squeeze squeezer

	lateInRow    int
	surplusFor   int
	sinceHold    int
	sinceSqueeze int
	missing      int // frames concealed in a row

	late      uint64 // packets
	concealed uint64 // frames
	discarded uint64 // ticks given up to keep the delay bounded
}

func newPlayout(rate audio.Rate) *playout {
	n := rate.FrameSamples()
	return &playout{rate: rate, dry: true, pending: make([]int16, 0, (pendingFrames+1)*n), squeeze: newSqueezer(rate)}
}

// switchTo makes everything from the next packet on this codec's. What still
// waits of another is given up: the two do not share a timeline.
func (p *playout) switchTo(codec Codec) error {
	if p.ear != nil && p.ear.codec == codec {
		return nil
	}
	if p.ears[codec] == nil {
		ear, err := newEar(codec, p.rate)
		if err != nil {
			return err
		}
		p.ears[codec] = ear
	}
	p.ear = p.ears[codec]
	p.restart()
	return nil
}

// restart forgets the stream, not the sound: a new one begins.
func (p *playout) restart() {
	p.begun, p.dry = false, true
	p.meter = delayMeter{}
	p.lateInRow, p.surplusFor = 0, 0
}

// put takes the payload of a packet that arrived now.
func (p *playout) put(now time.Duration, timestamp uint32, payload []byte) {
	if len(payload) == 0 {
		return
	}
	at := p.unwrap(timestamp)
	transit := ticks(now) - at
	if p.begun && p.leaps(at, transit) {
		p.restart()
	}
	if !p.begun {
		p.begin(at)
	}
	p.meter.observe(transit)
	p.slack = frameTicks - divisor(int64(len(payload)), frameTicks)
	if p.dry {
		p.reposition(at)
	}
	if p.line.put(at, payload) {
		p.lateInRow = 0
		p.bound()
		return
	}
	p.late++
	if p.lateInRow++; p.lateInRow >= lateMost {
		p.restart()
	}
}

func (p *playout) unwrap(timestamp uint32) int64 {
	p.last += int64(int32(timestamp - uint32(p.last)))
	return p.last
}

// leaps says that a packet cannot belong to the timeline that we know.
func (p *playout) leaps(at, transit int64) bool {
	strange := transit - p.meter.base()
	return strange > leapMost || strange < -leapMost || (!p.dry && at > p.line.from+timelineOctets-frameTicks)
}

func (p *playout) begin(at int64) {
	p.begun, p.played, p.dry = true, false, true
	p.floor = at
	p.line.restart(at)
}

// reposition chooses where to go on after a pause: at the earliest of what has
// arrived and was not played.
func (p *playout) reposition(at int64) {
	at = max(at, p.floor)
	if p.line.empty() {
		p.line.restart(at)
		return
	}
	p.line.back(at)
}

// bound gives up the oldest when too much waits.
func (p *playout) bound() {
	if deep := p.line.to - p.line.from; deep > playoutDeepest {
		over := wholeFrames(deep - min(p.meter.wait()+p.slack+playoutMargin+frameTicks, playoutDeepest))
		p.line.skip(over)
		p.floor = p.line.from
		p.discarded += uint64(over)
	}
}

// wanted is the place that should be playing now.
func (p *playout) wanted(now int64) int64 {
	wait := min(p.meter.wait()+p.slack+playoutMargin, playoutDeepest-frameTicks)
	return now - p.meter.base() - wait
}

// delay is how long the sound that is due next waits, from its earliest arrival
// until it is played a frame from now.
func (p *playout) delay(now time.Duration) time.Duration {
	if !p.begun || p.dry {
		return 0
	}
	pending := int64(len(p.pending)) * clockRate / int64(p.rate)
	return tickTime(max(0, ticks(now)+frameTicks-p.meter.base()-p.line.from+pending))
}

// frame writes the next 20 ms to out, a frame at the session's rate.
func (p *playout) frame(now time.Duration, out []int16) {
	if p.ear == nil {
		clear(out)
		return
	}
	p.sinceHold++
	p.sinceSqueeze++
	if len(p.pending) < len(out) {
		p.more(ticks(now))
	}
	p.shorten(len(out))
	n := copy(out, p.pending)
	clear(out[n:])
	p.pending = p.pending[:copy(p.pending, p.pending[n:])]
}

// more decodes the next frame, or stretches the last one.
func (p *playout) more(now int64) {
	if !p.begun {
		p.hold()
		return
	}
	wanted := p.wanted(now)
	if p.dry && !p.resume(wanted) {
		p.hold()
		return
	}
	switch {
	case p.line.empty():
		p.dry = true
		p.hold()
		return
	case p.line.from > wanted+playoutMargin && p.mayStretch():
		p.sinceHold = 0
		p.hold()
		return
	}
	p.decode()
	p.watchSurplus(wanted)
}

// mayStretch says whether this is a place to gain time: a pause, or a hole, which is
// concealed anyway and may yet be filled.
func (p *playout) mayStretch() bool {
	if p.sinceHold < holdPause {
		return false
	}
	present, _ := p.line.run(1)
	return p.quiet || !present
}

// resume says whether the time of what has arrived has come. What came late is played
// all the same, and the delay comes down in the next pause; only of a long stall the
// oldest is left out.
func (p *playout) resume(wanted int64) bool {
	if p.line.empty() || p.line.from > wanted {
		return false
	}
	if over := wholeFrames(wanted - p.line.from - resumeMost); over > 0 {
		over = min(over, wholeFrames(p.line.to-p.line.from-1))
		p.line.skip(over)
		p.discarded += uint64(over)
	}
	p.dry, p.surplusFor = false, 0
	return true
}

// watchSurplus brings the delay down when more has waited than needed for a while. In a
// pause the frame just decoded gives way to the next. In sound a second one is taken,
// and what is played is shortened from then on until it is used up.
func (p *playout) watchSurplus(wanted int64) {
	surplus := wanted - p.line.from
	if surplus < playoutSurplus {
		p.surplusFor = 0
		return
	}
	p.surplusFor++
	patience := surplusFrames
	if surplus >= playoutFar {
		patience = farFrames
	}
	switch {
	case p.line.to-p.line.from < frameTicks:
	case p.quiet && p.surplusFor >= quietFrames:
		p.surplusFor = 0
		p.leaveOut()
	case p.surplusFor >= patience:
		p.surplusFor = 0
		p.decode()
	}
}

// leaveOut replaces the last frame, a quiet one, by the one after it.
func (p *playout) leaveOut() {
	n := p.rate.FrameSamples()
	gone := p.pending[len(p.pending)-n:]
	var edge [joinMost]int16
	join := copy(edge[:n/joinShare], gone)
	p.pending = p.pending[:len(p.pending)-n]
	p.decode()
	next := p.pending[len(p.pending)-n:]
	for i := range join {
		next[i] = int16((int(edge[i])*(join-i) + int(next[i])*i) / join)
	}
}

// decode plays the next frame of the timeline, with concealment in its holes.
func (p *playout) decode() {
	var octets [frameTicks]byte
	lost := 0
	for left := frameTicks; left > 0; {
		present, n := p.line.run(left)
		left -= n
		if present {
			p.line.take(octets[:n])
			p.ear.decode(octets[:n])
			continue
		}
		p.line.skip(int64(n))
		p.ear.conceal(n)
		lost += n
	}
	p.floor, p.played = p.line.from, true
	p.note(lost > 0)
	p.finish()
	if lost == 0 {
		p.quiet = p.pauses.quiet(p.pending[len(p.pending)-p.rate.FrameSamples():])
	}
}

// hold stretches the sound without moving on.
func (p *playout) hold() {
	p.ear.conceal(frameTicks)
	p.note(p.played)
	p.finish()
}

// note counts concealment that is heard as such.
func (p *playout) note(missing bool) {
	if !missing {
		p.missing = 0
		return
	}
	if p.missing++; p.missing <= concealMost {
		p.concealed++
	}
}

func (p *playout) finish() {
	n := len(p.pending)
	room := p.pending[n : n+p.rate.FrameSamples()]
	p.pending = p.pending[:n+p.ear.finish(room)]
}

// shorten squeezes a little out of what is pending beyond a frame.
func (p *playout) shorten(frame int) {
	if p.sinceSqueeze < squeezePause || len(p.pending) <= frame {
		return
	}
	if n := p.squeeze.shorten(p.pending, len(p.pending)-frame); n < len(p.pending) {
		p.pending = p.pending[:n]
		p.sinceSqueeze = 0
	}
}

func wholeFrames(n int64) int64 { return max(0, n/frameTicks*frameTicks) }

// divisor is the greatest that both have.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
