package sandbox

import "math"

// The decoder works in hops of 16 samples at 8 kHz. Five hops are a symbol, and
// the four last of them are measured. Nobody tells it where symbols begin, so
// there are five lanes, one for each hop they may begin at; the lane in which a
// word was understood is then the only one measured until the speech stops or
// falls out of step.
const (
	hopSamples = windowSamples / windowHops
	lanes      = 5
	ringSize   = maxSymbols // symbols a lane remembers: those of the longest word
	ringMask   = ringSize - 1

	// Below gateLevel (RMS) nothing is measured: 48 dB below full scale. A word
	// quieter than faintLevel, 42.5 dB below full scale, is not taken: it is
	// fainter than any telephone makes a person who speaks into it, and most
	// likely our own voice coming back.
	gateLevel  = 130.0
	gateEnergy = windowSamples * gateLevel * gateLevel
	// On a noisy line the gate lies above the noise: pauses are pauses there too,
	// and noise alone costs next to nothing. The floor is the least energy of a
	// window lately, about half of what noise has in the mean.
	overFloor  = 2
	leastFloor = gateEnergy / 16
	floorRise  = 1.0028 // a hop: 6 dB a second
	faintLevel = 246.0
	// A tone of amplitude a has the power a*a/2 and the energy (32a)^2 in its bin.
	faintEnergy = 2048 * toneShare * faintLevel * faintLevel

	startTolerance  = 3    // of the eight first chips
	strongTolerance = 1    // with no more misses, a start is one for certain
	plausible       = 0.58 // mean purity of a start; noise has 0.52
	certain         = 0.70
	inStep          = 0.75 // purity below which a lane is taken for the wrong one
	pauseSymbols    = 10   // a pause after which speech may start at any hop
	lostSymbols     = 12   // a pause after which a word begun is a word lost
	maxStarts       = 8

	recallHops = 24 * lanes
	keptHops   = 128 // a power of two above those to be recalled and the window before them
	keptMask   = keptHops - 1
)

// symbol flags.
const (
	heard  = 1 << iota // there was enough sound to measure
	blurry             // two tones of a group were about as strong
)

// symbol is what was heard in 10 ms. There are many in every call: it is small.
type symbol struct {
	data   byte
	flags  byte
	purity uint8 // share of the chosen tones in all of their groups, of 255
	level  uint8 // energy of the chosen tones, in steps of faintEnergy; the most it holds is plenty
}

const levelSteps = 8 // of faintEnergy

// lane is what was heard with symbols beginning at one of the five hops.
type lane struct {
	chips   chips
	symbols [ringSize]symbol
	starts  [maxStarts]start
	count   int
	mean    float32 // running mean of purity
}

// start is a place where a word may have begun.
type start struct {
	at       int  // symbol
	strong   bool // something did begin here
	expected bool // by the word before
}

// event is what the decoder made out: a word, or that one was lost.
type event struct {
	lost   bool
	header byte
	size   uint8
	text   [maxPiece]byte
}

// decoder turns samples at 8 kHz into words.
type decoder struct {
	book     *codebook
	spectrum *spectrum
	hops     int // heard so far
	fill     int // samples of the next one
	locked   int // the lane in use, or -1
	quiet    int // hops since the gate was last open
	ended    int // symbol in which the last word ended
	floor    float32
	gate     float32
	astray   bool // the lane in use has missed a word
	empty    bool // nothing is left in any lane, and nothing has been heard since
	energies [windowHops]int
	lanes    [lanes]lane
	kept     [keptHops][hopSamples]int16
	events   []event
}

func newDecoder(book *codebook, spectrum *spectrum) decoder {
	d := decoder{book: book, spectrum: spectrum, locked: -1, ended: -1, floor: leastFloor, events: make([]event, 0, 8)}
	for i := range d.lanes {
		d.lanes[i].mean = inStep
	}
	return d
}

// push takes samples; what they completed is in events until the next push.
func (d *decoder) push(samples []int16) {
	d.events = d.events[:0]
	for d.fill == 0 && len(samples) >= hopSamples {
		d.kept[d.hops&keptMask] = [hopSamples]int16(samples)
		samples = samples[hopSamples:]
		d.hop()
	}
	for len(samples) > 0 {
		n := copy(d.kept[d.hops&keptMask][d.fill:], samples)
		samples = samples[n:]
		if d.fill += n; d.fill == hopSamples {
			d.fill = 0
			d.hop()
		}
	}
}

// hop looks at the symbol that ends with this hop.
func (d *decoder) hop() {
	hop := d.hops
	d.hops++
	d.energies[hop%windowHops] = d.energy(hop)
	sum := d.energies[0] + d.energies[1] + d.energies[2] + d.energies[3]
	if d.empty && d.floor == leastFloor && sum < leastFloor {
		d.quiet++
		return
	}
	energy := float32(sum)
	d.settle(energy)
	if energy < d.gate {
		d.quiet++
		d.silence(hop)
	} else {
		d.quiet, d.empty = 0, false
		d.sound(hop)
	}
	if l := d.locked; l >= 0 && (d.astray || l == hop%lanes && d.lanes[l].mean < inStep) {
		d.unlock()
		d.recall(l)
	}
	d.astray = false
}

// energy is that of one hop. Four sums side by side keep the processor busy.
func (d *decoder) energy(hop int) int {
	x := &d.kept[hop&keptMask]
	var a, b, c, e int
	for i := 0; i < hopSamples; i += 4 {
		a += int(x[i]) * int(x[i])
		b += int(x[i+1]) * int(x[i+1])
		c += int(x[i+2]) * int(x[i+2])
		e += int(x[i+3]) * int(x[i+3])
	}
	return a + b + c + e
}

// window is the sound of the four hops that end with this one.
func (d *decoder) window(hop int) window {
	return window{&d.kept[(hop-3)&keptMask], &d.kept[(hop-2)&keptMask], &d.kept[(hop-1)&keptMask], &d.kept[hop&keptMask]}
}

// settle follows the noise of the line: down at once, up slowly and only while no
// word is being understood, since words without pauses hide what lies under them.
func (d *decoder) settle(energy float32) {
	switch {
	case energy < d.floor:
		d.floor = max(energy, leastFloor)
	case d.locked < 0:
		d.floor *= floorRise
	default:
		return
	}
	d.gate = max(gateEnergy, overFloor*d.floor)
}

// sound hears the symbol that ends with a hop.
func (d *decoder) sound(hop int) {
	which, at := hop%lanes, hop/lanes
	if d.locked >= 0 && d.locked != which {
		return
	}
	l := &d.lanes[which]
	d.measure(l, at, hop)
	d.begin(l, at)
	d.finish(which, at)
}

// silence passes a symbol in which nothing is to be heard.
func (d *decoder) silence(hop int) {
	switch {
	case d.empty:
		return
	case d.quiet == pauseSymbols*lanes && d.locked >= 0:
		d.unlock()
	case d.quiet == lostSymbols*lanes:
		d.abandon()
	case d.quiet > lostSymbols*lanes && d.nothingBegun():
		d.clear()
		return
	}
	d.pass(hop)
}

// pass counts a symbol without sound.
func (d *decoder) pass(hop int) {
	which, at := hop%lanes, hop/lanes
	if d.locked >= 0 && d.locked != which {
		return
	}
	l := &d.lanes[which]
	l.chips.push(0)
	l.symbols[at&ringMask] = symbol{}
	d.finish(which, at)
}

// nothingBegun says whether no lane waits for the end of a word.
func (d *decoder) nothingBegun() bool {
	for i := range d.lanes {
		if d.lanes[i].count > 0 {
			return false
		}
	}
	return true
}

// clear leaves every lane as silence would in the end, so that the rest of a long
// one costs nothing.
func (d *decoder) clear() {
	for i := range d.lanes {
		d.lanes[i].chips = chips{}
		clear(d.lanes[i].symbols[:])
	}
	d.empty = true
}

// measure hears a symbol in a lane.
func (d *decoder) measure(l *lane, at, hop int) {
	var energies [groups * groupTones]float32
	d.spectrum.measure(d.window(hop), &energies)
	var data, chip, flags byte
	var chosen, all float32
	for g := groups - 1; g >= 0; g-- {
		e := (*[groupTones]float32)(energies[g*groupTones:])
		best, second, which := strongest(e)
		chosen += best
		all += e[0] + e[1] + e[2] + e[3]
		if g == chipGroup {
			chip = which
			continue
		}
		data = data<<2 | which
		if 2*second > best {
			flags = blurry
		}
	}
	purity := float32(0)
	if all > 0 {
		purity = chosen / all
	}
	l.chips.push(chip)
	l.symbols[at&ringMask] = symbol{data, flags | heard, uint8(purity * 255), uint8(min(255, chosen*(levelSteps/faintEnergy)+0.5))}
	l.mean += 0.25 * (purity - l.mean)
}

// strongest are the greatest and the second of four energies, and which is the
// greatest. Numbers above zero compare as their bits do, and whole numbers are
// compared without branches, which here go either way; the last bits say which it is.
func strongest(e *[groupTones]float32) (best, second float32, which byte) {
	const low = groupTones - 1
	k0, k1 := math.Float32bits(e[0])&^low, math.Float32bits(e[1])&^low|1
	k2, k3 := math.Float32bits(e[2])&^low|2, math.Float32bits(e[3])&^low|3
	a, b := max(k0, k1), max(k2, k3)
	first := max(a, b)
	next := max(min(a, b), min(k0, k1), min(k2, k3))
	return math.Float32frombits(first), math.Float32frombits(next), byte(first & low)
}

// unlock measures every lane again.
func (d *decoder) unlock() {
	for i := range d.lanes {
		if i == d.locked {
			continue
		}
		l := &d.lanes[i]
		clear(l.symbols[:])
		l.chips = chips{}
		l.count = 0
		l.mean = inStep
	}
	d.locked = -1
}

// recall listens again, in all lanes but the one that was in use, to what was
// kept of the sound: the speech fell out of step before anybody noticed.
func (d *decoder) recall(used int) {
	for hop := max(0, d.hops-recallHops, (d.ended+1)*lanes); hop < d.hops; hop++ {
		if hop%lanes == used {
			continue
		}
		energy := 0
		for i := range windowHops {
			energy += d.energy(hop - i)
		}
		if float32(energy) < d.gate {
			d.pass(hop)
		} else {
			d.sound(hop)
		}
	}
}

// abandon reports the words begun that silence has cut off.
func (d *decoder) abandon() {
	strong := false
	for i := range d.lanes {
		l := &d.lanes[i]
		kept := 0
		for _, s := range l.starts[:l.count] {
			strong = strong || s.strong
			if s.expected && !s.strong {
				l.starts[kept] = s
				kept++
			}
		}
		l.count = kept
	}
	if strong {
		d.lose()
	}
}

// lose reports that a word was spoken but not understood, perhaps because the
// lane in use is the wrong one.
func (d *decoder) lose() {
	d.events = append(d.events, event{lost: true})
	d.astray = true
}

// midWord says whether a word has certainly begun and not yet ended.
func (d *decoder) midWord() bool {
	for i := range d.lanes {
		for _, s := range d.lanes[i].starts[:d.lanes[i].count] {
			if s.strong {
				return true
			}
		}
	}
	return false
}

// quietFor is how many symbols ago the last sound was.
func (d *decoder) quietFor() int { return d.quiet / lanes }

// forget drops the words begun.
func (d *decoder) forget() {
	for i := range d.lanes {
		d.lanes[i].count = 0
	}
}
