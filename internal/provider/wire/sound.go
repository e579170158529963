package wire

import (
	"fmt"

	"parley/internal/audio"
)

// Samples are sound as bytes, 16 bits little-endian.
func Samples(samples []int16) []byte {
	b := make([]byte, 2*len(samples))
	for i, s := range samples {
		b[2*i], b[2*i+1] = byte(s), byte(s>>8)
	}
	return b
}

// MuLaw is sound as telephones send it, a byte a sample.
func MuLaw(samples []int16) []byte {
	b := make([]byte, len(samples))
	audio.EncodeMuLaw(b, samples)
	return b
}

// TelephoneSound is sound of a rate in as few bytes as do it no harm: mu-law from a
// telephone, bare samples from anything better.
func TelephoneSound(rate audio.Rate, samples []int16) []byte {
	if rate == audio.Rate8k {
		return MuLaw(samples)
	}
	return Samples(samples)
}

// FromMuLaw makes samples of telephone sound.
func FromMuLaw(b []byte) []int16 {
	samples := make([]int16, len(b))
	audio.DecodeMuLaw(samples, b)
	return samples
}

// Halves makes samples of bytes that come in pieces, and keeps a half sample for the
// next piece.
type Halves struct{ rest []byte }

// Samples are the whole samples so far.
func (h *Halves) Samples(b []byte) []int16 {
	b = append(h.rest, b...)
	samples := make([]int16, len(b)/2)
	for i := range samples {
		samples[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8)
	}
	h.rest = append([]byte(nil), b[2*len(samples):]...)
	return samples
}

// block is more than a resampler's block, at either rate.
const block = 64

// Converter brings speech that comes in pieces to another rate. The resampler's delay
// is left out, so that the speech begins with its first sample and is as long as it was.
type Converter struct {
	resampler *audio.Resampler
	from, to  audio.Rate
	delay     int // samples of the resampler's delay still to be left out
	in, out   int // samples so far
}

// NewConverter makes a converter between two rates.
func NewConverter(from, to audio.Rate) (*Converter, error) {
	resampler, err := audio.NewResampler(from, to)
	if err != nil {
		return nil, fmt.Errorf("speech at %d Hz cannot be brought to %d Hz", from, to)
	}
	c := &Converter{resampler: resampler, from: from, to: to}
	c.Reset()
	return c, nil
}

// Reset begins anew, which costs far less than another converter.
func (c *Converter) Reset() {
	c.resampler.Reset()
	c.delay, c.in, c.out = c.to.Samples(c.resampler.Latency()), 0, 0
}

// Convert takes a piece.
func (c *Converter) Convert(pcm []int16) []int16 {
	c.in += len(pcm)
	return c.convert(pcm, -1)
}

// convert gives no more than most samples unless that is negative.
func (c *Converter) convert(pcm []int16, most int) []int16 {
	out := make([]int16, c.resampler.OutputSamples(len(pcm))+block)
	out = out[:c.resampler.Resample(out, pcm)]
	early := min(c.delay, len(out))
	c.delay -= early
	out = out[early:]
	if most >= 0 && len(out) > most {
		out = out[:most]
	}
	c.out += len(out)
	return out
}

// Finish gives what the resampler still holds.
func (c *Converter) Finish() []int16 {
	tail := c.resampler.OutputSamples(c.in) - c.out
	if tail <= 0 {
		return nil
	}
	return c.convert(make([]int16, c.from.Samples(c.resampler.Latency())+block), tail)
}
