//go:build speech

package local

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

const folderOfTests = "../../../build/speech"

// models are loaded once for all tests.
var models = sync.OnceValues(func() (*Provider, error) { return New(Options{Folder: folderOfTests}) })

// loaded are the models, without which a test is skipped, or fails where everything
// must be there.
func loaded(t testing.TB) *Provider {
	t.Helper()
	if err := installed(folderOfTests); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, NOTHING WAS HEARD OR SPOKEN:", err)
	}
	p, err := models()
	require.NoError(t, err)
	return p
}

// busy is a provider whose cores are all taken.
func busy(p *Provider) *Provider {
	q := *p
	q.work = newPool(1)
	q.work <- struct{}{}
	return &q
}

// spoken is an utterance as sound.
func spoken(t testing.TB, p *Provider, u converse.Utterance) (sound []int16) {
	t.Helper()
	require.NoError(t, p.Speaker().Speak(t.Context(), u, func(s converse.Sound) { sound = append(sound, s.Samples...) }))
	return sound
}

// silence on a telephone line.
func silence(d time.Duration) []int16 { return make([]int16, audio.Rate8k.Samples(d)) }

// telephoned is speech as it comes out of a telephone: narrow, in the 256 steps of
// mu-law, with silence on either side.
func telephoned(t testing.TB, p *Provider, text, voice string) []int16 {
	t.Helper()
	line := silence(time.Second)
	line = append(line, spoken(t, p, converse.Utterance{Text: text, Voice: voice, Language: "en", Rate: audio.Rate8k, Speed: 1})...)
	line = append(line, silence(time.Second)...)
	law := make([]byte, len(line))
	audio.EncodeMuLaw(law, line)
	audio.DecodeMuLaw(line, law)
	return line
}

// stream is a call's ear and what it has heard.
type stream struct {
	converse.Listener

	heard chan converse.Heard
}

func listening(t testing.TB, p *Provider) stream {
	t.Helper()
	heard := make(chan converse.Heard, 1000)
	l, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, func(h converse.Heard) { heard <- h })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return stream{l, heard}
}

// write gives sound in frames.
func (s stream) write(t testing.TB, sound []int16) {
	t.Helper()
	for n := audio.Rate8k.FrameSamples(); len(sound) >= n; sound = sound[n:] {
		require.NoError(t, s.Write(sound[:n]))
	}
}

// final waits for the next final words.
func (s stream) final(t testing.TB) string {
	t.Helper()
	for {
		select {
		case h := <-s.heard:
			require.NoError(t, h.Err)
			if h.Final {
				return h.Text
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no final words came")
		}
	}
}
