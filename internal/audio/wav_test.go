package audio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func wavFile(t testing.TB) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), "call.wav"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// wavChannels reads a whole stereo file.
func wavChannels(t testing.TB, file io.ReaderAt, size int64) (left, right []int16, w *WAVReader) {
	w, err := OpenWAV(file, size)
	require.NoError(t, err)
	require.Equal(t, 2, w.Channels())
	both := make([]int16, 2*w.Frames())
	n, err := w.ReadFrames(0, both)
	if w.Frames() > 0 {
		require.NoError(t, err)
	}
	require.Equal(t, int(w.Frames()), n)
	left, right = make([]int16, n), make([]int16, n)
	for i := range n {
		left[i], right[i] = both[2*i], both[2*i+1]
	}
	return left, right, w
}

func fileSize(t testing.TB, f *os.File) int64 {
	info, err := f.Stat()
	require.NoError(t, err)
	return info.Size()
}

// wavFrames feeds a signal frame by frame from this time on.
func wavFrames(t testing.TB, feed func(time.Duration, []int16) error, rate Rate, at time.Duration, signal []int16) {
	for n := rate.FrameSamples(); len(signal) > 0; at += FrameDuration {
		k := min(n, len(signal))
		require.NoError(t, feed(at, signal[:k]))
		signal = signal[k:]
	}
}

func TestRecorderKeepsBothSides(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{Rate8k, Rate16k, Rate48k} {
		f := wavFile(t)
		r, err := NewRecorder(f, rate)
		require.NoError(t, err)
		customer := lineVoice(rate, 1, 120, 5*int(rate))
		assistant := lineVoice(rate, 2, 200, 2*int(rate))
		for i := range 250 {
			at := time.Duration(i) * FrameDuration
			n := rate.FrameSamples()
			require.NoError(t, r.Customer(at, customer[i*n:(i+1)*n]))
			if i >= 100 && i < 200 { // the assistant speaks from 2 s to 4 s
				require.NoError(t, r.Assistant(at, assistant[(i-100)*n:(i-99)*n]))
			}
		}
		require.Equal(t, 5*time.Second, r.Duration())
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		require.ErrorIs(t, r.Customer(0, nil), ErrRecorderClosed)

		left, right, w := wavChannels(t, f, fileSize(t, f))
		require.False(t, w.Repaired())
		require.Equal(t, rate, w.Rate())
		require.Equal(t, customer, left)
		require.Equal(t, make([]int16, 2*int(rate)), right[:2*int(rate)])
		require.Equal(t, assistant, right[2*int(rate):4*int(rate)])
		require.Equal(t, make([]int16, int(rate)), right[4*int(rate):])
		require.Zero(t, r.Dropped())
	}
}

func TestRecorderHeaderIsCanonical(t *testing.T) {
	t.Parallel()
	f := wavFile(t)
	r, err := NewRecorder(f, Rate8k)
	require.NoError(t, err)
	wavFrames(t, r.Customer, Rate8k, 0, make([]int16, 8000))
	require.NoError(t, r.Close())
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Len(t, b, 44+32000)
	require.Equal(t, "RIFF", string(b[:4]))
	require.Equal(t, uint32(36+32000), binary.LittleEndian.Uint32(b[4:]))
	require.Equal(t, []byte("WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x40\x1f\x00\x00\x00\x7d\x00\x00\x04\x00\x10\x00data"), b[8:40])
	require.Equal(t, uint32(32000), binary.LittleEndian.Uint32(b[40:]))
}

func TestRecorderSmoothsJitterAndKeepsStep(t *testing.T) {
	t.Parallel()
	f := wavFile(t)
	r, err := NewRecorder(f, Rate8k)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 31))
	tone := lineTone(Rate8k, 400, 9000, 60*8000)
	for i := range 3000 {
		at := time.Duration(i)*FrameDuration + time.Duration(rng.IntN(50))*time.Millisecond
		require.NoError(t, r.Customer(at, tone[160*i:160*(i+1)]))
	}
	require.NoError(t, r.Close())
	left, _, _ := wavChannels(t, f, fileSize(t, f))
	require.Equal(t, tone, left, "jitter below the slack leaves the sound whole")

	// A clock that runs 0.1 % fast or slow drifts by 600 ms in ten minutes; the
	// recording does not.
	for _, drift := range []float64{0.999, 1.001} {
		f := wavFile(t)
		r, err := NewRecorder(f, Rate8k)
		require.NoError(t, err)
		for i := range 30000 {
			at := time.Duration(float64(i) * drift * float64(FrameDuration))
			require.NoError(t, r.Customer(at, tone[:160]))
		}
		require.InDelta(t, 600*drift, r.Duration().Seconds(), 0.1)
	}
}

// Either side may be some 120 ms behind the other without losing a sample.
func TestRecorderWaitsForTheSlowerSide(t *testing.T) {
	t.Parallel()
	voice, other := lineVoice(Rate8k, 1, 120, 4*8000), lineVoice(Rate8k, 2, 200, 4*8000)
	for slower := range 2 {
		f := wavFile(t)
		r, err := NewRecorder(f, Rate8k)
		require.NoError(t, err)
		feed := []func(time.Duration, []int16) error{r.Customer, r.Assistant}
		for i := range 200 + 6 {
			if i < 200 {
				require.NoError(t, feed[1-slower](time.Duration(i)*FrameDuration, voice[160*i:160*(i+1)]))
			}
			if i >= 6 {
				require.NoError(t, feed[slower](time.Duration(i-6)*FrameDuration, other[160*(i-6):160*(i-5)]))
			}
		}
		require.NoError(t, r.Close())
		require.Zero(t, r.Dropped())
		left, right, _ := wavChannels(t, f, fileSize(t, f))
		if slower == 0 {
			left, right = right, left
		}
		require.Equal(t, voice, left)
		require.Equal(t, other, right)
	}
}

func TestRecorderBeginsAfterSilence(t *testing.T) {
	t.Parallel()
	f := wavFile(t)
	r, err := NewRecorder(f, Rate8k)
	require.NoError(t, err)
	require.NoError(t, r.Assistant(90*time.Second, []int16{1, 2, 3}))
	require.NoError(t, r.Customer(time.Second, []int16{9, 9}))
	require.Equal(t, int64(2), r.Dropped(), "its place is in the file already")
	require.NoError(t, r.Close())
	left, right, _ := wavChannels(t, f, fileSize(t, f))
	require.Equal(t, make([]int16, 90*8000+3), left)
	require.Equal(t, []int16{0, 1, 2, 3}, right[90*8000-1:])
}

// A process that dies leaves a file that any player opens.
func TestRecorderSurvivesCrash(t *testing.T) {
	t.Parallel()
	f := wavFile(t)
	r, err := NewRecorder(f, Rate8k)
	require.NoError(t, err)
	voice := lineVoice(Rate8k, 3, 140, 30*8000)
	n := 160
	for i := range 1500 {
		require.NoError(t, r.Customer(time.Duration(i)*FrameDuration, voice[i*n:(i+1)*n]))
		if i%23 != 0 { // every phase of the half seconds in the end
			continue
		}
		left, _, w := wavChannels(t, f, fileSize(t, f))
		require.False(t, w.Repaired(), "the header is true between writes")
		require.True(t, equalSamples(voice[:len(left)], left))
		require.LessOrEqual(t, (i+1)*n-len(left), 2000, "at most a quarter of a second is in memory")
	}
}

func TestWAVCutAnywhereStillOpens(t *testing.T) {
	t.Parallel()
	f := wavFile(t)
	r, err := NewRecorder(f, Rate8k)
	require.NoError(t, err)
	customer, assistant := lineVoice(Rate8k, 3, 140, 3*8000), lineVoice(Rate8k, 4, 90, 3*8000)
	for i := range 150 {
		at := time.Duration(i) * FrameDuration
		require.NoError(t, r.Customer(at, customer[160*i:160*(i+1)]))
		require.NoError(t, r.Assistant(at, assistant[160*i:160*(i+1)]))
	}
	require.NoError(t, r.Close())
	whole, err := os.ReadFile(f.Name())
	require.NoError(t, err)

	rng := rand.New(rand.NewPCG(7, 37))
	lengths := []int{44, 45, 46, 47, 48, len(whole) - 1, len(whole)}
	for len(lengths) < 200 {
		lengths = append(lengths, 44+rng.IntN(len(whole)-44))
	}
	for _, length := range lengths {
		// The header is either the final one, or one of an earlier moment.
		for _, claimed := range []int64{int64(len(whole)) - 44, int64(length-44) / 2 / 4 * 4, 0} {
			cut := append([]byte(nil), whole[:length]...)
			putWAVHeader((*[44]byte)(cut), Rate8k, 2, claimed)
			frames := (length - 44) / 4
			left, right, _ := wavChannels(t, bytes.NewReader(cut), int64(length))
			require.Len(t, left, frames, "cut at %d", length)
			require.True(t, equalSamples(customer[:frames], left) && equalSamples(assistant[:frames], right), "cut at %d", length)
		}
	}
	for length := range 44 {
		_, err := OpenWAV(bytes.NewReader(whole[:length]), int64(length))
		require.ErrorIs(t, err, ErrNotWAV)
	}
}

func equalSamples(a, b []int16) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestRepairWAV(t *testing.T) {
	t.Parallel()
	f := wavFile(t)
	r, err := NewRecorder(f, Rate16k)
	require.NoError(t, err)
	wavFrames(t, r.Assistant, Rate16k, 0, lineVoice(Rate16k, 5, 100, 3*16000))
	require.NoError(t, r.Close())
	require.NoError(t, f.Truncate(44+4*20000+3))
	frames, err := RepairWAV(f, fileSize(t, f))
	require.NoError(t, err)
	require.Equal(t, int64(20000), frames)
	w, err := OpenWAV(f, fileSize(t, f))
	require.NoError(t, err)
	require.False(t, w.Repaired())
	require.Equal(t, int64(20000), w.Frames())

	again, err := RepairWAV(f, fileSize(t, f))
	require.NoError(t, err)
	require.Equal(t, frames, again)
	require.NoError(t, f.Truncate(10))
	_, err = RepairWAV(f, 10)
	require.ErrorIs(t, err, ErrNotWAV)
}

func TestWAVReaderSkipsOtherChunks(t *testing.T) {
	t.Parallel()
	var header [44]byte
	putWAVHeader(&header, Rate24k, 1, 6)
	var b []byte
	b = append(b, header[:36]...)
	b = append(b, "LIST\x03\x00\x00\x00abc\x00"...)
	b = append(b, header[36:]...)
	b = append(b, 1, 0, 2, 0, 3, 0)
	b = append(b, "tail\x04\x00\x00\x00wxyz"...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	w, err := OpenWAV(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, int64(3), w.Frames(), "what follows the sound is not sound")
	got := make([]int16, 8)
	n, err := w.ReadFrames(1, got)
	require.NoError(t, err)
	require.Equal(t, []int16{2, 3}, got[:n])
	_, err = w.ReadFrames(3, got)
	require.ErrorIs(t, err, io.EOF)
	_, err = w.ReadFrames(-1, got)
	require.ErrorIs(t, err, io.EOF)
}

func FuzzOpenWAV(f *testing.F) {
	var header [44]byte
	putWAVHeader(&header, Rate8k, 2, 8)
	f.Add(append(header[:], 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(header[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := OpenWAV(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, ErrNotWAV)
			return
		}
		require.LessOrEqual(t, w.Frames()*int64(2*w.Channels()), int64(len(b)))
		if w.Frames() > 0 {
			_, err = w.ReadFrames(0, make([]int16, w.Frames()*int64(w.Channels())))
			require.NoError(t, err)
		}
	})
}

// brokenDisk fails from the nth write on.
type brokenDisk struct{ left int }

func (d *brokenDisk) WriteAt(p []byte, _ int64) (int, error) {
	if d.left--; d.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestRecorderTellsOfABrokenDisk(t *testing.T) {
	t.Parallel()
	_, err := NewRecorder(&brokenDisk{}, Rate8k)
	require.Error(t, err)
	_, err = NewRecorder(&brokenDisk{}, 0)
	require.Error(t, err)
	r, err := NewRecorder(&brokenDisk{left: 1}, Rate8k)
	require.NoError(t, err)
	require.Error(t, r.Customer(2*time.Second, make([]int16, 160)))
	require.Error(t, r.Assistant(0, make([]int16, 160)), "it stays broken")
	require.Error(t, r.Close())
}

func TestRecorderAllocatesNothing(t *testing.T) {
	r, err := NewRecorder(wavFile(t), Rate8k)
	require.NoError(t, err)
	frame, at := make([]int16, 160), time.Duration(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = r.Customer(at, frame)
		_ = r.Assistant(at, frame)
		at += FrameDuration
	}))
}

func BenchmarkRecorder(b *testing.B) {
	r, err := NewRecorder(wavFile(b), Rate8k)
	require.NoError(b, err)
	frame, at := make([]int16, 160), time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Customer(at, frame)
		_ = r.Assistant(at, frame)
		at += FrameDuration
	}
}
