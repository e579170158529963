package sip

import (
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // RFC 8760 keeps MD5 for carriers without SHA-256
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
	"time"

	"github.com/icholy/digest"
)

// challenger makes and checks digest challenges (RFC 7616, RFC 8760). A nonce carries
// its own time under a seal, so that strangers' challenges cost no memory; only nonces
// that were answered rightly are remembered, until they are stale.
type challenger struct {
	realm string
	offer []string
	ttl   time.Duration
	now   func() time.Time
	seal  [32]byte

	mu   sync.Mutex
	used map[string]usedNonce
}

type usedNonce struct {
	nc    int
	until time.Time
}

func newChallenger(s Settings) *challenger {
	c := &challenger{realm: s.Realm, offer: s.Digests, ttl: s.NonceTTL, now: s.Now, used: map[string]usedNonce{}}
	_, _ = rand.Read(c.seal[:])
	return c
}

// challenges are the WWW-Authenticate values to send, SHA-256 first: RFC 8760 section
// 2.4 has the client take the topmost it knows.
func (c *challenger) challenges(stale bool) []string {
	nonce := c.nonce()
	values := make([]string, 0, len(c.offer))
	for _, algorithm := range c.offer {
		value := `Digest realm="` + c.realm + `", nonce="` + nonce + `", algorithm=` + algorithm + `, qop="auth"`
		if stale {
			value += ", stale=true"
		}
		values = append(values, value)
	}
	return values
}

func (c *challenger) nonce() string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(c.now().UnixNano()))
	_, _ = rand.Read(raw[8:])
	return hex.EncodeToString(raw[:]) + hex.EncodeToString(c.sign(raw[:]))
}

func (c *challenger) sign(raw []byte) []byte {
	mac := hmac.New(sha256.New, c.seal[:])
	mac.Write(raw)
	return mac.Sum(nil)[:16]
}

// verdict on an Authorization header.
type verdict int

const (
	wrong verdict = iota
	stale         // right, but the nonce is too old: the client may try again unasked
	right
)

// check judges an Authorization header. secret gives the password of a user; an
// unknown user costs the same work as a known one, so that time tells nothing.
func (c *challenger) check(header, method string, secret func(user string) (string, bool)) (user string, v verdict) {
	given, err := digest.ParseCredentials(header)
	if err != nil || given.Realm != c.realm || given.QOP != "" && given.QOP != "auth" || given.Userhash {
		return "", wrong
	}
	made, ok := c.openNonce(given.Nonce)
	if !ok {
		return "", wrong
	}
	password, known := secret(given.Username)
	want, ok := expected(given, method, password)
	if !ok {
		return "", wrong
	}
	same := subtle.ConstantTimeCompare([]byte(want), []byte(strings.ToLower(given.Response))) == 1
	if !same || !known || password == "" { // an empty password is no password
		return "", wrong
	}
	age := c.now().Sub(made)
	if age > c.ttl || age < 0 {
		return given.Username, stale
	}
	if !c.spend(given.Nonce, given.Nc, made.Add(c.ttl)) {
		return given.Username, stale
	}
	return given.Username, right
}

func (c *challenger) openNonce(nonce string) (made time.Time, ok bool) {
	raw, err := hex.DecodeString(nonce)
	if err != nil || len(raw) != 32 {
		return time.Time{}, false
	}
	if subtle.ConstantTimeCompare(c.sign(raw[:16]), raw[16:]) != 1 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(raw[:8]))), true
}

// spend takes a nonce count once. RFC 7616 section 3.4: the count must rise; a header
// seen before is a replay. Without qop there is no count, and the nonce works once.
func (c *challenger) spend(nonce string, nc int, until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for n, u := range c.used {
		if now.After(u.until) {
			delete(c.used, n)
		}
	}
	nc = max(nc, 1)
	if seen, ok := c.used[nonce]; ok && nc <= seen.nc {
		return false
	}
	c.used[nonce] = usedNonce{nc: nc, until: until}
	return true
}

// expected is the response a client with the password would give (RFC 7616 section 3.4.1).
func expected(given *digest.Credentials, method, password string) (string, bool) {
	var h hash.Hash
	switch strings.ToUpper(given.Algorithm) {
	case "", "MD5":
		h = md5.New() //nolint:gosec // see the import
	case "SHA-256":
		h = sha256.New()
	default:
		return "", false
	}
	sum := func(parts ...string) string {
		h.Reset()
		_, _ = h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	a1 := sum(given.Username, given.Realm, password)
	a2 := sum(method, given.URI)
	if given.QOP == "" {
		return sum(a1, given.Nonce, a2), true
	}
	nc := hex.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(given.Nc)))
	return sum(a1, given.Nonce, nc, given.Cnonce, given.QOP, a2), true
}
