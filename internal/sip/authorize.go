package sip

import (
	"errors"
	"strings"

	gosip "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"

	"parley"
)

// errNoCredentials says that a challenge cannot be answered.
var errNoCredentials = errors.New("sip: the carrier wants a username and password that the trunk does not have")

// authorize answers the challenge in res on the request that is to be sent again
// (RFC 3261 section 22). Its CSeq and branch are the caller's to renew.
func authorize(req *gosip.Request, res *gosip.Response, trunk parley.Trunk) error {
	ask, answer := "WWW-Authenticate", "Authorization"
	if res.StatusCode == gosip.StatusProxyAuthRequired {
		ask, answer = "Proxy-Authenticate", "Proxy-Authorization"
	}
	if trunk.Username == "" {
		return errNoCredentials
	}
	best, err := bestChallenge(res.GetHeaders(ask))
	if err != nil {
		return err
	}
	if req.GetHeader(answer) != nil && !best.Stale {
		return errNoCredentials // RFC 3261 section 22.1: the same words would be refused again
	}
	credentials, err := digest.Digest(best, digest.Options{
		Method: req.Method.String(), URI: req.Recipient.String(), Username: trunk.Username, Password: trunk.Password, Count: 1,
	})
	if err != nil {
		return err
	}
	req.RemoveHeader(answer)
	req.AppendHeader(gosip.NewHeader(answer, credentials.String()))
	return nil
}

// bestChallenge prefers SHA-256 to MD5 whatever the order: a carrier that lists MD5
// first gains nothing from the weaker one.
func bestChallenge(headers []gosip.Header) (*digest.Challenge, error) {
	var best *digest.Challenge
	for _, h := range headers {
		challenge, err := parseChallenge(h.Value())
		if err != nil || !digest.CanDigest(challenge) {
			continue
		}
		if best == nil || strength(challenge) > strength(best) {
			best = challenge
		}
	}
	if best == nil {
		return nil, errors.New("sip: no challenge that can be answered")
	}
	return best, nil
}

func parseChallenge(value string) (*digest.Challenge, error) {
	value = strings.TrimSpace(value)
	if len(value) >= 7 && strings.EqualFold(value[:7], "digest ") {
		value = "Digest " + value[7:] // the scheme has no case (RFC 7235 section 2.1)
	}
	c, err := digest.ParseChallenge(value)
	if err != nil {
		return nil, err
	}
	for i := range c.QOP {
		c.QOP[i] = strings.TrimSpace(c.QOP[i])
	}
	return c, nil
}

func strength(c *digest.Challenge) int {
	switch strings.ToUpper(c.Algorithm) {
	case "", "MD5":
		return 1
	default:
		return 2
	}
}
