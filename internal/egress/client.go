// Package egress is the one door to addresses that users typed: it runs mid call
// tools and delivers webhooks through a client that reaches the public web and
// nothing else. It must not know how calls are made, stored or scheduled.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"parley"
)

// Config is what an operator can set about requests to users' addresses.
type Config struct {
	Allowed Allowed // besides the public web
	Version string  // told to receivers in User-Agent
	Log     *slog.Logger
}

// Client makes requests to users' addresses. It follows no redirect, uses no proxy,
// and is bounded in time, headers and body. It is safe for concurrent use.
type Client struct {
	http      *http.Client
	userAgent string
	// reach bounds the look-up and the connection. A target that is not reached is
	// answered for when it has passed, however early that was known: a user
	// must not learn from the time what Parley's own network looks like.
	reach time.Duration
	// deliver and ask bound a whole delivery, and one whose answer counts.
	deliver, ask time.Duration
}

// reach is for a far network and one lost packet, and short beside a caller's patience.
const reach = 3 * time.Second

// New makes a client.
func New(config Config) *Client { return newClient(config, reach, net.DefaultResolver) }

func newClient(config Config, reach time.Duration, resolver *net.Resolver) *Client {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{userAgent: strings.TrimSuffix("Parley/"+config.Version, "/"), reach: reach, deliver: deliveryLimit, ask: askLimit}
	open := &net.Dialer{Timeout: reach, KeepAlive: 30 * time.Second, Resolver: resolver}
	guarded := *open
	guarded.Control = func(network, address string, _ syscall.RawConn) error {
		err := config.Allowed.check(network, address)
		if err != nil {
			config.Log.Debug("request to a forbidden address blocked", "address", address)
		}
		return err
	}
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, // a proxy named in the environment would connect where we may not
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if host, _, err := net.SplitHostPort(address); err == nil && config.Allowed.host(host) {
					return open.DialContext(ctx, network, address)
				}
				return guarded.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout:    reach,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    mostRoom,
			IdleConnTimeout:        30 * time.Second,
		},
	}
	return c
}

// Close gives the kept connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// answer is what came back of a request, as far as it was read.
type answer struct {
	status    int
	header    http.Header
	body      []byte
	truncated bool
	broken    bool // not read to its end
	took      time.Duration
}

// send makes a request that ends after limit at the latest, and reads at most this
// many bytes of its answer. A failure may come with a status: then the answer broke off.
func (c *Client) send(ctx context.Context, request *http.Request, limit time.Duration, most int) (a answer, failure *parley.Failure) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var connected atomic.Bool
	request = request.WithContext(httptrace.WithClientTrace(within, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	request.Header.Set("Accept-Encoding", "identity") // a small answer must not unpack to a large one
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", c.userAgent)
	}
	response, err := c.http.Do(request)
	if err != nil {
		failure = why(ctx, err, connected.Load(), limit)
		if failure.Kind == parley.Unreachable {
			wait(within, began.Add(c.reach))
		}
		return a, failure
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	if len(a.body) > most {
		a.body, a.truncated = a.body[:most], true
	}
	if err != nil {
		a.broken = true
		return a, why(ctx, err, true, limit)
	}
	return a, nil
}

// why turns an error into a failure that tells a user what they can mend, and nothing
// of the inside.
func why(ctx context.Context, err error, connected bool, limit time.Duration) *parley.Failure {
	fail := func(kind parley.FailureKind, message string) *parley.Failure {
		return &parley.Failure{Kind: kind, Message: message}
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fail(parley.Cancelled, "the request was cancelled")
	case badCertificate(err):
		return fail(parley.Untrusted, "the address has no valid certificate")
	case !connected:
		return fail(parley.Unreachable, "the address could not be reached; it must be public and on port 80 or 443")
	case errors.Is(err, context.DeadlineExceeded):
		return fail(parley.TimedOut, fmt.Sprintf("no answer within %s", seconds(limit)))
	default:
		return fail(parley.Unreadable, "the answer broke off or was not HTTP")
	}
}

func badCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

func seconds(d time.Duration) string {
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%g seconds", d.Seconds())
}

// wait returns at a time, or when ctx ends.
func wait(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
