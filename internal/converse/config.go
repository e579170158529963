package converse

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley"
	"parley/internal/audio"
)

// Config is one call: who speaks for whom, over which line, by which providers.
type Config struct {
	Assistant parley.Assistant
	Call      Facts
	Rate      audio.Rate // of the line, and of everything providers are asked for
	Line      Line

	// The providers, the first choice first. The next one is used when those
	// before it fail. A pipeline assistant needs one of each of the first three,
	// a multimodal one a Duplex.
	Transcribers []Provider[Transcriber]
	Models       []Provider[Model]
	Speakers     []Provider[Speaker]
	Duplexes     []Provider[Duplex]

	// RunTool runs a mid call tool. It returns soon after ctx ends; its error's
	// text is told to the model, so it is short and holds no secret.
	RunTool func(ctx context.Context, name string, arguments map[string]any) (string, error)
	// CanTransfer offers the model to hand the call over to another number.
	CanTransfer bool

	// Notice is the first audio of the call and cannot be interrupted: that an AI
	// speaks, that the call is recorded. Nothing is tapped before its end.
	Notice string
	// OptOutHint says how to refuse further calls. It follows the notice.
	OptOutHint string
	// OptOutDigit is the key that refuses further calls; 0 means none.
	OptOutDigit byte
	// InbandDigits has keys recognised in the sound, for lines without telephone-events.
	InbandDigits bool
	// Ambience is shared by all calls of a process, for it renders each background once.
	Ambience *audio.Ambience
	// Phrases is shared like it: what the engine itself says is rendered once.
	Phrases *Phrasebook
	// Hints are words that the transcriber should expect.
	Hints []string

	// Watch is told what happens, as it happens. It must not block.
	Watch func(Event)
	// Tap is given each frame of both sides once the notice has ended, for the
	// recording. The frames may be reused after it returns.
	Tap func(customer, assistant []int16)
	Log *slog.Logger

	senses senses // tests put their own in
}

// Provider is a vendor's service as a call uses it.
type Provider[T any] struct {
	Name string // of the vendor, as bills and errors show it
	Key  string // the vendor's own name of the model or voice
	Use  T
	// Voice is the vendor's name of the voice of a Duplex, whose Key is its model.
	Voice string
}

// Facts are what is known of a call before it begins.
type Facts = parley.CallFacts

// Line is the telephone as the engine sees it. Every method is called from the
// conversation's own goroutine but Transfer, and none may block but Transfer.
type Line interface {
	// Send plays one 20 ms frame; the frame may be reused after it returns.
	Send(frame []int16)
	// SendDigits plays digits as telephone-events or tones, one after another.
	SendDigits(digits string) error
	// Transfer hands the customer over to another number and returns once the
	// other side has accepted or refused.
	Transfer(ctx context.Context, number string) error
	// HangUp ends the call.
	HangUp()
}

func (c *Config) validate() error {
	switch {
	case c.Line == nil:
		return errors.New("converse: a conversation needs a Line")
	case c.Rate.FrameSamples() == 0:
		return errors.New("converse: Rate is not set")
	case c.Assistant.Mode == parley.Multimodal && len(c.Duplexes) == 0:
		return errors.New("converse: a multimodal assistant needs Duplexes")
	case c.Assistant.Mode != parley.Multimodal && (len(c.Transcribers) == 0 || len(c.Models) == 0 || len(c.Speakers) == 0):
		return errors.New("converse: a pipeline assistant needs Transcribers, Models and Speakers")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Watch == nil {
		c.Watch = func(Event) {}
	}
	if c.RunTool == nil {
		c.RunTool = func(context.Context, string, map[string]any) (string, error) {
			return "", errors.New("this tool is not available")
		}
	}
	return nil
}

// Event is something that happened in a call; one field beside At is set.
type Event struct {
	At          time.Duration // since the answer
	Turn        *Turn         // a turn is complete
	Hearing     string        // what the customer is saying, so far
	ToolRun     *ToolRun      // a tool has finished
	AnsweredBy  Answerer      // who answered has become clear
	NoticeEnded bool          // recording may begin
	Refused     bool          // the customer will not be recorded
	Failure     string        // a provider has failed, and the call goes on
}
