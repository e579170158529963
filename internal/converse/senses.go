package converse

// senses are what the engine makes of raw sound. Each works on one 20 ms frame and
// allocates nothing.
type senses struct {
	voice   func(frame []int16) bool         // does somebody speak?
	own     func(frame []int16) bool         // is it our own sound come back?
	sent    func(frame []int16)              // remembers what we sent
	clean   func(frame []int16)              // takes the noise out, in place
	beep    func(frame []int16) bool         // did an answering machine's tone just end?
	digit   func(frame []int16) (byte, bool) // was a key just pressed?
	ambient func(frame []int16)              // puts the background under, in place
}

// newSenses fills in what a test has not.
func newSenses(cfg *Config) (senses, error) {
	s := cfg.senses
	if s.voice == nil {
		s.voice = func([]int16) bool { return false }
	}
	if s.own == nil {
		s.own = func([]int16) bool { return false }
	}
	if s.sent == nil {
		s.sent = func([]int16) {}
	}
	if s.clean == nil {
		s.clean = func([]int16) {}
	}
	if s.beep == nil {
		s.beep = func([]int16) bool { return false }
	}
	if s.digit == nil {
		s.digit = func([]int16) (byte, bool) { return 0, false }
	}
	if s.ambient == nil {
		s.ambient = func([]int16) {}
	}
	return s, nil
}
