package openai_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/openai"
	"parley/internal/provider/providertest"
)

// tone is a 400 Hz tone at 24 kHz as bytes.
func tone(size int) []byte {
	b := make([]byte, size)
	for i := range size / 2 {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(int16(8000*math.Sin(2*math.Pi*400*float64(i)/24000))))
	}
	return b
}

func speak(t *testing.T, p *openai.Provider, rate audio.Rate) ([]int16, error) {
	t.Helper()
	var samples []int16
	err := p.Speaker().Speak(t.Context(), converse.Utterance{Text: "Hello.", Voice: "alloy", Rate: rate, Speed: 1.2}, func(s converse.Sound) { samples = append(samples, s.Samples...) })
	return samples, err
}

func TestSpeechIsAskedForAsSamplesAndBroughtToTheRate(t *testing.T) {
	for _, rate := range []audio.Rate{audio.Rate8k, audio.Rate16k, audio.Rate24k, audio.Rate48k} {
		p, server := provider(t, speaking(48000))
		samples, err := speak(t, p, rate)
		require.NoError(t, err)
		require.Len(t, samples, int(rate), "one second is one second")
		// The tone is where it was: its phase tells that no delay was added.
		for i := int(rate) / 4; i < int(rate)/2; i++ {
			require.InDelta(t, 8000*math.Sin(2*math.Pi*400*float64(i)/float64(rate)), samples[i], 200)
		}
		r := server.Requests()[0]
		require.Equal(t, "/v1/audio/speech", r.Path)
		require.JSONEq(t, `{"input":"Hello.","model":"gpt-4o-mini-tts","voice":"alloy","response_format":"pcm","speed":1.2}`, string(r.Body))
	}
}

// file answers with a WAV file.
func file(rate uint32, channels uint16, body []byte) providertest.Handler {
	var b bytes.Buffer
	b.WriteString("RIFF\xff\xff\xff\xffWAVELIST\x04\x00\x00\x00abcdfmt \x10\x00\x00\x00")
	for _, v := range []any{uint16(1), channels, rate, rate * 2, uint16(2), uint16(16)} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.WriteString("data\xff\xff\xff\xff")
	b.Write(body)
	return answer("audio/wav", b.Bytes())
}

func answer(contentType string, body []byte) providertest.Handler {
	return func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for len(body) > 0 {
			n := min(7, len(body))
			_, _ = w.Write(body[:n])
			body = body[n:]
		}
	}
}

func TestAServerThatSendsAFileAllTheSame(t *testing.T) {
	p, _ := provider(t, file(16000, 1, make([]byte, 3200)))
	samples, err := speak(t, p, audio.Rate8k)
	require.NoError(t, err)
	require.Len(t, samples, 800)
}

func TestSoundThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		handler providertest.Handler
		want    string
	}{
		"empty":       {answer("audio/pcm", nil), "openai speaker: the server sent no sound"},
		"one byte":    {answer("audio/pcm", []byte{1}), "no sound"},
		"header only": {file(16000, 1, nil), "no sound"},
		"wrong rate":  {file(22050, 1, make([]byte, 100)), "speech at 22050 Hz cannot be brought to 8000 Hz"},
		"stereo":      {file(16000, 2, make([]byte, 100)), "not one channel of 16 bits"},
		"mp3":         {answer("audio/mpeg", make([]byte, 100)), "audio/mpeg instead of bare samples"},
		"json":        {answer("application/json", []byte(`{"ok":true}`)), "application/json instead of bare samples"},
		"wrong key":   {providertest.Refuse(401, `{"error":{"message":"`+key+`"}}`), "openai speaker: the key was refused (401)"},
		"rate limit":  {providertest.Refuse(429, `{}`, "Retry-After", "2"), "after 2 s"},
		"cut": {func(_ context.Context, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "audio/pcm")
			_, _ = w.Write(make([]byte, 5000))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "the connection was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := provider(t, c.handler)
			_, err := speak(t, p, audio.Rate8k)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), key)
		})
	}
}

// listen opens a stream whose words come through a channel.
func listen(t *testing.T, p *openai.Provider, o converse.ListenOptions) (converse.Listener, chan converse.Heard) {
	t.Helper()
	heard := make(chan converse.Heard, 16)
	l, err := p.Transcriber().Listen(t.Context(), o, func(h converse.Heard) { heard <- h })
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, heard
}

func write(t *testing.T, l converse.Listener, samples []int16) {
	t.Helper()
	for len(samples) >= 160 {
		require.NoError(t, l.Write(samples[:160]))
		samples = samples[160:]
	}
}

func TestASegmentIsSentAsAFile(t *testing.T) {
	p, server := provider(t, transcript(" Good morning. "))
	l, heard := listen(t, p, converse.ListenOptions{Language: "de", Rate: audio.Rate8k, Hints: []string{"Parley", "Ada"}})
	write(t, l, make([]int16, 5*8000)) // the assistant speaks, the customer listens
	spoken := speech(t)
	write(t, l, spoken)
	require.NoError(t, l.Flush())
	require.Equal(t, converse.Heard{Text: "Good morning.", Final: true}, <-heard)

	r := server.Requests()[0]
	require.Equal(t, "/v1/audio/transcriptions", r.Path)
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	require.NoError(t, err)
	form, err := multipart.NewReader(bytes.NewReader(r.Body), params["boundary"]).ReadForm(1 << 20)
	require.NoError(t, err)
	require.Equal(t, []string{"gpt-4o-mini-transcribe"}, form.Value["model"])
	require.Equal(t, []string{"de"}, form.Value["language"])
	require.Equal(t, []string{"Parley, Ada"}, form.Value["prompt"])
	require.Equal(t, []string{"json"}, form.Value["response_format"])
	upload := form.File["file"][0]
	require.Equal(t, "speech.wav", upload.Filename)
	f, err := upload.Open()
	require.NoError(t, err)
	wav, err := audio.OpenWAV(f, upload.Size)
	require.NoError(t, err)
	require.Equal(t, audio.Rate8k, wav.Rate())
	require.Equal(t, 1, wav.Channels())
	require.Less(t, wav.Frames(), int64(len(spoken)+8000), "the silence before is left out")
	require.Greater(t, wav.Frames(), int64(len(spoken)-320))
	samples := make([]int16, wav.Frames())
	_, err = wav.ReadFrames(0, samples)
	if err != nil {
		require.ErrorIs(t, err, io.EOF)
	}
	whole := len(spoken) / 160 * 160
	require.Equal(t, spoken[:whole], samples[len(samples)-whole:])
}

func TestSilenceIsAnsweredWithoutTheServer(t *testing.T) {
	p, server := provider(t, transcript("Thank you for watching."))
	l, heard := listen(t, p, converse.ListenOptions{Rate: audio.Rate8k})
	write(t, l, make([]int16, 8000))
	require.NoError(t, l.Flush())
	require.Equal(t, converse.Heard{Final: true}, <-heard)
	require.Empty(t, server.Requests())
}

func TestAFailedTranscriptionEndsTheStream(t *testing.T) {
	p, _ := provider(t, providertest.Refuse(500, `{"error":{"message":"out of memory"}}`))
	l, heard := listen(t, p, converse.ListenOptions{Rate: audio.Rate8k})
	write(t, l, speech(t))
	require.NoError(t, l.Flush())
	h := <-heard
	require.EqualError(t, h.Err, "openai transcriber: the service failed (500): out of memory")
	require.Equal(t, h.Err, l.Flush())
	require.NoError(t, l.Close())
}

func TestAServerThatCannotKeepUp(t *testing.T) {
	p, _ := provider(t, providertest.Stall)
	l, _ := listen(t, p, converse.ListenOptions{Rate: audio.Rate8k})
	spoken := speech(t)
	var err error
	for range 20 {
		write(t, l, spoken[:8000])
		if err = l.Flush(); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "openai transcriber: the server is slower than the customer speaks")
}

func TestARateThatIsNotATelephones(t *testing.T) {
	p, _ := provider(t, providertest.Stall)
	_, err := p.Transcriber().Listen(t.Context(), converse.ListenOptions{Rate: 44100}, func(converse.Heard) {})
	require.EqualError(t, err, "openai transcriber: no sampling rate of 44100 Hz")
}
