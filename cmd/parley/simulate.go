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
	"parley/internal/provider"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/switchboard"
)

type simulateCmd struct {
	Call    simulateCallCmd    `cmd:"" help:"Have an assistant call a simulated person, over real SIP and RTP on this machine."`
	Inbound simulateInboundCmd `cmd:"" help:"Have a simulated person call a running Parley."`
	Run     simulateRunCmd     `cmd:"" help:"Test assistants by scenario files. The exit code is 1 when an expectation is not met."`
}

type simulateCallCmd struct {
	Assistant int64             `required:"" help:"The assistant's id."`
	User      string            `default:"admin@localhost" help:"E-mail address of the user the assistant belongs to."`
	Callee    string            `default:"00" help:"Who is called; the list is above."`
	Variable  map[string]string `help:"A variable of the call: --variable name=Ada."`
	Record    string            `type:"path" help:"Write a stereo recording (customer left, assistant right) to this file."`
}

// Help lists the callees.
func (simulateCallCmd) Help() string { return calleeList("The callees:", simulator.Callees()) }

// calleeList is a list of callees as help shows it.
func calleeList(title string, callees []simulator.Callee) string {
	var b strings.Builder
	b.WriteString(title + "\n")
	for _, c := range callees {
		fmt.Fprintf(&b, "\n  %s  %s", c.Code, c.About)
	}
	return b.String()
}

// findCallee is the callee of two digits.
func findCallee(code string) (simulator.Callee, error) {
	callee, known := simulator.FindCallee(code)
	if !known {
		var codes []string
		for _, c := range simulator.Callees() {
			codes = append(codes, c.Code)
		}
		return callee, fmt.Errorf("there is no callee %q; choose one of %s", code, strings.Join(codes, ", "))
	}
	return callee, nil
}

// fictional begins the numbers of the simulated carrier: a range kept for fiction.
const fictional = "+120255501"

// assistantNumber is where simulated calls come from.
const assistantNumber = fictional + "80"

// Run places the call and shows it as it happens. Nothing of it is stored.
func (s simulateCallCmd) Run(ctx context.Context, config *Config, c console) error {
	callee, err := findCallee(s.Callee)
	if err != nil {
		return err
	}
	providers, err := provider.New(config.Providers)
	if err != nil {
		return err
	}
	defer func() { _ = providers.Close() }() // nothing is left to say
	conversation, err := s.conversation(ctx, config, providers)
	if err != nil {
		return err
	}
	finish, err := s.record(&conversation)
	if err != nil {
		return err
	}
	conversation.Watch = showTurns(c)
	c.printf("Calling %s%s: %s.\n", fictional, callee.Code, callee.About)
	result, err := placeSimulated(ctx, callee, conversation, providers)
	if wrong := errors.Join(ignoreFailure(err), finish()); wrong != nil {
		return wrong
	}
	report(c, result, err)
	return nil
}

// conversation is the stored assistant with its providers.
func (s simulateCallCmd) conversation(ctx context.Context, config *Config, providers *provider.Registry) (call converse.Config, err error) {
	variables := map[string]any{}
	for name, value := range s.Variable {
		variables[name] = value
	}
	err = config.withDB(ctx, func(db *store.DB) error {
		call, err = stored(ctx, db, providers, s.User, s.Assistant, s.Callee, variables)
		return err
	})
	call.RunTool = func(context.Context, string, map[string]any) (string, error) {
		return "", errors.New("tools are not called in a simulation")
	}
	return call, err
}

// stored is a call of a stored assistant to a callee.
func stored(ctx context.Context, db *store.DB, providers *provider.Registry, email string, id parley.ID, callee string, variables map[string]any) (call converse.Config, err error) {
	user, err := findUser(ctx, db, email)
	if err != nil {
		return call, err
	}
	tenant := db.Tenant(user.ID)
	a, err := tenant.Assistant(ctx, id)
	if parley.ErrorCode(err) == parley.NotFound {
		return call, fmt.Errorf("%s has no assistant %d; create one with POST /api/user/assistant", email, id)
	}
	if err != nil {
		return call, err
	}
	if call, err = equipment(db, providers)(ctx, a); err != nil {
		return call, err
	}
	call.Call = converse.Facts{CallID: "simulated", CustomerPhone: fictional + callee, AssistantPhone: assistantNumber, Direction: parley.Outbound, Variables: variables}
	return call, nil
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
func placeSimulated(ctx context.Context, callee simulator.Callee, call converse.Config, providers *provider.Registry) (result switchboard.Result, err error) {
	carrier, err := simulator.Start(callee)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, carrier.Close()) }()
	if speaker, ears, able := providers.Local(); able {
		// The customer speaks English and is understood by ear. The assistant keeps its
		// voice: simulated customers understand the sandbox's alone.
		carrier.SpeakWith(speaker.Use, speaker.Key)
		call.Transcribers = []converse.Provider[converse.Transcriber]{ears}
	}
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
	return phone.Place(ctx, switchboard.Attempt{Trunk: trunk, To: fictional + callee.Code, From: assistantNumber}, call)
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
