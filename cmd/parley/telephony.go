package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/dialer"
	"parley/internal/media"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/switchboard"
)

// Telephony is what an operator can set about calls.
type Telephony struct {
	SIP          string `name:"sip" env:"PARLEY_SIP" help:"Address to take SIP on over UDP and TCP, such as 0.0.0.0:5060; empty for 127.0.0.1:5060 or, when that is taken, another port."`
	SIPTLS       string `name:"sip-tls" env:"PARLEY_SIP_TLS" help:"Address to take SIP over TLS on, such as 0.0.0.0:5061; needs the certificate."`
	TLSCert      string `name:"tls-cert" env:"PARLEY_TLS_CERT" type:"path" help:"Certificate for SIP over TLS, a PEM file."`
	TLSKey       string `name:"tls-key" env:"PARLEY_TLS_KEY" type:"path" help:"The certificate's key, a PEM file."`
	External     string `name:"external-address" env:"PARLEY_EXTERNAL_ADDRESS" help:"The public address of this machine, behind a NAT: where carriers send calls and sound."`
	RTPPorts     string `name:"rtp-ports" env:"PARLEY_RTP_PORTS" default:"16384-32767" help:"UDP ports for sound; a call takes two."`
	DefaultTrunk string `name:"default-trunk" env:"PARLEY_DEFAULT_TRUNK" help:"The operator's own trunk, for assistants whose number has none: sip:USER:PASSWORD@HOST:PORT;transport=udp"`
	Simulator    bool   `name:"simulator" env:"PARLEY_SIMULATOR" default:"true" negatable:"" help:"Run the simulated carrier. It takes every call as long as there is no trunk, and always those to +12025550100 to +12025550199."`

	MaxCalls     int     `name:"max-calls" env:"PARLEY_MAX_CALLS" default:"1000" help:"Calls that this process holds at once; more are refused, or wait."`
	DrainSec     int     `name:"drain-seconds" env:"PARLEY_DRAIN_SECONDS" default:"60" help:"How long calls may go on when the server stops."`
	AccountCalls int     `name:"account-calls" env:"PARLEY_ACCOUNT_CALLS" default:"100" help:"Calls of a user at once; 0 for no limit."`
	AccountRate  int     `name:"account-calls-per-second" env:"PARLEY_ACCOUNT_CALLS_PER_SECOND" default:"50" help:"Calls that a user may begin in a second; 0 for no limit."`
	AccountTime  int     `name:"account-minutes-per-day" env:"PARLEY_ACCOUNT_MINUTES_PER_DAY" default:"50000" help:"Minutes that a user may talk in a day (UTC); 0 for no limit."`
	AccountSpend float64 `name:"account-spend-per-day" env:"PARLEY_ACCOUNT_SPEND_PER_DAY" default:"5000" help:"What a user's calls may cost in a day (UTC); 0 for no limit."`

	CalleeHours    bool `name:"callee-hours" env:"PARLEY_CALLEE_HOURS" default:"true" negatable:"" help:"Campaigns call only from 08:00 to 21:00 at the called number, whatever their own hours; not at the simulated carrier."`
	NumberAttempts int  `name:"number-attempts" env:"PARLEY_NUMBER_ATTEMPTS" default:"3" help:"How often campaigns of a user may call one number within 24 hours; 0 for no limit."`
	InboundReserve int  `name:"inbound-reserve" env:"PARLEY_INBOUND_RESERVE" default:"0" help:"Calls of all nodes that campaigns leave free for inbound ones, of the sum of their PARLEY_MAX_CALLS."`

	Blocked    []string `name:"blocked-prefixes" env:"PARLEY_BLOCKED_PREFIXES" help:"Prefixes that are never called, such as +1900, instead of the built-in list of premium, satellite and emergency numbers."`
	Allowed    []string `name:"allowed-prefixes" env:"PARLEY_ALLOWED_PREFIXES" help:"Call only numbers with these prefixes, such as +49; one longer than a blocked prefix opens a part of it."`
	Rates      string   `name:"rates" env:"PARLEY_RATES" type:"path" help:"JSON file of what carriers and providers charge; what it does not name keeps its default."`
	Notice     string   `name:"notice" env:"PARLEY_NOTICE" help:"Spoken first in every call, before anything is recorded: This call is with an AI and is recorded."`
	OptOutHint string   `name:"opt-out-hint" env:"PARLEY_OPT_OUT_HINT" help:"Spoken after the notice: Press 9 and we will never call you again."`
	OptOutKey  string   `name:"opt-out-key" env:"PARLEY_OPT_OUT_KEY" help:"The key that refuses further calls: 0 to 9, * or #."`
	Recordings string   `name:"recordings" env:"PARLEY_RECORDINGS" type:"path" help:"Folder for recordings; empty for one in the data folder. Processes that share a database share it too."`

	rates *parley.Rates
	trunk *parley.Trunk
	ports [2]uint16
}

// The ids of trunks that are nobody's.
const (
	defaultTrunkID   parley.ID = -1
	simulatedTrunkID parley.ID = -2
)

// validate refuses what cannot work, and says what to set instead.
func (t *Telephony) validate() (err error) {
	for _, setting := range []struct{ name, value string }{{"PARLEY_SIP", t.SIP}, {"PARLEY_SIP_TLS", t.SIPTLS}} {
		if _, err := netip.ParseAddrPort(setting.value); setting.value != "" && err != nil {
			return fmt.Errorf("%s %q must be an IP address and a port, such as 0.0.0.0:5060", setting.name, setting.value)
		}
	}
	if t.SIPTLS != "" && (t.TLSCert == "" || t.TLSKey == "") {
		return errors.New("PARLEY_SIP_TLS needs PARLEY_TLS_CERT and PARLEY_TLS_KEY")
	}
	if t.External != "" {
		if _, err := netip.ParseAddr(t.External); err != nil {
			return fmt.Errorf("PARLEY_EXTERNAL_ADDRESS %q must be an IP address", t.External)
		}
	}
	if t.ports, err = parsePorts(t.RTPPorts); err != nil {
		return err
	}
	if t.MaxCalls < 1 || t.DrainSec < 0 || t.AccountCalls < 0 || t.AccountRate < 0 || t.AccountTime < 0 || t.AccountSpend < 0 || t.NumberAttempts < 0 || t.InboundReserve < 0 {
		return errors.New("PARLEY_MAX_CALLS must be 1 or more; PARLEY_DRAIN_SECONDS and the limits of an account 0 or more")
	}
	for _, prefix := range slices.Concat(t.Blocked, t.Allowed) {
		if !strings.HasPrefix(prefix, "+") || strings.Trim(prefix[1:], "0123456789") != "" {
			return fmt.Errorf("the prefix %q in PARLEY_BLOCKED_PREFIXES or PARLEY_ALLOWED_PREFIXES must be + and digits, such as +49", prefix)
		}
	}
	if len(t.OptOutKey) > 1 || t.OptOutKey != "" && !strings.ContainsAny(t.OptOutKey, "0123456789*#") {
		return fmt.Errorf("PARLEY_OPT_OUT_KEY %q must be one key: 0 to 9, * or #", t.OptOutKey)
	}
	if t.DefaultTrunk != "" {
		if t.trunk, err = parseTrunk(t.DefaultTrunk); err != nil {
			return err
		}
	}
	return t.readRates()
}

// readRates reads what calls cost.
func (t *Telephony) readRates() (err error) {
	t.rates = parley.DefaultRates()
	if t.Rates == "" {
		return nil
	}
	file, err := os.ReadFile(t.Rates)
	if err != nil {
		return fmt.Errorf("PARLEY_RATES: %w", err)
	}
	if t.rates, err = parley.ReadRates(file); err != nil {
		return fmt.Errorf("PARLEY_RATES %s: %w", t.Rates, err)
	}
	return nil
}

// parsePorts reads a range of ports.
func parsePorts(text string) (ports [2]uint16, err error) {
	from, to, ok := strings.Cut(text, "-")
	first, err1 := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	if !ok || err1 != nil || err2 != nil || first < 1024 || last <= first {
		return ports, fmt.Errorf("PARLEY_RTP_PORTS %q must be a range above 1023, such as 16384-32767", text)
	}
	return [2]uint16{uint16(first), uint16(last)}, nil
}

// parseTrunk reads the operator's trunk from its address.
func parseTrunk(text string) (*parley.Trunk, error) {
	address, parameters, _ := strings.Cut(text, ";")
	u, err := url.Parse(strings.Replace(address, "sip:", "sip://", 1))
	if err != nil || u.Scheme != "sip" || u.Host == "" || parley.HostPort(u.Host) != "" {
		return nil, errors.New("PARLEY_DEFAULT_TRUNK must look like sip:USER:PASSWORD@HOST:PORT;transport=udp")
	}
	trunk := &parley.Trunk{ID: defaultTrunkID, Address: u.Host, Transport: "udp", CallingFormat: "+e164", MaxChannels: 1000, CallsPerSecond: 50}
	if u.User != nil {
		trunk.Username = u.User.Username()
		trunk.Password, _ = u.User.Password()
		trunk.Register = trunk.Password != ""
	}
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		switch {
		case parameter == "":
		case name == "transport" && slices.Contains([]string{"udp", "tcp", "tls"}, value):
			trunk.Transport = value
		case name == "register" && (value == "true" || value == "false"):
			trunk.Register = value == "true"
		default:
			return nil, fmt.Errorf("PARLEY_DEFAULT_TRUNK: %q is not known; there are transport=udp|tcp|tls and register=true|false", parameter)
		}
	}
	return trunk, nil
}

// recordings is the folder of the recordings.
func (c *Config) recordings() store.Recordings {
	if c.Recordings != "" {
		return store.Recordings(c.Recordings)
	}
	return store.Recordings(filepath.Join(c.Data, "recordings"))
}

func (t *Telephony) caps() parley.CallCaps {
	return parley.CallCaps{Parallel: t.AccountCalls, PerSecond: t.AccountRate, MinutesPerDay: t.AccountTime, SpendPerDay: parley.NewMoney(t.AccountSpend)}
}

// dialerCaps are the limits of campaigns.
func (t *Telephony) dialerCaps() dialer.Caps {
	caps := dialer.DefaultCaps()
	caps.CalleeHours, caps.NumberAttempts = t.CalleeHours, t.NumberAttempts
	caps.Reserve = t.InboundReserve
	return caps
}

func (t *Telephony) policy() parley.NumberPolicy {
	return parley.NumberPolicy{Blocked: t.Blocked, Allowed: t.Allowed}
}

func (t *Telephony) carriers() parley.Carriers {
	return parley.Carriers{Default: t.trunk != nil, Simulated: t.Simulator}
}

// exchange is the telephone side of a running server.
type exchange struct {
	config  *Config
	db      *store.DB
	log     *slog.Logger
	media   *media.Engine
	carrier *simulator.Carrier // nil without one
	agent   *sip.Agent
	board   *switchboard.Board
	known   string // of the trunks that the agent has
	stop    context.CancelFunc
	stopped chan struct{}
}

// newExchange makes everything but the sockets of SIP, which connect opens.
func newExchange(config *Config, db *store.DB, log *slog.Logger, board switchboard.Config) (_ *exchange, err error) {
	x := &exchange{config: config, db: db, log: log, stopped: make(chan struct{})}
	if x.media, err = media.New(media.Config{PortMin: config.ports[0], PortMax: config.ports[1]}); err != nil {
		return nil, err
	}
	if config.Simulator {
		if x.carrier, err = simulator.Start(); err != nil {
			return nil, errors.Join(err, x.close())
		}
	}
	board.DB, board.Log = db, log
	board.Telephone = &switchboard.Telephone{Media: x.media, Host: mediaHost(config.SIP)}
	if config.External != "" {
		board.Telephone.External = netip.MustParseAddr(config.External) // checked by validate
	}
	board.Carrier = x.trunkOf
	board.Policy, board.Rates, board.Recordings, board.MaxCalls = config.policy(), config.rates, config.recordings(), config.MaxCalls
	board.Notice, board.OptOutHint = config.Notice, config.OptOutHint
	if config.OptOutKey != "" {
		board.OptOut = config.OptOutKey[0]
	}
	x.board = switchboard.New(board)
	return x, nil
}

// mediaHost is where sound is taken: where SIP is.
func mediaHost(sipAddress string) netip.Addr {
	if at, err := netip.ParseAddrPort(sipAddress); err == nil {
		return at.Addr()
	}
	return netip.MustParseAddr("127.0.0.1")
}

// connect opens the sockets of SIP and follows the trunks.
func (x *exchange) connect(ctx context.Context) error {
	settings, err := x.settings()
	if err != nil {
		return err
	}
	if err := x.listen(settings); err != nil {
		return err
	}
	x.board.Telephone.SIP = x.agent
	if err := x.loadTrunks(ctx); err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.stop = stop
	go x.followTrunks(following)
	return nil
}

func (x *exchange) settings() (sip.Settings, error) {
	c := x.config
	s := sip.Settings{Incoming: x.board.Incoming, MaxCalls: 2 * c.MaxCalls, External: c.External, Log: x.log}
	if c.TLSCert != "" {
		certificate, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return s, fmt.Errorf("PARLEY_TLS_CERT and PARLEY_TLS_KEY: %w", err)
		}
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	return s, nil
}

// listen opens the sockets. Where no address is set and the usual port is taken, by a
// second Parley, say, another does.
func (x *exchange) listen(s sip.Settings) error {
	addresses := []string{x.config.SIP}
	if x.config.SIP == "" {
		addresses = []string{"127.0.0.1:5060", "127.0.0.1:0"}
	}
	var err error
	for _, address := range addresses {
		s.Listen = []sip.Listen{{Network: "udp", Address: address}}
		if netip.MustParseAddrPort(address).Port() != 0 { // two sockets on a free port would take two
			s.Listen = append(s.Listen, sip.Listen{Network: "tcp", Address: address})
		}
		if x.config.SIPTLS != "" {
			s.Listen = append(s.Listen, sip.Listen{Network: "tls", Address: x.config.SIPTLS})
		}
		if x.agent, err = sip.New(s); err != nil {
			return err
		}
		if err = x.agent.Start(); err == nil {
			return nil
		}
	}
	x.agent = nil
	return fmt.Errorf("cannot take SIP on PARLEY_SIP: %w", err)
}

// trunkOf is the trunk of a carrier that is no user's.
func (x *exchange) trunkOf(c parley.Carrier) (parley.Trunk, bool) {
	switch {
	case c == parley.CarrierDefault && x.config.trunk != nil:
		return *x.config.trunk, true
	case c == parley.CarrierSimulated && x.carrier != nil:
		trunk := x.carrier.Trunk()
		trunk.ID = simulatedTrunkID
		return trunk, true
	default:
		return parley.Trunk{}, false
	}
}

// simulatorUser is whom simulated callers call in as, with a password that only who can
// read this installation's keys knows.
const simulatorUser = "simulator"

func simulatorPassword(db *store.DB) (string, error) {
	return db.Keys().Sign("simulated caller", simulatorUser)
}

// trunksEvery is how soon a trunk that was changed is used so.
const trunksEvery = 2 * time.Second

func (x *exchange) followTrunks(ctx context.Context) {
	defer close(x.stopped)
	tick := time.NewTicker(trunksEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := x.loadTrunks(ctx); err != nil && ctx.Err() == nil {
				x.log.Error("the trunks could not be read", "error", err)
			}
		}
	}
}

// loadTrunks gives the agent the trunks there are now, if they have changed.
func (x *exchange) loadTrunks(ctx context.Context) error {
	trunks, err := x.db.System().Trunks(ctx)
	if err != nil {
		return err
	}
	var version strings.Builder
	for _, t := range trunks {
		fmt.Fprintf(&version, "%d %d,", t.ID, t.UpdatedAt.UnixMicro())
	}
	if x.known == version.String() && x.known != "" {
		return nil
	}
	x.known = version.String()
	if t, ok := x.trunkOf(parley.CarrierDefault); ok {
		trunks = append(trunks, t)
	}
	if t, ok := x.trunkOf(parley.CarrierSimulated); ok {
		if t.Password, err = simulatorPassword(x.db); err != nil {
			return err
		}
		t.Username = simulatorUser
		trunks = append(trunks, t)
	}
	x.agent.SetTrunks(trunks)
	return nil
}

// check fails while the node takes no more calls.
func (x *exchange) check(context.Context) error {
	if x.board.Draining() {
		return errors.New("the server is stopping and takes no more calls")
	}
	return nil
}

// drain lets the calls end, and writes down what became of them.
func (x *exchange) drain(ctx context.Context) { x.board.Drain(ctx) }

// close gives back what newExchange and connect took.
func (x *exchange) close() (err error) {
	if x.stop != nil {
		x.stop()
		<-x.stopped
	}
	if x.agent != nil {
		err = x.agent.Close()
	}
	if x.board != nil {
		x.board.Close()
	}
	if x.carrier != nil {
		err = errors.Join(err, x.carrier.Close())
	}
	if x.media != nil {
		x.media.Close()
	}
	return err
}
