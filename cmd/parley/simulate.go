package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/provider/sandbox"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/switchboard"
)

type simulateCmd struct {
	Call simulateCallCmd `cmd:"" help:"Have an assistant call a simulated person, over real SIP and RTP on this machine."`
}

type simulateCallCmd struct {
	Assistant int64             `required:"" help:"The assistant's id."`
	User      string            `default:"admin@localhost" help:"E-mail address of the user the assistant belongs to."`
	Callee    string            `default:"00" help:"Who is called: 00 a willing customer, 01 busy, 02 never answers, 03 a number that does not exist, 06 hangs up in the middle of a sentence, 07 says nothing, 08 asks never to be called again."`
	Variable  map[string]string `help:"A variable of the call: --variable name=Ada."`
	Record    string            `type:"path" help:"Write a stereo recording (customer left, assistant right) to this file."`
}

// fictional begins the numbers of the simulated carrier: a range kept for fiction.
const fictional = "+120255501"

// Run places the call and shows it as it happens. Nothing of it is stored.
func (s simulateCallCmd) Run(ctx context.Context, config *Config, c console) error {
	if _, known := simulator.Callees()[s.Callee]; !known {
		return fmt.Errorf("there is no callee %q; choose one of %s", s.Callee, strings.Join(simulator.CalleeCodes(), ", "))
	}
	conversation, err := s.conversation(ctx, config)
	if err != nil {
		return err
	}
	finish, err := s.record(&conversation)
	if err != nil {
		return err
	}
	conversation.Watch = showTurns(c)
	c.printf("Calling %s%s: %s.\n", fictional, s.Callee, simulator.Callees()[s.Callee].About)
	result, err := placeSimulated(ctx, fictional+s.Callee, conversation)
	if wrong := errors.Join(ignoreFailure(err), finish()); wrong != nil {
		return wrong
	}
	report(c, result, err)
	return nil
}

// conversation is the stored assistant with the sandbox's voice, ears and mind.
func (s simulateCallCmd) conversation(ctx context.Context, config *Config) (call converse.Config, err error) {
	err = config.withDB(ctx, func(db *store.DB) error {
		user, err := findUser(ctx, db, s.User)
		if err != nil {
			return err
		}
		tenant := db.Tenant(user.ID)
		a, err := tenant.Assistant(ctx, s.Assistant)
		if parley.ErrorCode(err) == parley.NotFound {
			return fmt.Errorf("%s has no assistant %d; create one with POST /api/user/assistant", s.User, s.Assistant)
		}
		if err != nil {
			return err
		}
		call, err = equipment(db)(ctx, a)
		return err
	})
	call.Call = converse.Facts{CallID: "simulated", CustomerPhone: fictional + s.Callee, AssistantPhone: "+12025550180", Direction: parley.Outbound, Variables: map[string]any{}}
	for name, value := range s.Variable {
		call.Call.Variables[name] = value
	}
	return call, err
}

// equipment gives assistants their providers.
func equipment(db *store.DB) func(context.Context, *parley.Assistant) (converse.Config, error) {
	p, ambience, phrases := sandbox.New(sandbox.Options{}), audio.NewAmbience(1), &converse.Phrasebook{}
	return func(ctx context.Context, a *parley.Assistant) (converse.Config, error) {
		tenant := db.Tenant(a.UserID)
		voice, err := tenant.Voice(ctx, a.VoiceID)
		if err != nil {
			return converse.Config{}, err
		}
		model, err := tenant.Model(ctx, a.LLMModelID)
		if err != nil {
			return converse.Config{}, err
		}
		c := sandboxed(p, a, voice, model)
		c.Ambience, c.Phrases = ambience, phrases
		return c, nil
	}
}

// sandboxed gives an assistant the sandbox's providers.
func sandboxed(p *sandbox.Provider, a *parley.Assistant, voice *parley.Voice, model *parley.Model) converse.Config {
	return converse.Config{
		Assistant:    *a,
		Transcribers: []converse.Provider[converse.Transcriber]{{Name: parley.Sandbox, Use: p.Transcriber()}},
		Models:       []converse.Provider[converse.Model]{{Name: parley.Sandbox, Key: model.Key, Use: p.Model()}},
		Speakers:     []converse.Provider[converse.Speaker]{{Name: parley.Sandbox, Key: voice.Key, Use: p.Speaker()}},
		Duplexes:     []converse.Provider[converse.Duplex]{{Name: parley.Sandbox, Key: model.Key, Voice: voice.Key, Use: p.Duplex()}},
		RunTool: func(context.Context, string, map[string]any) (string, error) {
			return "", errors.New("tools are not called in a simulation")
		},
	}
}

// record taps the call into a file, if one is asked for.
func (s simulateCallCmd) record(call *converse.Config) (finish func() error, err error) {
	if s.Record == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(s.Record)
	if err != nil {
		return nil, err
	}
	recorder, err := audio.NewRecorder(file, audio.Rate8k)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	var mu sync.Mutex
	var failed error
	frames := 0
	call.Tap = func(customer, assistant []int16) {
		mu.Lock()
		defer mu.Unlock()
		at := audio.FrameDuration * time.Duration(frames)
		frames++
		failed = errors.Join(failed, recorder.Customer(at, customer), recorder.Assistant(at, assistant))
	}
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		return errors.Join(failed, recorder.Close(), file.Close())
	}, nil
}

// placeSimulated runs a telephone and a carrier for one call.
func placeSimulated(ctx context.Context, number string, call converse.Config) (result switchboard.Result, err error) {
	carrier, err := simulator.Start()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, carrier.Close()) }()
	engine, err := media.New(media.Config{})
	if err != nil {
		return result, err
	}
	defer engine.Close()
	agent, err := sip.New(sip.Settings{Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1})
	if err != nil {
		return result, err
	}
	if err := agent.Start(); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	trunk := carrier.Trunk()
	agent.SetTrunks([]parley.Trunk{trunk})
	phone := &switchboard.Telephone{SIP: agent, Media: engine, Host: netip.MustParseAddr("127.0.0.1")}
	return phone.Place(ctx, switchboard.Attempt{Trunk: trunk, To: number, From: "+12025550180"}, call)
}

// showTurns writes what is said, as it is said.
func showTurns(c console) func(converse.Event) {
	return func(e converse.Event) {
		switch {
		case e.Turn != nil && e.Turn.Sender == converse.Bot:
			c.printf("%7.1fs  AI: %s\n", e.Turn.Started.Seconds(), e.Turn.Text)
		case e.Turn != nil:
			c.printf("%7.1fs  Customer: %s\n", e.Turn.Started.Seconds(), e.Turn.Text)
		case e.Failure != "":
			c.printf("%7.1fs  (%s)\n", e.At.Seconds(), e.Failure)
		}
	}
}

// ignoreFailure keeps a call that was not answered from being an error of the command.
func ignoreFailure(err error) error {
	if _, unanswered := errors.AsType[*sip.Failure](err); unanswered {
		return nil
	}
	return err
}

// report says how the call ended.
func report(c console, result switchboard.Result, err error) {
	if failure, unanswered := errors.AsType[*sip.Failure](err); unanswered {
		c.printf("Not answered: %s.\n", strings.ReplaceAll(string(failure.Outcome), "_", " "))
		return
	}
	c.printf("Ended by the %s (%s) after %.1f s; answered by: %s.\n", result.EndedBy, result.EndReason, result.Duration.Seconds(), result.AnsweredBy)
	if result.OptOut {
		c.printf("The customer asked never to be called again.\n")
	}
}
