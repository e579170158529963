package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/store"
)

type simulateInboundCmd struct {
	To     string `required:"" help:"The number that is called: one that an inbound assistant answers, such as +12025550180."`
	From   string `default:"+12025550100" help:"The caller's number."`
	Callee string `default:"00" help:"Who calls; the list is above."`
}

// Help lists who can call.
func (simulateInboundCmd) Help() string {
	callers := slices.DeleteFunc(simulator.Callees(), func(c simulator.Callee) bool { return !c.Calls() })
	return calleeList("Who can call:", callers)
}

// Run places the call and says how it went for the caller.
func (s simulateInboundCmd) Run(ctx context.Context, config *Config, c console) (err error) {
	callee, err := findCallee(s.Callee)
	if err != nil {
		return err
	}
	peer := netip.MustParseAddrPort("127.0.0.1:5060")
	if config.SIP != "" {
		peer = netip.MustParseAddrPort(config.SIP) // checked by validate
	}
	if nobodyListens(ctx, peer) {
		return fmt.Errorf("nothing takes SIP at %s; start parley serve, or say where it listens with --sip", peer)
	}
	caller := simulator.Peer{Address: peer, Username: simulatorUser}
	if err := config.withDB(ctx, func(db *store.DB) (err error) {
		caller.Password, err = simulatorPassword(db)
		return err
	}); err != nil {
		return err
	}
	carrier, err := simulator.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, carrier.Close()) }()
	c.printf("%s calls %s at %s: %s.\n", s.From, s.To, peer, callee.About)
	outcome, err := carrier.Call(ctx, caller, s.From, s.To, callee)
	if failure, refused := errors.AsType[*sip.Failure](err); refused {
		return notTaken(failure, s.To, peer)
	}
	if err != nil {
		return err
	}
	by := "the assistant"
	if outcome.HungUp {
		by = "the caller"
	}
	c.printf("Heard: %s\n", outcome.Heard)
	if outcome.Keys != "" {
		c.printf("Keys pressed by the assistant: %s\n", outcome.Keys)
	}
	c.printf("Ended by %s after %.1f s.\n", by, outcome.Duration.Seconds())
	return nil
}

// notTaken says why a call was not answered, and what to look at.
func notTaken(failure *sip.Failure, to string, peer netip.AddrPort) error {
	why := strings.ReplaceAll(string(failure.Outcome), "_", " ")
	switch {
	case failure.Outcome == sip.Unreachable:
		return fmt.Errorf("%s did not answer the call at all (%s); is it a Parley with its simulator on, and with this data folder?", peer, why)
	case failure.Outcome == sip.NoSuchNumber:
		return fmt.Errorf("%s refused the call with SIP %d (%s); is %s the number of an active inbound assistant?", peer, failure.Status, why, to)
	case failure.Status > 0:
		return fmt.Errorf("%s refused the call with SIP %d (%s)", peer, failure.Status, why)
	default:
		return fmt.Errorf("the call was not answered: %s", why)
	}
}

// nobodyListens asks the machine itself whether a UDP port is closed: SIP alone would
// take half a minute to find out. What it cannot tell counts as open.
func nobodyListens(ctx context.Context, peer netip.AddrPort) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", peer.String())
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = conn.Write([]byte("\r\n\r\n")) // a keep-alive (RFC 5626 section 3.5.1)
	_, err = conn.Read(make([]byte, 16))
	return errors.Is(err, syscall.ECONNREFUSED)
}
