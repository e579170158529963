package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// A newcomer's first call: an assistant made over the API, and a call that can be
// watched and listened to.
func TestSimulatedCall(t *testing.T) {
	t.Parallel()
	env := []string{"PARLEY_DATA=" + t.TempDir()}
	n := serves(t, env)
	require.Equal(t, 201, n.post("/api/user/assistant", `{"assistant_name":"Front desk","calls_direction":"make","engine_type":"pipeline","voice_id":1,"language":"English","llm_model":"sandbox",
		"timezone":"UTC","initial_message":"Hello {{name}}, this is Acme.","system_prompt":"Be brief."}`))
	n.stops()
	recording := filepath.Join(t.TempDir(), "call.wav")
	out := succeeds(t, env, "simulate", "call", "--assistant", "1", "--variable", "name=Ada", "--record", recording)
	require.Contains(t, out, "AI: Hello Ada, this is Acme.")
	require.Contains(t, out, "Customer: ")
	require.Contains(t, out, "Ended by the assistant (assistant_ended)")

	raw, err := os.Open(recording)
	require.NoError(t, err)
	defer raw.Close()
	stat, err := raw.Stat()
	require.NoError(t, err)
	wav, err := audio.OpenWAV(raw, stat.Size())
	require.NoError(t, err)
	require.Equal(t, 2, wav.Channels())
	samples := make([]int16, 2*int(wav.Frames()))
	_, err = wav.ReadFrames(0, samples)
	require.NoError(t, err)
	left, right := make([]int16, 0, wav.Frames()), make([]int16, 0, wav.Frames())
	for i := 0; i+1 < len(samples); i += 2 {
		left, right = append(left, samples[i]), append(right, samples[i+1])
	}
	require.Greater(t, audio.Level(left), -40.0, "the customer can be heard on the left")
	require.Greater(t, audio.Level(right), -40.0, "the assistant can be heard on the right")

	require.Contains(t, succeeds(t, env, "simulate", "call", "--assistant", "1", "--callee", "01"), "Not answered: busy.")
	for _, c := range []struct{ flag, value, says string }{
		{"--callee", "99", `there is no callee "99"; choose one of 00, 01,`},
		{"--assistant", "77", "has no assistant 77; create one with POST /api/user/assistant"},
		{"--user", "who@example.com", "there is no user who@example.com"},
	} {
		args := []string{"simulate", "call", "--assistant", "1", c.flag, c.value}
		out, code := runs(t, env, args...)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, c.says)
	}
}
