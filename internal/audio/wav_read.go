package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrNotWAV means a file that is no 16-bit PCM WAV, or too short to say.
var ErrNotWAV = errors.New("audio: not a 16-bit PCM WAV file")

// WAVReader reads a 16-bit PCM WAV file of any number of channels.
type WAVReader struct {
	file     io.ReaderAt
	rate     Rate
	channels int
	data     int64 // where the sound begins
	frames   int64
	repaired bool
	buffer   [4096]byte
}

// OpenWAV reads the header of a file of this length. Of a recording that a crash
// cut short, or that ends in a broken sample, all complete frames are there: its
// sound is taken to reach to the end of the file when the header claims more than
// the file holds, and when the sound is the last thing the header knows of.
func OpenWAV(file io.ReaderAt, size int64) (*WAVReader, error) {
	w := &WAVReader{file: file}
	head := w.buffer[:12]
	if err := readFull(file, head, 0); err != nil || string(head[:4]) != "RIFF" || string(head[8:]) != "WAVE" {
		return nil, ErrNotWAV
	}
	riffEnd := 8 + int64(binary.LittleEndian.Uint32(head[4:]))
	for at := int64(12); ; {
		chunk := w.buffer[:8]
		if err := readFull(file, chunk, at); err != nil {
			return nil, ErrNotWAV
		}
		name, length := string(chunk[:4]), int64(binary.LittleEndian.Uint32(chunk[4:]))
		at += 8
		switch name {
		case "fmt ":
			if err := w.format(at, length); err != nil {
				return nil, err
			}
		case "data":
			if w.channels == 0 {
				return nil, ErrNotWAV
			}
			w.locate(at, length, riffEnd, size)
			return w, nil
		}
		at += length + length&1 // chunks are padded to even lengths
	}
}

// format reads the format chunk.
func (w *WAVReader) format(at, length int64) error {
	f := w.buffer[:16]
	if length < int64(len(f)) || readFull(w.file, f, at) != nil {
		return ErrNotWAV
	}
	kind, channels := binary.LittleEndian.Uint16(f), binary.LittleEndian.Uint16(f[2:])
	rate, bits := binary.LittleEndian.Uint32(f[4:]), binary.LittleEndian.Uint16(f[14:])
	if kind != wavPCM || bits != 16 || channels == 0 || rate == 0 || rate > 1<<20 {
		return ErrNotWAV
	}
	w.channels, w.rate = int(channels), Rate(rate)
	return nil
}

// locate decides how much sound there is.
func (w *WAVReader) locate(at, length, riffEnd, size int64) {
	there := max(0, size-at)
	last := riffEnd <= at+length+1 // nothing follows the sound but its padding
	frame := int64(2 * w.channels)
	if length > there || last && there/frame > length/frame {
		w.repaired, length = true, there
	}
	w.data, w.frames = at, length/frame
}

// Rate is the file's sampling rate.
func (w *WAVReader) Rate() Rate { return w.rate }

// Channels is how many samples make a frame.
func (w *WAVReader) Channels() int { return w.channels }

// Frames is how many samples each channel has.
func (w *WAVReader) Frames() int64 { return w.frames }

// Repaired says that the header was wrong about the length: the recording was cut
// short.
func (w *WAVReader) Repaired() bool { return w.repaired }

// ReadFrames fills dst with interleaved samples from this frame on and returns how
// many whole frames it read; io.EOF comes with none.
func (w *WAVReader) ReadFrames(from int64, dst []int16) (int, error) {
	want := int64(len(dst) / w.channels)
	want = min(want, w.frames-from)
	if from < 0 || want <= 0 {
		return 0, io.EOF
	}
	total := int(want) * w.channels
	at := w.data + from*int64(2*w.channels)
	for done := 0; done < total; {
		n := min(total-done, len(w.buffer)/2)
		if err := readFull(w.file, w.buffer[:2*n], at); err != nil {
			return done / w.channels, fmt.Errorf("audio: read recording: %w", err)
		}
		for i := range n {
			dst[done+i] = int16(binary.LittleEndian.Uint16(w.buffer[2*i:]))
		}
		done += n
		at += int64(2 * n)
	}
	return int(want), nil
}

// RepairWAV makes the header of a recording true to the length of its file and
// says how many frames it has. A file whose header is right is not written to.
func RepairWAV(file interface {
	io.ReaderAt
	io.WriterAt
}, size int64,
) (frames int64, err error) {
	w, err := OpenWAV(file, size)
	if err != nil {
		return 0, err
	}
	if !w.repaired {
		return w.frames, nil
	}
	if w.data != wavHeaderSize {
		return 0, fmt.Errorf("%w: only recordings can be repaired", ErrNotWAV)
	}
	var header [wavHeaderSize]byte
	putWAVHeader(&header, w.rate, w.channels, w.frames*int64(2*w.channels))
	if _, err := file.WriteAt(header[:], 0); err != nil {
		return 0, fmt.Errorf("audio: repair recording: %w", err)
	}
	return w.frames, nil
}

// readFull is ReadAt where an end of file after the last octet is no error.
func readFull(file io.ReaderAt, p []byte, at int64) error {
	n, err := file.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}
