package sip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	gosip "github.com/emiago/sipgo/sip"
)

// listener is a socket the agent takes SIP on.
type listener struct {
	network string // udp, tcp, tls
	address netip.AddrPort
	close   func() error
}

// hop is the next place a request goes to, and how we name ourselves there.
type hop struct {
	network string
	remote  netip.AddrPort
	name    string         // the host name behind remote: what a TLS certificate must name
	local   netip.AddrPort // the listening socket; invalid for streams without a listener
	host    string         // sent-by and Contact
	port    int
}

// place is an address and the host name it was found under.
type place struct {
	at   netip.AddrPort
	name string
}

// splitHostPort takes "host", "host:port", an IPv6 literal with or without brackets.
func splitHostPort(s string) (host string, port int) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.String(), 0
	}
	host, digits, err := net.SplitHostPort(s)
	if err != nil {
		return s, 0
	}
	port, _ = strconv.Atoi(digits)
	return host, port
}

// resolve finds the addresses of a SIP host (RFC 3263 section 4.2): a name without a
// port is looked up as a service first.
func (a *Agent) resolve(ctx context.Context, network, host string, port int) ([]place, error) {
	host = strings.Trim(host, "[]")
	otherwise := gosip.DefaultPort(network)
	if literal, err := netip.ParseAddr(host); err == nil {
		if port == 0 {
			port = otherwise
		}
		return []place{{at: netip.AddrPortFrom(literal.Unmap(), uint16(port))}}, nil
	}
	if port == 0 {
		if found := a.resolveService(ctx, network, host); len(found) > 0 {
			return found, nil
		}
		port = otherwise
	}
	return a.resolveHost(ctx, host, port)
}

func (a *Agent) resolveService(ctx context.Context, network, host string) (found []place) {
	service, proto := "sip", network
	if network == "tls" {
		service, proto = "sips", "tcp" // RFC 3263 section 4.1
	}
	_, records, err := a.settings.Resolver.LookupSRV(ctx, service, proto, host)
	if err != nil {
		return nil
	}
	for _, r := range records {
		if addresses, err := a.resolveHost(ctx, r.Target, int(r.Port)); err == nil {
			found = append(found, addresses...)
		}
	}
	return found
}

func (a *Agent) resolveHost(ctx context.Context, host string, port int) ([]place, error) {
	addresses, err := a.settings.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("sip: %w", err)
	}
	found := make([]place, 0, len(addresses))
	for _, address := range addresses {
		found = append(found, place{netip.AddrPortFrom(address.Unmap(), uint16(port)), strings.TrimSuffix(host, ".")})
	}
	return found, nil
}

// hopTo chooses the socket for a destination and the name we give ourselves there.
func (a *Agent) hopTo(ctx context.Context, network, host string, port int) (hop, error) {
	network = strings.ToLower(network)
	places, err := a.resolve(ctx, network, host, port)
	if err != nil {
		return hop{}, err
	}
	for _, p := range places {
		if h, ok := a.hopVia(network, p.at); ok {
			h.name = p.name
			return h, nil
		}
	}
	return hop{}, errors.New("sip: no " + network + " socket of the destination's address family")
}

// hopVia prefers a listening socket that is bound to the very address the kernel would
// send from; a wildcard socket takes that address as its name.
func (a *Agent) hopVia(network string, remote netip.AddrPort) (hop, bool) {
	own := sourceFor(remote)
	h := hop{network: network, remote: remote, host: own.String()}
	found := false
	for _, l := range a.listeners {
		if l.network != network || l.address.Addr().Is4() != remote.Addr().Is4() {
			continue
		}
		exact := l.address.Addr() == own || l.address.Addr().IsUnspecified()
		if found && !exact {
			continue
		}
		found = true
		h.local, h.port = l.address, int(l.address.Port())
		if !l.address.Addr().IsUnspecified() {
			h.host = l.address.Addr().String()
		}
		if exact {
			break
		}
	}
	if seen, ok := a.seenBy(remote.Addr()); ok && network == "udp" {
		h.host, h.port = seen.Addr().String(), int(seen.Port())
	}
	if a.settings.External != "" {
		host, port := splitHostPort(a.settings.External)
		h.host = host
		if port != 0 && found {
			h.port = port
		}
	}
	return h, found || network != "udp"
}

// sourceFor asks the kernel which address it would send from; nothing is sent.
func sourceFor(remote netip.AddrPort) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(remote))
	if err != nil {
		return netip.Addr{}
	}
	defer func() { _ = c.Close() }()
	return addrOf(c.LocalAddr())
}

// prepare points a request at the hop and gives it our Via (RFC 3261 section 8.1.1.7),
// with rport so that the answer finds its way back through a NAT (RFC 3581).
func (h hop) prepare(req *gosip.Request) {
	req.RemoveHeader("Via")
	via := &gosip.ViaHeader{ProtocolName: "SIP", ProtocolVersion: "2.0",
		Transport: strings.ToUpper(h.network), Host: h.host, Port: h.port}
	via.Params.Add("branch", gosip.GenerateBranchN(20))
	via.Params.Add("rport", "")
	req.PrependHeader(via)
	h.aim(req)
}

// aim points a request at the hop and leaves its Via alone.
func (h hop) aim(req *gosip.Request) {
	req.SetTransport(strings.ToUpper(h.network))
	req.SetDestination(h.remote.String())
	if h.network == "tls" && h.name != "" { // sipgo checks the certificate against the destination's host
		req.SetDestination(net.JoinHostPort(h.name, strconv.Itoa(int(h.remote.Port()))))
	}
	if h.network == "udp" && h.local.IsValid() {
		req.Laddr = gosip.Addr{IP: h.local.Addr().AsSlice(), Port: int(h.local.Port())}
	}
}

// contact is where the peer reaches us (RFC 3261 section 8.1.1.8).
func (h hop) contact(user string) gosip.ContactHeader {
	c := gosip.ContactHeader{Address: gosip.Uri{Scheme: "sip", User: user, Host: h.host, Port: h.port}}
	if h.network != "udp" {
		c.Address.UriParams.Add("transport", h.network)
	}
	return c
}

// learn remembers how a trunk's carrier sees us (RFC 3581 section 4: received and rport
// in our own Via come back filled in), so that the next Contact leads through the NAT.
// Only answers to our keep-alives and registrations are believed.
func (a *Agent) learn(h hop, res *gosip.Response) {
	via := res.Via()
	if h.network != "udp" || via == nil {
		return
	}
	host, _ := via.Params.Get("received")
	digits, _ := via.Params.Get("rport")
	address, err := netip.ParseAddr(host)
	port, errPort := strconv.ParseUint(digits, 10, 16)
	if err != nil || errPort != nil || port == 0 || address.IsUnspecified() || address.IsMulticast() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learned[h.remote.Addr()] = netip.AddrPortFrom(address.Unmap(), uint16(port))
}

func (a *Agent) seenBy(carrier netip.Addr) (netip.AddrPort, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen, ok := a.learned[carrier]
	return seen, ok
}
