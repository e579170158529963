package sandbox

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parley/internal/audio"
	"parley/internal/converse"
)

// journal collects a session's events.
type journal struct {
	mu     sync.Mutex
	events []converse.DuplexEvent
}

func (j *journal) add(e converse.DuplexEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// take returns what has happened since the last take: the words spoken, the tool
// calls, the customer's final words, and how many answers were completed.
func (j *journal) take() (spoken string, calls []converse.ToolCall, customer string, done []converse.Usage, errs []error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var words []string
	for _, e := range j.events {
		switch {
		case e.Sound != nil:
			for _, w := range e.Sound.Words {
				words = append(words, w.Text)
			}
		case e.ToolCall != nil:
			calls = append(calls, *e.ToolCall)
		case e.Customer != nil && e.Customer.Final && e.Customer.Text != "":
			customer = e.Customer.Text
		case e.Done != nil:
			done = append(done, *e.Done)
		case e.Err != nil:
			errs = append(errs, e.Err)
		}
	}
	j.events = nil
	return strings.Join(words, " "), calls, customer, done, errs
}

func converseWith(t *testing.T, p *Provider, j *journal, tools ...converse.ToolSpec) converse.DuplexSession {
	t.Helper()
	s, err := p.Duplex().Converse(t.Context(), converse.DuplexOptions{
		Prompt: converse.Prompt{Model: "realistic", Tools: tools}, Utterance: converse.Utterance{Rate: audio.Rate8k, Voice: "tenor"},
	}, j.add)
	require.NoError(t, err)
	return s
}

// customer speaks into a session and ends the turn.
func customer(t *testing.T, p *Provider, s converse.DuplexSession, text string) {
	t.Helper()
	x, _ := speak(t, p, converse.Utterance{Text: text, Rate: audio.Rate8k})
	play(t, s.Write, x)
	require.NoError(t, s.EndTurn())
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func TestDuplexConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, j := New(Options{}), &journal{}
		s := converseWith(t, p, j, order, endTool)
		require.NoError(t, s.Say("Hello, this is Acme. How can I help you?"))
		synctest.Wait()
		spoken, _, _, done, _ := j.take()
		require.Equal(t, "Hello, this is Acme. How can I help you?", spoken)
		require.Equal(t, []converse.Usage{{OutputTokens: 9}}, done)

		customer(t, p, s, "Where is my parcel?")
		spoken, _, heard, done, _ := j.take()
		require.Equal(t, "Where is my parcel?", heard)
		require.Equal(t, "What is your order number?", spoken)
		require.Len(t, done, 1)

		customer(t, p, s, "4711.")
		spoken, calls, _, done, _ := j.take()
		require.Equal(t, lookSentence, spoken)
		require.Equal(t, []converse.ToolCall{{ID: "call_1", Name: "get_order_status", Arguments: map[string]any{"order_number": "4711"}}}, calls)
		require.Len(t, done, 1)
		require.Error(t, s.ToolResult("call_9", "?"))
		require.NoError(t, s.ToolResult("call_1", `{"status": "shipped"}`))
		time.Sleep(time.Second)
		synctest.Wait()
		spoken, _, _, _, _ = j.take()
		require.Contains(t, spoken, "status is shipped.")

		customer(t, p, s, "No, thank you. Goodbye.")
		spoken, calls, _, _, errs := j.take()
		require.Equal(t, closingSentence, spoken)
		require.Equal(t, endCall, calls[0].Name)
		require.Empty(t, errs)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.Error(t, s.Write(make([]int16, 160)))
		require.Error(t, s.Say("x"))
	})
}

// TestDuplexInterrupted: an answer that is cut off is forgotten from there on, its
// rest is never heard, and its use is billed with the next.
func TestDuplexInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, j := New(Options{}), &journal{}
		s := converseWith(t, p, j, order)
		require.NoError(t, s.Say("Hello, this is Acme. How can I help you?"))
		require.NoError(t, s.Interrupt(900*time.Millisecond))
		synctest.Wait()
		j.take()
		inner := s.(*session)
		inner.mu.Lock()
		if len(inner.history) > 0 { // the answer may have been stopped before its first word
			require.LessOrEqual(t, len(strings.Fields(inner.history[0].Text)), 3)
			require.True(t, strings.HasPrefix("Hello, this is Acme.", inner.history[0].Text))
		}
		inner.mu.Unlock()

		require.NoError(t, s.Say("Hello, this is Acme. How can I help you?"))
		synctest.Wait()
		j.take()
		require.NoError(t, s.Interrupt(900*time.Millisecond))
		inner.mu.Lock()
		last := inner.history[len(inner.history)-1]
		inner.mu.Unlock()
		require.Equal(t, "Hello, this is", last.Text, "what was heard")

		x, _ := speak(t, p, converse.Utterance{Text: "Where is it?", Rate: audio.Rate8k})
		play(t, s.Write, x)
		require.NoError(t, s.EndTurn())
		time.Sleep(210 * time.Millisecond) // the first token is there, the sentence is not
		require.NoError(t, s.Interrupt(0))
		time.Sleep(time.Second)
		synctest.Wait()
		spoken, _, _, done, errs := j.take()
		require.Empty(t, spoken)
		require.Empty(t, done)
		require.Empty(t, errs)
		customer(t, p, s, "Sorry.")
		spoken, _, _, done, _ = j.take()
		require.Equal(t, "What is your order number?", spoken)
		require.Len(t, done, 1)
		require.Greater(t, done[0].OutputTokens, 5, "with those of the answer before")
		require.NoError(t, s.Close())
	})
}

// TestDuplexFails: an error of any part ends the session with one event.
func TestDuplexFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := Faults{At: map[int]Fault{1: {Kind: FaultBreak, After: 2}}}
		for _, o := range []Options{{ModelFaults: broken}, {SpeakerFaults: Faults{At: map[int]Fault{2: {Kind: FaultError}}}}, {TranscriberFaults: broken}} {
			p, j := New(o), &journal{}
			s := converseWith(t, p, j)
			x, _ := speak(t, New(Options{}), converse.Utterance{Text: "Hello.", Rate: audio.Rate8k})
			for ; len(x) >= 160; x = x[160:] {
				_ = s.Write(x[:160])
			}
			_ = s.EndTurn()
			time.Sleep(2 * time.Second)
			_ = s.EndTurn()
			time.Sleep(2 * time.Second)
			if o.SpeakerFaults.At != nil {
				_ = s.Say("one")
				_ = s.Say("two")
				time.Sleep(time.Second)
			}
			synctest.Wait()
			_, _, _, _, errs := j.take()
			require.Len(t, errs, 1)
			require.Error(t, s.Write(make([]int16, 160)))
			require.NoError(t, s.Close())
		}
		_, err := New(Options{TranscriberFaults: Faults{Probability: 1, Default: Fault{Kind: FaultError}}}).Duplex().Converse(t.Context(), converse.DuplexOptions{Utterance: converse.Utterance{Rate: audio.Rate8k}}, nil)
		require.Error(t, err)
	})
}

// TestDuplexClosedInTheMiddle: Close waits for what runs, and nothing comes after it.
func TestDuplexClosedInTheMiddle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, j := New(Options{ModelFaults: Faults{Probability: 1, Default: Fault{Kind: FaultHalfOpen, After: 3}}}), &journal{}
		s := converseWith(t, p, j)
		require.NoError(t, s.EndTurn())
		time.Sleep(10 * time.Second)
		require.NoError(t, s.Close())
		j.take()
		synctest.Wait()
		require.Empty(t, j.events)
	})
}
