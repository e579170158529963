package sandbox

import "slices"

// field is the arithmetic of GF(256) with the polynomial x^8+x^4+x^3+x^2+1, in
// which one byte is one symbol of a word's code.
type field struct {
	exp [1024]byte // twice the group, so that a sum of two logarithms needs no modulus, then zeros
	log [256]uint16
}

// logZero stands for the logarithm of zero: what it is added to gives zero again, so
// that a product needs no question.
const logZero = 2 * 255

func newField() *field {
	f := &field{}
	f.log[0] = logZero
	x := 1
	for i := range 255 {
		f.exp[i], f.exp[i+255] = byte(x), byte(x)
		f.log[x] = uint16(i)
		x <<= 1
		if x&0x100 != 0 {
			x ^= 0x11d
		}
	}
	return f
}

func (f *field) mul(a, b byte) byte { return f.exp[(f.log[a]+f.log[b])&1023] }

func (f *field) div(a, b byte) byte { return f.exp[(f.log[a]+255-f.log[b])&1023] }

// maxParity bounds the redundancy of a word: two thirds of its longest form.
const maxParity = maxSymbols - maxSymbols/3

// slack is how many parity symbols a repair must leave unused. They are a second
// checksum: a damaged word that looks like another one fails here or in the CRC.
const slack = 2

// reedSolomon is the code that repairs a word. A lost packet wipes out two or
// three neighbouring symbols, which is the kind of error the code is best at.
type reedSolomon struct {
	*field
	generators [maxParity + 1][]byte // by parity count, highest power first, without the leading one
}

func newReedSolomon() *reedSolomon {
	rs := &reedSolomon{field: newField()}
	g := []byte{1}
	for r := 1; r <= maxParity; r++ {
		next := make([]byte, len(g)+1)
		root := rs.exp[r-1]
		for i, c := range g {
			next[i] ^= c
			next[i+1] ^= rs.mul(c, root)
		}
		g = next
		rs.generators[r] = g[1:]
	}
	return rs
}

// encode fills the parity behind the first k symbols of word.
func (rs *reedSolomon) encode(word []byte, k int) {
	parity := word[k:]
	clear(parity)
	g := rs.generators[len(parity)]
	for _, m := range word[:k] {
		feedback := m ^ parity[0]
		copy(parity, parity[1:])
		parity[len(parity)-1] = 0
		for i, c := range g {
			parity[i] ^= rs.mul(c, feedback)
		}
	}
}

// repairer is the room that a repair takes.
type repairer struct {
	word                                             [maxSymbols]byte
	suspects                                         [maxSymbols]byte
	syndromes, locator, shifted, previous, evaluator [maxParity + 1]byte
	at                                               [maxParity]byte
}

// repair corrects word in place, given which symbols are suspected, and says
// whether it could: each suspect costs one parity symbol, each other error two.
func (rs *reedSolomon) repair(m *repairer, word []byte, parity int, suspects []byte) bool {
	if len(suspects)+slack > parity {
		return false
	}
	if !rs.measure(m, word, parity) {
		return true
	}
	degree := rs.locate(m, len(word), parity, suspects)
	if 2*degree-len(suspects)+slack > parity {
		return false
	}
	found := rs.roots(m, len(word), degree)
	if found != degree {
		return false
	}
	return rs.correct(m, word, parity, degree)
}

// measure computes the syndromes and says whether any is not zero.
func (rs *reedSolomon) measure(m *repairer, word []byte, parity int) bool {
	syndromes := m.syndromes[:parity]
	clear(syndromes)
	for _, c := range word {
		for j, s := range syndromes {
			syndromes[j] = rs.exp[(rs.log[s]+uint16(j))&1023] ^ c
		}
	}
	for _, s := range syndromes {
		if s != 0 {
			return true
		}
	}
	return false
}

// locate finds the error locator by Berlekamp and Massey's algorithm, started from
// the locator of the suspects, and returns its degree.
func (rs *reedSolomon) locate(m *repairer, n, parity int, suspects []byte) int {
	locator, shifted := &m.locator, &m.shifted
	clear(locator[:])
	locator[0] = 1
	for count, i := range suspects {
		x := rs.exp[n-1-int(i)]
		for j := count + 1; j > 0; j-- {
			locator[j] ^= rs.mul(locator[j-1], x)
		}
	}
	*shifted = *locator
	f := len(suspects)
	length := f
	for r := f + 1; r <= parity; r++ {
		var discrepancy byte
		for i := range min(r, parity) {
			discrepancy ^= rs.mul(locator[i], m.syndromes[r-1-i])
		}
		copy(shifted[1:parity+1], shifted[:parity])
		shifted[0] = 0
		if discrepancy == 0 {
			continue
		}
		m.previous = *locator
		for i := range parity + 1 {
			locator[i] ^= rs.mul(discrepancy, shifted[i])
		}
		if 2*length <= r+f-1 {
			length = r + f - length
			for i := range parity + 1 {
				shifted[i] = rs.div(m.previous[i], discrepancy)
			}
		}
	}
	degree := parity
	for degree > 0 && locator[degree] == 0 {
		degree--
	}
	return degree
}

// roots finds where the errors are by trying every place.
func (rs *reedSolomon) roots(m *repairer, n, degree int) int {
	found := 0
	for i := range n {
		inverse := 255 - (n - 1 - i)
		if rs.evaluate(m.locator[:degree+1], inverse%255) == 0 {
			if found == degree {
				return -1
			}
			m.at[found] = byte(i)
			found++
		}
	}
	return found
}

// evaluate is a polynomial, lowest power first, at the generator's given power.
func (rs *reedSolomon) evaluate(p []byte, power int) byte {
	var s byte
	for _, v := range slices.Backward(p) {
		s = rs.exp[int(rs.log[s])+power] ^ v
	}
	return s
}

// correct computes the errors' values by Forney's formula.
func (rs *reedSolomon) correct(m *repairer, word []byte, parity, degree int) bool {
	for i := range parity {
		var s byte
		for j := range min(i, degree) + 1 {
			s ^= rs.mul(m.locator[j], m.syndromes[i-j])
		}
		m.evaluator[i] = s
	}
	for _, i := range m.at[:degree] {
		power := len(word) - 1 - int(i)
		inverse := (255 - power) % 255
		var slope byte
		for j := 1; j <= degree; j += 2 {
			if c := m.locator[j]; c != 0 {
				slope ^= rs.exp[(int(rs.log[c])+inverse*(j-1))%255]
			}
		}
		if slope == 0 {
			return false
		}
		value := rs.div(rs.evaluate(m.evaluator[:parity], inverse), slope)
		word[i] ^= rs.mul(value, rs.exp[power])
	}
	return true
}
