package egress

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// secretPrefix marks a webhook secret (Standard Webhooks, "Signature scheme").
const secretPrefix = "whsec_"

// NewSecret is a fresh webhook secret: 256 bits.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails on a supported system
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Sign makes the headers by which a receiver knows that a message is ours and whole
// (Standard Webhooks). While secrets are rotated there are two, and a signature by
// each: a receiver that knows either is content.
func Sign(id string, at time.Time, body []byte, secrets []string) (http.Header, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a webhook is signed with at least one secret")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		encoded, marked := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !marked || len(key) == 0 {
			return nil, errors.New("a webhook secret is whsec_ followed by base64")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	header := http.Header{}
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", strings.Join(signatures, " "))
	return header, nil
}
