// Package converse is the turn engine: it holds one conversation, from the answer
// to the last goodbye. It knows audio frames, words, timers and tools; it must not
// know networks, databases, SIP or HTTP, so that a whole call runs in virtual time.
package converse

import (
	"context"
	"time"

	"parley/internal/audio"
)

// The engine's providers. Each method that takes a callback runs until its work is
// done, calls back in order from one goroutine, and returns soon after ctx ends;
// nothing is called back after it has returned. An error names the provider and
// what went wrong, in words fit for a call's record. All are safe for concurrent
// use by many calls.

// Transcriber turns a customer's speech into words.
type Transcriber interface {
	// Listen opens a stream for one call. Words come back through hear, which must not block.
	Listen(ctx context.Context, o ListenOptions, hear func(Heard)) (Listener, error)
}

// ListenOptions says what is about to be heard.
type ListenOptions struct {
	Language string // ISO 639-1
	Rate     audio.Rate
	Hints    []string // words to expect: names, products
}

// Listener is one call's stream into a transcriber.
type Listener interface {
	// Write takes one 20 ms frame; the frame may be reused after it returns. It must not block.
	Write(frame []int16) error
	// Flush says that the customer has paused: a final transcript is wanted now.
	Flush() error
	// Close ends the stream; closing twice is harmless.
	Close() error
}

// Heard is what a transcriber made of the speech so far.
type Heard struct {
	Text    string // of the segment since the last final one
	Final   bool   // will not change
	EndTurn bool   // the transcriber's own opinion that the turn is over
	Damaged bool   // part of the speech could not be understood
	Err     error  // the stream has failed and yields nothing more
}

// Model is a language model.
type Model interface {
	// Reply streams the answer to a prompt through emit, which must not block.
	Reply(ctx context.Context, p Prompt, emit func(Delta)) (Usage, error)
}

// Prompt is everything a model is told.
type Prompt struct {
	Model       string // the provider's own name of the model
	System      string
	Messages    []Message
	Tools       []ToolSpec
	Temperature float64
	Language    string
	// Extract asks for a JSON object with these fields instead of speech, as the evaluation after a call does.
	Extract []ParamSpec
}

// Message is a part of the conversation so far.
type Message struct {
	Role       Role
	Text       string
	ToolCalls  []ToolCall // of RoleAssistant
	ToolCallID string     // of RoleTool: which call this answers
}

// Role says who a message is from.
type Role string

// The roles.
const (
	RoleCustomer  Role = "customer"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// ToolSpec is a function that a model may call.
type ToolSpec struct {
	Name        string
	Description string
	Params      []ParamSpec
}

// ParamSpec is a parameter of a tool, or a field to extract.
type ParamSpec struct {
	Name        string
	Type        string // string, number, boolean
	Description string
	Required    bool
}

// ToolCall is a model's wish to run a tool.
type ToolCall struct {
	ID        string
	Name      string
	Arguments map[string]any
}

// Delta is a piece of a model's answer: some text, or one whole tool call.
type Delta struct {
	Text     string
	ToolCall *ToolCall
}

// Speaker turns words into speech.
type Speaker interface {
	// Speak streams the speech of one sentence through emit, which must not block.
	Speak(ctx context.Context, u Utterance, emit func(Sound)) error
}

// Utterance is a sentence to be spoken, and how.
type Utterance struct {
	Text       string
	Voice      string // the provider's own name of the voice
	Language   string
	Rate       audio.Rate // of the samples wanted
	Speed      float64
	Stability  float64
	Similarity float64
}

// Sound is a piece of speech at the rate that was asked for, any number of samples
// long, and the words that begin in it. A speaker that knows no word times sends
// none, and the engine spreads the words over the length.
type Sound struct {
	Samples []int16
	Words   []SpokenWord
}

// SpokenWord is a word and when it is heard, from the start of its utterance.
type SpokenWord struct {
	Text       string
	Start, End time.Duration
}

// Duplex is a speech-to-speech model.
type Duplex interface {
	// Converse opens a session for one call. Its events come back through emit, which must not block.
	Converse(ctx context.Context, o DuplexOptions, emit func(DuplexEvent)) (DuplexSession, error)
}

// DuplexOptions is everything a speech-to-speech model is told.
type DuplexOptions struct {
	Prompt    Prompt
	Utterance Utterance // voice, language, rate and manner; its Text is empty
}

// DuplexSession is one call's stream into a speech-to-speech model.
type DuplexSession interface {
	// Write takes one 20 ms frame of the customer; the frame may be reused after it returns. It must not block.
	Write(frame []int16) error
	// EndTurn says that the customer's turn is over and an answer is wanted.
	EndTurn() error
	// Say has the model speak this text, as the greeting and closing sentences are.
	Say(text string) error
	// Interrupt stops the answer under way, of which only this much was heard. Nothing of it is emitted once Interrupt has returned.
	Interrupt(heard time.Duration) error
	// ToolResult answers a tool call.
	ToolResult(id, result string) error
	// Close ends the session; closing twice is harmless.
	Close() error
}

// DuplexEvent is what a speech-to-speech model does; one field is set.
type DuplexEvent struct {
	Customer *Heard    // what the customer said
	Sound    *Sound    // what the model says, with its words
	ToolCall *ToolCall // a tool it wants to run
	Done     *Usage    // the answer under way is complete
	Err      error     // the session has failed and yields nothing more
}

// Usage is what a provider's work is billed by.
type Usage struct {
	InputTokens  int
	OutputTokens int
}
