package audio

import (
	"math"
	"time"
)

// EchoVerdict is what an EchoReference says about a received frame.
type EchoVerdict struct {
	// Explained is how much of the frame's sound, 0 to 1, is what we sent some
	// time ago. Above one half a voice in the frame is our own.
	Explained float32
	// Known tells whether the line's echo has been recognised at all; Delay and
	// Loss (in dB, positive) describe it.
	Known bool
	Delay time.Duration
	Loss  float32
}

// An EchoReference answers "was that our own sent audio?", so that a line which
// returns our voice does not interrupt us. It does not remove the echo.
//
// Both directions are reduced to the levels of four bands every 10 ms. The delay
// is where the received levels rise and fall as the sent ones did, in all bands,
// for most of a second; from then on what we sent, delayed and weakened as this
// line does, says how loud an echo may be, and whatever exceeds it is somebody
// else. Levels rather than waveforms: a mobile's codec keeps only those.
//
// Measured with synthesizer voices at 8 kHz, losses of 12 to 30 dB and delays of 20
// to 400 ms: an echo is recognised 380 ms after its first sound (median; 520 ms at
// worst), once in a call, and no frame of it is missed afterwards. Another voice is
// never taken for it alone, and in 3.6 % of the frames in which it talks over the
// echo by 6 dB or more. A voice weaker than that is lost in the echo.
//
// It belongs to one call and allocates nothing after NewEchoReference.
type EchoReference struct {
	sent, received echoBands
	past           [echoRing]echoStep // what was sent, by 10 ms
	at             int                // where the newest of it is
	fresh          bool               // something was sent since the last received frame
	product        [echoLags]float32  // running correlation at each lag
	power          float32            // and the received side's own
	busy           float32            // share of the last second with sound in both directions
	lag, candidate int
	known          bool
	agreed         int // frames that the best lag has been believable for
	against        int // frames of evidence against the known delay
	gain           [echoParts]float32
	reach          [echoParts]float32 // the most the echo may be now, with its tail
	verdict        float32
}

const (
	echoParts = 4   // bands: 250 to 500, to 1000, to 2000, to 4000 Hz
	echoLags  = 52  // 10 ms each: delays up to 500 ms
	echoRing  = 64  // a power of two over echoLags
	echoLeast = 4.0 // dB that an echo is weaker than what was sent, at least
)

// echoStep is 10 ms of what was sent.
type echoStep struct {
	shape [echoParts]float32 // levels about their recent mean
	power float32            // running power of the shape up to here
	level [echoParts]float32 // dBFS
	loud  bool
}

// NewEchoReference makes a reference for a line of any of the rates.
func NewEchoReference(rate Rate) *EchoReference {
	e := &EchoReference{sent: newEchoBands(rate), received: newEchoBands(rate)}
	e.Reset()
	return e
}

// Reset forgets the line.
func (e *EchoReference) Reset() {
	*e = EchoReference{
		sent:     echoBands{fold: e.sent.fold, size: e.sent.size},
		received: echoBands{fold: e.received.fold, size: e.received.size},
	}
	e.sent.reset()
	e.received.reset()
	for i := range e.past {
		e.past[i].level = e.sent.level
	}
}

// Sent takes a frame that goes out. A 20 ms tick without one counts as silence.
func (e *EchoReference) Sent(frame []int16) {
	e.fresh = true
	for half := range 2 {
		e.sent.measure(frame, half)
		e.at = (e.at + 1) & (echoRing - 1)
		step := &e.past[e.at]
		last := e.past[(e.at-1)&(echoRing-1)].power
		step.shape, step.level, step.loud = e.sent.shape, e.sent.level, e.sent.loud
		step.power = last + echoPace*(squared(&step.shape)-last)
	}
}

// Received takes a frame that came in and says how much of it is echo. It is the
// clock of the search: to be called for every 20 ms, with concealment in the place
// of what was lost.
func (e *EchoReference) Received(frame []int16) EchoVerdict {
	if !e.fresh {
		e.Sent(nil)
	}
	e.fresh = false
	var explained float32
	for half := range 2 {
		e.received.measure(frame, half)
		newest := e.at - 1 + half // the two halves of both frames belong together
		e.correlate(newest)
		explained += e.explain(newest) / 2
	}
	e.decide()
	pace := float32(0.5)
	if explained < e.verdict {
		pace = 0.35
	}
	e.verdict += pace * (explained - e.verdict)
	return EchoVerdict{
		Explained: e.verdict, Known: e.known,
		Delay: time.Duration(e.lag) * FrameDuration / 2, Loss: -e.typicalGain(),
	}
}

const echoPace = 1.0 / 60 // of a 10 ms step in running means: 0.6 s

// correlate adds 10 ms of what was received to the running products.
func (e *EchoReference) correlate(newest int) {
	y := &e.received.shape
	e.power += echoPace * (squared(y) - e.power)
	heard := float32(0)
	if e.received.loud {
		heard = 1
	}
	e.busy += echoPace * (heard - e.busy)
	a, b, c, d := y[0]*echoPace, y[1]*echoPace, y[2]*echoPace, y[3]*echoPace
	for l := range e.product {
		x := &e.past[(newest-l)&(echoRing-1)].shape
		e.product[l] += a*x[0] + b*x[1] + c*x[2] + d*x[3] - echoPace*e.product[l]
	}
}

func squared(x *[echoParts]float32) float32 {
	return x[0]*x[0] + x[1]*x[1] + x[2]*x[2] + x[3]*x[3]
}

// likeness is the normalised correlation at a lag, -1 to 1.
func (e *EchoReference) likeness(l int) float32 {
	const least = 1 // dB squared: the fluctuation of silence is like nothing
	x := e.past[(e.at-l)&(echoRing-1)].power
	return e.product[l] / float32(math.Sqrt(float64((x+least)*(e.power+least))))
}

// best is the lag of the greatest correlation.
func (e *EchoReference) best() int {
	lag, top := 0, float32(0)
	for l, p := range e.product {
		if p <= 0 {
			continue
		}
		x := e.past[(e.at-l)&(echoRing-1)].power + 1
		if p*p > top*x {
			lag, top = l, p*p/x
		}
	}
	return lag
}

const (
	echoSure    = 0.78 // likeness from which a delay is believed
	echoAgreed  = 9    // frames in a row that it takes
	echoDoubt   = 0.5  // likeness under which a known delay is doubted
	echoPatient = 75   // frames of doubt until it is given up
)

// decide looks for the delay, or whether the known one still holds.
func (e *EchoReference) decide() {
	if e.busy < 0.2 {
		return // some 150 ms of sound at least
	}
	best := e.best()
	switch {
	case e.known && e.likeness(e.lag) > echoDoubt:
		e.against = 0
		return
	case e.known:
		if e.against++; e.against > echoPatient {
			e.known = false
		}
	}
	if e.likeness(best) < echoSure || abs(best-e.candidate) > 1 || !e.plausible(best) {
		e.candidate, e.agreed = best, 0
		return
	}
	e.candidate = best
	if e.agreed++; e.agreed < echoAgreed {
		return
	}
	e.agreed, e.against = 0, 0
	if !e.known || best != e.lag {
		e.lag, e.known = best, true
		e.startGain()
	}
}

// plausible tells whether the sound at this lag is as much weaker as echoes are.
func (e *EchoReference) plausible(lag int) bool {
	var sent, received float32
	past := &e.past[(e.at-lag)&(echoRing-1)]
	for b := range echoParts {
		sent += undecibels(past.level[b])
		received += undecibels(e.received.level[b])
	}
	return past.loud && decibels(received) < decibels(sent)-echoLeast
}

func (e *EchoReference) startGain() {
	past := &e.past[(e.at-e.lag)&(echoRing-1)]
	for b := range echoParts {
		e.gain[b] = min(-echoLeast, e.received.level[b]-past.level[b])
		e.reach[b] = SilenceLevel
	}
}

func (e *EchoReference) typicalGain() float32 {
	var sum float32
	for _, g := range e.gain {
		sum += g / echoParts
	}
	return sum
}

const (
	echoMargin = 3.0 // dB by which an echo may exceed its expectation
	echoTail   = 3.0 // dB by which a room's echo falls in 10 ms
)

// explain is how much of 10 ms of received sound the known echo accounts for.
func (e *EchoReference) explain(newest int) float32 {
	if !e.known {
		return 0
	}
	e.expect(newest)
	var all, echo float32
	for b, level := range e.received.level {
		p := undecibels(level) - undecibels(e.received.floor[b]+3)
		if p <= 0 {
			continue
		}
		all += p
		echo += min(p, undecibels(e.reach[b]+echoMargin))
	}
	if all == 0 {
		return e.verdict // nothing to explain: the last word stands
	}
	e.learnGain(newest, echo/all)
	return echo / all
}

// expect sets how loud the echo may be in each band: as loud as anything sent
// within 10 ms of the delay, or as the tail of what was before.
func (e *EchoReference) expect(newest int) {
	for b := range echoParts {
		var loudest float32 = SilenceLevel
		for d := -1; d <= 1; d++ {
			if lag := e.lag + d; lag >= 0 {
				loudest = max(loudest, e.past[(newest-lag)&(echoRing-1)].level[b])
			}
		}
		e.reach[b] = max(loudest+e.gain[b], e.reach[b]-echoTail)
	}
}

// learnGain follows the echo's strength on frames that are echo for the most part.
func (e *EchoReference) learnGain(newest int, explained float32) {
	past := &e.past[(newest-e.lag)&(echoRing-1)]
	if explained < 0.5 || !past.loud {
		return
	}
	for b, level := range e.received.level {
		if past.level[b] < e.sent.floor[b]+12 {
			continue
		}
		d := level - past.level[b] - e.gain[b]
		e.gain[b] += 0.03 * max(-6, min(6, d))
		e.gain[b] = max(-45, min(-echoLeast, e.gain[b]))
	}
}
