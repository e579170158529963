package media

import (
	"fmt"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

// replayWindow is how many packets back a repeat is recognised (RFC 3711 3.3.2
// wants 64 at least).
const replayWindow = 128

// cipher is one direction of SRTP, or nothing at all when key is nil. It is not
// safe for concurrent use.
type cipher struct {
	key     *Key
	context *srtp.Context
	rtp     rtp.Header // reused, so that a packet allocates nothing
	rtcp    rtcp.Header
	buffer  []byte
}

// rekey takes the key of a new agreement. The same key keeps its context: the
// rollover counter must go on (RFC 3711 3.3.1), and an offer that repeats the
// session's parameters means them.
func (c *cipher) rekey(key *Key) error {
	if key == nil {
		*c = cipher{}
		return nil
	}
	if c.key != nil && *c.key == *key {
		return nil
	}
	profile := srtp.ProtectionProfileAes128CmHmacSha1_80
	if key.Suite == AESCM128HMACSHA1_32 {
		profile = srtp.ProtectionProfileAes128CmHmacSha1_32
	}
	context, err := srtp.CreateContext(key.Key[:], key.Salt[:], profile,
		srtp.SRTPReplayProtection(replayWindow), srtp.SRTCPReplayProtection(replayWindow))
	if err != nil {
		return fmt.Errorf("media: SRTP: %w", err)
	}
	kept := *key
	*c = cipher{key: &kept, context: context, buffer: make([]byte, 0, 2*packetMost)}
	return nil
}

// open decrypts and authenticates; the result is valid until the next call.
func (c *cipher) open(b []byte) ([]byte, bool) {
	if c.context == nil {
		return b, true
	}
	opened, err := c.context.DecryptRTP(c.buffer[:0], b, &c.rtp)
	return opened, err == nil
}

// seal encrypts; the result is valid until the next call.
func (c *cipher) seal(b []byte) ([]byte, bool) {
	if c.context == nil {
		return b, true
	}
	sealed, err := c.context.EncryptRTP(c.buffer[:0], b, &c.rtp)
	return sealed, err == nil
}

// openReport and sealReport are the same for RTCP.
func (c *cipher) openReport(b []byte) ([]byte, bool) {
	if c.context == nil {
		return b, true
	}
	opened, err := c.context.DecryptRTCP(c.buffer[:0], b, &c.rtcp)
	return opened, err == nil
}

func (c *cipher) sealReport(b []byte) ([]byte, bool) {
	if c.context == nil {
		return b, true
	}
	sealed, err := c.context.EncryptRTCP(c.buffer[:0], b, &c.rtcp)
	return sealed, err == nil
}
