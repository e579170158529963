package audio

import (
	"fmt"
	"math"
)

// Activity is what a VAD says about one frame.
type Activity struct {
	// Speech is the likelihood, 0 to 1, that somebody speaks in this frame. It
	// rises within two or three frames of a voice and falls a little slower, so
	// that the gaps inside words stay above one half.
	Speech float32
	// Level is the RMS level of the frame in dBFS, as in the function Level.
	Level float32
	// Floor is the level in dBFS of the background that the detector has settled
	// on: the noise, hum or music beneath whatever comes and goes.
	Floor float32
}

// A VAD tells speech from everything else a telephone carries. It belongs to one
// direction of one call and is fed every 20 ms frame in order.
//
// A frame is judged by how far its twelve bands stand above a noise floor that
// each band learns from its own minima, by how periodic it is at the pitch of a
// voice, and by whether it changes as articulation does: hum, ringback, digits
// and held chords are periodic too, but their spectrum stands still or sits in
// two lines. A 16 kHz line is judged by its telephone band alone, so that one
// threshold means the same on every line.
//
// Measured frame by frame at 8 kHz, one half as the threshold, on six synthesizer
// voices that it was not tuned with: it misses 2.4 % of clean speech (4.9 % when 20
// dB weaker), 0.9 to 1.6 % at 10 dB, 2.4 to 3.1 % at 5 dB and 11 to 14 % at 0 dB
// signal-to-noise ratio (white, pink). False alarms, in frames: none on steady
// noise, steady tones and hum, 0.1 % on ringback, 0.2 % on digits, 0.3 % on clicks,
// 0.8 % on noise that flutters like syllables, 0.5 to 2.4 % on chords, 3 to 6 % on
// our own forest, office and nature. With DefaultEdgeRule only chords (1 to 6 % of
// the time) and those backgrounds (3 to 6 %) make utterances. An utterance is
// noticed 100 to 160 ms after its first sound (median; 180 ms at the 95th percentile
// from 5 dB up), and the verdict falls 60 to 180 ms after its last. A crowd, a
// television or a singer is speech to it.
type VAD struct {
	rate Rate
	wide vadSplit // 16 kHz to 8 kHz
	pair vadSplit // 8 kHz to its halves under and over 2 kHz
	spec vadSpectrum
	tone vadPitch
	mind vadJudge
	pcm  []float32
	low  []float32 // the frame under 2 kHz, at 4 kHz
	high []float32 // the frame from 2 to 4 kHz, folded down, at 4 kHz
}

// NewVAD makes a detector for 8 or 16 kHz; no line is heard at any other rate.
func NewVAD(rate Rate) (*VAD, error) {
	if rate != Rate8k && rate != Rate16k {
		return nil, fmt.Errorf("audio: no voice activity detection at %d Hz", int(rate))
	}
	v := &VAD{
		rate: rate,
		pcm:  make([]float32, rate.FrameSamples()),
		low:  make([]float32, vadFrame),
		high: make([]float32, vadFrame),
	}
	v.spec.tables()
	v.Reset()
	return v, nil
}

// Reset forgets the line: floor, history and verdicts.
func (v *VAD) Reset() {
	v.wide, v.pair = vadSplit{}, vadSplit{}
	v.spec.reset()
	v.tone = vadPitch{}
	v.mind = vadJudge{net: &vadWeights}
}

// Process judges the next frame. Samples that a short frame lacks are silence,
// those beyond 20 ms are ignored: a peer's odd packet costs a wrong verdict at
// most.
func (v *VAD) Process(frame []int16) Activity {
	frame = frame[:min(len(frame), len(v.pcm))]
	level := Level(frame)
	clear(v.pcm[widen(v.pcm, frame):])
	pcm := v.pcm
	if v.rate == Rate16k {
		v.wide.under(pcm)
		pcm = pcm[:2*vadFrame]
	}
	v.pair.both(v.low, v.high, pcm)
	var e vadEvidence
	v.spec.measure(v.low, v.high, &e)
	v.tone.measure(v.low, &e)
	speech := v.mind.judge(&e)
	v.spec.learn(speech)
	return Activity{Speech: speech, Level: float32(level), Floor: v.spec.floorLevel()}
}

// widen copies samples into floats and says how many.
func widen(to []float32, from []int16) int {
	n := min(len(to), len(from))
	to, from = to[:n], from[:n]
	for i, s := range from {
		to[i] = float32(s)
	}
	return n
}

// vadSplit halves a sampling rate through an 11-tap half-band filter. 25 dB of
// rejection are enough for a detector that looks at band levels.
type vadSplit struct {
	line [10 + 320]float32 // the last ten samples, then the frame
}

// under replaces the first half of x by the lower half of its band.
func (h *vadSplit) under(x []float32) {
	copy(h.line[10:], x)
	for i := range len(x) / 2 {
		mid, rest := halfBand(h.line[2*i:])
		x[i] = mid + rest
	}
	copy(h.line[:10], h.line[len(x):])
}

// both writes the lower and the upper half of the band of x.
func (h *vadSplit) both(low, high, x []float32) {
	copy(h.line[10:], x)
	low, high = low[:len(x)/2], high[:len(x)/2]
	for i := range low {
		mid, rest := halfBand(h.line[2*i:])
		low[i], high[i] = mid+rest, mid-rest
	}
	copy(h.line[:10], h.line[len(x):])
}

// halfBand is the middle tap and the sum of all others: their sum is the lower
// band, their difference the upper one.
func halfBand(x []float32) (mid, rest float32) {
	x = x[:11:11]
	return 0.5 * x[5], 0.3066*(x[4]+x[6]) - 0.0722*(x[2]+x[8]) + 0.0156*(x[0]+x[10])
}

// decibels is 10 log10 of a positive x, to 0.003 dB: the exponent, and a
// cubic through the mantissa. A table-free logarithm keeps sixteen bands
// cheaper than one call of math.Log10 each.
func decibels(x float32) float32 {
	b := math.Float32bits(x)
	e := float32(int32(b>>23) - 127)
	m := math.Float32frombits(b&0x007fffff | 0x3f800000)
	log2 := e + ((0.15824870*m-1.05187503)*m+3.04788416)*m - 2.15362072
	return 3.0103 * log2
}
