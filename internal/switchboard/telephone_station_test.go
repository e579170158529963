package switchboard

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/media"
	"parley/internal/sip"
)

// peerPatience bounds every wait for a peer; nothing in a good run comes near it.
const peerPatience = 20 * time.Second

// ourTone and theirTone are what the two ends of a call play.
const (
	ourTone   = 500.0
	theirTone = 900.0
)

// station is a node that plays a tone into its calls and listens, in the place of a
// conversation: what peers of other makes hear and send is told by its content.
type station struct {
	t      *testing.T
	agent  *sip.Agent
	engine *media.Engine
	take   func(*station, context.Context, *sip.Incoming) // nil answers
	talks  chan *talk                                     // answered incoming calls
}

// talk is one call of a station.
type talk struct {
	*line
	mu     sync.Mutex
	heard  []int16
	digits []byte
	held   bool
	ended  chan sip.End
}

func newStation(t *testing.T, network string, identity *tls.Config, take func(*station, context.Context, *sip.Incoming), more ...func(*sip.Settings)) *station {
	t.Helper()
	s := &station{t: t, take: take, talks: make(chan *talk, 64)}
	var err error
	s.engine, err = media.New(media.Config{})
	require.NoError(t, err)
	t.Cleanup(s.engine.Close)
	settings := sip.Settings{Listen: []sip.Listen{{Network: network, Address: "127.0.0.1:0"}}, TLS: identity, OptionsEvery: -1, Incoming: s.incoming}
	for _, change := range more {
		change(&settings)
	}
	s.agent, err = sip.New(settings)
	require.NoError(t, err)
	require.NoError(t, s.agent.Start())
	t.Cleanup(func() { require.NoError(t, s.agent.Close()) })
	s.agent.SetTrunks([]parley.Trunk{{ID: 1, Address: "192.0.2.1", Transport: network, AllowedInbound: []string{"127.0.0.1"}, MaxChannels: 1000}})
	return s
}

func (s *station) incoming(ctx context.Context, in *sip.Incoming) {
	if s.take != nil {
		s.take(s, ctx, in)
		return
	}
	k := s.open()
	call, err := in.Answer(k.offer(in.Trunk), k.hooks())
	if err == nil {
		err = k.play(call)
	}
	if err != nil {
		s.t.Errorf("answer: %v", err)
		return
	}
	s.talks <- k
}

// dial calls a number and plays.
func (s *station) dial(trunk parley.Trunk) *talk {
	s.t.Helper()
	k, err := s.tryDial(s.within(), trunk)
	require.NoError(s.t, err)
	return k
}

func (s *station) tryDial(ctx context.Context, trunk parley.Trunk) (*talk, error) {
	k := s.open()
	call, err := s.agent.Dial(ctx, trunk, sip.Outgoing{To: theirNumber, From: ourNumber, Media: k.offer(trunk), Hooks: k.hooks()})
	if err != nil {
		k.session.Close()
		return nil, err
	}
	return k, k.play(call)
}

// trunk leads to this station.
func (s *station) trunk() parley.Trunk {
	return parley.Trunk{ID: 3, Address: s.agent.Addr("udp").String(), Transport: "udp", CallingFormat: "+e164", MaxChannels: 1000, CallsPerSecond: 1000}
}

func (s *station) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), peerPatience)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *station) open() *talk {
	session, err := s.engine.Open(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		panic(err)
	}
	s.t.Cleanup(session.Close)
	return &talk{line: &line{session: session}, ended: make(chan sip.End, 1)}
}

func (k *talk) offer(trunk parley.Trunk) sip.Media {
	m := k.line.offer(trunk)
	m.Address = k.session.Local().Addr()
	return m
}

func (k *talk) hooks() sip.Hooks {
	return sip.Hooks{
		Media: func(agreed sip.Session) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.held = agreed.Held()
			if k.call != nil {
				k.follow()
			}
		},
		Digit: func(digit byte, _ time.Duration) { k.press(digit) },
		Ended: func(end sip.End) { k.ended <- end },
	}
}

func (k *talk) follow() {
	params, err := k.params(k.call)
	if err == nil {
		err = k.session.Update(params)
	}
	if err != nil {
		panic(err)
	}
}

// play starts the media of an answered call.
func (k *talk) play(call *sip.Call) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	params, err := k.params(call)
	if err != nil {
		return err
	}
	k.call = call
	tone, frame := audio.NewSine(lineRate, ourTone, -12), make([]int16, lineRate.FrameSamples())
	return k.session.Start(params, media.Callbacks{
		Frame: func(heard []int16) {
			k.mu.Lock()
			k.heard = append(k.heard, heard...)
			k.mu.Unlock()
			tone.Fill(frame)
			k.session.Send(frame)
		},
		Digit: k.press,
	})
}

func (k *talk) press(digit byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.digits = append(k.digits, digit)
}

func (k *talk) sound() []int16 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.heard)
}

func (k *talk) keys() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.digits)
}

func (k *talk) onHold() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held
}

// hears says that the newest 300 ms are the tone throughout, or silence for 0.
func (k *talk) hears(hertz float64) func() bool {
	return func() bool {
		x, n := k.sound(), lineRate.Samples(300*time.Millisecond)
		if len(x) < n {
			return false
		}
		if hertz == 0 {
			return audio.Level(x[len(x)-n:]) < -60
		}
		return share(x[len(x)-n:], hertz) == 1
	}
}

// loudest is the strongest frequency of a piece of sound, to 10 Hz.
func loudest(x []int16) (hertz float64) {
	best := 0.0
	for f := 100.0; f < 3800; f += 10 {
		turn := 2 * math.Cos(2*math.Pi*f/float64(lineRate))
		var now, old float64
		for _, v := range x {
			now, old = float64(v)+turn*now-old, now
		}
		if p := now*now + old*old - turn*now*old; p > best {
			best, hertz = p, f
		}
	}
	return hertz
}

// share is how many tenths of a second are of a tone.
func share(x []int16, hertz float64) float64 {
	n, all, fit := lineRate.Samples(100*time.Millisecond), 0, 0
	for ; len(x) >= n; x = x[n:] {
		all++
		if audio.Level(x[:n]) > -40 && math.Abs(loudest(x[:n])-hertz) < 20 {
			fit++
		}
	}
	return float64(fit) / float64(max(1, all))
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, peerPatience, 20*time.Millisecond, what)
}

func get[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(peerPatience):
		require.FailNow(t, "no "+what)
		panic("unreachable")
	}
}

// Identity is identity for the tests outside.
var Identity = identity

// identity is a certificate for loopback that trusts itself, and the same as a PEM file.
func identity(t *testing.T) (config *tls.Config, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	require.NoError(t, pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
	file = filepath.Join(t.TempDir(), "identity.pem")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: roots, MinVersion: tls.VersionTLS12}, file
}
