package audio

// echoBands measures one direction of a call every 10 ms: the levels of four
// octaves, and their shape, which is what they do about their recent mean.
type echoBands struct {
	fold   int // samples of the line in one at 8 kHz
	size   int // samples of a frame
	level  [echoParts]float32
	floor  [echoParts]float32
	mean   [echoParts]float32
	shape  [echoParts]float32
	moves  float32 // power of the shape
	silent bool    // nothing came in last
	loud   bool    // something stands out of the floor
}

func newEchoBands(rate Rate) echoBands {
	return echoBands{fold: max(1, int(rate)/int(Rate8k)), size: rate.FrameSamples()}
}

func (m *echoBands) reset() {
	for b := range echoParts {
		m.level[b], m.floor[b], m.mean[b] = echoQuiet, echoQuiet, echoQuiet
	}
}

// echoQuiet is the lowest level that a band is taken to have, in dBFS: beneath it
// there is only the rounding of the line's codec.
const echoQuiet = -72

// measure takes one half of a frame; what it lacks is silence. Sums and differences
// of neighbours, of their sums, and so on, are the octaves; as integers they are exact
// and no addition waits long for the one before.
func (m *echoBands) measure(frame []int16, half int) {
	from := half * m.size / 2
	frame = frame[min(from, len(frame)):min(from+m.size/2, len(frame))]
	if len(frame) == 0 || unmoved(frame, frame[0]) {
		m.rest()
		return
	}
	m.silent = false
	var x [echoStepSamples / 2]int32
	var power int64
	if m.fold == 1 && len(frame) == echoStepSamples {
		power = halve(x[:], frame)
	} else {
		folded := m.folded(frame)
		power = halve(x[:], folded[:])
	}
	scale := 1.0 / (1 << 30) / float32(m.fold*m.fold)
	for b, n := echoParts-1, len(x); ; b-- {
		scale /= 4 // a difference is twice, and each sum before it as well
		m.level[b] = higher(decibels(float32(power)*scale/float32(n)+1e-10), echoQuiet)
		if b == 0 {
			break
		}
		power = halve(x[:n/2], x[:n])
		n /= 2
	}
	m.follow()
}

// rest is 10 ms of digital silence.
func (m *echoBands) rest() {
	if m.silent && m.moves == 0 {
		return // all that follows it has come down
	}
	m.silent = true
	for b := range m.level {
		m.level[b] = echoQuiet
	}
	m.follow()
}

// echoStepSamples is 10 ms at 8 kHz.
const echoStepSamples = 80

// folded is 10 ms at 8 kHz: the sum of fold samples each.
func (m *echoBands) folded(frame []int16) (out [echoStepSamples]int32) {
	for i := range min(len(frame)/m.fold, len(out)) {
		for _, s := range frame[i*m.fold : (i+1)*m.fold] {
			out[i] += int32(s)
		}
	}
	return out
}

// halve writes the sums of neighbours, to the place of their values if need be, and
// gives the energy of their differences.
func halve[sample int16 | int32](sums []int32, x []sample) (energy int64) {
	x = x[:2*len(sums)]
	for i := range sums {
		p, q := int32(x[2*i]), int32(x[2*i+1])
		sums[i] = p + q
		energy += int64(p-q) * int64(p-q)
	}
	return energy
}

// follow moves the floors and the means, and takes the shape.
func (m *echoBands) follow() {
	m.loud = false
	var moves float32
	for b, level := range m.level {
		if d := level - m.floor[b]; d < 0 {
			m.floor[b] += 0.1 * d
		} else {
			m.floor[b] += between(d, 0, 0.02) // 2 dB/s: slower than any utterance
		}
		m.loud = m.loud || level > m.floor[b]+9
		// What lies just over the floor is noise, and has no shape.
		base := m.floor[b] + 4
		level = higher(level, base)
		m.mean[b] += (1.0 / 30) * (level - m.mean[b])
		m.shape[b] = level - m.mean[b]
		moves += m.shape[b] * m.shape[b]
	}
	if moves < echoStill { // and neither has what stands still
		m.shape, moves = [echoParts]float32{}, 0
	}
	m.moves = moves
}

// echoStill is the power of a shape, in dB squared, that resembles nothing.
const echoStill = 0.01
