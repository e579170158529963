//go:build speech

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

func TestClauses(t *testing.T) {
	for text, want := range map[string][]string{
		"":       nil,
		" \n… ":  {"..."},
		"Hello.": {"Hello."},
		"Hello, this is Acme, and we have a question: may I ask it?": {"Hello, this is Acme,", "and we have a question:", "may I ask it?"},
		"That makes 1,000 dollars.":                                  {"That makes 1,000 dollars."},
		"Café “Zoë” – naïve, isn’t it?":                              {`Cafe "Zoe", naive,`, "isn't it?"},
		"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen": {
			"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen", "seventeen"},
		"See " + strings.Repeat("x", 250) + " there.":           {"See", strings.Repeat("x", 100), strings.Repeat("x", 100), strings.Repeat("x", 50) + " there."},
		strings.Repeat("y", 60) + " " + strings.Repeat("z", 60): {strings.Repeat("y", 60), strings.Repeat("z", 60)},
	} {
		require.Equal(t, want, clauses(text), text)
	}
}

func TestSpeedIsHonoured(t *testing.T) {
	p := loaded(t)
	length := func(speed float64) float64 {
		return float64(len(spoken(t, p, converse.Utterance{Text: booking, Language: "en", Rate: audio.Rate8k, Speed: speed})))
	}
	usual := length(1)
	require.InEpsilon(t, usual, length(0), 0.001)
	require.InEpsilon(t, usual/1.5, length(1.5), 0.1)
	require.InEpsilon(t, usual/0.7, length(0.7), 0.1)
}

// The same sentence lasts as long at every rate, and is as loud.
func TestRates(t *testing.T) {
	p := loaded(t)
	u := converse.Utterance{Text: booking, Voice: "slt", Language: "en", Rate: audio.Rate16k, Speed: 1}
	plain := spoken(t, p, u)
	for _, rate := range []audio.Rate{audio.Rate8k, audio.Rate24k, audio.Rate48k} {
		u.Rate = rate
		sound := spoken(t, p, u)
		require.InDelta(t, audio.Rate16k.Duration(len(plain)).Seconds(), rate.Duration(len(sound)).Seconds(), 0.05)
		require.InDelta(t, audio.Level(plain), audio.Level(sound), 1.5)
	}
}

// A sentence is heard before it has all been rendered.
func TestClausesAreStreamed(t *testing.T) {
	p := loaded(t)
	pieces := 0
	u := converse.Utterance{Text: "I am not interested, thank you, but my brother is.", Language: "en", Rate: audio.Rate8k, Speed: 1}
	require.NoError(t, p.Speaker().Speak(t.Context(), u, func(converse.Sound) { pieces++ }))
	require.Equal(t, 2, pieces)
}

func TestWhatTheSpeakerRefuses(t *testing.T) {
	p := loaded(t)
	for wrong, u := range map[string]converse.Utterance{
		"English alone":                        {Text: "Hallo.", Language: "de", Rate: audio.Rate8k},
		`no voice "alto"; choose one of rms, `: {Text: "Hello.", Voice: "alto", Rate: audio.Rate8k},
		"11025 Hz":                             {Text: "Hello.", Rate: 11_025},
	} {
		err := p.Speaker().Speak(t.Context(), u, func(converse.Sound) { t.Error("spoken") })
		require.ErrorContains(t, err, "local speaker")
		require.ErrorContains(t, err, wrong)
	}
}

func TestOddTexts(t *testing.T) {
	p := loaded(t)
	for _, text := range []string{"-o", "--help", "\x00\x07", "<speak>", "%s %n %d", "Γειά σου", "$5.00, 50%, a@b.co #1"} {
		u := converse.Utterance{Text: text, Language: "en", Rate: audio.Rate8k, Speed: 1}
		require.NoError(t, p.Speaker().Speak(t.Context(), u, func(converse.Sound) {}), text)
	}
}

func TestTheVocabulary(t *testing.T) {
	loaded(t)
	v, err := loadVocabulary(folderOfTests + "/vocabulary")
	require.NoError(t, err)
	number := map[string]int64{}
	for i, piece := range v {
		number[piece] = int64(i)
	}
	require.Equal(t, "Café, see you tomorrow", v.text([]int64{
		number["▁C"], number["af"], number["<0xC3>"], number["<0xA9>"], number[","], number["▁see"], number["▁you"], number["▁to"], number["-"], number["m"], number["orrow"],
		vocabularySize + 5,
	}))
	require.Empty(t, v.text([]int64{number["<0xC3>"]}), "half a character")
}

// Models that cannot be read are an error that says which.
func TestBrokenModels(t *testing.T) {
	loaded(t)
	broken := t.TempDir()
	for _, name := range []string{"installed", "onnxruntime", "vocabulary", "encoder.onnx"} {
		content, err := os.ReadFile(filepath.Join(folderOfTests, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(broken, name), content, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(broken, "decoder.onnx"), []byte("?"), 0o600))
	_, err := New(Options{Folder: broken})
	require.ErrorContains(t, err, "local: decoder.onnx cannot be loaded")
}

func TestWithoutModels(t *testing.T) {
	_, err := New(Options{})
	require.ErrorContains(t, err, "folder of the speech models must be set")
	_, err = New(Options{Folder: t.TempDir()})
	require.ErrorContains(t, err, "run make speech")
}
