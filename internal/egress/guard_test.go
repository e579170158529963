package egress

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
)

// forbidden is at least one address of every special-purpose range of both
// registries, its edges where they matter, and what clouds keep their secrets on.
var forbidden = []string{
	// This network, private use, shared, loopback, link local.
	"0.0.0.0", "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.1.2.3", "10.255.255.255", "100.64.0.1", "100.127.255.255",
	"127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.255", "169.254.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
	// Protocol assignments, documentation, relays, benchmarks, multicast, reserved, broadcast.
	"192.0.0.1", "192.0.0.8", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1",
	"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
	// Machine information: AWS, GCP and Azure, ECS, Alibaba, Oracle, Azure's wire server.
	"169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
	// Unspecified, loopback, compatible, mapped, translated.
	"::", "::1", "::2", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
	// NAT64 well known and local, 6to4, Teredo, discard-only, dummy.
	"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1", "2001::1", "2001:0:7f00:1::", "100::1", "100:0:0:1::1",
	// Protocol assignments, benchmarks, ORCHID, documentation, AS112, segment routing.
	"2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:db8::1", "2620:4f:8000::1", "3fff::1", "5f00::1",
	// Unique local, link local, site local, multicast.
	"fc00::1", "fd12:3456:789a::1", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "ff0e::1",
}

// TestPromiseE1NoWayInside: no special address is connected to, however it is reached:
// not one packet leaves, for the check comes before the connection.
func TestPromiseE1NoWayInside(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(forbidden), 60)
	var log bytes.Buffer
	c := newClient(Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, reach, nobody(t))
	c.reach = 0
	t.Cleanup(c.Close)
	for _, address := range forbidden {
		require.Error(t, Allowed{}.check("tcp4", netip.AddrPortFrom(netip.MustParseAddr(address), 443).String()), address)
		host := address
		if strings.Contains(address, ":") {
			host = "[" + strings.ReplaceAll(address, "%", "%25") + "]"
		}
		attempt := c.Deliver(t.Context(), Delivery{ID: "msg_1", URL: "http://" + host + "/", Body: []byte("{}"), Secrets: []string{NewSecret()}})
		require.NotNil(t, attempt.Failure, address)
		require.Equal(t, parley.Unreachable, attempt.Failure.Kind, address)
		require.Contains(t, log.String(), "request to a forbidden address blocked", address)
		log.Reset()
	}
	for _, address := range []string{"1.1.1.1:443", "8.8.8.8:80", "192.0.1.1:80", "172.32.0.1:80", "172.15.255.255:443", "100.63.255.255:80", "100.128.0.1:80", "168.63.129.17:443"} {
		require.NoError(t, Allowed{}.check("tcp4", address), address)
	}
	require.NoError(t, Allowed{}.check("tcp6", "[2606:4700::1111]:443"))
	for _, address := range []string{"1.1.1.1:22", "1.1.1.1:8080", "1.1.1.1:0", "1.1.1.1:25", "[2606:4700::1111]:6379", "nonsense"} {
		require.Error(t, Allowed{}.check("tcp4", address), address)
	}
	require.Error(t, Allowed{}.check("udp4", "1.1.1.1:443"))
}

// Every notation of a loopback address that some resolver or parser knows. The name
// server here is as obliging as the worst: it takes every name for 127.0.0.1.
func TestOddNotationsLeadNowhere(t *testing.T) {
	t.Parallel()
	port, hits := listen(t, "127.0.0.1:0", echo)
	loopback := names(t, func(string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}
	})
	c := clientFor(t, loopback)
	for _, host := range []string{
		"0177.0.0.1", "0177.0.0.01", "0x7f.0.0.1", "0x7f000001", "0x7F.1", "2130706433", "017700000001", "127.1", "127.0.1", "00000127.0.0.1", "127.0.0.1.",
		"localhost", "localhost.", "LOCALHOST", "localhost.localdomain", "a.localhost", "127.0.0.1.nip.io", "evil.example", "evil.example.",
		"①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "127｡0｡0｡1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "xn--bcher-kva.example", "bücher.example",
		"user@127.0.0.1", "user:password@127.0.0.1", "public.example@127.0.0.1", "127.0.0.1%2f", "public.example%00.127.0.0.1", "public.example#@127.0.0.1", `public.example\@127.0.0.1`,
		"[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::1%25lo]", "0", "[::]",
	} {
		for _, at := range []string{host + ":" + port, host} {
			for _, scheme := range []string{"http", "https"} {
				e := run(t, c, aTool("GET", scheme+"://"+at+"/"), nil)
				require.NotNil(t, e.Failure, host)
				require.Contains(t, []parley.FailureKind{parley.Unreachable, parley.Unsendable}, e.Failure.Kind, host)
				attempt := c.Deliver(t.Context(), Delivery{ID: "msg_1", URL: scheme + "://" + at + "/", Secrets: []string{NewSecret()}})
				require.NotNil(t, attempt.Failure, host)
			}
		}
	}
	for _, url := range []string{"file:///etc/passwd", "gopher://127.0.0.1:" + port, "ftp://127.0.0.1", "unix:///run/x.sock", "//127.0.0.1", "javascript:1", "http:127.0.0.1", "http:///path", "", " http://127.0.0.1", "http://127.0.0.1:99999", "http://127.0.0.1:-1"} {
		require.Equal(t, parley.Unsendable, run(t, c, aTool("GET", url), nil).Failure.Kind, url)
		require.Equal(t, parley.Unsendable, c.Deliver(t.Context(), Delivery{ID: "msg_1", URL: url, Secrets: []string{NewSecret()}}).Failure.Kind, url)
	}
	require.Zero(t, hits.Load())
}

// TestPromiseE1Rebinding: a name that is public when it is looked at and inside when
// it is used. 127.0.0.1 plays the public address, 127.0.0.2 the inside.
func TestPromiseE1Rebinding(t *testing.T) {
	t.Parallel()
	port, public := listen(t, "127.0.0.1:0", echo)
	_, inside := listen(t, "127.0.0.2:"+port, echo)
	var asked atomic.Int64
	good, evil := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	c := clientFor(t, names(t, func(string) []netip.Addr {
		return [][]netip.Addr{{good}, {evil, good}, {good, evil}, {good}, {evil, evil, good}}[asked.Add(1)%5]
	}), "127.0.0.1")
	c.http.Transport.(*http.Transport).DisableKeepAlives = true // every try looks the name up
	const tries = 1000
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range tries / 4 {
				e := run(t, c, aTool("GET", fmt.Sprintf("http://rebind%d-%d.example:%s/", worker, i, port)), nil)
				if e.Failure != nil {
					t.Error(e.Failure)
					return
				}
			}
		})
	}
	wait.Wait()
	require.GreaterOrEqual(t, asked.Load(), int64(tries))
	require.EqualValues(t, tries, public.Load())
	require.Zero(t, inside.Load())

	// A name that is inside alone is not reached at all, kept connection or not.
	only := clientFor(t, names(t, func(string) []netip.Addr { return []netip.Addr{evil} }), "127.0.0.1")
	require.Equal(t, parley.Unreachable, run(t, only, aTool("GET", "http://inside.example:"+port+"/"), nil).Failure.Kind)
	require.Zero(t, inside.Load())
}

// Loopback is reached by the operator's word alone, and then on any port.
func TestPromiseE1OnlyTheOperatorOpensAWay(t *testing.T) {
	t.Parallel()
	port, _ := listen(t, "127.0.0.1:0", echo)
	here := names(t, func(name string) []netip.Addr {
		if name == "crm.internal" || name == "xn--bcher-kva.example" || name == "other.internal" {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		return nil
	})
	reaches := func(url string, allow ...string) bool {
		e := run(t, clientFor(t, here, allow...), aTool("GET", url), nil)
		return e.Failure == nil
	}
	address := "http://127.0.0.1:" + port
	require.False(t, reaches(address))
	require.False(t, reaches(address, "127.0.0.2", "10.0.0.0/8", "::1"))
	require.True(t, reaches(address, "127.0.0.1"))
	require.True(t, reaches(address, "127.0.0.0/8"))
	require.True(t, reaches("http://[::ffff:127.0.0.1]:"+port, "127.0.0.0/8"), "mapped is the same address")
	require.False(t, reaches(address, "localhost"), "a host was opened, not the address")
	require.True(t, reaches("http://localhost:"+port, "LocalHost"))
	require.True(t, reaches("http://crm.internal.:"+port, "CRM.internal"))
	require.True(t, reaches("http://CRM.internal:"+port, "crm.internal"))
	require.True(t, reaches("http://bücher.example:"+port, "xn--bcher-kva.example"))
	require.False(t, reaches("http://other.internal:"+port, "crm.internal"))
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	port, proxied := listen(t, "127.0.0.1:0", echo)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	c := clientFor(t, nobody(t))
	require.Equal(t, parley.Unreachable, run(t, c, aTool("GET", "http://nobody.example/"), nil).Failure.Kind)
	require.Equal(t, parley.Unreachable, run(t, c, aTool("GET", "https://nobody.example/"), nil).Failure.Kind)
	require.Zero(t, proxied.Load())
}

func TestAllowedIsReadWithClearErrors(t *testing.T) {
	t.Parallel()
	a, err := ParseAllowed([]string{"10.0.0.0/8", " ::1 ", "", "CRM.internal.", "fd00::/8", "a_b.example"})
	require.NoError(t, err)
	require.Len(t, a.networks, 3)
	require.Equal(t, []string{"crm.internal", "a_b.example"}, a.hosts)
	for text, says := range map[string]string{
		"10.0.0.1/8":         "write 10.0.0.0/8 for the network, or 10.0.0.1 for the address alone",
		"http://localhost":   "neither a network such as 10.0.0.0/8, nor an address, nor a host name",
		"localhost:8080":     "nor a host name without scheme, port and path",
		"*":                  `"*" is neither`,
		"*.internal":         "neither a network",
		"10.0.0.0/33":        "neither a network",
		"256.0.0.1":          "neither a network",
		"0177.0.0.1":         "neither a network",
		"bücher.example":     "neither a network",
		"a..b":               "neither a network",
		"-a.example":         "neither a network",
		"10.0.0.0/8;::1/128": "neither a network",
	} {
		_, err := ParseAllowed([]string{text})
		require.ErrorContains(t, err, says, text)
	}
}
