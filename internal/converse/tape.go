package converse

import "slices"

// tape is sound that is added at one end and taken from the other. What has been taken
// is let go: a call holds what it has yet to say, not what it has said.
type tape struct {
	pieces [][]int16
	at     int // of the first piece, how much has been taken
	length int // samples ever added
	taken  int // samples ever taken
}

// tapeOf is a tape of sound that others hold too.
func tapeOf(sound []int16) tape { return tape{pieces: [][]int16{sound}, length: len(sound)} }

// add keeps a piece; it is not copied.
func (t *tape) add(piece []int16) {
	if len(piece) > 0 {
		t.pieces = append(t.pieces, piece)
		t.length += len(piece)
	}
}

// left is how much there is to take.
func (t *tape) left() int { return t.length - t.taken }

// take moves sound into a frame and says how many samples it gave.
func (t *tape) take(out []int16) (n int) {
	for n < len(out) && len(t.pieces) > 0 {
		got := copy(out[n:], t.pieces[0][t.at:])
		n += got
		if t.at += got; t.at == len(t.pieces[0]) {
			t.pieces[0] = nil // the list may stay, its sound need not
			t.pieces, t.at = t.pieces[1:], 0
		}
	}
	t.taken += n
	return n
}

// copy is a tape of the same sound, to be taken by another.
func (t *tape) copy() tape {
	c := *t
	c.pieces = slices.Clone(t.pieces)
	return c
}

// all is the sound of a tape of which nothing has been taken.
func (t *tape) all() []int16 { return slices.Concat(t.pieces...) }

// erase lets go of what has not been taken; the figures stay.
func (t *tape) erase() { t.pieces = nil }
