package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

const (
	wavHeaderSize = 44
	wavPCM        = 1 // WAVE_FORMAT_PCM
	wavFrameSize  = 4 // two channels of 16 bits

	// recorderSpan is how much sound waits in memory, and goes to the file at once
	// when both channels have it; either may lag behind by up to three quarters of it.
	recorderSpan = time.Second / 4

	// recorderSlack is how far a frame's time may differ from the end of its
	// channel before it is taken for a pause or for time that runs backwards: the
	// jitter of arrival must not cut speech to pieces.
	recorderSlack = 60 * time.Millisecond
)

// ErrRecorderClosed means a frame after Close.
var ErrRecorderClosed = errors.New("audio: recorder is closed")

// Recorder writes a call to a stereo WAV file of 16 bits: the customer on the
// left, the assistant on the right. Each side is fed on its own, with the time of
// the frame since the start of the recording; where a side has no frames there is
// silence, so that the two stay in step to within 60 ms however long the call.
//
// The file is playable at any moment of its life. A quarter of a second of sound is
// written at a time, and after it the header with the sizes that are true by
// then, in one write of 44 octets: a process that dies in between leaves a header
// that is short by what was written last, and at most the last quarter of a second
// is lost. OpenWAV goes by the length of such a file instead, and RepairWAV writes
// that into its header. What the system itself loses with the power is the
// caller's to prevent, by syncing the file when it is closed.
//
// A Recorder is not safe for two goroutines at once.
type Recorder struct {
	file    io.WriterAt
	rate    Rate
	pending [2][]int16 // recorderSpan of each channel from start on
	start   int64      // first sample still in memory; all before are in the file
	ends    [2]int64   // where each channel's next sample goes
	dropped int64
	header  [wavHeaderSize]byte
	err     error
}

// NewRecorder begins a file and writes the header of an empty recording.
func NewRecorder(file io.WriterAt, rate Rate) (*Recorder, error) {
	if rate <= 0 {
		return nil, fmt.Errorf("audio: no recording at %d Hz", rate)
	}
	span := rate.Samples(recorderSpan)
	both := make([]int16, 2*span)
	r := &Recorder{file: file, rate: rate, pending: [2][]int16{both[:span:span], both[span:]}}
	putWAVHeader(&r.header, rate, 2, 0)
	if _, err := file.WriteAt(r.header[:], 0); err != nil {
		return nil, fmt.Errorf("audio: begin recording: %w", err)
	}
	return r, nil
}

// Customer records what the customer said at this time since the start.
func (r *Recorder) Customer(at time.Duration, frame []int16) error { return r.write(0, at, frame) }

// Assistant records what the assistant said at this time since the start.
func (r *Recorder) Assistant(at time.Duration, frame []int16) error { return r.write(1, at, frame) }

// Dropped is how many samples came too late to be put in their place, because the
// file already holds silence there, or because their channel ran ahead of time.
func (r *Recorder) Dropped() int64 { return r.dropped }

// write puts a frame in its place. The first failure of the file ends the
// recording; every later call says so again, and the call itself goes on.
func (r *Recorder) write(channel int, at time.Duration, frame []int16) error {
	if r.err != nil {
		return r.err
	}
	place, ok := r.place(channel, at)
	if !ok {
		r.dropped += int64(len(frame))
		return nil
	}
	r.ends[channel] = place + int64(len(frame))
	other := r.ends[1-channel]
	span := int64(len(r.pending[channel]))
	for len(frame) > 0 {
		if place < r.start {
			late := min(r.start-place, int64(len(frame)))
			r.dropped += late
			place, frame = place+late, frame[late:]
			continue
		}
		if place >= r.start+span {
			if r.err = r.flush(max(span/4, min(span, other-r.start))); r.err != nil {
				return r.err
			}
			continue
		}
		n := copy(r.pending[channel][place-r.start:], frame)
		place, frame = place+int64(n), frame[n:]
	}
	return nil
}

// place is the sample at which a frame goes: the end of its channel when its time
// is about that, its own time after a pause, and nowhere when the channel is
// ahead by more than the slack (a sender whose clock is fast).
func (r *Recorder) place(channel int, at time.Duration) (int64, bool) {
	end, own := r.ends[channel], int64(r.rate.Samples(max(0, at)))
	slack := int64(r.rate.Samples(recorderSlack))
	switch {
	case own > end+slack:
		return own, true
	case own < end-slack:
		return 0, false
	default:
		return end, true
	}
}

// flush writes the oldest n samples and then the header, and makes room.
func (r *Recorder) flush(n int64) error {
	if err := r.append(r.pending[0][:n], r.pending[1][:n]); err != nil {
		return fmt.Errorf("audio: write recording: %w", err)
	}
	for _, p := range r.pending {
		clear(p[copy(p, p[n:]):])
	}
	putWAVHeader(&r.header, r.rate, 2, r.start*wavFrameSize)
	if _, err := r.file.WriteAt(r.header[:], 0); err != nil {
		return fmt.Errorf("audio: write recording's header: %w", err)
	}
	return nil
}

// recorderPages are where two channels become one file, a piece at a time.
var recorderPages = sync.Pool{New: func() any { return new([8192]byte) }}

// append puts samples of both channels at the end of the file.
func (r *Recorder) append(left, right []int16) error {
	page, _ := recorderPages.Get().(*[8192]byte)
	defer recorderPages.Put(page)
	for len(left) > 0 {
		n := min(len(left), len(page)/wavFrameSize)
		interleave(page[:], left[:n], right[:n])
		if _, err := r.file.WriteAt(page[:n*wavFrameSize], wavHeaderSize+r.start*wavFrameSize); err != nil {
			return err
		}
		r.start += int64(n)
		left, right = left[n:], right[n:]
	}
	return nil
}

// interleave writes frames of two samples, two frames at a time as far as that goes.
func interleave(out []byte, left, right []int16) {
	for len(left) >= 2 && len(right) >= 2 && len(out) >= 2*wavFrameSize {
		word := uint64(uint16(left[0])) | uint64(uint16(right[0]))<<16 |
			uint64(uint16(left[1]))<<32 | uint64(uint16(right[1]))<<48
		binary.LittleEndian.PutUint64(out, word)
		left, right, out = left[2:], right[2:], out[2*wavFrameSize:]
	}
	if len(left) > 0 {
		binary.LittleEndian.PutUint32(out, uint32(uint16(left[0]))|uint32(uint16(right[0]))<<16)
	}
}

// Close writes what is left. It does not close the file. A second Close does
// nothing.
func (r *Recorder) Close() error {
	if r.err != nil {
		if errors.Is(r.err, ErrRecorderClosed) {
			return nil
		}
		return r.err
	}
	r.err = r.flush(max(r.ends[0], r.ends[1]) - r.start)
	if r.err != nil {
		return r.err
	}
	r.err = ErrRecorderClosed
	return nil
}

// Duration is how long the recording is so far.
func (r *Recorder) Duration() time.Duration {
	return r.rate.Duration(int(max(r.ends[0], r.ends[1])))
}

// putWAVHeader writes a canonical header of 44 octets: RIFF, one format chunk, and
// the data chunk last, so that whatever follows it can only be sound.
func putWAVHeader(h *[wavHeaderSize]byte, rate Rate, channels int, size int64) {
	le := binary.LittleEndian
	// The format cannot say more than 4 GiB (six hours at 48 kHz); a reader that
	// goes by the file's length loses nothing.
	data := uint32(min(size, math.MaxUint32-wavHeaderSize))
	copy(h[0:], "RIFF")
	le.PutUint32(h[4:], wavHeaderSize-8+data)
	copy(h[8:], "WAVEfmt ")
	le.PutUint32(h[16:], 16)
	le.PutUint16(h[20:], wavPCM)
	le.PutUint16(h[22:], uint16(channels))
	le.PutUint32(h[24:], uint32(rate))
	le.PutUint32(h[28:], uint32(int(rate)*channels*2))
	le.PutUint16(h[32:], uint16(channels*2))
	le.PutUint16(h[34:], 16)
	copy(h[36:], "data")
	le.PutUint32(h[40:], data)
}
