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
	past           echoPast
	fresh          bool              // something was sent since the last received frame
	product        [echoLags]float32 // running correlation at each lag, over fade
	fade           float32
	power          float32 // the received side's own
	busy           float32 // share of the last second with sound in both directions
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
	echoRing  = 64  // a power of two over echoLags, and the bits of a word
	echoLeast = 4.0 // dB that an echo is weaker than what was sent, at least
)

// echoPast is what was sent, by steps of 10 ms in a ring. A step is named by its
// number; those that are gone have the place of newer ones.
type echoPast struct {
	at    int                          // the newest step
	shape [echoRing][echoParts]float32 // levels about their recent mean
	power [echoRing]float32            // running power of the shape up to here
	level [echoRing][echoParts]int16   // dBFS, in 256ths
	loud  uint64                       // a bit for each that stands out of the floor
	still int                          // steps in a row without a shape
}

func (p *echoPast) add(m *echoBands) {
	was := p.power[p.at&(echoRing-1)]
	p.at++
	i := p.at & (echoRing - 1)
	p.shape[i] = m.shape
	p.power[i] = toward(was, m.moves, echoPace)
	for b, level := range m.level {
		p.level[i][b] = int16(level * 256)
	}
	p.loud &^= 1 << i
	if m.loud {
		p.loud |= 1 << i
	}
	if p.still++; m.moves > 0 {
		p.still = 0
	}
}

func (p *echoPast) isLoud(step int) bool { return p.loud>>(step&(echoRing-1))&1 != 0 }

// levelOf is the level of a band at a step.
func (p *echoPast) levelOf(step, band int) float32 {
	return float32(p.level[step&(echoRing-1)][band]) / 256
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
		fade:     1,
	}
	e.sent.reset()
	e.received.reset()
	for i := range e.past.level {
		for b := range echoParts {
			e.past.level[i][b] = echoQuiet * 256
		}
	}
	e.past.still = echoRing
}

// Sent takes a frame that goes out. A 20 ms tick without one counts as silence.
func (e *EchoReference) Sent(frame []int16) {
	e.fresh = true
	for half := range 2 {
		e.sent.measure(frame, half)
		e.past.add(&e.sent)
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
	var shapes [2][echoParts]float32
	moves := float32(0)
	for half := range 2 {
		e.received.measure(frame, half)
		shapes[half] = e.received.shape
		moves += e.received.moves
		e.power = toward(e.power, e.received.moves, echoPace)
		heard := float32(0)
		if e.received.loud {
			heard = 1
		}
		e.busy = toward(e.busy, heard, echoPace)
		explained += e.explain(e.past.at-1+half) / 2 // the two halves of both frames belong together
	}
	if moves > 0 && e.past.still <= echoLags {
		e.correlate(&shapes[0], &shapes[1])
	} else {
		e.forget()
	}
	e.decide()
	pace := float32(0.5)
	if explained < e.verdict {
		pace = 0.35
	}
	e.verdict += pace * (explained - e.verdict)
	if e.verdict < 1e-6 {
		e.verdict = 0
	}
	return EchoVerdict{
		Explained: e.verdict, Known: e.known,
		Delay: time.Duration(e.lag) * FrameDuration / 2, Loss: -e.typicalGain(),
	}
}

const (
	echoPace = 1.0 / 60 // of a 10 ms step in running means: 0.6 s
	echoKeep = (1 - echoPace) * (1 - echoPace)
)

// forget is a frame that correlates with nothing.
func (e *EchoReference) forget() {
	if e.fade *= echoKeep; e.fade < 1e-9 {
		e.product, e.fade = [echoLags]float32{}, 1
	}
}

// correlate adds a frame of what was received, in its two halves, to the running
// products. The sent step that meets the first half at one lag meets the second half
// at the next.
func (e *EchoReference) correlate(first, second *[echoParts]float32) {
	const early, late = echoPace * (1 - echoPace), echoPace
	a, b, c, d := first[0]*early, first[1]*early, first[2]*early, first[3]*early
	p, q, r, s := second[0]*late, second[1]*late, second[2]*late, second[3]*late
	fade := echoKeep * e.fade
	e.fade = 1
	x := &e.past.shape[e.past.at&(echoRing-1)]
	for l := range e.product {
		sum := fade*e.product[l] + (p*x[0] + q*x[1]) + (r*x[2] + s*x[3])
		x = &e.past.shape[(e.past.at-1-l)&(echoRing-1)]
		e.product[l] = sum + (a*x[0] + b*x[1]) + (c*x[2] + d*x[3])
	}
}

// likeness is the normalised correlation at a lag, -1 to 1.
func (e *EchoReference) likeness(l int) float32 {
	const least = 1 // dB squared: the fluctuation of silence is like nothing
	x := e.past.power[(e.past.at-l)&(echoRing-1)]
	return e.fade * e.product[l] / float32(math.Sqrt(float64((x+least)*(e.power+least))))
}

// best is the lag of the greatest correlation.
func (e *EchoReference) best() int {
	lag, top := 0, float32(0)
	for l, p := range e.product {
		if p <= 0 {
			continue
		}
		x := e.past.power[(e.past.at-l)&(echoRing-1)] + 1
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
	switch {
	case e.known && e.likeness(e.lag) > echoDoubt:
		e.against = 0
		return
	case e.known:
		if e.against++; e.against > echoPatient {
			e.known = false
		}
	}
	if e.past.loud == 0 {
		e.agreed = 0 // nothing was sent that could come back
		return
	}
	best := e.best()
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
	step := e.past.at - lag
	if !e.past.isLoud(step) {
		return false
	}
	for b := range echoParts {
		sent += undecibels(e.past.levelOf(step, b))
		received += undecibels(e.received.level[b])
	}
	return decibels(received) < decibels(sent)-echoLeast
}

func (e *EchoReference) startGain() {
	for b := range echoParts {
		e.gain[b] = min(-echoLeast, e.received.level[b]-e.past.levelOf(e.past.at-e.lag, b))
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
				loudest = max(loudest, e.past.levelOf(newest-lag, b))
			}
		}
		e.reach[b] = max(loudest+e.gain[b], e.reach[b]-echoTail)
	}
}

// learnGain follows the echo's strength on frames that are echo for the most part.
func (e *EchoReference) learnGain(newest int, explained float32) {
	if explained < 0.5 || !e.past.isLoud(newest-e.lag) {
		return
	}
	for b, level := range e.received.level {
		was := e.past.levelOf(newest-e.lag, b)
		if was < e.sent.floor[b]+12 {
			continue
		}
		d := level - was - e.gain[b]
		e.gain[b] += 0.03 * max(-6, min(6, d))
		e.gain[b] = max(-45, min(-echoLeast, e.gain[b]))
	}
}
