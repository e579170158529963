package audio

import "math"

// G.722 at 64 kbit/s (mode 1): 16 kHz sound is split by a quadrature mirror
// filter into two bands of 8 kHz sampling; the lower is coded in 6 bits and the
// higher in 2 bits by adaptive differential PCM. An octet therefore carries two
// samples, and RTP counts it at 8000 Hz all the same (RFC 3551 4.5.2).
//
// The arithmetic is the Recommendation's own (section 6.2): 16-bit saturating
// words, so that encoder and decoder of any make keep the same state. Section
// names in the comments are its block names.

// G722Encoder turns 16 kHz samples into G.722 octets. It carries the state of
// one stream; the zero value is not ready, use NewG722Encoder.
type G722Encoder struct {
	low, high g722Band
	split     g722Filter
}

// NewG722Encoder makes an encoder in the reset state of section 6.2.
func NewG722Encoder() *G722Encoder {
	e := &G722Encoder{}
	e.Reset()
	return e
}

// Reset starts a new stream.
func (e *G722Encoder) Reset() {
	*e = G722Encoder{low: g722Band{step: g722LowStep}, high: g722Band{step: g722HighStep}}
}

// Encode writes one octet to dst for every two samples of src and returns how
// many it wrote. It stops at the shorter of the two; an odd last sample is left.
func (e *G722Encoder) Encode(dst []byte, src []int16) int {
	n := min(len(dst), len(src)/2)
	for i := range n {
		low, high := e.split.analyse(int(src[2*i]), int(src[2*i+1]))
		dst[i] = byte(e.encodeHigh(high)<<6 | e.encodeLow(low))
	}
	return n
}

// encodeLow is blocks SUBTRA, QUANTL, INVQAL, LOGSCL and SCALEL of the lower
// band. The interval is found by halving, without branches: how loud a sample is
// cannot be predicted, and a wrong guess costs more than the step.
func (e *G722Encoder) encodeLow(x int) int {
	difference := clip16(x - e.low.prediction)
	negative := difference >> 63
	magnitude := difference ^ negative
	interval := 0
	for half := 16; half > 0; half >>= 1 {
		below := (magnitude - g722LowLevels[(interval+half)&31]*e.low.step>>12) >> 63
		interval += half &^ below
	}
	code := int(g722LowCodes[negative&32+interval])
	e.low.adaptLow(code)
	return code
}

// encodeHigh is the same for the higher band, whose quantizer has two intervals
// of each sign.
func (e *G722Encoder) encodeHigh(x int) int {
	difference := clip16(x - e.high.prediction)
	negative := difference >> 63
	below := (difference ^ negative - g722HighLevel*e.high.step>>12) >> 63
	code := 2 + 2*negative - below
	e.high.adaptHigh(code)
	return code
}

// G722Decoder turns G.722 octets into 16 kHz samples. It carries the state of
// one stream; the zero value is not ready, use NewG722Decoder.
type G722Decoder struct {
	low, high g722Band
	join      g722Filter
}

// NewG722Decoder makes a decoder in the reset state of section 6.2.
func NewG722Decoder() *G722Decoder {
	d := &G722Decoder{}
	d.Reset()
	return d
}

// Reset starts a new stream.
func (d *G722Decoder) Reset() {
	*d = G722Decoder{low: g722Band{step: g722LowStep}, high: g722Band{step: g722HighStep}}
}

// Decode writes two samples to dst for every octet of src and returns how many
// samples it wrote. It stops at the shorter of the two. Any octets decode to
// something: after a loss the two ends find each other again because the
// adaptation leaks (sections 3.5 and 3.6).
func (d *G722Decoder) Decode(dst []int16, src []byte) int {
	n := min(len(dst)/2, len(src))
	for i := range n {
		lowCode, highCode := int(src[i]&0x3f), int(src[i]>>6)

		// INVQBL: the listener hears all six bits, though the predictor learns
		// from the upper four only.
		low := d.low.prediction + d.low.step*g722LowOutputs6[lowCode]>>15
		low = max(-16384, min(16383, low))
		d.low.adaptLow(lowCode)

		high := d.high.prediction + d.high.step*g722HighOutputs[highCode]>>15
		high = max(-16384, min(16383, high))
		d.high.adaptHigh(highCode)

		dst[2*i], dst[2*i+1] = d.join.synthesise(low, high)
	}
	return 2 * n
}

// g722Band is the adaptive predictor and quantizer step of one band: block 4 of
// the Recommendation (RECONS, PARREC, UPPOL1, UPPOL2, UPZERO, FILTEP, FILTEZ,
// PREDIC), the same in both bands and at both ends. Words are kept in ints; each
// holds a saturated 16-bit value.
type g722Band struct {
	prediction     int    // s: what the next sample should be
	zeroPrediction int    // sz: the part of it from the zero section
	step           int    // det: the quantizer's scale
	logStep        int    // nb: the same in logarithms
	pole           [2]int // a1, a2
	zero           [6]int // b1 to b6
	rebuilt        [2]int // r1, r2: signals rebuilt before
	partial        [2]int // p1, p2: signals rebuilt without the pole section
	differences    [6]int // d1 to d6: quantized differences before, doubled as FILTEZ wants them
}

func (b *g722Band) adaptLow(code int) {
	core := code >> 2 // The two lowest bits may be data of an auxiliary channel.
	difference := b.step * g722LowOutputs4[core] >> 15
	b.logStep = max(0, min(18432, b.logStep*127>>7+g722LowWeights[core]))
	b.step = g722Step(b.logStep, 8)
	b.predict(difference)
}

func (b *g722Band) adaptHigh(code int) {
	difference := b.step * g722HighOutputs[code] >> 15
	b.logStep = max(0, min(22528, b.logStep*127>>7+g722HighWeights[code]))
	b.step = g722Step(b.logStep, 10)
	b.predict(difference)
}

// g722Step is blocks SCALEL and SCALEH: the antilogarithm by table and shift.
func g722Step(logStep, scale int) int {
	v := g722Antilog[logStep>>6&31]
	if shift := scale - logStep>>11; shift >= 0 {
		return v >> shift << 2
	}
	return v << (logStep>>11 - scale) << 2
}

func (b *g722Band) predict(difference int) {
	rebuilt := clip16(b.prediction + difference)
	partial := clip16(b.zeroPrediction + difference)
	b.adaptPoles(partial)
	b.zeroPrediction = b.adaptZeros(difference)

	b.rebuilt[1], b.rebuilt[0] = b.rebuilt[0], rebuilt
	b.partial[1], b.partial[0] = b.partial[0], partial
	poles := clip16(clip16(2*b.rebuilt[0])*b.pole[0]>>15 + clip16(2*b.rebuilt[1])*b.pole[1]>>15)
	b.prediction = clip16(poles + b.zeroPrediction)
}

// adaptPoles is UPPOL2 and UPPOL1: a sign gradient whose limits keep the pole
// section stable. The signs of sound are a coin toss, which a processor cannot
// predict, so they are applied by arithmetic instead of by branches.
func (b *g722Band) adaptPoles(partial int) {
	unlike1 := (partial ^ b.partial[0]) >> 63 // 0, or -1 when the signs differ
	unlike2 := (partial ^ b.partial[1]) >> 63

	turn := min(negateIf(clip16(4*b.pole[0]), ^unlike1), 32767)
	second := turn>>7 + negateIf(128, unlike2) + b.pole[1]*32512>>15
	second = max(-12288, min(12288, second))

	first := clip16(b.pole[0]*32640>>15 + negateIf(192, unlike1))
	limit := 15360 - second
	b.pole = [2]int{max(-limit, min(limit, first)), second}
}

// adaptZeros is UPZERO, DELAYA and FILTEZ: each coefficient leaks by 1/256 and
// moves by the sign of its correlation with the new difference; then the
// differences move on and the section predicts. The leak and the move bound a
// coefficient below 2^15, so that it needs no limit.
func (b *g722Band) adaptZeros(difference int) (prediction int) {
	gain := 128
	if difference == 0 {
		gain = 0
	}
	newer := clip16(2 * difference)
	for i, d := range b.differences {
		b.zero[i] = b.zero[i]*32640>>15 + negateIf(gain, (d^difference)>>63)
		b.differences[i] = newer
		prediction += newer * b.zero[i] >> 15
		newer = d
	}
	return clip16(prediction)
}

// negateIf is v when mask is 0 and -v when it is -1.
func negateIf(v, mask int) int { return (v ^ mask) - mask }

// g722Filter is the memory of the 24-tap quadrature mirror filter, of the two
// phases apart. Each phase is stored twice, so that the last twelve values lie
// in a row without moving them.
type g722Filter struct {
	even, odd [24]int
	at        int
}

func (f *g722Filter) push(even, odd int) {
	f.even[f.at], f.even[f.at+12] = even, even
	f.odd[f.at], f.odd[f.at+12] = odd, odd
	f.at++
	if f.at == 12 {
		f.at = 0
	}
}

// sums runs both phases over the last twelve values, oldest first; the second
// phase has the taps of the first in reverse because the filter is symmetric.
func (f *g722Filter) sums() (first, second int) {
	even, odd := (*[12]int)(f.even[f.at:]), (*[12]int)(f.odd[f.at:])
	for i := 0; i < 12; i += 3 {
		a, b, c := g722Taps[i], g722Taps[i+1], g722Taps[i+2]
		first += even[i]*a + even[i+1]*b + even[i+2]*c
		second += odd[11-i]*a + odd[10-i]*b + odd[9-i]*c
	}
	return first, second
}

// analyse is the transmit filter (section 3.1): two samples in, one of each band
// out, at half the scale so that neither overflows 15 bits.
func (f *g722Filter) analyse(earlier, later int) (low, high int) {
	f.push(earlier, later)
	first, second := f.sums()
	return (first + second) >> 14, (second - first) >> 14
}

// synthesise is the receive filter (section 4.4), which cancels the aliases that
// the transmit filter folded into both bands.
func (f *g722Filter) synthesise(low, high int) (earlier, later int16) {
	f.push(low+high, low-high)
	first, second := f.sums()
	return int16(clip16(second >> 11)), int16(clip16(first >> 11))
}

// clip16 limits a word to 16 bits.
func clip16(v int) int { return max(math.MinInt16, min(math.MaxInt16, v)) }
