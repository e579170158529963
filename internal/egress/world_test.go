package egress

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"parley"
	"parley/internal/promise"
	"parley/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(storetest.M{M: m}) }

// prompt is how long a request with a limit of a second may take. On a busy machine it
// only tells a limit from none.
var prompt = time.Duration(promise.Figure(10_000, 1250)) * time.Millisecond

// home is a client that may reach this machine by 127.0.0.1 alone.
func home(t testing.TB) *Client {
	t.Helper()
	return clientFor(t, nobody(t), "127.0.0.1")
}

// clientFor is a client that does not hold its failures back.
func clientFor(t testing.TB, resolver *net.Resolver, allow ...string) *Client {
	t.Helper()
	allowed, err := ParseAllowed(allow)
	require.NoError(t, err)
	c := newClient(Config{Allowed: allowed, Version: "test"}, reach, resolver)
	c.reach = 0
	t.Cleanup(c.Close)
	return c
}

// names is a name server of our own: nothing is asked outside this machine. The
// answer of a name may differ each time; none means that the name does not exist.
func names(t testing.TB, addresses func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		packet := make([]byte, 2048)
		for {
			n, from, err := socket.ReadFrom(packet)
			if err != nil {
				return
			}
			if reply := answerNames(packet[:n], addresses); reply != nil {
				socket.WriteTo(reply, from)
			}
		}
	}()
	// A look-up that got no answer outlives its request: it ends with its sockets.
	asking, hangUp := context.WithCancel(context.Background())
	t.Cleanup(func() { hangUp(); socket.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(asking, "udp", socket.LocalAddr().String())
		if err == nil {
			context.AfterFunc(asking, func() { conn.Close() })
		}
		return conn, err
	}}
}

// nobody knows no name.
func nobody(t testing.TB) *net.Resolver {
	t.Helper()
	return names(t, func(string) []netip.Addr { return nil })
}

func answerNames(packet []byte, addresses func(string) []netip.Addr) []byte {
	var query dnsmessage.Message
	if query.Unpack(packet) != nil || len(query.Questions) != 1 {
		return nil
	}
	question := query.Questions[0]
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true}, Questions: query.Questions}
	all := addresses(strings.ToLower(strings.TrimSuffix(question.Name.String(), ".")))
	if len(all) == 1 && !all[0].IsValid() {
		return nil // silence
	}
	if len(all) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range all {
		header := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 0}
		switch {
		case a.Is4() && question.Type == dnsmessage.TypeA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && question.Type == dnsmessage.TypeAAAA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// listen is a server on an address of this machine, and the count of its requests.
func listen(t testing.TB, address string, handler http.HandlerFunc) (port string, hits *atomic.Int64) {
	t.Helper()
	hits = &atomic.Int64{}
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		handler(w, r)
	})}}
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port, hits
}

// serve is a server that a client at home reaches.
func serve(t testing.TB, handler http.HandlerFunc) (url string) {
	t.Helper()
	port, _ := listen(t, "127.0.0.1:0", handler)
	return "http://127.0.0.1:" + port
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s\n%v\n%s", r.Method, r.URL, r.Header, body)
}

// raw is a server that speaks for itself on each connection, and then closes it.
func raw(t testing.TB, speak func(net.Conn)) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 4096))
			speak(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return "http://" + listener.Addr().String()
}

// silent is an address where connections are neither accepted nor refused: its
// queue is full.
func silent(t testing.TB) (hostport string) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(socket) })
	require.NoError(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(socket, 0))
	name, err := syscall.Getsockname(socket)
	require.NoError(t, err)
	hostport = fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 16 {
		conn, err := net.DialTimeout("tcp", hostport, 200*time.Millisecond)
		if err != nil {
			return hostport
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the queue never filled")
	return ""
}

// refusing is an address where nobody listens.
func refusing(t testing.TB) (hostport string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// aTool is a tool of this address, and a way to run it with arguments.
func aTool(method, endpoint string, params ...string) parley.Tool {
	tool := parley.Tool{Name: "look_up", Method: method, Endpoint: endpoint, Timeout: 1}
	for _, p := range params {
		name, kind, _ := strings.Cut(p, ":")
		tool.Schema = append(tool.Schema, parley.Param{Name: name, Type: kind})
	}
	return tool
}

func run(t testing.TB, c *Client, tool parley.Tool, arguments map[string]any) parley.Exchange {
	t.Helper()
	return c.RunTool(t.Context(), tool, Invocation{
		Assistant: &parley.Assistant{ID: 7, Name: "Front desk", Settings: parley.Settings{Timezone: "Europe/Berlin", Variables: parley.Object{"tier": "gold"}}},
		Call:      parley.CallFacts{CallID: "call-1", CustomerPhone: "+12025550100", AssistantPhone: "+12025550180", Variables: map[string]any{"customer_id": 42.0}},
		Number:    3, Arguments: arguments,
	})
}

// discard keeps a server's complaints about bad clients out of the tests' output.
var discard = log.New(io.Discard, "", 0)
