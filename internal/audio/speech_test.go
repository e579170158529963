package audio

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Recorded-style speech: what two synthesizers from Debian say. A machine without
// them skips loudly; in CI their absence is a failure.

type talker struct{ engine, voice string }

func (v talker) String() string { return v.engine + "/" + v.voice }

// The talkers the detectors were tuned with, and the ones they are judged by.
var (
	tuningTalkers = []talker{
		{"flite", "rms"}, {"flite", "slt"}, {"espeak-ng", "en-us"}, {"espeak-ng", "en-us+f3"},
		{"espeak-ng", "de+m4"},
	}
	judgingTalkers = []talker{
		{"flite", "awb"}, {"flite", "kal"}, {"flite", "kal16"},
		{"espeak-ng", "en-gb+f2"}, {"espeak-ng", "tr+m3"}, {"espeak-ng", "es+f4"},
	}
)

var tuningTexts = []string{
	"Good morning, my name is Sam and I am calling about your order from last Tuesday. Is this a good time to talk?",
	"The quick brown fox jumps over the lazy dog. She sells sea shells by the shore, six of them, perhaps seven.",
	"Yes. No, thank you. I would rather come on Wednesday afternoon, if you still have something free.",
}

var judgingTexts = []string{
	"Hello? Yes, this is she speaking. Could you please hold on for a second while I find my glasses?",
	"My number is oh seven seven, four nine five, three two one. I think we should move the appointment to Friday.",
}

var spokenCache sync.Map // "talker|text|rate" -> func() ([]int16, error)

// spoken is text in a talker's voice at -22 dBFS RMS.
func spoken(t testing.TB, who talker, text string, rate Rate) []int16 {
	t.Helper()
	if _, err := exec.LookPath(who.engine); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: these error rates cannot go unmeasured in CI", who.engine)
		}
		t.Skipf("SKIPPED, NOT PASSED: install %s to measure on recorded-style speech", who.engine)
	}
	dir := t.TempDir()
	key := fmt.Sprintf("%s|%s|%d", who, text, rate)
	render, _ := spokenCache.LoadOrStore(key, sync.OnceValues(func() ([]int16, error) {
		return renderSpeech(filepath.Join(dir, "said.wav"), who, text, rate)
	}))
	said, err := render.(func() ([]int16, error))()
	require.NoError(t, err)
	return append([]int16(nil), said...)
}

func renderSpeech(path string, who talker, text string, rate Rate) ([]int16, error) {
	args := []string{"-voice", who.voice, "-t", text, "-o", path}
	if who.engine == "espeak-ng" {
		args = []string{"-v", who.voice, "-w", path, text}
	}
	if out, err := exec.Command(who.engine, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", who, err, out)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(file) < 44 {
		return nil, fmt.Errorf("%s: a file of %d bytes", who, len(file))
	}
	from := int(binary.LittleEndian.Uint32(file[24:]))
	x := make([]float64, (len(file)-44)/2)
	for i := range x {
		x[i] = float64(int16(binary.LittleEndian.Uint16(file[44+2*i:])))
	}
	return stimAt(stimResample(x, from, int(rate)), -22), nil
}

// stimResample is a windowed sinc, independent of the code under test. Rates are
// whole numbers, so the taps repeat after to/gcd samples.
func stimResample(x []float64, from, to int) []float64 {
	cut := 0.46 * math.Min(1, float64(to)/float64(from)) // of the input rate
	reach := int(16/(2*cut)) + 1
	taps := map[int][]float64{}
	out := make([]float64, len(x)*to/from)
	for i := range out {
		at, part := i*from/to, i*from%to
		if taps[part] == nil {
			for k := -reach; k <= reach; k++ {
				d := float64(part)/float64(to) - float64(k)
				s := 2 * cut
				if d != 0 {
					s = math.Sin(2*math.Pi*cut*d) / (math.Pi * d)
				}
				taps[part] = append(taps[part], s*(0.5+0.5*math.Cos(math.Pi*d/float64(reach+1))))
			}
		}
		for k, w := range taps[part] {
			if j := at + k - reach; j >= 0 && j < len(x) {
				out[i] += x[j] * w
			}
		}
	}
	return out
}

// talk is a conversation's side: texts one after another with pauses between
// them, and one before the first.
func talk(t testing.TB, who talker, texts []string, rate Rate, pause float64) []int16 {
	t.Helper()
	gap := make([]int16, int(pause*float64(rate)))
	out := append([]int16(nil), gap...)
	for _, text := range texts {
		out = append(out, spoken(t, who, text, rate)...)
		out = append(out, gap...)
	}
	return out
}

// Truth about a frame of clean speech.
type frameTruth uint8

const (
	frameQuiet  frameTruth = iota // nobody speaks, nor did 100 ms before or after
	frameEdge                     // may be called either way
	frameSpeech                   // somebody speaks and has for 40 ms
)

// truthOf labels clean speech: a frame is speech when its level is within 34 dB
// of the loud ones; gaps of up to 200 ms, and 40 ms at an onset, are edges.
func truthOf(clean []int16, rate Rate) []frameTruth {
	size := rate.FrameSamples()
	levels := make([]float64, len(clean)/size)
	top := SilenceLevel
	for i := range levels {
		levels[i] = Level(clean[i*size : (i+1)*size])
		top = math.Max(top, levels[i])
	}
	truth := make([]frameTruth, len(levels))
	for i := range truth {
		for d := -5; d <= 5; d++ {
			if j := i + d; j >= 0 && j < len(levels) && levels[j] > top-34 {
				truth[i] = frameEdge
			}
		}
	}
	for i := 2; i < len(levels); i++ {
		if levels[i] > top-34 && levels[i-1] > top-34 && levels[i-2] > top-34 {
			truth[i] = frameSpeech
		}
	}
	return truth
}
