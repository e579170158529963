package egress

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// Allowed is what an operator opens of what is closed by default: networks and hosts
// that may be reached on any port.
type Allowed struct {
	networks []netip.Prefix
	hosts    []string
}

// hostName is lower case, in labels; names of other scripts are written in Punycode.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$`)

// ParseAllowed reads the operator's list: networks (10.0.0.0/8), addresses
// (192.168.1.7, ::1) and host names (crm.internal).
func ParseAllowed(list []string) (Allowed, error) {
	var a Allowed
	for _, text := range list {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if err := a.add(text); err != nil {
			return Allowed{}, err
		}
	}
	return a, nil
}

func (a *Allowed) add(text string) error {
	if network, err := netip.ParsePrefix(text); err == nil {
		if network != network.Masked() {
			return fmt.Errorf("%q names an address inside a network; write %s for the network, or %s for the address alone", text, network.Masked(), network.Addr())
		}
		a.networks = append(a.networks, network)
		return nil
	}
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap().WithZone("")
		a.networks = append(a.networks, netip.PrefixFrom(address, address.BitLen()))
		return nil
	}
	host := plainHost(text)
	last := host[strings.LastIndexByte(host, '.')+1:]
	if len(host) > 253 || !hostName.MatchString(host) || strings.Trim(last, "0123456789") == "" {
		return fmt.Errorf("%q is neither a network such as 10.0.0.0/8, nor an address, nor a host name without scheme, port and path", text)
	}
	a.hosts = append(a.hosts, host)
	return nil
}

// plainHost is a host name as it is compared.
func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// host says whether a host name was opened, whatever it resolves to.
func (a Allowed) host(name string) bool { return slices.Contains(a.hosts, plainHost(name)) }

func (a Allowed) address(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(a.networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}

// guardian knows every special-purpose range and the two web ports. Azure's
// machine-information service is the one of its kind on a public address.
var guardian = ssrf.New(ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

// check says whether an address may be connected to. It is asked with the address
// that is about to be used, after every look-up: a name that resolves to something
// else the second time gains nothing.
func (a Allowed) check(network, address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("not an address: %w", err)
	}
	if a.address(target.Addr()) && strings.HasPrefix(network, "tcp") {
		return nil
	}
	if network != "tcp4" && network != "tcp6" {
		return net.UnknownNetworkError(network)
	}
	return guardian.SafeAddrPort(target)
}
