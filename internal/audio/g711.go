package audio

import "math/bits"

// The encode tables are indexed by the bits of a sample that a law looks at: 14
// for mu-law and 13 for A-law (G.711 tables 1 and 2). Together with the decode
// tables they take 25 kB, shared by all calls.
var (
	muLawOf = muLawEncodeTable()
	aLawOf  = aLawEncodeTable()
	ofMuLaw = muLawDecodeTable()
	ofALaw  = aLawDecodeTable()
)

// Each function below works on the shorter of its two slices and says how many
// samples that was: a short packet is then a short frame, never a panic.

// EncodeMuLaw writes the G.711 mu-law codes of src to dst (RTP payload type 0,
// RFC 3551 4.5.14) and returns how many it wrote.
func EncodeMuLaw(dst []byte, src []int16) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for i, s := range src {
		dst[i] = muLawOf[uint16(s)>>2]
	}
	return n
}

// DecodeMuLaw writes the samples of the G.711 mu-law codes in src to dst and
// returns how many it wrote.
func DecodeMuLaw(dst []int16, src []byte) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for i, c := range src {
		dst[i] = ofMuLaw[c]
	}
	return n
}

// EncodeALaw writes the G.711 A-law codes of src to dst (RTP payload type 8,
// RFC 3551 4.5.14), even bits inverted as on the line, and returns how many it
// wrote.
func EncodeALaw(dst []byte, src []int16) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for i, s := range src {
		dst[i] = aLawOf[uint16(s)>>3]
	}
	return n
}

// DecodeALaw writes the samples of the G.711 A-law codes in src to dst and
// returns how many it wrote.
func DecodeALaw(dst []int16, src []byte) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for i, c := range src {
		dst[i] = ofALaw[c]
	}
	return n
}

// muLawBias makes the segments of mu-law start at powers of two: the first
// decision value of segment k is 2^(k+5) - 33 in 14-bit units (G.711 table 2).
const muLawBias = 33

func muLawEncodeTable() *[1 << 14]byte {
	var table [1 << 14]byte
	for i := range table {
		sample := int(int16(uint16(i << 2)))
		sign, magnitude := 0x80, sample>>2
		if sample < 0 {
			// One's complement, so that the two halves of the law mirror each other.
			sign, magnitude = 0, ^magnitude
		}
		magnitude = min(magnitude+muLawBias, 1<<13-1)
		segment := bits.Len(uint(magnitude)) - 6
		step := magnitude >> (segment + 1) & 0xf
		// All bits but the sign travel inverted, which gives silence many ones.
		table[i] = byte(sign | (^(segment<<4 | step) & 0x7f))
	}
	return &table
}

func muLawDecodeTable() *[256]int16 {
	var table [256]int16
	for i := range table {
		code := ^i
		segment, step := code>>4&7, code&0xf
		magnitude := ((2*step+muLawBias)<<segment - muLawBias) << 2
		if i&0x80 == 0 {
			magnitude = -magnitude
		}
		table[i] = int16(magnitude)
	}
	return &table
}

// aLawInversion is the even bits, which A-law inverts on the line (G.711 table 1,
// note 2).
const aLawInversion = 0x55

func aLawEncodeTable() *[1 << 13]byte {
	var table [1 << 13]byte
	for i := range table {
		sample := int(int16(uint16(i << 3)))
		sign, magnitude := 0x80, sample>>4
		if sample < 0 {
			sign, magnitude = 0, ^magnitude
		}
		// The first two segments share a step size; each later one doubles it.
		segment := max(bits.Len(uint(magnitude))-4, 0)
		step := magnitude >> max(segment-1, 0) & 0xf
		table[i] = byte((sign | segment<<4 | step) ^ aLawInversion)
	}
	return &table
}

func aLawDecodeTable() *[256]int16 {
	var table [256]int16
	for i := range table {
		code := i ^ aLawInversion
		segment, step := code>>4&7, code&0xf
		magnitude := 2*step + 1
		if segment > 0 {
			magnitude = (magnitude + 32) << (segment - 1)
		}
		magnitude <<= 3
		if code&0x80 == 0 {
			magnitude = -magnitude
		}
		table[i] = int16(magnitude)
	}
	return &table
}
