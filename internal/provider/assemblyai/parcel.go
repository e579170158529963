package assemblyai

import (
	"time"

	"parley/internal/audio"
	"parley/internal/provider/wire"
)

const (
	usual    = 60 * time.Millisecond // three frames
	shortest = 50 * time.Millisecond // less is refused by the service
)

// parcel gathers frames until they are enough to be sent.
type parcel struct {
	rate    audio.Rate
	samples []int16
}

func newParcel(rate audio.Rate) *parcel { return &parcel{rate: rate} }

// add takes a frame; what it gives back is to be sent, or nothing.
func (p *parcel) add(frame []int16) []byte {
	p.samples = append(p.samples, frame...)
	if len(p.samples) < p.rate.Samples(usual) {
		return nil
	}
	return p.seal()
}

// rest is what has been gathered so far, filled up with silence to what the service takes.
func (p *parcel) rest() []byte {
	if len(p.samples) == 0 {
		return nil
	}
	for len(p.samples) < p.rate.Samples(shortest) {
		p.samples = append(p.samples, 0)
	}
	return p.seal()
}

// seal encodes what was gathered and begins anew.
func (p *parcel) seal() []byte {
	defer func() { p.samples = p.samples[:0] }()
	return wire.TelephoneSound(p.rate, p.samples)
}
