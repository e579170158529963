package sandbox

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The code of a word. A word is a run of 12 to 128 symbols of 10 ms. A symbol is
// five tones at once, one out of each of five groups of four: four groups carry a
// byte of the word, the fifth carries a chip, two bits that the listener knows
// beforehand. The first eight chips of every word are the same and say "a word
// starts here"; the others depend on the word's length and say where it ends. A
// chip that differs from what it must be marks its symbol as damaged, so that a
// lost packet costs the word's code half of what an unknown error would.
const (
	minSymbols   = 12
	maxSymbols   = 128
	startChips   = 8
	startPattern = 0b00_11_01_10_11_00_10_01 // differs from itself at every shift
	maxPiece     = 16                        // bytes of text in one coded word; longer ones are coded in pieces
	overhead     = 3                         // bytes before the text: two of CRC, one of header
)

// Header bits of a coded word.
const (
	seqMask    = 0b0000_0111 // 0 for the first of an utterance, then 1 to 7 round and round
	lastBit    = 0b0000_1000 // the last of its utterance
	pieceBit   = 0b0001_0000 // goes on from the one before, without a space
	pauseShift = 5           // index into pauses
)

// pauses are the gaps behind a word that the header can name, in symbols. The
// listener looks for the next word there even if its start was lost. Index 0
// means that the word goes on in the next piece.
var pauses = [8]int{0, 3, 4, 5, 6, 10, 14, 20}

// grade is how much of a word is redundancy.
type grade int

const (
	sturdy grade = iota // two thirds
	brisk               // half, for speech too fast for the first
	grades
)

// content is how many bytes a word of n symbols holds.
func (g grade) content(n int) int {
	if g == sturdy {
		return n / 3
	}
	return n / 2
}

// symbols is how many symbols it takes to hold so many bytes.
func (g grade) symbols(content int) int {
	if g == sturdy {
		return max(minSymbols, 3*content)
	}
	return max(minSymbols, 2*content)
}

// chips are a word's chips, two bits each, the last one lowest: the order in which
// a shift register holds them once they have been heard.
type chips [maxSymbols / 32]uint64

func (c *chips) push(chip byte) {
	c[3] = c[3]<<2 | c[2]>>62
	c[2] = c[2]<<2 | c[1]>>62
	c[1] = c[1]<<2 | c[0]>>62
	c[0] = c[0]<<2 | uint64(chip)
}

// at is the chip so many places before the last.
func (c *chips) at(back int) byte { return byte(c[back>>5]>>(2*(back&31))) & 3 }

const evenBits = 0x5555_5555_5555_5555

// startMisses counts how many of the last eight chips are not a word's first eight.
func (c *chips) startMisses() int {
	x := (c[0] ^ startPattern) & 0xffff
	return bits.OnesCount64((x | x>>1) & evenBits)
}

// misses counts the differences in the last n chips.
func (c *chips) misses(d *chips, n int) int {
	count := 0
	for i := 0; n > 0; i++ {
		x := c[i] ^ d[i]
		x = (x | x>>1) & evenBits
		if n < 32 {
			x &= 1<<(2*n) - 1
		}
		count += bits.OnesCount64(x)
		n -= 32
	}
	return count
}

// codebook is everything both ends know beforehand. It never changes once made.
type codebook struct {
	rs     *reedSolomon
	chips  [maxSymbols + 1][grades]chips
	whiten [maxSymbols]byte // spreads the tones whatever the text is
	crc    [256]uint16
}

// codeSeed fixes the pseudo-random part of the code: changing it makes speakers
// and listeners of different versions deaf to each other.
const codeSeed = 0x7061726c6579

func newCodebook() *codebook {
	b := &codebook{rs: newReedSolomon()}
	random := rand.New(rand.NewPCG(codeSeed, 1))
	for i := range b.whiten {
		b.whiten[i] = byte(random.IntN(256))
	}
	for n := minSymbols; n <= maxSymbols; n++ {
		for g := range grades {
			c := &b.chips[n][g]
			for i := range startChips {
				c.push(byte(uint(startPattern)>>(2*(startChips-1-i))) & 3)
			}
			for range n - startChips {
				// Never the chip of 20 ms ago: a packet that conceals a loss by
				// repeating the one before shows itself.
				c.push((c.at(1) + 1 + byte(random.IntN(3))) & 3)
			}
		}
	}
	for i := range b.crc {
		v := uint16(i) << 8
		for range 8 {
			if v&0x8000 != 0 {
				v = v<<1 ^ 0x1021
			} else {
				v <<= 1
			}
		}
		b.crc[i] = v
	}
	return b
}

// checksum is CRC-16/CCITT-FALSE.
func (b *codebook) checksum(p []byte) uint16 {
	sum := uint16(0xffff)
	for _, c := range p {
		sum = sum<<8 ^ b.crc[byte(sum>>8)^c]
	}
	return sum
}

// coded is a word, or a piece of one, ready to be made audible.
type coded struct {
	n       int
	grade   grade
	data    [maxSymbols]byte
	pause   int // symbols of silence behind it
	word    string
	partial bool // the word goes on in the next piece
}

// encode codes a piece of text into n symbols.
func (b *codebook) encode(c *coded, text string, header byte) {
	word := c.data[:c.n]
	k := c.grade.content(c.n)
	clear(word)
	word[2] = header
	copy(word[overhead:k], text)
	sum := b.checksum(word[2:k])
	word[0], word[1] = byte(sum>>8), byte(sum)
	b.rs.encode(word, k)
	for i := range word {
		word[i] ^= b.whiten[i]
	}
}

// read takes the text out of a repaired word; the text is empty if it is not one.
func (b *codebook) read(word []byte, k int) (header byte, text []byte) {
	sum := b.checksum(word[2:k])
	if word[0] != byte(sum>>8) || word[1] != byte(sum) {
		return 0, nil
	}
	text = word[overhead:k]
	for len(text) > 0 && text[len(text)-1] == 0 {
		text = text[:len(text)-1]
	}
	if !utf8.Valid(text) {
		return 0, nil
	}
	for _, c := range text {
		if c < ' ' {
			return 0, nil
		}
	}
	return word[2], text
}

// pace is how fast words are spoken.
type pace struct {
	symbolsPerLetter float64
}

// newPace turns words a minute into symbols a letter. An English word is 4.4
// letters and a space.
func newPace(wordsPerMinute, speed float64) pace {
	return pace{symbolsPerLetter: 6000 / (wordsPerMinute * speed) / 5.4}
}

// weigh counts a text in letters: a syllable sign of Chinese, Japanese or Korean
// takes as long as two and a half.
func weigh(text string) float64 {
	w := 0.0
	for _, r := range text {
		if r >= 0x2e80 {
			w += 2.5
		} else {
			w++
		}
	}
	return w
}

// The marks that end a sentence or a clause, in the scripts people write in.
const (
	sentenceEnds = ".!?。！？।؟…"
	clauseEnds   = ",;:，、；：،"
)

// endsWith says whether a text ends in one of the marks, inside quotes or brackets
// or not.
func endsWith(text, marks string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, "\"')]}»”’」"))
	return strings.ContainsRune(marks, r)
}

// gap is the index of the pause between words at this pace, and behind a comma or
// a sentence.
func (p pace) gap(word string, last bool) int {
	switch {
	case last:
		return 5
	case endsWith(word, sentenceEnds):
		return 7
	case endsWith(word, clauseEnds):
		return 5
	case p.symbolsPerLetter > 8:
		return 4
	case p.symbolsPerLetter > 7:
		return 3
	case p.symbolsPerLetter > 5.5:
		return 2
	default:
		return 1
	}
}

// length chooses how many symbols a piece of text takes and how well it is
// protected: at the pace wanted, or a little slower where that buys the sturdier grade.
func (p pace) length(text string, gap int) (int, grade) {
	content := len(text) + overhead
	wanted := p.symbolsPerLetter*(weigh(text)+1) - float64(gap)
	n := min(maxSymbols, max(minSymbols, int(wanted+0.5)))
	if least := sturdy.symbols(content); float64(least) <= 1.4*float64(n) && least <= maxSymbols {
		return max(n, least), sturdy
	}
	return max(n, brisk.symbols(content)+2), brisk
}

// script cuts a text into coded words, in the memory of out.
func (b *codebook) script(out []coded, text string, p pace) []coded {
	words := strings.Fields(printable(text))
	out = slices.Grow(out, len(words))
	for i, word := range words {
		rest, pieces := word, 0
		for rest != "" {
			piece := cut(rest)
			rest = rest[len(piece):]
			last := rest == "" && i == len(words)-1
			pause := 0
			if rest == "" {
				pause = p.gap(word, last)
			}
			c := coded{pause: pauses[pause], word: word, partial: rest != ""}
			c.n, c.grade = p.length(piece, c.pause)
			header := byte(pause) << pauseShift
			if len(out) > 0 {
				header |= byte((len(out)-1)%7 + 1)
			}
			if last {
				header |= lastBit
			}
			if pieces > 0 {
				header |= pieceBit
			}
			b.encode(&c, piece, header)
			out = append(out, c)
			pieces++
		}
	}
	return out
}

// printable is a text in valid UTF-8 without control characters, which have no
// sound, and of which NUL stands for padding in the code.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// cut takes the first piece of a word, whole runes only.
func cut(word string) string {
	if len(word) <= maxPiece {
		return word
	}
	n := maxPiece
	for !utf8.RuneStart(word[n]) {
		n--
	}
	return word[:n]
}
