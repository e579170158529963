package audio

import (
	"math"
	"sync"
)

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
	voicing float32 // periodicity at a voice's pitch, 0..1
}

// vadSpectrum measures a frame in bands and keeps their noise floors.
type vadSpectrum struct {
	last   [vadFFT - vadFrame]float32 // samples that the next frame's spectrum sees again
	level  [vadBands]float32          // of the last frame, dBFS
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

// vadWindow is Hann's, in pairs. A full-scale square wave comes out as power 1 over
// all bins.
var vadWindow = sync.OnceValue(func() *[vadFFT / 2]complex64 {
	var window [vadFFT / 2]complex64
	at := func(i int) float32 {
		w := 0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/vadFFT)
		return float32(w / 32768 / math.Sqrt(vadFFT*vadFFT*0.375/2))
	}
	for i := range window {
		window[i] = complex(at(2*i), at(2*i+1))
	}
	return &window
})

// The floor begins at a quiet line's, so that a call which opens with a word is
// not deaf to it; a noisy line is learned within the first second.
const vadQuiet = -72

func (s *vadSpectrum) reset() {
	*s = vadSpectrum{background: vadBands * undecibels(vadQuiet)}
	for b := range vadBands {
		s.floor[b], s.smooth[b] = vadQuiet, vadQuiet
		s.least[0][b], s.least[1][b] = vadQuiet, vadQuiet
		for i := range s.past {
			s.past[i][b] = vadQuiet
		}
	}
}

// measure looks at the frame in work.low; the power over 2 kHz is in bands already.
func (s *vadSpectrum) measure(w *vadWork, bands *[vadBands]float32, e *vadEvidence) {
	copy(w.low[:], s.last[:])
	copy(s.last[:], w.low[vadFrame:])
	f := fft128()
	for i, win := range vadWindow() {
		w.block[f.order[i]] = complex(w.low[2*i]*real(win), w.low[2*i+1]*imag(win))
	}
	f.forward(w.block[:])
	peak := sumBands(w, bands)
	total := s.heights(bands, e)
	s.compare(e)
	s.lines(&w.power, &peak, total, e)
}

// silent is the evidence of a frame in which nothing is.
func (s *vadSpectrum) silent(e *vadEvidence) {
	s.heights(&[vadBands]float32{}, e)
	s.compare(e)
	s.low, s.high, s.line = vadEdges[0], vadEdges[0], 0
}

// sumBands sums the power of each band under 2 kHz and finds its highest bin. Bins of
// noise are in no order that could be guessed: a bin's number takes the place of the
// lowest bits of its power, and integers have a maximum without a branch.
func sumBands(w *vadWork, bands *[vadBands]float32) (peak [vadLines]int) {
	for b := range vadLines {
		var sum float32
		var top uint32
		for k := vadEdges[b]; k < vadEdges[b+1]; k++ {
			v := w.block[k]
			p := real(v)*real(v) + imag(v)*imag(v)
			w.power[k] = p
			sum += p
			top = max(top, math.Float32bits(p)&^(vadFFT/2-1)|uint32(k))
		}
		bands[b], peak[b] = sum, int(top&(vadFFT/2-1))
	}
	return peak
}

// heights fills the bands' levels and how far they stand over the floor. It
// returns the whole power.
func (s *vadSpectrum) heights(bands *[vadBands]float32, e *vadEvidence) (total float32) {
	for b, sum := range bands {
		const nothing = 1e-10 // -100 dBFS: digital silence has a level too
		total += sum + nothing
		s.level[b] = decibels(sum + nothing)
		over := between(s.level[b]-s.floor[b], 0, 30)
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
	var change float32
	for b, l := range s.level {
		// What lies under the floor moves at random and says nothing.
		base := higher(s.floor[b], vadQuiet)
		d := between(higher(l, base)-higher(old[b], base), -20, 20)
		change += higher(d, -d)
	}
	e.change = change / vadBands
	*old = s.level
	if s.at++; s.at == vadLag {
		s.at = 0
	}
}

// lines measures the two strongest spectral lines, each as wide as the window's
// main lobe: their share of what is there beyond the floor, and whether both were
// there in the frame before, at the same place and strength. A voice does neither
// for long; digits and call progress tones do nothing else.
func (s *vadSpectrum) lines(power *[vadFFT / 2]float32, peak *[vadLines]int, total float32, e *vadEvidence) {
	first := strongest(power, peak, -10)
	second := strongest(power, peak, first)
	sum := lobe(power, first, -10) + lobe(power, second, first)
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
func strongest(power *[vadFFT / 2]float32, peak *[vadLines]int, not int) int {
	best := vadEdges[0]
	var top float32
	for _, k := range peak {
		if p := power[k]; p > top && abs(k-not) > 3 {
			best, top = k, p
		}
	}
	return best
}

// lobe is the energy of the line at k, without bins of the line at not.
func lobe(power *[vadFFT / 2]float32, k, not int) (sum float32) {
	for i := max(vadEdges[0], k-2); i <= min(vadEdges[vadLines]-1, k+2); i++ {
		if abs(i-not) > 2 {
			sum += power[i]
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
		smooth := s.smooth[b] + 0.4*(l-s.smooth[b])
		s.smooth[b] = smooth
		if smooth < s.least[0][b] {
			s.least[0][b] = smooth
		}
		floor := s.floor[b]
		d := l - floor
		if d < 0 {
			floor += 0.2 * d
		} else {
			floor += between(rise*d, 0, 1)
		}
		floor = higher(floor, -90)
		if floor < s.least[0][b] && floor < s.least[1][b] {
			floor = min(s.least[0][b], s.least[1][b])
		}
		s.floor[b] = floor
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

// between is x held to a range. The built-in functions spend more on what is not a
// number, which nothing here can be.
func between(x, least, most float32) float32 {
	if x < least {
		return least
	}
	if x > most {
		return most
	}
	return x
}

// higher is the greater of two numbers.
func higher(x, y float32) float32 {
	if x > y {
		return x
	}
	return y
}

// undecibels is the power of a level between -120 and +20 dB, the inverse of
// decibels to about 0.1 dB.
func undecibels(db float32) float32 {
	log2 := between(db/3.0103, -40, 7) + 127
	whole := int32(log2) // the exponent of the result, positive
	f := log2 - float32(whole)
	m := 1 + f*(0.6565+0.3435*f)
	return m * math.Float32frombits(uint32(whole)<<23)
}
