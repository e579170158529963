package audio

// echoBands measures one direction of a call every 10 ms: the levels of four
// octaves, and their shape, which is what they do about their recent mean.
type echoBands struct {
	fold  int // samples of the line in one at 8 kHz
	size  int // samples of a frame
	work  [80]float32
	level [echoParts]float32
	floor [echoParts]float32
	mean  [echoParts]float32
	shape [echoParts]float32
	loud  bool // something stands out of the floor
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

// measure takes one half of a frame; what it lacks is silence.
func (m *echoBands) measure(frame []int16, half int) {
	m.take(frame, half*m.size/2)
	x := m.work[:]
	for b := echoParts - 1; b >= 0; b-- {
		n := len(x) / 2
		var power float32
		for i := range n {
			p, q := x[2*i], x[2*i+1]
			x[i] = (p + q) / 2
			d := (p - q) / 2
			power += d * d
		}
		x = x[:n]
		m.level[b] = max(echoQuiet, decibels(power*(1.0/(1<<30))/float32(n)+1e-10))
	}
	m.follow()
}

// take fills work with 10 ms at 8 kHz: the mean of fold samples each.
func (m *echoBands) take(frame []int16, from int) {
	frame = frame[min(from, len(frame)):min(from+m.size/2, len(frame))]
	n := min(len(frame)/m.fold, len(m.work))
	if m.fold == 1 {
		n = widen(m.work[:], frame)
	} else {
		scale := 1 / float32(m.fold)
		for i := range n {
			var sum int32
			for _, s := range frame[i*m.fold : (i+1)*m.fold] {
				sum += int32(s)
			}
			m.work[i] = float32(sum) * scale
		}
	}
	clear(m.work[n:])
}

// follow moves the floors and the means, and takes the shape.
func (m *echoBands) follow() {
	m.loud = false
	for b, level := range m.level {
		if d := level - m.floor[b]; d < 0 {
			m.floor[b] += 0.1 * d
		} else {
			m.floor[b] += min(0.02, d) // 2 dB/s: slower than any utterance
		}
		m.loud = m.loud || level > m.floor[b]+9
		// What lies just over the floor is noise, and has no shape.
		base := m.floor[b] + 4
		level = max(level, base)
		m.mean[b] += (1.0 / 30) * (level - m.mean[b])
		m.shape[b] = level - m.mean[b]
	}
}
