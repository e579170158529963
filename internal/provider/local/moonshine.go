//go:build speech

package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	ort "github.com/yalue/onnxruntime_go"

	"parley/internal/audio"
)

// moonshine is the speech recogniser, its tiny English size: an encoder that sees
// a whole segment, and a decoder that writes a piece of a word at a time.
type moonshine struct {
	encoder, decoder *ort.DynamicAdvancedSession
	vocabulary       vocabulary
}

const (
	hearingRate = audio.Rate16k // of Moonshine and Silero

	layers   = 6
	heads    = 8
	headSize = 36

	startToken = 1
	endToken   = 2
)

// cacheNames are the decoder's memory: for each layer the keys and values of what
// it has written, then those of what the encoder saw.
func cacheNames(prefix string) (names []string) {
	for layer := range layers {
		for _, of := range []string{"decoder", "encoder"} {
			for _, kind := range []string{"key", "value"} {
				names = append(names, fmt.Sprintf("%s.%d.%s.%s", prefix, layer, of, kind))
			}
		}
	}
	return names
}

// ofEncoder reports whether a place of the memory belongs to what the encoder saw.
func ofEncoder(i int) bool { return i%4 >= 2 }

// loadMoonshine gives what it has loaded with an error too: it must be closed.
func loadMoonshine(folder string) (m *moonshine, err error) {
	m = &moonshine{}
	if m.vocabulary, err = loadVocabulary(filepath.Join(folder, "vocabulary")); err != nil {
		return m, err
	}
	if m.encoder, err = loadModel(filepath.Join(folder, "encoder.onnx"), []string{"input_values"}, []string{"last_hidden_state"}); err != nil {
		return m, err
	}
	inputs := append([]string{"input_ids", "encoder_hidden_states", "use_cache_branch"}, cacheNames("past_key_values")...)
	m.decoder, err = loadModel(filepath.Join(folder, "decoder.onnx"), inputs, append([]string{"logits"}, cacheNames("present")...))
	return m, err
}

func (m *moonshine) close() error {
	var errs []error
	for _, session := range []*ort.DynamicAdvancedSession{m.encoder, m.decoder} {
		if session != nil {
			errs = append(errs, session.Destroy())
		}
	}
	return errors.Join(errs...)
}

// words transcribes a segment of speech. It looks at ctx between one piece of a
// word and the next.
func (m *moonshine) words(ctx context.Context, speech []float32) (string, error) {
	speech = legible(speech)
	input, err := ort.NewTensor(ort.NewShape(1, int64(len(speech))), speech)
	if err != nil {
		return "", err
	}
	defer release(input)
	seen := []ort.Value{nil}
	if err := m.encoder.Run([]ort.Value{input}, seen); err != nil {
		return "", err
	}
	defer release(seen...)
	d := decoding{m: m, seen: seen[0]}
	defer d.close()
	if err := d.begin(); err != nil {
		return "", err
	}
	for most := mostTokens(len(speech)); len(d.written) < most && ctx.Err() == nil; {
		done, err := d.step()
		if err != nil {
			return "", err
		}
		if done {
			break
		}
	}
	return m.vocabulary.text(d.written), ctx.Err()
}

// legible is speech as Moonshine reads it best: as loud as it can be, and with silence
// behind it.
func legible(speech []float32) []float32 {
	peak := float32(quietest)
	for _, x := range speech {
		peak = max(peak, x, -x)
	}
	out := make([]float32, len(speech)+hearingRate.Samples(silenceAfter))
	for i, x := range speech {
		out[i] = x * loudest / peak
	}
	return out
}

const (
	loudest      = 0.9
	quietest     = 0.01 // what is softer was not meant for the telephone
	silenceAfter = 800 * time.Millisecond
)

// mostTokens bounds what is written for so many samples. People say up to six pieces
// a second; where more are written, Moonshine repeats itself.
func mostTokens(samples int) int { return 4 + 7*samples/int(hearingRate) }

// decoding is one segment being written down.
type decoding struct {
	m       *moonshine
	seen    ort.Value
	cache   []ort.Value
	written []int64
}

// begin makes the empty memory.
func (d *decoding) begin() error {
	for range 4 * layers {
		empty, err := ort.NewEmptyTensor[float32](ort.NewShape(0, heads, 1, headSize))
		if err != nil {
			return err
		}
		d.cache = append(d.cache, empty)
	}
	return nil
}

func (d *decoding) close() { release(d.cache...) }

// step writes the likeliest next piece.
func (d *decoding) step() (done bool, err error) {
	last, further := int64(startToken), len(d.written) > 0
	if further {
		last = d.written[len(d.written)-1]
	}
	token, err := ort.NewTensor(ort.NewShape(1, 1), []int64{last})
	if err != nil {
		return false, err
	}
	defer release(token)
	branch, err := ort.NewTensor(ort.NewShape(1), []bool{further})
	if err != nil {
		return false, err
	}
	defer release(branch)
	outputs := make([]ort.Value, 1+len(d.cache))
	if err := d.m.decoder.Run(append([]ort.Value{token, d.seen, branch}, d.cache...), outputs); err != nil {
		return false, err
	}
	defer release(outputs[0])
	for i, present := range outputs[1:] {
		if further && ofEncoder(i) { // what the encoder saw is told once
			release(present)
			continue
		}
		release(d.cache[i])
		d.cache[i] = present
	}
	logits, ok := outputs[0].(*ort.Tensor[float32])
	if !ok || len(logits.GetData()) == 0 {
		return false, errors.New("moonshine gave no likelihoods")
	}
	likelihoods := logits.GetData()
	if !further { // somebody spoke, and after silence Moonshine likes to end before it has begun
		likelihoods[endToken] = likelihoods[startToken]
	}
	next := likeliest(likelihoods)
	if next == endToken {
		return true, nil
	}
	d.written = append(d.written, next)
	return false, nil
}

func likeliest(likelihoods []float32) int64 {
	return int64(slices.Index(likelihoods, slices.Max(likelihoods)))
}
