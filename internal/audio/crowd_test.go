package audio

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCrowd is what a detector costs among a thousand calls on one core: every
// call's state has left the near caches by the time of its next frame, which a
// benchmark of a single detector does not show.
func BenchmarkCrowd(b *testing.B) {
	const calls, length = 1000, 256
	size := Rate8k.FrameSamples()
	hiss := stimWhite(1, size*length, -55)
	for name, x := range map[string][]int16{
		"voice": stimSum(stimSyllables(1, Rate8k, size*length, 120, -25), hiss),
		"noise": hiss,
		"clean": stimSyllables(1, Rate8k, size*length, 120, -25),
	} {
		for sense, make := range crowdSenses(b) {
			b.Run(sense+"/"+name, func(b *testing.B) {
				var crowd [calls]func([]int16)
				for i := range crowd {
					crowd[i] = make()
				}
				frame := [160]int16{}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					at := (i/calls + i%calls*7) % length // everyone is elsewhere in the sound
					copy(frame[:], x[at*size:])
					crowd[i%calls](frame[:])
				}
			})
		}
	}
}

// BenchmarkSilence is what a detector costs on a line in digital silence, where calls
// are half of the time, long after a voice.
func BenchmarkSilence(b *testing.B) {
	for sense, make := range crowdSenses(b) {
		b.Run(sense, func(b *testing.B) {
			hear, frame := make(), [160]int16{}
			for x := stimSyllables(1, Rate8k, 160*50, 120, -25); len(x) > 0; x = x[160:] {
				copy(frame[:], x)
				hear(frame[:])
			}
			clear(frame[:])
			for range 2000 {
				hear(frame[:])
			}
			b.ReportAllocs()
			for b.Loop() {
				hear(frame[:])
			}
		})
	}
}

// crowdSenses are all that a call on a telephone line does with a frame.
func crowdSenses(b *testing.B) map[string]func() func([]int16) {
	return map[string]func() func([]int16){
		"vad": func() func([]int16) {
			v, err := NewVAD(Rate8k)
			require.NoError(b, err)
			return func(frame []int16) { v.Process(frame) }
		},
		"denoiser": func() func([]int16) {
			d, err := NewDenoiser(Rate8k)
			require.NoError(b, err)
			return d.Process
		},
		"echo": func() func([]int16) {
			e := NewEchoReference(Rate8k)
			return func(frame []int16) { e.Sent(frame); e.Received(frame) }
		},
		"tones": func() func([]int16) {
			d, err := NewToneDetector(Rate8k)
			require.NoError(b, err)
			return func(frame []int16) { d.Detect(frame) }
		},
		"digits": func() func([]int16) {
			d, err := NewDTMFDetector(Rate8k)
			require.NoError(b, err)
			return func(frame []int16) { d.Detect(frame) }
		},
		"concealer": func() func([]int16) { return NewConcealer(Rate8k).Good },
		"recorder": func() func([]int16) {
			r, err := NewRecorder(noFile{}, Rate8k)
			require.NoError(b, err)
			at := time.Duration(0)
			return func(frame []int16) {
				_ = r.Customer(at, frame)
				_ = r.Assistant(at, frame)
				at += FrameDuration
			}
		},
	}
}

// noFile takes everything and keeps nothing.
type noFile struct{ io.WriterAt }

func (noFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// BenchmarkMemory tells, by its bytes per operation, what each of a call's own things
// weighs. Tables are shared by all calls and were made before.
func BenchmarkMemory(b *testing.B) {
	ambience := NewAmbience(1)
	for name, make := range map[string]func() (any, error){
		"vad":         func() (any, error) { return NewVAD(Rate8k) },
		"vad16":       func() (any, error) { return NewVAD(Rate16k) },
		"denoiser":    func() (any, error) { return NewDenoiser(Rate8k) },
		"denoiser16":  func() (any, error) { return NewDenoiser(Rate16k) },
		"echo":        func() (any, error) { return NewEchoReference(Rate8k), nil },
		"tones":       func() (any, error) { return NewToneDetector(Rate8k) },
		"digits":      func() (any, error) { return NewDTMFDetector(Rate8k) },
		"resampler":   func() (any, error) { return NewResampler(Rate8k, Rate16k) },
		"resampler24": func() (any, error) { return NewResampler(Rate24k, Rate8k) },
		"concealer":   func() (any, error) { return NewConcealer(Rate8k), nil },
		"concealer16": func() (any, error) { return NewConcealer(Rate16k), nil },
		"g722 in":     func() (any, error) { return NewG722Decoder(), nil },
		"g722 out":    func() (any, error) { return NewG722Encoder(), nil },
		"recorder":    func() (any, error) { return NewRecorder(noFile{}, Rate8k) },
		"background":  func() (any, error) { return ambience.Background(AmbientOffice, Rate8k, 1, 7) },
	} {
		b.Run(name, func(b *testing.B) {
			var kept any
			_, err := make()
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				kept, err = make()
			}
			require.NoError(b, err)
			require.NotNil(b, kept)
		})
	}
}
