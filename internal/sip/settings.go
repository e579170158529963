package sip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Listen is one address to take SIP on.
type Listen struct {
	Network string // udp, tcp or tls
	Address string // IP:port; port 0 takes a free one
}

// Settings of an Agent. Zero values take the defaults named beside them.
type Settings struct {
	Listen   []Listen
	External string      // host or host:port in Via and Contact, behind a NAT; default the socket's own
	TLS      *tls.Config // certificate for tls listeners, roots for tls trunks
	Product  string      // User-Agent and Server header; default "Parley"
	Realm    string      // of digest challenges; default "parley"
	Digests  []string    // algorithms offered, best first; default SHA-256, MD5

	// Incoming is given every call of a known trunk, on a goroutine of the agent. It
	// answers or refuses; a call it leaves undecided is refused with 480. The context
	// ends when the caller gives up or the agent closes.
	Incoming func(context.Context, *Incoming)

	// Ignores says which called numbers, as the request line has them, get no reply at
	// all, as from a carrier that has failed; default none.
	Ignores func(to string) bool

	MaxCalls       int           // both ways together; default 2000
	RetryAfter     time.Duration // told to refused callers; default 5 s
	RingTimeout    time.Duration // default 60 s
	SessionExpires time.Duration // RFC 4028; default 30 min, negative for none
	MinSE          time.Duration // RFC 4028 section 5; default 90 s
	OptionsEvery   time.Duration // trunk keep-alive; default 30 s, negative for none
	RegisterFor    time.Duration // asked Expires; default 1 h
	RegisterRetry  time.Duration // first back-off; default 5 s, doubled to 5 min
	Farewell       time.Duration // how long Close waits for BYE and unregistering; default 2 s

	NonceTTL      time.Duration // default 60 s
	FloodRequests int           // requests in FloodWindow before a ban; default 16
	FloodWindow   time.Duration // default 2 s
	BanFor        time.Duration // default 300 s

	// T1 and T2 pace what dialogs repeat (RFC 3261 section 17.1.1.1); default 500 ms
	// and 4 s. Transactions are paced by sipgo's own.
	T1, T2 time.Duration

	Now      func() time.Time // of guards and nonces; default time.Now
	Resolver *net.Resolver    // default net.DefaultResolver
	Log      *slog.Logger     // default discards
}

func defaulted[T int | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// complete fills in defaults and checks the rest.
func (s *Settings) complete() error {
	defaulted(&s.MaxCalls, 2000)
	defaulted(&s.RetryAfter, 5*time.Second)
	defaulted(&s.RingTimeout, time.Minute)
	defaulted(&s.SessionExpires, 30*time.Minute)
	defaulted(&s.MinSE, 90*time.Second)
	defaulted(&s.OptionsEvery, 30*time.Second)
	defaulted(&s.RegisterFor, time.Hour)
	defaulted(&s.RegisterRetry, 5*time.Second)
	defaulted(&s.Farewell, 2*time.Second)
	defaulted(&s.NonceTTL, time.Minute)
	defaulted(&s.FloodRequests, 16)
	defaulted(&s.FloodWindow, 2*time.Second)
	defaulted(&s.BanFor, 5*time.Minute)
	defaulted(&s.T1, 500*time.Millisecond)
	defaulted(&s.T2, 4*time.Second)
	if s.Product == "" {
		s.Product = "Parley"
	}
	if s.Realm == "" {
		s.Realm = "parley"
	}
	if len(s.Digests) == 0 {
		s.Digests = []string{"SHA-256", "MD5"}
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Resolver == nil {
		s.Resolver = net.DefaultResolver
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return s.check()
}

func (s *Settings) check() error {
	for _, d := range s.Digests {
		if d != "SHA-256" && d != "MD5" {
			return fmt.Errorf("sip: digest algorithm %q must be SHA-256 or MD5", d)
		}
	}
	if len(s.Listen) == 0 {
		return errors.New("sip: set at least one address to listen on")
	}
	for _, l := range s.Listen {
		if _, err := netip.ParseAddrPort(l.Address); err != nil {
			return fmt.Errorf("sip: listen address %q must be IP:port, such as 0.0.0.0:5060", l.Address)
		}
		switch l.Network {
		case "udp", "tcp":
		case "tls":
			if s.TLS == nil || len(s.TLS.Certificates) == 0 && s.TLS.GetCertificate == nil {
				return errors.New("sip: set a certificate to listen on tls")
			}
		default:
			return fmt.Errorf("sip: network %q must be udp, tcp or tls", l.Network)
		}
	}
	return nil
}
