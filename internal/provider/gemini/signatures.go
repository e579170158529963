package gemini

import "sync"

// mostSignatures bounds what is remembered; a call seldom runs more than a dozen tools.
const mostSignatures = 4096

// signatures are the thought signatures of recent tool calls. Newer models refuse a
// conversation whose tool calls come back without theirs, and the engine's messages
// have no place for them. A call lives in one process, and so do they.
type signatures struct {
	mu    sync.Mutex
	byID  map[string][]byte
	order []string // oldest first
}

func newSignatures() *signatures { return &signatures{byID: map[string][]byte{}} }

func (s *signatures) keep(id string, signature []byte) {
	if len(signature) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) >= mostSignatures {
		delete(s.byID, s.order[0])
		s.order = s.order[1:]
	}
	s.byID[id] = signature
	s.order = append(s.order, id)
}

func (s *signatures) of(id string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}
