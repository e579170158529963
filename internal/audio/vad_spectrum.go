package audio

import "math"

const (
	vadFrame   = 80  // samples of a frame at 4 kHz, where most of a voice is
	vadFFT     = 128 // 32 ms: harmonics of most voices stand apart
	vadLines   = 10  // bands of the spectrum under 2 kHz
	vadBands   = vadLines + 2
	vadLag     = 3  // frames between two spectra that are compared: they share no sample
	vadMinimum = 30 // frames in a block of the minimum search; two blocks are 1.2 s
)

// vadEdges are the first bins of the bands under 2 kHz and the end of the last one,
// 31.25 Hz a bin, about as wide as the ear's. Two more bands halve 2 to 4 kHz.
var vadEdges = [vadLines + 1]int{3, 6, 10, 14, 19, 25, 32, 39, 46, 54, 62}

// vadEvidence is what the judge weighs.
type vadEvidence struct {
	above   float32 // mean height of the bands over their floor, dB, each 0..30
	wide    float32 // share of bands that stand 6 dB over their floor
	low     float32 // mean height of the bands under 1 kHz, dB
	high    float32 // mean height of the bands over 1 kHz, dB
	lines   float32 // share of the energy in the two strongest lines
	held    float32 // the same when both were there in the last frame, else 0
	change  float32 // mean distance to the spectrum 60 ms ago, dB
	loud    float32 // level of the telephone band, dBFS
	voicing float32 // periodicity at a voice's pitch, 0..1
}

// vadSpectrum measures a frame in bands and keeps their noise floors.
type vadSpectrum struct {
	fft    *fft
	window [vadFFT]float32
	input  [vadFFT]float32
	work   [vadFFT / 2]complex64
	power  [vadFFT/2 + 1]float32
	sum    [vadBands]float32 // power
	level  [vadBands]float32 // the same in dBFS
	peak   [vadLines]int     // the strongest bin of each band
	past   [vadLag][vadBands]float32
	at     int
	floor  [vadBands]float32
	least  [2][vadBands]float32 // minima of the running and the last block
	smooth [vadBands]float32
	count  int

	low, high  int     // bins of the two strongest lines
	line       float32 // and their power
	background float32 // power of all floors together
}

func (s *vadSpectrum) tables() {
	s.fft = fft128()
	for i := range s.window {
		w := 0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/vadFFT)
		// A full-scale square wave comes out as power 1 over all bins.
		s.window[i] = float32(w / 32768 / math.Sqrt(vadFFT*vadFFT*0.375/2))
	}
}

// The floor begins at a quiet line's, so that a call which opens with a word is
// not deaf to it; a noisy line is learned within the first second.
const vadQuiet = -72

func (s *vadSpectrum) reset() {
	*s = vadSpectrum{fft: s.fft, window: s.window}
	s.background = vadBands * undecibels(vadQuiet)
	for b := range vadBands {
		s.floor[b], s.smooth[b] = vadQuiet, vadQuiet
		s.least[0][b], s.least[1][b] = vadQuiet, vadQuiet
		for i := range s.past {
			s.past[i][b] = vadQuiet
		}
	}
}

func (s *vadSpectrum) measure(low, high []float32, e *vadEvidence) {
	copy(s.input[:], s.input[vadFrame:])
	copy(s.input[vadFFT-vadFrame:], low)
	for i, place := range s.fft.order {
		s.work[place] = complex(s.input[2*i]*s.window[2*i], s.input[2*i+1]*s.window[2*i+1])
	}
	s.fft.forward(s.work[:])
	powers(s.power[:], s.work[:])
	s.bands()
	s.hiss(high)
	total := s.heights(e)
	s.compare(e)
	s.lines(total, e)
	e.loud = decibels(total)
}

// bands sums the power of each band under 2 kHz and finds its highest bin.
func (s *vadSpectrum) bands() {
	for b := range vadLines {
		var sum, top float32
		for i, p := range s.power[vadEdges[b]:vadEdges[b+1]] {
			sum += p
			if p > top {
				top, s.peak[b] = p, vadEdges[b]+i
			}
		}
		s.sum[b] = sum
	}
}

// hiss sums the power of 3 to 4 kHz and of 2 to 3 kHz, which folding has turned
// around: neighbours that are alike belong to the upper one.
func (s *vadSpectrum) hiss(high []float32) {
	var upper, lower float32
	for i := 0; i+1 < len(high); i += 2 {
		a, b := high[i]+high[i+1], high[i]-high[i+1]
		upper += a * a
		lower += b * b
	}
	const scale = 1.0 / (32768 * 32768) / (2 * vadFrame)
	s.sum[vadLines], s.sum[vadLines+1] = lower*scale, upper*scale
}

// heights fills the bands' levels and how far they stand over the floor. It
// returns the whole power.
func (s *vadSpectrum) heights(e *vadEvidence) (total float32) {
	for b, sum := range s.sum {
		const nothing = 1e-10 // -100 dBFS: digital silence has a level too
		total += sum + nothing
		s.level[b] = decibels(sum + nothing)
		over := max(0, min(30, s.level[b]-s.floor[b]))
		e.above += over / vadBands
		if over > 6 {
			e.wide += 1.0 / vadBands
		}
		if b < vadBands/2 {
			e.low += over / (vadBands / 2)
		} else {
			e.high += over / (vadBands / 2)
		}
	}
	return total
}

// compare measures how far the spectrum has moved in 60 ms.
func (s *vadSpectrum) compare(e *vadEvidence) {
	old := &s.past[s.at]
	for b, l := range s.level {
		// What lies under the floor moves at random and says nothing.
		base := max(s.floor[b], vadQuiet)
		d := max(l, base) - max(old[b], base)
		e.change += min(20, max(d, -d)) / vadBands
	}
	*old = s.level
	if s.at++; s.at == vadLag {
		s.at = 0
	}
}

// lines measures the two strongest spectral lines, each as wide as the window's
// main lobe: their share of what is there beyond the floor, and whether both were
// there in the frame before, at the same place and strength. A voice does neither
// for long; digits and call progress tones do nothing else.
func (s *vadSpectrum) lines(total float32, e *vadEvidence) {
	first := s.strongest(-10)
	second := s.strongest(first)
	e1, e2 := s.lobe(first, -10), s.lobe(second, first)
	sum := e1 + e2
	e.lines = sum / max(sum, total-0.7*s.background, 1e-10)
	low, high := min(first, second), max(first, second)
	still := abs(low-s.low) <= 1 && abs(high-s.high) <= 1 && sum < 1.4*s.line && s.line < 1.4*sum
	s.low, s.high, s.line = low, high, sum
	if still {
		e.held = e.lines
	}
}

func abs(n int) int { return max(n, -n) }

// strongest finds the highest peak of a band that is no part of the line at not.
// No two lines that matter share a band.
func (s *vadSpectrum) strongest(not int) int {
	best := vadEdges[0]
	var top float32
	for _, k := range s.peak {
		if p := s.power[k]; p > top && abs(k-not) > 3 {
			best, top = k, p
		}
	}
	return best
}

// lobe is the energy of the line at k, without bins of the line at not.
func (s *vadSpectrum) lobe(k, not int) (sum float32) {
	for i := max(vadEdges[0], k-2); i <= min(vadEdges[vadLines]-1, k+2); i++ {
		if abs(i-not) > 2 {
			sum += s.power[i]
		}
	}
	return sum
}

// learn moves the floors. They fall with the level, rise quickly while nobody
// speaks, and at last never stay under what the band has not left for 1.2 s: a
// voice leaves every band between syllables, a background does not.
func (s *vadSpectrum) learn(speech float32) {
	rise := float32(0.004)
	if speech < 0.5 {
		rise = 0.12 * (1 - 2*speech)
	}
	s.count++
	for b, l := range s.level {
		s.smooth[b] += 0.4 * (l - s.smooth[b])
		s.least[0][b] = min(s.least[0][b], s.smooth[b])
		d := l - s.floor[b]
		if d < 0 {
			s.floor[b] += 0.2 * d
		} else {
			s.floor[b] += min(1, rise*d)
		}
		s.floor[b] = max(s.floor[b], min(s.least[0][b], s.least[1][b]), -90)
	}
	if s.count%4 == 0 { // it moves slowly and exponentials are dear
		s.background = 0
		for _, f := range s.floor {
			s.background += undecibels(f)
		}
	}
	if s.count == vadMinimum {
		s.count = 0
		s.least[1] = s.least[0]
		s.least[0] = s.smooth
	}
}

// floorLevel is the level of all floors together in dBFS.
func (s *vadSpectrum) floorLevel() float32 {
	return max(SilenceLevel, decibels(s.background+1e-10))
}

// undecibels is the power of a level between -120 and +20 dB, the inverse of
// decibels to about 0.1 dB.
func undecibels(db float32) float32 {
	log2 := max(-40, min(7, db/3.0103))
	whole := float32(math.Floor(float64(log2)))
	f := log2 - whole
	m := 1 + f*(0.6565+0.3435*f)
	return m * math.Float32frombits(uint32(int32(whole)+127)<<23)
}
