//go:build speech

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/tetratelabs/wazero"
	experimental "github.com/tetratelabs/wazero/experimental/sysfs"
	wasi "github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"parley/internal/audio"
)

// flite is the synthesiser: a program for WebAssembly that reads a text from its
// arguments and writes a sound file. It sees no file, clock or network of ours, and
// each sentence gets a fresh one, so that a text that upsets it harms no other call.
//
// A run cannot be stopped half-way: the checks that this would take make it five
// times as slow. So it is given a few words at a time.
type flite struct {
	runtime wazero.Runtime
	program wazero.CompiledModule
}

// voices are a man and a woman from the United States, a man from Scotland, and an
// older voice that is quicker to make. The first is the easiest to understand.
// Voices are the names of all, the clearest first.
func Voices() []string { return slices.Clone(voices) }

var voices = []string{"rms", "slt", "awb", "kal16"}

const (
	speakingRate = audio.Rate16k // of their sound
	mostMemory   = 2048          // pages, 128 MB; a sentence takes 20
)

func loadFlite(file string) (*flite, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	f := &flite{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(mostMemory))}
	_, err = wasi.Instantiate(ctx, f.runtime)
	if err == nil {
		f.program, err = f.runtime.CompileModule(ctx, code)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("flite cannot be loaded: %w", err), f.close())
	}
	return f, nil
}

func (f *flite) close() error { return f.runtime.Close(context.Background()) }

// say renders a text.
func (f *flite) say(text, voice string, speed float64) ([]int16, error) {
	var sound soundFile
	arguments := []string{"flite", "-voice", voice, "--setf", "duration_stretch=" + strconv.FormatFloat(1/speed, 'f', 3, 64), "-t", text, "-o", soundName}
	files, ok := wazero.NewFSConfig().(experimental.FSConfig)
	if !ok {
		return nil, errors.New("flite has nowhere to write to")
	}
	config := wazero.NewModuleConfig().WithName("").WithArgs(arguments...).WithFSConfig(files.WithSysFSMount(folder{file: &sound}, "/"))
	program, err := f.runtime.InstantiateModule(context.Background(), f.program, config)
	if program != nil {
		defer func() { _ = program.Close(context.Background()) }()
	}
	if exit := (*sys.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 0) {
		return nil, fmt.Errorf("flite failed: %w", err)
	}
	return sound.samples()
}

// samples is the sound in the file that was written.
func (s *soundFile) samples() ([]int16, error) {
	file, err := audio.OpenWAV(bytes.NewReader(s.written), int64(len(s.written)))
	if err != nil {
		return nil, fmt.Errorf("flite wrote no sound: %w", err)
	}
	if file.Rate() != speakingRate || file.Channels() != 1 {
		return nil, fmt.Errorf("flite wrote %d channels at %d Hz", file.Channels(), file.Rate())
	}
	samples := make([]int16, file.Frames())
	n, err := file.ReadFrames(0, samples)
	return samples[:n], err
}
