package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Keys seals secrets before they reach the database and opens them after. The
// first key seals; every key opens, so that keys can be changed while old rows
// remain. Kept in a file, the keys are read again when the file changes: a running
// server follows a rotation made beside it.
type Keys struct {
	path string // empty when the keys came from a setting

	mu       sync.RWMutex
	modified time.Time
	ring     []sealKey
}

type sealKey struct {
	id   [4]byte // the beginning of the key's hash, written before what it sealed
	aead cipher.AEAD
	text string
}

// sealVersion begins everything sealed, so that the form can change.
const sealVersion = 1

// ParseKeys reads keys from a setting: base64 of 32 bytes each, separated by
// commas, the sealing one first.
func ParseKeys(setting string) (*Keys, error) {
	ring, err := parseRing(strings.Split(setting, ","))
	if err != nil {
		return nil, fmt.Errorf("PARLEY_SECRET_KEY: %w", err)
	}
	return &Keys{ring: ring}, nil
}

// KeyFile reads the keys in a file, one a line, the sealing one first. A missing
// file is made with a new key, readable by its owner alone.
func KeyFile(path string) (*Keys, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := writeKeyFile(path, []string{NewKey()}); err != nil {
			return nil, err
		}
	}
	k := &Keys{path: path}
	return k, k.reload()
}

// NewKey is a fresh random key in the form that settings and files hold.
func NewKey() string {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		panic(err) // crypto/rand never fails on a supported system
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// writeKeyFile links a finished file into place, so that of two processes which
// start at once one wins and both read the same keys.
func writeKeyFile(path string, keys []string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(strings.Join(keys, "\n") + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// Rotate puts a new sealing key before the others. Rows sealed with the old ones
// stay readable until System.Reseal has rewritten them.
func (k *Keys) Rotate() error {
	if k.path == "" {
		return errors.New("the keys come from PARLEY_SECRET_KEY: put a new key before the old one there (new,old), then run this again")
	}
	if err := k.reload(); err != nil {
		return err
	}
	keys := []string{NewKey()}
	for _, key := range k.ring {
		keys = append(keys, key.text)
	}
	next := k.path + ".next"
	if err := writeKeyFile(next, keys); err != nil {
		return err
	}
	if err := os.Rename(next, k.path); err != nil {
		return err
	}
	return k.reload()
}

// InFile says whether the keys are kept in a file.
func (k *Keys) InFile() bool { return k.path != "" }

func (k *Keys) reload() error {
	stat, err := os.Stat(k.path)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(k.path)
	if err != nil {
		return err
	}
	ring, err := parseRing(strings.Fields(string(raw)))
	if err != nil {
		return fmt.Errorf("%s: %w", k.path, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ring, k.modified = ring, stat.ModTime()
	return nil
}

func parseRing(keys []string) ([]sealKey, error) {
	var ring []sealKey
	for _, text := range keys {
		text = strings.TrimSpace(text)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != 32 {
			return nil, errors.New("a key is the base64 of 32 bytes; make one with: head -c 32 /dev/urandom | base64")
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		key := sealKey{aead: aead, text: text}
		sum := sha256.Sum256(raw)
		copy(key.id[:], sum[:])
		ring = append(ring, key)
	}
	if len(ring) == 0 {
		return nil, errors.New("there is no key")
	}
	return ring, nil
}

// current is the ring, read again if its file has changed.
func (k *Keys) current() ([]sealKey, error) {
	k.mu.RLock()
	ring, modified := k.ring, k.modified
	k.mu.RUnlock()
	if k.path == "" {
		return ring, nil
	}
	if stat, err := os.Stat(k.path); err == nil && stat.ModTime().Equal(modified) {
		return ring, nil
	}
	if err := k.reload(); err != nil {
		return nil, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ring, nil
}

// Sign proves that a message comes from this installation, for a purpose.
func (k *Keys) Sign(purpose, message string) (string, error) {
	ring, err := k.current()
	if err != nil {
		return "", err
	}
	return ring[0].sign(purpose, message), nil
}

// Verify says whether Sign made a signature, also before the keys were rotated.
func (k *Keys) Verify(purpose, message, signature string) bool {
	ring, err := k.current()
	if err != nil {
		return false
	}
	for _, key := range ring {
		if subtle.ConstantTimeCompare([]byte(key.sign(purpose, message)), []byte(signature)) == 1 {
			return true
		}
	}
	return false
}

// sign uses a key of its own for each purpose, never the one that seals.
func (key *sealKey) sign(purpose, message string) string {
	derived := hmac.New(sha256.New, []byte(key.text))
	derived.Write([]byte("sign " + purpose))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write([]byte(message))
	return hex.EncodeToString(mac.Sum(nil))
}

// seal encrypts a secret. where names its column, so that a sealed value moved to
// another one does not open.
func (k *Keys) seal(secret []byte, where string) ([]byte, error) {
	ring, err := k.current()
	if err != nil {
		return nil, err
	}
	key := ring[0]
	sealed := append([]byte{sealVersion}, key.id[:]...)
	nonce := make([]byte, key.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	sealed = append(sealed, nonce...)
	return key.aead.Seal(sealed, nonce, secret, []byte(where)), nil
}

// open decrypts what seal made, and says whether a retired key sealed it.
func (k *Keys) open(sealed []byte, where string) (secret []byte, retired bool, err error) {
	const head = 1 + 4
	if len(sealed) < head || sealed[0] != sealVersion {
		return nil, false, fmt.Errorf("%s holds nothing that was sealed", where)
	}
	ring, err := k.current()
	if err != nil {
		return nil, false, err
	}
	for i, key := range ring {
		size := key.aead.NonceSize()
		if string(key.id[:]) != string(sealed[1:head]) || len(sealed) < head+size {
			continue
		}
		secret, err = key.aead.Open(nil, sealed[head:head+size], sealed[head+size:], []byte(where))
		if err != nil {
			return nil, false, fmt.Errorf("%s was damaged: %w", where, err)
		}
		return secret, i > 0, nil
	}
	return nil, false, fmt.Errorf("%s was sealed with another secret key than the configured one", where)
}
