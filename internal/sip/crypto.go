package sip

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Crypto is an SDES key for SRTP (RFC 4568): what one side encrypts with.
type Crypto struct {
	Tag   int
	Suite string
	Key   []byte // master key and salt, joined as on the wire
}

// The crypto suites (RFC 4568 section 6.2).
const (
	AESCM128SHA180 = "AES_CM_128_HMAC_SHA1_80"
	AESCM128SHA132 = "AES_CM_128_HMAC_SHA1_32"
)

// keyLength is the length of key and salt of a suite, 0 for one we do not have.
func keyLength(suite string) int {
	switch suite {
	case AESCM128SHA180, AESCM128SHA132:
		return 30
	default:
		return 0
	}
}

// NewCrypto makes a fresh key. RFC 4568 section 6.1: a key is never used twice.
func NewCrypto(tag int, suite string) Crypto {
	key := make([]byte, keyLength(suite))
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return Crypto{Tag: tag, Suite: suite, Key: key}
}

func (c Crypto) String() string {
	return strconv.Itoa(c.Tag) + " " + c.Suite + " inline:" + base64.StdEncoding.EncodeToString(c.Key)
}

// parseCrypto reads the value of an a=crypto line. A line that we could not honour to
// the letter is an error: RFC 4568 section 5.1.2 has the answerer skip it.
func parseCrypto(value string) (Crypto, error) {
	fields := strings.Fields(value)
	if len(fields) < 3 {
		return Crypto{}, errors.New("crypto: too few fields")
	}
	tag, err := strconv.Atoi(fields[0])
	if err != nil || tag < 0 || len(fields[0]) > 9 {
		return Crypto{}, errors.New("crypto: bad tag")
	}
	if len(fields) > 3 {
		return Crypto{}, errors.New("crypto: session parameters are not supported")
	}
	inline, ok := strings.CutPrefix(fields[2], "inline:")
	if !ok || strings.Contains(inline, ";") {
		return Crypto{}, errors.New("crypto: want one inline key")
	}
	inline, rest, _ := strings.Cut(inline, "|")
	// What follows may be a lifetime (2^20), which a call never reaches; an MKI (1:4)
	// would change the packets.
	if strings.Contains(rest, ":") {
		return Crypto{}, errors.New("crypto: MKI is not supported")
	}
	want := keyLength(fields[1])
	if want == 0 {
		return Crypto{}, errors.New("crypto: unknown suite")
	}
	key, err := base64.StdEncoding.DecodeString(inline)
	if err != nil {
		key, err = base64.RawStdEncoding.DecodeString(inline)
	}
	if err != nil || len(key) != want {
		return Crypto{}, errors.New("crypto: bad key")
	}
	return Crypto{Tag: tag, Suite: fields[1], Key: key}, nil
}
