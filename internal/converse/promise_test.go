package converse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
)

// manyTurns is a customer who asks n times, four seconds apart.
func manyTurns(n int) []says {
	script := make([]says, n)
	for i := range script {
		at := time.Duration(2+4*i) * time.Second
		script[i] = says{at, at + time.Second, fmt.Sprintf("question number %d", i)}
	}
	return script
}

// fewer is how often something is repeated, which is less under the race detector.
func fewer(n int) int {
	if underRace {
		return (n + 9) / 10
	}
	return n
}

func endless(a *parley.Assistant) {
	a.MaxDuration, a.MaxSilenceDuration, a.ReengagementInterval = 0, 0, 0
}

// inParallel plays scenes side by side in one bubble, as calls on one machine are.
func inParallel(t *testing.T, scenes []scene) []*outcome {
	t.Helper()
	outcomes := make([]*outcome, len(scenes))
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		for i := range scenes {
			go func() {
				outcomes[i] = scenes[i].run(t)
				done <- struct{}{}
			}()
		}
		for range scenes {
			<-done
		}
	})
	return outcomes
}

// TestPromiseC1WeAddAlmostNothing: with a transcriber of 150 ms, a model of 200 and a
// voice of 100, 500 answers begin at most 30 ms (p95) after those or the pause that
// ends the turn, whichever is longer: they run side by side. 20 calls at once: 50 ms.
func TestPromiseC1WeAddAlmostNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		calls, turns int
		limit        time.Duration
		sensitivity  float64
	}{{fewer(10), 50, 30 * ms, 0.5}, {20, fewer(25), 50 * ms, 5}} {
		scenes := make([]scene, tt.calls)
		for i := range scenes {
			scenes[i] = latencyScene(tt.turns, tt.sensitivity)
		}
		var over, total []time.Duration
		vendors := pauseFrames*20*ms + 150*ms + 200*ms + 100*ms
		for _, o := range inParallel(t, scenes) {
			for _, turn := range o.Turns {
				if l := turn.Latency; l.FirstAudio > 0 {
					total = append(total, l.FirstAudio)
					over = append(over, l.FirstAudio-max(vendors, endpointPause(tt.sensitivity)))
				}
			}
		}
		require.Len(t, over, tt.calls*tt.turns)
		slices.Sort(over)
		slices.Sort(total)
		p95 := over[len(over)*95/100]
		t.Logf("%d calls, sensitivity %v: overhead p95 %v, max %v; end of speech to first audio p95 %v", tt.calls, tt.sensitivity, p95, over[len(over)-1], total[len(total)*95/100])
		require.LessOrEqual(t, p95, tt.limit)
	}
}

func latencyScene(turns int, sensitivity float64) scene {
	return scene{
		assistant: func(a *parley.Assistant) { endless(a); a.EndpointSensitivity = sensitivity },
		customer:  manyTurns(turns), words: wording{final: 150 * ms}, model: always("Here is the answer.", 200*ms), speaker: speaking{first: 100 * ms},
		until: time.Duration(4*turns+4) * time.Second,
	}
}

// TestPromiseC2BargeInIsQuickAndExact: 500 interruptions at random moments. The
// audio is silent within 60 ms of the rule being met, no frame of the old utterance
// comes later, and the transcript is what was played, to the word.
func TestPromiseC2BargeInIsQuickAndExact(t *testing.T) {
	t.Parallel()
	calls, each := fewer(20), 25
	random := rand.New(rand.NewPCG(2, 500))
	scenes := make([]scene, calls)
	for i := range scenes {
		scenes[i] = bargeInScene(each, random)
	}
	worst, interrupted := -time.Hour, 0
	for i, o := range inParallel(t, scenes) {
		for k := 0; k < 2*each; k += 2 {
			asked, cut := scenes[i].customer[k], scenes[i].customer[k+1]
			ruleMet := cut.from + interruptSpeech(0.5)
			played := 0
			for _, w := range o.heard {
				if w.from > asked.from && w.from < asked.from+bargeInEvery && w.text != "Sorry." {
					played++
					worst = max(worst, w.to-ruleMet)
				}
			}
			for _, turn := range o.Turns {
				if turn.Interrupted && turn.Started > asked.from && turn.Started < cut.from {
					interrupted++
					require.InDelta(t, played, len(strings.Fields(turn.Text)), 1)
					require.True(t, strings.HasPrefix(fifteen, turn.Text))
				}
			}
		}
	}
	require.Equal(t, calls*each, interrupted)
	require.LessOrEqual(t, worst, 60*ms)
	t.Logf("%d interruptions: last sample of the old utterance %v after the rule was met (negative: before)", interrupted, worst)
}

const (
	fifteen      = "First second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth."
	bargeInEvery = 8 * time.Second
)

// bargeInScene: the answer begins half a second after the question, takes 4.5 s and
// is cut into at a random moment.
func bargeInScene(n int, random *rand.Rand) scene {
	var script []says
	for i := range n {
		ask := 2*time.Second + time.Duration(i)*bargeInEvery
		cut := (ask + time.Second + time.Duration(800+random.IntN(3400))*ms).Round(20 * ms)
		script = append(script, says{ask, ask + time.Second, "please count to fifteen"}, says{cut, cut + 1200*ms, "stop that now please"})
	}
	return scene{
		assistant: endless, customer: script, words: wording{final: 111 * ms, partial: 71 * ms}, speaker: speaking{first: 51 * ms},
		model: func(p Prompt) answer {
			if strings.HasPrefix(lastWords(p), "please count") {
				return answer{first: 51 * ms, token: 7 * ms, text: fifteen}
			}
			return answer{first: 51 * ms, text: "Sorry."}
		},
		until: 2*time.Second + time.Duration(n)*bargeInEvery,
	}
}

// TestPromiseC3TimersAreExact: the three timers of a call, to the millisecond, in
// well under two seconds of real time.
func TestPromiseC3TimersAreExact(t *testing.T) {
	t.Parallel()
	began := time.Now()
	seconds := fewer(1200)
	limit := time.Duration(seconds) * time.Second
	o := scene{
		assistant: func(a *parley.Assistant) {
			a.MaxDuration, a.MaxSilenceDuration, a.ReengagementInterval = seconds, 120, 600
		},
		customer: chatter(limit), words: wording{final: 11 * ms}, until: time.Hour,
	}.play(t)
	require.Equal(t, limit, o.hungUp)
	require.Equal(t, EndMaxDuration, o.EndReason)
	require.Equal(t, seconds*50, o.frames+1)
	t.Logf("%v of a call took %v", limit, time.Since(began))
	o = scene{assistant: func(a *parley.Assistant) { a.MaxSilenceDuration, a.ReengagementInterval = 100, 30 }, speaker: speaking{first: 19 * ms}, until: time.Hour}.play(t)
	require.Equal(t, 920*ms+100*time.Second, o.hungUp)
	var asked []time.Duration
	for _, turn := range o.Turns[1:] {
		asked = append(asked, turn.Started)
	}
	// 30 s after the greeting's end, and after each question's end, in the next frame.
	require.Equal(t, []time.Duration{30940 * ms, 62160 * ms, 93380 * ms}, asked)
}

// TestPromiseC6ToolsAreBounded: tools that hang, fail or flood, in 100 calls: cut
// at their limits, and every call goes on.
func TestPromiseC6ToolsAreBounded(t *testing.T) {
	t.Parallel()
	secret, flood := "s3cret-header", strings.Repeat("flood ", 10<<20/6)
	for i := range fewer(100) {
		tool := orderTool
		tool.Timeout = 1 + i%5
		tool.Headers = []parley.Header{{Name: "X-Key", Value: secret}}
		kind := i % 3
		o := scene{
			assistant: func(a *parley.Assistant) { a.Tools = []parley.Tool{tool} },
			customer:  []says{{1500 * ms, 2500 * ms, "where is it"}, {14 * time.Second, 15 * time.Second, "are you there"}}, words: wording{final: 11 * ms},
			model: func(p Prompt) answer {
				last := p.Messages[len(p.Messages)-1]
				require.NotContains(t, fmt.Sprint(p), secret)
				switch {
				case last.Role == RoleTool:
					require.LessOrEqual(t, len(last.Text), mostResult)
					return answer{text: "Sorry about that."}
				case last.Text == "are you there":
					return answer{text: "Still here."}
				}
				return answer{first: 51 * ms, calls: []ToolCall{call("1", "get_order", map[string]any{"order": "1", "admin": "true"})}}
			},
			tools: map[string]func(context.Context, map[string]any) (string, error){"get_order": func(ctx context.Context, a map[string]any) (string, error) {
				require.NotContains(t, a, "admin")
				switch kind {
				case 0:
					<-ctx.Done()
					return "", ctx.Err()
				case 1:
					return "", errScripted
				}
				return flood, nil
			}},
			until: 18 * time.Second,
		}.play(t)
		require.Contains(t, o.Transcript, "AI: Sorry about that.")
		require.Contains(t, o.Transcript, "AI: Still here.")
		require.NotContains(t, o.Transcript, secret)
		if kind == 0 {
			require.Equal(t, time.Duration(tool.Timeout)*time.Second, o.ToolRuns[0].Ended-o.ToolRuns[0].Started)
		}
	}
}
