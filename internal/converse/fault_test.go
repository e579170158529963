package converse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dice gives seeded faults: 10 % errors, 5 % stalls, 5 % half-open streams.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
	thrown int
}

func (d *dice) throw() fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thrown++
	switch n := d.random.IntN(100); {
	case n < 10:
		return errs
	case n < 15:
		return stalls
	case n < 20:
		return half
	}
	return sound
}

// brittle is a call in which every provider fails now and then. Every other call has
// fallbacks for all three, which work.
func brittle(seed uint64, fallback bool) scene {
	d := &dice{random: rand.New(rand.NewPCG(5, seed))}
	s := scene{
		assistant: endless,
		words:     wording{final: 151 * ms, partial: 101 * ms, fault: func(int) fault { return d.throw() }},
		model: func(p Prompt) answer {
			return answer{first: 201 * ms, token: 31 * ms, text: "Certainly. That is no trouble at all for us.", fault: d.throw()}
		},
		speaker: speaking{first: 101 * ms, fault: func(string, int) fault { return d.throw() }},
		until:   34 * time.Second,
	}
	for i := range 3 {
		at := time.Duration(4+9*i) * time.Second
		s.customer = append(s.customer, says{at, at + 1200*ms, fmt.Sprintf("please do thing number %d", i)})
	}
	if fallback {
		s.config = func(c *Config) {
			ears, voice := c.Transcribers[0].Use.(*scriptTranscriber), c.Speakers[0].Use.(*scriptSpeaker)
			c.Transcribers = append(c.Transcribers, Provider[Transcriber]{Name: "ears-b", Key: "", Use: &scriptTranscriber{script: ears.script, wording: wording{final: 151 * ms}}})
			c.Models = append(c.Models, Provider[Model]{Name: "mind-b", Key: "", Use: &scriptModel{answer: always("The second mind answers.", 201*ms)}})
			c.Speakers = append(c.Speakers, Provider[Speaker]{Name: "voice-b", Key: "", Use: fallbackVoice{voice}})
		}
	}
	return s
}

// fallbackVoice speaks through the same table of words, without faults.
type fallbackVoice struct{ of *scriptSpeaker }

func (v fallbackVoice) Speak(ctx context.Context, u Utterance, emit func(Sound)) error {
	if err := sleep(ctx, 101*ms); err != nil {
		return err
	}
	for i, w := range strings.Fields(u.Text) {
		emit(v.of.sound(w, i, 300*ms))
	}
	return nil
}

// TestPromiseC5AFailingVendorNeverHangsACall: 300 calls with seeded faults. Every
// call ends; after everything the customer says there is audio within 3 s, or the
// call has ended with a reason; and fallbacks are used where set.
func TestPromiseC5AFailingVendorNeverHangsACall(t *testing.T) {
	t.Parallel()
	calls, batch := fewer(300), 30
	usedFallback, silent, ended := 0, 0, map[EndReason]int{}
	for from := 0; from < calls; from += batch {
		scenes := make([]scene, batch)
		for i := range scenes {
			scenes[i] = brittle(uint64(from+i), (from+i)%2 == 1)
		}
		for i, o := range inParallel(t, scenes) {
			require.NotEmpty(t, o.EndReason)
			if i%2 == 1 {
				require.Equal(t, EndStopped, o.EndReason, "with fallbacks that work the call goes on: %v", failures(o))
			}
			ended[o.EndReason]++
			for _, said := range scenes[i].customer {
				if d, ok := answeredWithin(o, said.to); !ok {
					silent++
					t.Logf("call %d: nothing for %v after %v\n%s\n%v", from+i, d, said.to, o.Transcript, failures(o))
				}
			}
			usedFallback += fallbackRequests(o)
		}
	}
	t.Logf("%d calls ended: %v; fallbacks asked %d times", calls, ended, usedFallback)
	require.Zero(t, silent)
	require.Positive(t, usedFallback)
}

// answeredWithin reports audio within 3 s of a moment, unless the call was over.
func answeredWithin(o *outcome, at time.Duration) (time.Duration, bool) {
	limit := at + 3*time.Second
	if o.hungUp <= limit {
		return 0, true
	}
	next := o.hungUp
	for _, w := range o.heard {
		if w.to > at {
			next = max(at, w.from)
			break
		}
	}
	return next - at, next <= limit
}

func failures(o *outcome) (out []string) {
	for _, e := range o.events {
		if e.Failure != "" {
			out = append(out, fmt.Sprint(e.At, " ", e.Failure))
		}
	}
	return out
}

func fallbackRequests(o *outcome) int {
	n := 0
	for _, u := range o.Usage {
		if strings.HasSuffix(u.Provider, "-b") {
			n += u.Requests
		}
	}
	return n
}

// TestDeadProviders: each part dead in each way. With a fallback the call goes on;
// without one it ends with its reason, never hangs, and where a voice is left an
// apology is said.
func TestDeadProviders(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{errs, stalls, half, garbage} {
		dead := func(part Part) scene {
			s := scene{customer: []says{{4 * time.Second, 5 * time.Second, "hello are you there"}}, words: wording{final: 151 * ms}, model: always("Yes I am.", 201*ms), speaker: speaking{first: 101 * ms}, until: 50 * time.Second}
			switch part {
			case PartTranscriber:
				s.words.fault = func(int) fault { return f }
			case PartModel:
				s.model = func(Prompt) answer { return answer{first: 201 * ms, text: "Yes", fault: f} }
			case PartSpeaker:
				s.speaker.fault = func(string, int) fault { return f }
			}
			return s
		}
		for _, part := range []Part{PartTranscriber, PartModel, PartSpeaker} {
			o := dead(part).play(t)
			d, ok := answeredWithin(o, 5*time.Second)
			require.True(t, ok, "%v of %s: silent for %v: %s %v", f, part, d, o.Transcript, failures(o))
			if part == PartModel && f != half {
				require.Equal(t, EndModel, o.EndReason, "fault %v", f)
				require.Contains(t, o.Transcript, phraseBook["en"].apology)
				require.NotEmpty(t, o.Failure)
			}
			if part == PartSpeaker && f != half {
				require.Equal(t, EndSpeaker, o.EndReason, "fault %v", f)
			}
			if part == PartTranscriber && f == errs {
				require.Equal(t, EndTranscriber, o.EndReason)
			}
			s := dead(part)
			s.config = brittle(0, true).config
			o = s.play(t)
			require.Contains(t, []EndReason{EndStopped, EndMaxSilence}, o.EndReason, "%v of %s with a fallback: %v", f, part, failures(o))
			require.Contains(t, o.Transcript, "Customer: hello are you there", "%v of %s with a fallback", f, part)
		}
	}
}

// lateVoice ignores that it was given up: its first answer comes when the second has.
type lateVoice struct {
	of    *scriptSpeaker
	calls atomic.Int32
}

func (v *lateVoice) Speak(_ context.Context, u Utterance, emit func(Sound)) error {
	delay := 101 * ms
	if v.calls.Add(1) == 1 {
		delay = firstSoundLimit + 301*ms
	}
	time.Sleep(delay)
	for i, w := range strings.Fields(u.Text) {
		emit(v.of.sound(w, i, 300*ms))
	}
	return nil
}

// TestLateSoundIsVoid: what arrives of an attempt that was given up is not heard.
func TestLateSoundIsVoid(t *testing.T) {
	t.Parallel()
	o := scene{
		ring: 20 * ms, assistant: long, until: 8 * time.Second,
		config: func(c *Config) { c.Speakers[0].Use = &lateVoice{of: c.Speakers[0].Use.(*scriptSpeaker)} },
	}.play(t)
	require.Equal(t, tenWords, o.said())
}

// TestHalfSpokenSentenceIsFinishedByTheFallback: what the first voice did not say the
// second does, and no word is said twice.
func TestHalfSpokenSentenceIsFinishedByTheFallback(t *testing.T) {
	t.Parallel()
	o := scene{
		assistant: long, config: brittle(0, true).config, until: 12 * time.Second,
		speaker: speaking{fault: func(string, int) fault { return half }},
	}.play(t)
	require.Equal(t, tenWords, o.said())
	require.Equal(t, "AI: "+tenWords, o.Transcript)
}
