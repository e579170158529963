package converse

// chain is the order in which providers of one kind are tried: the first choice, the
// first once more, then each fallback. One that has worked where those before it
// failed is where later attempts begin.
type chain struct{ first, n int }

func newChain(n int) chain { return chain{n: n} }

// route is how far the attempts at one thing have come.
type route struct {
	begun    bool
	again    bool // the first choice has had its second chance
	provider int
}

// provider is whose turn it is; ok is false when nobody is left.
func (ch chain) provider(r *route) (provider int, ok bool) {
	if !r.begun || r.provider < ch.first {
		r.begun, r.provider = true, ch.first
	}
	return r.provider, r.provider < ch.n
}

// fail moves on after a failure.
func (r *route) fail() {
	if r.again {
		r.provider++
	}
	r.again = true
}

// last reports that nobody would be left after another failure.
func (ch chain) last(r route) bool { return r.again && r.provider >= ch.n-1 }

// worked has later attempts begin with this provider.
func (ch *chain) worked(provider int) { ch.first = max(ch.first, provider) }
