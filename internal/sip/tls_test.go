package sip

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// selfSigned is a certificate for loopback that trusts itself.
func selfSigned(t testing.TB, names ...string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, DNSNames: names}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func TestATLSCarrierIsCheckedByItsName(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"localhost": true, "another.example.com": false} {
		s := quick()
		s.Listen = []Listen{{Network: "tls", Address: "127.0.0.1:0"}}
		s.TLS = selfSigned(t, name)
		calls := make(chan *Call, 1)
		b := callee(t, s, answering(calls, Hooks{}))
		a := start(t, s)
		trunk := trunkTo(b, "tls")
		trunk.Address = "localhost:" + strconv.Itoa(int(b.Addr("tls").Port()))
		c, err := a.Dial(within(t), trunk, Outgoing{To: "+12025550123", Media: media(5000)})
		if !answered {
			require.Equal(t, Unreachable, failure(t, err).Outcome)
			continue
		}
		require.NoError(t, err)
		// The Contact names an address that the certificate does not: the connection is reused.
		require.NoError(t, c.Hangup(within(t)))
	}
}
