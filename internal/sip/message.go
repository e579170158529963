package sip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	gosip "github.com/emiago/sipgo/sip"
)

// allow is the Allow header of every dialog we open (RFC 3261 section 20.5).
const allow = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY, REFER"

// listed says whether a comma-separated header holds a word, in any of its spellings.
func listed(msg gosip.Message, word string, names ...string) bool {
	for _, name := range names {
		for _, h := range msg.GetHeaders(name) {
			for part := range strings.SplitSeq(h.Value(), ",") {
				if strings.EqualFold(strings.TrimSpace(part), word) {
					return true
				}
			}
		}
	}
	return false
}

func supports(msg gosip.Message, option string) bool { return listed(msg, option, "Supported", "k") }
func requires(msg gosip.Message, option string) bool { return listed(msg, option, "Require") }

// headerValue is the value of a generic header in its long or short spelling.
func headerValue(msg gosip.Message, names ...string) string {
	for _, name := range names {
		if hs := msg.GetHeaders(name); len(hs) > 0 {
			return strings.TrimSpace(hs[0].Value())
		}
	}
	return ""
}

func tagOf(params gosip.HeaderParams) string {
	tag, _ := params.Get("tag")
	return tag
}

func isSDP(msg interface {
	ContentType() *gosip.ContentTypeHeader
}) bool {
	h := msg.ContentType()
	if h == nil {
		return false
	}
	kind, _, _ := strings.Cut(h.Value(), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/sdp")
}

func setBody(msg interface {
	AppendHeader(gosip.Header)
	SetBody([]byte)
}, kind string, body []byte,
) {
	if len(body) > 0 {
		msg.AppendHeader(gosip.NewHeader("Content-Type", kind))
	}
	msg.SetBody(body)
}

func newTag() string { return randomHex(8) }

func randomHex(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw)
	return hex.EncodeToString(raw)
}

// newCallID makes a Call-ID that we can recognise as our own after we have forgotten
// the call: a very late 2xx must still be acknowledged and ended, a forged one not.
func (a *Agent) newCallID() string {
	id := randomHex(12)
	return id + "-" + a.sealCallID(id)
}

func (a *Agent) sealCallID(id string) string {
	mac := hmac.New(sha256.New, a.seal[:])
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

func (a *Agent) madeCallID(callID string) bool {
	id, seal, ok := strings.Cut(callID, "-")
	return ok && subtle.ConstantTimeCompare([]byte(a.sealCallID(id)), []byte(seal)) == 1
}
