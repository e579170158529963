package converse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGreetingStartsWithTheAnswer: rendered while the telephone rang, it is in the
// first frame.
func TestGreetingStartsWithTheAnswer(t *testing.T) {
	t.Parallel()
	o := scene{speaker: speaking{first: 500 * ms}, until: 3 * time.Second}.play(t)
	require.Equal(t, "Hello from Acme.", o.said())
	require.Equal(t, 20*ms, o.at("Hello"))
	require.Equal(t, "AI: Hello from Acme.", o.Transcript)
	require.Equal(t, EndStopped, o.EndReason)
}

// TestTurn: the customer speaks from 1.5 to 2.5 s, the pause that ends a turn is
// 500 ms, so the answer must begin at 3.0 s although transcript, model and voice take 433.
func TestTurn(t *testing.T) {
	t.Parallel()
	o := scene{
		customer: []says{{1500 * ms, 2500 * ms, "what are your hours"}},
		words:    wording{final: 131 * ms}, model: always("We open at nine.", 201*ms), speaker: speaking{first: 101 * ms},
		until: 6 * time.Second,
	}.play(t)
	require.Equal(t, "AI: Hello from Acme.\nCustomer: what are your hours\nAI: We open at nine.", o.Transcript)
	require.Equal(t, 3000*ms, o.at("We open"))
	require.Len(t, o.model.prompts(), 1, "the early answer is the answer")
	human, bot := o.Turns[1], o.Turns[2]
	require.Equal(t, [2]time.Duration{1500 * ms, 2500 * ms}, [2]time.Duration{human.Started, human.Ended})
	require.Equal(t, [2]time.Duration{3000 * ms, 4200 * ms}, [2]time.Duration{bot.Started, bot.Ended})
	require.Equal(t, Latency{Transcript: 191 * ms, EndOfTurn: 500 * ms, FirstToken: 392 * ms, FirstSound: 493 * ms, FirstAudio: 500 * ms}, bot.Latency)
}
