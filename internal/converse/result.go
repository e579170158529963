package converse

import (
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
)

// Result is what remains of a call.
type Result struct {
	Transcript string // a line an utterance: "AI: ..." or "Customer: ..."
	Turns      []Turn
	Answered   bool
	AnsweredBy Answerer
	EndedBy    Party
	EndReason  EndReason
	// Failure is what the provider that ended the call said, in words fit for its record.
	Failure   string
	Variables map[string]any // what the tools were given, and the digits collected
	ToolRuns  []ToolRun
	Usage     []PartUsage
	Digits    string // every key the customer pressed
	OptOut    bool   // the customer asked never to be called again
	// RecordingRefused: nothing of the recording may be kept.
	RecordingRefused bool
	NoticeEnded      time.Duration // since the answer; recording began then
	Duration         time.Duration // from the answer to the end
}

// Turn is something that was said and heard.
type Turn struct {
	Text        string
	Sender      Sender
	Started     time.Duration // since the answer
	Ended       time.Duration
	Interrupted bool
	Latency     Latency // of an answer
}

// Latency is where the time between a customer's last word and the assistant's
// first went. Each is counted from the end of the customer's speech; 0 means that it
// does not apply. An early start can put the model's first token before EndOfTurn.
type Latency struct {
	Transcript time.Duration // the final words were there
	EndOfTurn  time.Duration // the pause was long enough
	FirstToken time.Duration // the model began
	FirstSound time.Duration // the voice began to arrive
	FirstAudio time.Duration // the first frame of it left
}

// Overhead is what the engine itself added: from the moment when the turn was over and
// the voice had begun to arrive, to the frame that it left with.
func (l Latency) Overhead() time.Duration { return max(0, l.FirstAudio-max(l.EndOfTurn, l.FirstSound)) }

// Sender is whose turn it was.
type Sender string

// The two senders.
const (
	Bot   Sender = "bot"
	Human Sender = "human"
)

// Answerer is who picked up.
type Answerer string

// Unknown is an honest verdict: silence, or a menu that is neither.
const (
	AnsweredByHuman   Answerer = "human"
	AnsweredByMachine Answerer = "machine"
	AnsweredByUnknown Answerer = "unknown"
)

// Party is who ended a call.
type Party string

// The parties.
const (
	ByCustomer  Party = "customer"
	ByAssistant Party = "assistant"
	BySystem    Party = "system"
)

// EndReason is why a call ended.
type EndReason = parley.EndReason

// The reasons that a conversation ends for.
const (
	EndHungUp       = parley.EndHungUp
	EndGoodbye      = parley.EndGoodbye
	EndTransferred  = parley.EndTransferred
	EndOptOut       = parley.EndOptOut
	EndMaxDuration  = parley.EndMaxDuration
	EndMaxSilence   = parley.EndMaxSilence
	EndVoicemail    = parley.EndVoicemail
	EndMessageLeft  = parley.EndMessageLeft
	EndTranscriber  = parley.EndTranscriber
	EndModel        = parley.EndModel
	EndSpeaker      = parley.EndSpeaker
	EndDuplex       = parley.EndDuplex
	EndStopped      = parley.EndStopped
	EndNotAnswered  = parley.EndNotAnswered
	EndMediaFailure = parley.EndMediaFailure
)

// ToolRun is one run of a tool.
type ToolRun struct {
	Name      string
	Arguments map[string]any
	Result    string // what the model was told
	Failed    bool
	Started   time.Duration // since the answer
	Ended     time.Duration
}

// Part is a part of a call that is billed on its own.
type Part string

// The parts.
const (
	PartTranscriber Part = "transcriber"
	PartModel       Part = "model"
	PartSpeaker     Part = "synthesizer"
	PartDuplex      Part = "multimodal"
)

// PartUsage is what one provider did in a call.
type PartUsage struct {
	Part         Part
	Provider     string
	Key          string
	Heard        time.Duration
	InputTokens  int
	OutputTokens int
	Characters   int
	Requests     int
}

// meter adds up usage by provider: the fallback has another price. Providers report
// from their own goroutines, and some only when the call is over.
type meter struct {
	mu    sync.Mutex
	parts []PartUsage
}

func (m *meter) add(u PartUsage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.parts {
		p := &m.parts[i]
		if p.Part == u.Part && p.Provider == u.Provider && p.Key == u.Key {
			p.Heard += u.Heard
			p.InputTokens += u.InputTokens
			p.OutputTokens += u.OutputTokens
			p.Characters += u.Characters
			p.Requests += u.Requests
			return
		}
	}
	m.parts = append(m.parts, u)
}

func (m *meter) all() []PartUsage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.parts)
}

// transcript writes turns as the call's record shows them.
func transcript(turns []Turn) string {
	var b strings.Builder
	for i, t := range turns {
		if i > 0 {
			b.WriteByte('\n')
		}
		if t.Sender == Bot {
			b.WriteString("AI: ")
		} else {
			b.WriteString("Customer: ")
		}
		b.WriteString(t.Text)
	}
	return b.String()
}
