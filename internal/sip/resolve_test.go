package sip

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"parley"
)

// names is a name server on loopback that knows services and their hosts.
type names struct {
	conn     *net.UDPConn
	services map[string]dnsmessage.SRVResource
	hosts    map[string][4]byte
}

func newNames(t *testing.T, services map[string]dnsmessage.SRVResource, hosts map[string][4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	n := &names{conn: conn, services: services, hosts: hosts}
	served := make(chan struct{})
	go func() { defer close(served); n.serve() }()
	t.Cleanup(func() { _ = conn.Close(); <-served })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buffer := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		if answer := n.answer(m.Questions[0]); answer != nil {
			m.Answers = []dnsmessage.Resource{{Body: answer, Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 60}}}
		} else {
			m.RCode = dnsmessage.RCodeNameError
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = n.conn.WriteToUDPAddrPort(packed, from)
		}
	}
}

func (n *names) answer(q dnsmessage.Question) dnsmessage.ResourceBody {
	name := strings.ToLower(q.Name.String())
	if service, ok := n.services[name]; ok && q.Type == dnsmessage.TypeSRV {
		return &service
	}
	if host, ok := n.hosts[name]; ok && q.Type == dnsmessage.TypeA {
		return &dnsmessage.AResource{A: host}
	}
	return nil
}

// A carrier's name without a port is a service (RFC 3263): its records say host and
// port, also those of an outbound proxy, and over TLS the certificate is held against
// the host that they name.
func TestACarrierIsFoundByItsService(t *testing.T) {
	t.Parallel()
	loopback := map[string][4]byte{"sbc.carrier.example.": {127, 0, 0, 1}}
	for _, c := range []struct {
		network, service string
		proxied          bool
	}{
		{"udp", "_sip._udp.carrier.example.", false}, {"tcp", "_sip._tcp.carrier.example.", false},
		{"tls", "_sips._tcp.carrier.example.", false}, {"udp", "_sip._udp.proxy.example.", true},
	} {
		t.Run(c.service, func(t *testing.T) {
			t.Parallel()
			s := quick()
			s.Listen = []Listen{{Network: c.network, Address: "127.0.0.1:0"}}
			s.TLS = selfSigned(t, "sbc.carrier.example")
			calls := make(chan *Call, 1)
			b := callee(t, s, answering(calls, Hooks{}))
			s.Resolver = newNames(t, map[string]dnsmessage.SRVResource{
				c.service: {Priority: 1, Weight: 1, Port: b.Addr(c.network).Port(), Target: dnsmessage.MustNewName("sbc.carrier.example.")},
			}, loopback)
			a := start(t, s)
			trunk := parley.Trunk{ID: 1, Address: "carrier.example", Transport: c.network}
			if c.proxied {
				proxy := "proxy.example"
				trunk.OutboundProxy = &proxy
			}
			ours, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
			require.NoError(t, err)
			require.NoError(t, ours.Hangup(within(t)))
			require.Equal(t, EndedByPeer, ended(t, get(t, calls)).By)
		})
	}
	t.Run("nowhere", func(t *testing.T) {
		t.Parallel()
		s := quick()
		s.Resolver = newNames(t, nil, nil)
		_, err := start(t, s).Dial(within(t), parley.Trunk{Address: "carrier.example"}, Outgoing{To: "+12025550123", Media: media(5000)})
		require.Equal(t, Unreachable, failure(t, err).Outcome)
	})
}
