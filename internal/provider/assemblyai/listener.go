package assemblyai

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"parley/internal/converse"
	"parley/internal/provider/wire"
)

// mostWaiting is how many messages may wait to be sent: five seconds of sound.
const mostWaiting = 85

// Messages to the service.
const (
	forceEndpoint = `{"type":"ForceEndpoint"}`
	terminate     = `{"type":"Terminate"}`
)

// listener is one call's stream, whose frames are sent together with others.
type listener struct {
	stream *wire.Stream

	mu     sync.Mutex
	parcel *parcel
	asked  bool // for final words, which are then no opinion on the turn
}

// Write sends a frame once there are enough of them.
func (l *listener) Write(frame []int16) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.send(l.parcel.add(frame))
}

// Flush sends what has been gathered and asks for the final words.
func (l *listener) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	if err := l.send(l.parcel.rest()); err != nil {
		return err
	}
	return l.stream.SendText(forceEndpoint)
}

func (l *listener) send(sound []byte) error {
	if sound == nil {
		return l.stream.Alive()
	}
	return l.stream.SendSound(sound)
}

// Close ends the stream.
func (l *listener) Close() error { return l.stream.Close() }

// judge takes away the opinion on the turn from final words that we had asked for.
func (l *listener) judge(h converse.Heard) converse.Heard {
	if !h.Final {
		return h
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.EndTurn = !l.asked
	l.asked = false
	return h
}

// refused finds the service's words in the answer to an opening.
func refused(body []byte, _ http.Header) string {
	var told struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &told) // what is not JSON says nothing
	return told.Error
}

// closed is what the service means by closing a stream. It opens one for anybody and
// refuses a wrong key by closing it again.
func closed(code int, reason string) string {
	if code == int(websocket.StatusPolicyViolation) && strings.Contains(strings.ToLower(reason), "authoriz") {
		return "the key was refused (1008)"
	}
	return ""
}
